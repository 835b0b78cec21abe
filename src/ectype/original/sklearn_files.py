"""Originals that are files: scikit-learn models kept by skops, and pickles whose hash the user vouches for."""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import re
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Unpack

from ectype._common.bounded_io import MOST_BYTES
from ectype.errors import EctypeError, SettingError
from ectype.original.base import Original
from ectype.original.decode import with_decoding
from ectype.original.options import LabelReader
from ectype.original.python import as_original
from ectype.original.skops_trust import TRUSTED, check_model
from ectype.original.subprocess_io import brief
from ectype.types import Classes

# How often a part of an archive may be as large, once unpacked, as the archive, beyond so many bytes: what classifiers
# hold shrinks to a tenth at best, and zeros to a thousandth.
MOST_TIMES, FREE_BYTES = 100, 2**26
# A forest of 10,000 trees needs about 150 MB; parsed, JSON takes several times its size.
MOST_SCHEMA_BYTES = 2**28


class ModelBytes(NamedTuple):
    """A file that was read once: what was hashed is what is loaded."""

    name: str
    content: bytes
    sha256: str


def read_file(spec: str) -> ModelBytes:
    """The file at a path, whole."""
    path = Path(spec)
    try:
        if not path.is_file():
            raise SettingError("original", "a file", f"no file {spec}")
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise SettingError(path.name, f"a file of at most {MOST_BYTES} bytes", f"{size}")
        content = path.read_bytes()
    except OSError as error:
        raise SettingError("original", "a file that can be read", str(error)) from error
    return ModelBytes(path.name, content, hashlib.sha256(content).hexdigest())


def open_skops(
    spec: str, classes: Classes = None, *, types: Iterable[str] | None = (), **reading: Unpack[LabelReader]
) -> Original:
    """The classifier in a skops file, if it contains nothing but what skops or our own list trusts, and `types`.

    Types say what code runs, not what it is run on: a hostile file of known types may still make compiled code of
    scikit-learn misbehave. The child and feature numbers of trees are checked; a stranger's model that cannot be
    reviewed is better asked behind an endpoint or a command.
    """
    file = read_file(spec)
    return with_decoding(_opened(skops_object(file, types), file), classes, **reading)


def skops_object(file: ModelBytes, types: Iterable[str] | None = ()) -> Any:
    """The object in a skops file, if all its types are trusted by skops, by our list, or by `types`."""
    accepted = TRUSTED | _named_types(types)
    try:
        _refuse_bombs(file)
        model = _load_skops(file, accepted)
        check_model(model)
    except EctypeError:
        raise
    except Exception as error:
        raise SettingError(file.name, "a skops file", _words(error), "it is damaged, or something else") from error
    return model


def open_pickle(
    spec: str, classes: Classes = None, *, trust: str | None = None, **reading: Unpack[LabelReader]
) -> Original:
    """The classifier in a pickle, or a joblib file, whose SHA-256 is `trust`: loading it runs whatever is in it."""
    file = read_file(spec)
    _refuse_untrusted(file, trust)
    import joblib

    try:
        model = joblib.load(io.BytesIO(file.content))  # reads plain pickles as well
    except Exception as error:
        hint = "the modules it was made with must be installed"
        raise SettingError(file.name, "a pickle that can be loaded", _words(error), hint) from error
    return with_decoding(_opened(model, file), classes, **reading)


def _opened(model: object, file: ModelBytes) -> Original:
    if not callable(getattr(model, "predict", None)) or isinstance(model, type):
        raise SettingError(file.name, "a classifier, with a method predict", type(model).__name__)
    try:
        original = as_original(model, name=file.name)
    except EctypeError:
        raise
    except Exception as error:  # what it says about itself makes no sense
        raise SettingError(file.name, "a fitted classifier", _words(error)) from error
    original.fingerprint = file.sha256
    return original


def _words(error: Exception) -> str:
    return brief(f"{type(error).__name__}: {error}")


# --- pickles ----------------------------------------------------------------------------------------------------------


def _refuse_untrusted(file: ModelBytes, trust: str | None) -> None:
    # Which hash to pass is not said here: it has to come from whoever made the file, or vouching for it means nothing.
    if trust is None:
        hint = "get the hash from whoever made it and pass --trust SHA256 (sha256sum FILE computes it)"
        found = f"{file.name} without it: loading a pickle runs any code its author put there"
        raise SettingError("trust", "the SHA-256 of a pickle that you trust", found, hint)
    if not isinstance(trust, str) or not re.fullmatch("[0-9a-fA-F]{64}", trust):
        raise SettingError("trust", "a SHA-256, 64 hexadecimal digits", repr(trust))
    if not hmac.compare_digest(trust.lower(), file.sha256):
        hint = "this is not the file that the hash was made for: do not load it"
        raise SettingError(file.name, f"a file of SHA-256 {trust.lower()}", file.sha256, hint)


# --- skops ------------------------------------------------------------------------------------------------------------


def _named_types(types: Iterable[str] | None) -> set[str]:
    named = {types} if isinstance(types, str) else set(types or ())
    if not all(isinstance(name, str) for name in named):
        raise SettingError("types", "names of types, such as package.module.Type", repr(sorted(map(repr, named))))
    return named


def _load_skops(file: ModelBytes, accepted: frozenset[str]) -> object:
    import skops.io

    unknown = sorted(set(skops.io.get_untrusted_types(data=file.content)) - accepted)
    if unknown:
        hint = "find out what they do when loaded and called, then pass --types NAME for each, or types= in Python"
        raise SettingError(file.name, "types that are known to be harmless", ", ".join(unknown), hint)
    return skops.io.loads(file.content, trusted=sorted(accepted))


def _refuse_bombs(file: ModelBytes) -> None:
    """Refuse zip bombs: a part of the archive is unpacked as often as the schema refers to it."""
    with zipfile.ZipFile(io.BytesIO(file.content)) as archive:
        sizes = {part.filename: part.file_size for part in archive.infolist()}
        most = min(MOST_BYTES, FREE_BYTES + MOST_TIMES * len(file.content))
        _refuse_larger(file, sizes["schema.json"], min(most, MOST_SCHEMA_BYTES))
        schema = json.loads(archive.read("schema.json"))
    _refuse_larger(file, sum(sizes.get(name, 0) for name in _references(schema)), most)


def _refuse_larger(file: ModelBytes, size: int, most: int) -> None:
    if size > most:
        raise SettingError(file.name, f"at most {most} bytes once unpacked", f"{size}", "it may be made to do harm")


def _references(schema: object) -> Iterator[str]:
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if isinstance(part.get("file"), str):
                yield part["file"]
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
