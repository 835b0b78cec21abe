"""C files read back: compiled as strictly as compilers can, then asked about rows in a process of their own."""

from __future__ import annotations

import os
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

import numpy as np

from ectype.errors import ExportError
from ectype.export._c import level_words
from ectype.export._c_snippets import fill_snippet
from ectype.export._sql_verification import records
from ectype.export._verification import ReadBack
from ectype.models.copy_classifier import CopyClassifier
from ectype.types import Table

FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2")
COMPILERS = ("cc", "gcc", "clang")
# Seconds for a file with millions of nodes.
PATIENCE = 600
# Probabilities may be so far apart: a copy has float32 where the file has double.
APART = 1e-3
# Compilers of words take strings of at least this many bytes.
LONGEST = 4096


def compiler() -> list[str] | None:
    """The command of a C compiler: what CC names, the system's, or ziglang's; None if there is none."""
    named = os.environ.get("CC")
    if named:
        return shlex.split(named)
    found = next(filter(None, map(shutil.which, COMPILERS)), None)
    if found:
        return [found]
    return [sys.executable, "-m", "ziglang", "cc"] if find_spec("ziglang") else None


def c_answers(copy: CopyClassifier, path: Path, name: str, rows: Table) -> ReadBack:
    """A C file's answers to rows as in production; none where nothing compiles it."""
    command = compiler()
    if command is None:
        return ReadBack(None, "no C compiler here, and no ziglang", 0.0)
    with tempfile.TemporaryDirectory() as folder:
        program = _compile(command, copy, path, name, Path(folder))
        started = perf_counter()
        done = subprocess.run([program], input=_pack(copy, rows), capture_output=True, timeout=PATIENCE)
        seconds = perf_counter() - started
    n_c = len(copy.classes)
    found = np.frombuffer(done.stdout, np.float64).reshape(-1, n_c + 1)
    if done.returncode or len(found) != len(rows):
        raise ExportError(str(path), f"answers to {len(rows)} rows", f"{len(found)}", "nothing was written")
    _check_probabilities(copy, path, rows, found[:, 1:])
    known = [*copy.classes.tolist(), None]  # -1 is a refusal
    labels = np.array([known[int(code)] for code in found[:, 0]], object)
    return ReadBack(labels, Path(command[0]).name if len(command) == 1 else "zig cc", seconds)


def _compile(command: list[str], copy: CopyClassifier, path: Path, name: str, folder: Path) -> Path:
    """A program that reads rows; the file is compiled apart from it, as users would."""
    source, main, program = folder / f"{name}.c", folder / "main.c", folder / "program"
    shutil.copyfile(path, source)
    kinds = "".join("n" if level_words(column) is None else "w" for column in copy.space.columns)
    longest = max([LONGEST, *(len(word.encode()) for word in _all_words(copy))])
    names = {"macro": name.upper(), "file": source.name, "name": name}
    main.write_text(fill_snippet("main", **names, kinds=kinds, longest=2 * longest))
    try:
        done = subprocess.run(
            [*command, *FLAGS, "-o", str(program), str(source), str(main), "-lm"],
            cwd=folder, capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip
    except OSError as error:
        raise ExportError(str(path), "a C compiler", f"{shlex.join(command)}: {error}", "set CC to another") from error
    if done.returncode:
        said = done.stderr.strip()[:600]
        raise ExportError(str(path), f"a file that {shlex.join(command)} compiles", said, "nothing was written")
    return program


def _all_words(copy: CopyClassifier) -> list[str]:
    return [word for column in copy.space.columns for word in level_words(column) or ()]


def _pack(copy: CopyClassifier, rows: Table) -> bytes:
    """Rows as the program reads them: doubles, and words with their lengths."""
    worded = [level_words(column) is not None for column in copy.space.columns]
    parts = []
    for record in records(copy, rows):
        for value, is_word in zip(record, worded, strict=True):
            if not is_word:
                parts.append(struct.pack("=d", float("nan") if value is None else float(value)))  # type: ignore[arg-type]
            elif value is None:
                parts.append(struct.pack("=i", -1))
            else:
                word = str(value).encode()
                parts += [struct.pack("=i", len(word)), word]
    return b"".join(parts)


def _check_probabilities(copy: CopyClassifier, path: Path, rows: Table, found: np.ndarray) -> None:
    apart = float(np.abs(copy.predict_proba(rows) - found).max())
    if not apart <= APART:
        expected = f"probabilities within {APART} of the copy's"
        raise ExportError(str(path), expected, f"{apart:.2g}", "nothing was written; please report it")
