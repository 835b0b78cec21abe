"""Originals behind HTTP: asked with care, since every request is paid for and any of them may fail."""

from ectype.original.http.factory import open_http
from ectype.original.http.rate_limit import RetryWaits, retry_after

__all__ = ["RetryWaits", "open_http", "retry_after"]
