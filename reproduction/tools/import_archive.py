"""Read the public archive of the collection that the paper uses into a folder of `<name>.csv.gz`, for `--data`.

    python reproduction/tools/import_archive.py ARCHIVE --out uci

ARCHIVE is a .zip, a .tar.gz or a folder with files <name>/<name>_R.dat.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import re
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

from ectype._common.atomic_io import as_path, atomic_folder, directory_errors
from ectype.errors import DirectoryError, EctypeError, SettingError, SpaceError
from ectype_paper import FAMILY_OF

# Far above what the collection has, and low enough that an archive made to fill a disk or the memory is noticed.
MOST_MEMBERS, MOST_BYTES, MOST_IN_ALL = 20_000, 2**28, 2**31
# Whole, or in two parts that belong together.
WANTED = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9_.+-]*?)(?P<part>_train|_test)?_R\.dat")
READABLE = "a .zip, a .tar.gz, or a folder with files <name>/<name>_R.dat"


class ArchiveMember(NamedTuple):
    """A file in an archive: its path there, and how to read at most so many bytes of it."""

    path: str
    read: Callable[[int], bytes]


@dataclass
class ArchiveRows:
    """The rows of a file with the numbers as they were written, joined by commas; and its classes."""

    source: str
    width: int
    lines: list[str] = field(default_factory=list)
    classes: set[float] = field(default_factory=set)


def import_archive(archive: str | Path, out: str | Path, only: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """Write the problems of an archive, or only some of them, to a new folder; gives their names.

    The folder appears whole, or not at all.
    """
    archive, out = as_path(archive), as_path(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DirectoryError(str(out), "a new or empty directory", "other files", "choose another directory")
    with atomic_folder(out) as work:
        index = [_write(work, name, parts) for name, parts in _problems(archive, only)]
        if not index:
            raise SettingError(str(archive), READABLE, "no such file of a problem that is looked for")
        _write_index(work, sorted(index, key=lambda row: row["name"]))
    return tuple(sorted(row["name"] for row in index))


def _problems(archive: Path, only: tuple[str, ...] | None) -> Iterator[tuple[str, list[ArchiveRows]]]:
    """Every problem with its parts, as soon as they are all there."""
    waiting: dict[str, dict[str, ArchiveRows]] = {}
    seen: set[tuple[str, str]] = set()
    with _opened(archive) as members:
        for member in members:
            name, part = _meaning(member.path)
            if not name or (only is not None and name not in only):
                continue
            if (name, part) in seen or (name, "") in seen or (part == "" and any(key[0] == name for key in seen)):
                raise SpaceError(f"{archive}: {member.path}", "every problem once", f"{name} again")
            seen.add((name, part))
            parts = waiting.setdefault(name, {})
            parts[part] = _parse(f"{archive}: {member.path}", member.read(MOST_BYTES + 1))
            if part == "" or len(parts) == 2:
                yield name, [rows for _, rows in sorted(parts.items(), reverse=True)]  # train, then test
                del waiting[name]
    for name, parts in waiting.items():
        missing = "_test" if "_train" in parts else "_train"
        raise SpaceError(str(archive), f"{name}{missing}_R.dat beside its other part", "nothing")


def _meaning(path: str) -> tuple[str, str]:
    """The problem that a path in the archive belongs to, if to any, and which part of it."""
    parts = PurePosixPath(path).parts
    found = WANTED.fullmatch(parts[-1]) if parts else None
    if found is None or len(parts) < 2 or parts[-2] != found["name"]:
        return "", ""
    return found["name"], found["part"] or ""


@contextmanager
def _opened(archive: Path) -> Iterator[Iterator[ArchiveMember]]:
    """The files of an archive of any kind, within limits; what its readers say becomes an error of ours."""
    try:
        if archive.is_dir():
            yield _limited(archive, _in_folder(archive))
        elif zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as file:
                yield _limited(archive, _in_zip(file))
        else:
            with tarfile.open(archive) as file:
                yield _limited(archive, _in_tar(file))
    except (OSError, EOFError, zlib.error, tarfile.TarError, zipfile.BadZipFile, NotImplementedError) as error:
        raise SettingError(str(archive), READABLE, str(error) or type(error).__name__) from error
    except RuntimeError as error:  # zipfile: a password is needed
        raise SettingError(str(archive), READABLE, str(error)) from error


def _limited(archive: Path, members: Iterator[tuple[ArchiveMember, bool]]) -> Iterator[ArchiveMember]:
    """Files only, none of which leads out of the archive, and not too many or too large."""
    total = 0

    def limited(path: str, read: Callable[[int], bytes]) -> Callable[[int], bytes]:
        def at_most(n: int) -> bytes:
            nonlocal total
            content = read(n)
            total += len(content)
            if len(content) > MOST_BYTES or total > MOST_IN_ALL:
                limit = f"at most {MOST_BYTES} bytes in a file, and {MOST_IN_ALL} in all, unpacked"
                raise SpaceError(f"{archive}: {path}", limit, "more")
            return content

        return at_most

    for count, (member, regular) in enumerate(members, 1):
        if count > MOST_MEMBERS:
            raise SpaceError(str(archive), f"at most {MOST_MEMBERS} members", "more")
        if _leads_out(member.path):
            raise SpaceError(str(archive), "paths that stay inside the archive", repr(member.path))
        if regular:
            yield ArchiveMember(member.path, limited(member.path, member.read))
        elif _meaning(member.path)[0]:
            raise SpaceError(f"{archive}: {member.path}", "a file", "a link or a device")


def _leads_out(path: str) -> bool:
    # A backslash is a separator where some archives are made; no problem's path has one.
    return ".." in re.split(r"[/\\]", path) or re.match(r"[/\\]|[A-Za-z]:", path) is not None


def _in_folder(folder: Path) -> Iterator[tuple[ArchiveMember, bool]]:
    for path in sorted(folder.rglob("*_R.dat")):
        inside = path.is_file() and path.resolve().is_relative_to(folder.resolve())
        yield ArchiveMember(path.relative_to(folder).as_posix(), partial(_head, partial(_open, path))), inside


def _in_zip(file: zipfile.ZipFile) -> Iterator[tuple[ArchiveMember, bool]]:
    for info in file.infolist():
        link = info.external_attr >> 16 & 0o170000 == 0o120000
        yield ArchiveMember(info.filename, partial(_head, partial(file.open, info))), not info.is_dir() and not link


def _in_tar(file: tarfile.TarFile) -> Iterator[tuple[ArchiveMember, bool]]:
    for info in file:
        yield ArchiveMember(info.name, partial(_head, partial(file.extractfile, info))), info.isfile()


def _open(path: Path) -> IO[bytes]:
    return path.open("rb")


def _head(opened: Callable[[], IO[bytes] | None], n: int) -> bytes:
    stream = opened()
    assert stream is not None  # only files are read
    with stream:
        return stream.read(n)


def _parse(where: str, content: bytes) -> ArchiveRows:
    """Whitespace separated: a header that ends in clase, then rows that begin with their number."""
    try:
        lines = content.decode("ascii").splitlines()
    except UnicodeDecodeError as error:
        at = content[: error.start].count(b"\n") + 1
        raise SpaceError(f"{where}, line {at}", "plain text", f"the byte {content[error.start]:#x}") from error
    header = lines[0].split() if lines else []
    if len(header) < 2 or header[-1] != "clase":
        raise SpaceError(f"{where}, line 1", "a header such as f1 f2 clase", header[-3:])
    rows = ArchiveRows(where, len(header))
    for number, line in enumerate(lines[1:], 2):
        cells = line.split()
        if cells:
            values = _checked(where, number, cells, len(header))
            rows.lines.append(",".join(values))
            rows.classes.add(float(values[-1]))
    return rows


def _checked(where: str, line: int, cells: list[str], width: int) -> list[str]:
    """The cells of a row without its number."""
    if len(cells) != width + 1:
        expected = f"a row's number and {width} numbers"
        raise SpaceError(f"{where}, line {line}", expected, f"{len(cells)} cells")
    for cell in cells[1:]:
        if not _finite(cell):
            raise SpaceError(f"{where}, line {line}", "finite numbers", repr(cell[:40]))
    return cells[1:]


def _finite(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def _write(folder: Path, name: str, parts: list[ArchiveRows]) -> dict[str, Any]:
    """Write a problem's file; gives its row of the index."""
    first, lines = parts[0], [line for part in parts for line in part.lines]
    for other in parts[1:]:
        if other.width != first.width:
            raise SpaceError(other.source, f"{first.width} columns, as in {first.source}", other.width)
    classes = set().union(*(part.classes for part in parts))
    if len(classes) < 2:
        raise SpaceError(first.source, "rows of at least two classes", f"{len(lines)} rows of {len(classes)}")
    header = ",".join([*(f"f{j}" for j in range(first.width - 1)), "label"])
    text = "\n".join([header, *lines]) + "\n"
    with directory_errors(folder):
        # Without a time in it, the same archive gives the same bytes.
        (folder / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode("ascii"), mtime=0))
    sizes = {"classes": len(classes), "samples": len(lines), "features": first.width - 1}
    return {"name": name, **sizes, "source": " + ".join(part.source for part in parts)}


def _write_index(folder: Path, index: list[dict[str, Any]]) -> None:
    with (folder / "index.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(index[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(index)


def main() -> None:
    """Read an archive; say which of the paper's problems it does not have."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="the folder to write, for --data")
    parser.add_argument("--all", action="store_true", help="every problem of the archive, not only the paper's")
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout, and nothing else")
    told = parser.parse_args()
    try:
        found = import_archive(told.archive, told.out, None if told.all else tuple(FAMILY_OF))
    except EctypeError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    missing = sorted(FAMILY_OF.keys() - {*found})
    if told.json:
        print(json.dumps({"out": str(told.out), "problems": list(found), "missing": missing}))
        return
    if missing:
        print(f"not in the archive: {', '.join(missing)}", file=sys.stderr)
    print(f"{len(found)} problems are in {told.out}.")


if __name__ == "__main__":
    main()
