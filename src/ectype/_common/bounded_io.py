"""Reading files that somebody else may have written: regular files only, bounded in bytes; JSON, bounded in values.

A directory may hold anything under a file's name: a pipe that nobody writes to, a link to an endless device, a sparse
file of a terabyte, or JSON that takes a hundred times its bytes once it is parsed. None of these is read.
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields, is_dataclass
from functools import cache
from io import BufferedReader
from pathlib import Path
from types import UnionType
from typing import Any, NotRequired, Union, cast, get_args, get_origin, get_type_hints, is_typeddict

from ectype._common.atomic_io import current
from ectype._common.formatting import shorten
from ectype.errors import DirectoryError

# The most bytes of a file of arrays (what one safetensors or protobuf file may hold), and of a file of JSON.
MOST_BYTES, MOST_JSON_BYTES = 2**31, 2**28
# The most values in a JSON document, each of which takes about 100 bytes of memory, and how deep they may be nested.
MOST_VALUES, MOST_DEPTH = 2**22, 64
# The most bits of a whole number, and the most characters that an error shows of what was found.
MOST_BITS = 64
SHOWN = 80
# What comes of values that are not what they should be, wherever they are used first.
UNREADABLE = (
    OSError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, MemoryError
)  # fmt: skip


class NotRegularError(OSError):
    """Something that has the name of a file, and is none."""


@contextmanager
def open_regular(path: Path) -> Iterator[BufferedReader]:
    """Open a regular file to read, also through links; what else has its name is an OSError, and is not waited for.

    >>> with open_regular(Path(os.devnull)):
    ...     pass
    Traceback (most recent call last):
        ...
    ectype._common.bounded_io.NotRegularError: a device, and no regular file
    """
    # Without O_NONBLOCK, opening a pipe waits for somebody to write to it; Windows has neither.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOCTTY", 0)
    descriptor = os.open(path, flags)
    try:
        refuse_irregular(os.fstat(descriptor).st_mode)
        with open(descriptor, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(descriptor)


def refuse_irregular(mode: int) -> None:
    """NotRegularError, which says what it is instead, unless these are the mode bits of a regular file."""
    if stat.S_ISREG(mode):
        return
    kinds = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    raise NotRegularError(f"{kinds.get(stat.S_IFMT(mode), 'a device')}, and no regular file")


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """The bytes of a regular file, at most so many; all that can be wrong with it is an error of ours."""
    try:
        with _opened(path) as file:
            size = os.fstat(file.fileno()).st_size
            content = b"" if size > most else file.read(size + 1)  # it makes room for as many at once
    except FileNotFoundError as error:
        hint = "name the directory that --out or save wrote"
        raise DirectoryError(str(path), "a file of a finished run", "nothing", hint) from error
    except (OSError, ValueError, MemoryError) as error:
        raise DirectoryError(str(path), "a file that can be read", str(error) or "too little memory for it") from error
    if size > most:
        raise DirectoryError(str(path), f"a file of at most {most} bytes", size)
    return content


@contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    """A file, where it is now: it may be moved to its place while it is looked for."""
    with ExitStack() as opened:
        try:
            file = opened.enter_context(open_regular(current(path)))
        except FileNotFoundError:
            file = opened.enter_context(open_regular(path))
        yield file


def parse_json(content: bytes | str) -> Any:
    """The JSON document in a text; ValueError for what is none, and for what no file of ours holds.

    That is: a key twice in an object, a number that is infinite or none, half of a surrogate pair, values that are
    nested too deep, and too many of them.

    >>> parse_json('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    >>> parse_json('{"a": 1, "a": 2}')
    Traceback (most recent call last):
        ...
    ValueError: the key 'a' twice in one object
    """
    text = content.decode() if isinstance(content, bytes) else content
    if sum(map(text.count, ",[{")) > MOST_VALUES:
        raise ValueError(f"more than {MOST_VALUES} values")
    try:
        found = json.loads(text, object_pairs_hook=_unique)
    except RecursionError as error:
        raise ValueError(f"values that are nested more than {MOST_DEPTH} deep") from error
    _refuse_odd(found)
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        ((name, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the key {shorten(repr(name), SHOWN)} twice in one object")
    return found


def _refuse_odd(found: object) -> None:
    """ValueError for values that other programs could not read once they are written again, or not without crashing."""
    level, depth = [found], 0
    while level:
        if depth > MOST_DEPTH:
            raise ValueError(f"values that are nested more than {MOST_DEPTH} deep")
        inside: list[object] = []
        for value in level:
            if isinstance(value, dict):
                inside.extend(value)
                inside.extend(value.values())
            elif isinstance(value, list):
                inside.extend(value)
            elif isinstance(value, str):
                value.encode()  # a lone surrogate is an error
            elif isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"the number {value}")
            elif isinstance(value, int) and value.bit_length() > MOST_BITS:
                raise ValueError(f"a whole number of {value.bit_length()} bits")
        level, depth = inside, depth + 1


def check_type(value: object, hint: Any, where: str) -> None:
    """ValueError unless a value, and all within, is what a type hint says: of JSON, dataclasses and plain objects.

    >>> check_type({"a": [1.0, 2]}, dict[str, list[float]], "queries")
    >>> check_type({"a": [1.0, True]}, dict[str, list[float]], "queries")
    Traceback (most recent call last):
        ...
    ValueError: queries: a: 1: expected float, found True
    """
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any or (hint is float and type(value) is int):
        return
    if origin in (Union, UnionType):
        _check_any(value, inner, where)
    elif origin in (list, tuple, Sequence):
        _expect(value, (list, tuple), "a list", where)
        for at, part in enumerate(cast(Sequence[object], value)):
            check_type(part, inner[at] if origin is tuple and inner[-1] is not Ellipsis else inner[0], f"{where}: {at}")
    elif origin in (dict, Mapping):
        _expect(value, dict, "an object", where)
        for key, part in cast(dict[object, object], value).items():
            check_type(key, inner[0], where)
            check_type(part, inner[1], f"{where}: {key}")
    elif is_typeddict(hint):
        _expect(value, dict, "an object", where)
        found = cast(dict[str, object], value)
        for name, inside in _hints(hint).items():
            optional = get_origin(inside) is NotRequired
            if name not in found and not optional:
                raise ValueError(f"{where}: expected {name!r}, found nothing")
            if name in found:
                check_type(found[name], get_args(inside)[0] if optional else inside, f"{where}: {name}")
    else:
        _expect(value, hint, getattr(hint, "__name__", str(hint)), where)
        names = [part.name for part in fields(hint)] if is_dataclass(hint) else getattr(hint, "_fields", ())
        for name in names:
            check_type(getattr(value, name), _hints(hint)[name], f"{where}: {name}")


@cache
def _hints(hint: Any) -> dict[str, Any]:
    return get_type_hints(hint, include_extras=True)


def _check_any(value: object, hints: Sequence[Any], where: str) -> None:
    """Of several hints one has to fit; otherwise the error is that of the first, beside which None is no news."""
    errors = []
    for hint in hints:
        try:
            return check_type(value, hint, where)
        except ValueError as error:
            errors.append(error)
    raise errors[0]


def _expect(value: object, kind: Any, expected: str, where: str) -> None:
    if isinstance(value, kind) and (kind is bool or not (kind in (int, float) and isinstance(value, bool))):
        return
    raise ValueError(f"{where}: expected {expected}, found {shorten(repr(value), SHOWN)}")
