"""Checksums of a run's files, chained from run.json: what was damaged or edited is found, and said where.

run.json holds the SHA-256 of every other file, the place that the ledger's own chain had reached, and a checksum for
each of its own parts. Whoever edits a file can compute all of them anew; a signature (`Key`) shows that nobody without
the key did.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from ectype._common.bounded_io import MOST_BYTES, MOST_JSON_BYTES, check_type, parse_json, read_bytes
from ectype.errors import DirectoryError, IntegrityError, SettingError
from ectype.types import Json

RUN = "run.json"
# Of run.json. Runs of format 1 have no checksums.
FORMAT = 2
CHECKSUMS, SIGNATURE = "checksums", "signature"
# The environment variable with the key of signatures, and the fewest bytes of one.
KEY_VARIABLE, KEY_BYTES = "ECTYPE_SIGNING_KEY", 16
AGAIN = (
    "it was changed or damaged: restore it from a backup; or, where the ledger is whole, delete run.json and run the "
    "same command again, which makes the copy from the ledger's answers"
)


@dataclass(frozen=True)
class Anchor:
    """How far a ledger's chain had come, and its digest there; of a finished run also that of what the rows hold."""

    batch: int
    sha256: str
    requests: int = 0
    content: str = ""


class FileChecksum(TypedDict):
    """What run.json says of another file."""

    sha256: str
    parts: dict[str, str]


class Sealed(TypedDict):
    """What is read of run.json to check all else; the parts about the copy are checked when it is loaded."""

    format: int
    settings: dict[str, Any]
    checksums: NotRequired[dict[str, str]]
    files: NotRequired[dict[str, FileChecksum]]
    ledger: NotRequired[dict[str, Any] | None]


@dataclass(frozen=True)
class Key:
    """The key of a signature: HMAC-SHA256, so that whoever can verify one can also make one."""

    secret: bytes

    @classmethod
    def of_environment(cls) -> Key | None:
        """The key in the environment, if there is one."""
        text = os.environ.get(KEY_VARIABLE)
        if not text:
            return None
        if len(text.encode()) < KEY_BYTES:
            hint = "make one with: openssl rand -hex 32"
            raise SettingError(KEY_VARIABLE, f"a key of at least {KEY_BYTES} bytes", "a shorter one", hint)
        return cls(text.encode())

    @classmethod
    def needed(cls) -> Key:
        """The key in the environment; an error if there is none."""
        key = cls.of_environment()
        if key is None:
            raise SettingError(KEY_VARIABLE, "a key to sign with in the environment", "nothing", "export it first")
        return key

    def sign(self, checksums: Mapping[str, str]) -> str:
        """The signature of a run's checksums, and so of all its files."""
        return hmac.new(self.secret, _canonical(dict(checksums)), sha256).hexdigest()


# --- run.json itself --------------------------------------------------------------------------------------------------


def seal(content: Json, key: Key | None = None) -> Json:
    """What run.json is to hold, with a checksum for each part and, with a key, a signature.

    >>> sorted(seal({"seed": 1}))
    ['checksums', 'seed']
    """
    checksums = _checksums(content)
    return {**content, CHECKSUMS: checksums} | ({SIGNATURE: key.sign(checksums)} if key else {})


def read_run(directory: Path) -> Json:
    """run.json of a finished run, checked against its checksums and, if a key is in the environment, its signature."""
    path = directory / RUN
    content = read_json(path)
    if content.get("format") not in (1, FORMAT):
        hint = "use the ectype that wrote it, or a newer one"
        raise DirectoryError(f"{path}: format", f"{FORMAT} or 1", content.get("format"), hint)
    try:
        check_type(content, Sealed, path.name)
    except ValueError as error:
        raise IntegrityError(str(path), "what a finished run writes", str(error), AGAIN) from error
    if is_checked(content):
        _check_parts(path, content)
    key = Key.of_environment()
    if key is not None:
        _check_signature(path, content, key)
    return content


def is_checked(run: Json) -> bool:
    """Whether a run has checksums; those of version 0.1 do not."""
    return run["format"] != 1 or CHECKSUMS in run


def signature_of(run: Json) -> str:
    """What is known of a run's signature, in words; one that does not fit the key was an error before."""
    if SIGNATURE not in run:
        return "none"
    return f"not checked, as {KEY_VARIABLE} is not set" if Key.of_environment() is None else "checked, and valid"


def anchor_of(run: Json) -> Anchor | None:
    """Where the ledger of a run was when the run was finished."""
    found = run.get("ledger")
    if found is None:
        return None
    try:
        anchor = Anchor(**found)
        check_type(anchor, Anchor, "ledger")
    except (TypeError, ValueError) as error:
        raise IntegrityError(RUN, "how far the ledger's chain had come", str(error), AGAIN) from error
    return anchor


def _check_parts(path: Path, content: Json) -> None:
    expected, found = content.get(CHECKSUMS), _checksums(content)
    if expected is None:
        raise IntegrityError(f"{path}: {CHECKSUMS}", "a checksum for every part", "nothing", AGAIN)
    for part in sorted({*expected, *found}):
        if expected.get(part) != found.get(part):
            raise _mismatch(f"{path}: {part}", expected.get(part), found.get(part))


def _check_signature(path: Path, content: Json, key: Key) -> None:
    found, hint = content.get(SIGNATURE), f"do not trust it; or, if nobody signed it, unset {KEY_VARIABLE}"
    if not isinstance(found, str):
        raise DirectoryError(str(path), f"a signature, as {KEY_VARIABLE} is set", "none", hint)
    if not hmac.compare_digest(found.encode(), key.sign(content[CHECKSUMS]).encode()):
        found = "one by another key, or of other files"
        raise DirectoryError(f"{path}: {SIGNATURE}", f"a signature by the key in {KEY_VARIABLE}", found, hint)


def _checksums(content: Json) -> dict[str, str]:
    parts = {name: part for name, part in content.items() if name not in (CHECKSUMS, SIGNATURE)}
    return {name: sha256(_canonical(part)).hexdigest() for name, part in parts.items()}


def _canonical(content: object) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


# --- the other files --------------------------------------------------------------------------------------------------


def file_entry(name: str, content: bytes) -> Json:
    """What run.json says of a file: its SHA-256 and, to name the place of damage, the start of those of its parts."""
    return {"sha256": sha256(content).hexdigest(), "parts": _parts(name, content)}


def read_file(path: Path, run: Json) -> bytes:
    """The bytes of a file of a run, checked."""
    content = read_bytes(path, MOST_JSON_BYTES if ".json" in path.name else MOST_BYTES)
    if not is_checked(run):
        return content
    expected = run.get("files", {}).get(path.name)
    found = file_entry(path.name, content)
    if not isinstance(expected, dict) or expected.get("sha256") != found["sha256"]:
        raise _mismatch(_place(path, expected, found), expected and expected.get("sha256"), found["sha256"])
    return content


def read_json(path: Path) -> Json:
    """The JSON object in a file of a run."""
    return json_of(path, read_bytes(path, MOST_JSON_BYTES))


def json_of(path: Path, content: bytes) -> Json:
    """The JSON object in the bytes of a file."""
    try:
        found = parse_json(content)
    except ValueError as error:
        raise IntegrityError(str(path), "a JSON document", str(error), AGAIN) from error
    if not isinstance(found, dict):
        raise IntegrityError(str(path), "a JSON object", type(found).__name__, AGAIN)
    return found


def _parts(name: str, content: bytes) -> dict[str, str]:
    """The first digits of checksums: of the members of a JSON object, of the lines of a JSON Lines file."""
    try:
        if name.endswith(".jsonl"):
            found = {f"line {k}": line for k, line in enumerate(content.splitlines(), 1)}
        else:
            found = {key: _canonical(part) for key, part in parse_json(content).items()} if ".json" in name else {}
    except (ValueError, AttributeError):
        return {}
    return {part: sha256(text).hexdigest()[:12] for part, text in found.items()}


def _place(path: Path, expected: Json | None, found: Json) -> str:
    """A file, and the first part of it that is not what it was, where that can be told."""
    before, now = (expected or {}).get("parts"), found["parts"]
    changed = [part for part in before if before[part] != now.get(part)] if isinstance(before, dict) and now else []
    return f"{path}: {changed[0]}" if changed else str(path)


def _mismatch(where: str, expected: object, found: object) -> IntegrityError:
    return IntegrityError(where, f"sha256 {expected or 'of nothing'}", found or "nothing", AGAIN)
