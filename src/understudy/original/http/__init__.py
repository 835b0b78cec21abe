"""Originals behind HTTP: asked with care, since every request is paid for and any of them may fail."""

from understudy.original.http.limits import Patience, retry_after
from understudy.original.http.opening import open_http

__all__ = ["Patience", "open_http", "retry_after"]
