"""Asking an original: in requests, each kept on disk, counted, and never beyond a budget."""

from understudy.queries.meter import Allowance
from understudy.queries.queries import Queries, allowance_of, check_fit, unused

__all__ = ["Allowance", "Queries", "allowance_of", "check_fit", "unused"]
