"""Libraries that only an extra of the package installs."""

from __future__ import annotations

from importlib.util import find_spec

from ectype.errors import SettingError


def require_extra(where: str, extra: str, *libraries: str) -> None:
    """Refuse what takes libraries of which one is not installed, and name the extra that brings them.

    >>> require_extra("copy.onnx", "onnx", "numpy", "no_such_library")
    Traceback (most recent call last):
        ...
    ectype.errors.SettingError: copy.onnx: expected the libraries numpy and no_such_library, \
found no no_such_library; install them: pip install "ectype[onnx]"
    """
    missing = [name for name in libraries if find_spec(name) is None]
    if missing:
        hint = f'install them: pip install "ectype[{extra}]"'
        raise SettingError(where, f"the libraries {' and '.join(libraries)}", f"no {' and no '.join(missing)}", hint)
