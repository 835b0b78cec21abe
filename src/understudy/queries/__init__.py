"""Asking an original: in requests, each kept on disk, counted, and never beyond a budget."""

from understudy.queries.queries import Queries, check_fit, unused

__all__ = ["Queries", "check_fit", "unused"]
