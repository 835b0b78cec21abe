"""The libraries that only serving needs: extras bring them, and without one the error says which extra."""

from __future__ import annotations

from importlib import import_module

from ectype.errors import SettingError

# What the application needs, whichever server runs it, and what our own server needs beside that.
APPLICATION, SERVER = ("prometheus_client",), ("prometheus_client", "uvicorn", "httptools")


def require_libraries(where: str, extra: str, *names: str) -> None:
    """Refuse where a library is missing, before anything is loaded or started."""
    for name in names:
        try:
            import_module(name)
        except ImportError:
            raise SettingError(
                where, f"the library {name}", "none", f'install it: pip install "ectype[{extra}]"'
            ) from None
