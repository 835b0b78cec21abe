"""Originals that are programs: rows as CSV on their standard input, a line for each on their standard output."""

from __future__ import annotations

import csv
import io
import os
import shlex
import shutil
from collections import Counter
from collections.abc import Callable
from typing import TypeAlias, Unpack

import numpy as np

from ectype._common import validation
from ectype._common.portable import require_module
from ectype.errors import AnswerCountError, OriginalError, OutageError, SettingError
from ectype.original.base import Original
from ectype.original.decode import check_decoding, with_decoding, word_reader
from ectype.original.options import LabelReader
from ectype.original.subprocess_io import MOST_BYTES, EndlessError, brief, ending, patience, run
from ectype.space import dates_as_text
from ectype.types import Classes, Label, Table

Answer: TypeAlias = Label | list[float]
Parse: TypeAlias = Callable[[str], Answer]
"""Parses a line of output. ValueError says what was expected."""


def open_command(
    spec: str,
    classes: Classes = None,
    *,
    request_rows: int = 1000,
    concurrency: int = 1,
    timeout: float = 60.0,
    **reading: Unpack[LabelReader],
) -> Original:
    """The program that `cmd:PROGRAM ARGUMENTS` names, started for each request, without a shell.

    It reads CSV with a header, a missing value being an empty field, and prints a line for each row: a label or, where
    `decode` is argmax or threshold, scores separated by commas. Labels are strings, unless `classes` are of a type.

    >>> column = open_command("cmd:tail -n +2", classes=[1, 2])
    >>> column.answer(np.array([[1], [2]]))
    array([1, 2])
    """
    require_module("fcntl", "cmd:, which waits for the pipes of a program", "serve the program over HTTP")
    listed = None if classes is None else list(classes)
    parse: Parse = word_reader(listed) if check_decoding(reading.get("decode")) == "label" else _scores
    program = _Program(spec, _arguments(spec), parse, patience(timeout))
    original = Original(
        program.ask,
        name=spec,
        request_rows=validation.count("request_rows", request_rows, 1),
        concurrency=validation.count("concurrency", concurrency, 1),
    )
    original.failures = program.failures
    return with_decoding(original, listed, **reading)


def _arguments(spec: str) -> list[str]:
    try:
        words = shlex.split(spec.removeprefix("cmd:"))
    except ValueError as error:
        raise SettingError("original", "cmd:PROGRAM ARGUMENTS, quoted as for a shell", f"{spec}: {error}") from error
    if not words or "\0" in spec:
        raise SettingError("original", "cmd:PROGRAM ARGUMENTS", repr(spec))
    program = shutil.which(words[0])
    if program is None:
        hint = "there is none of this name, or it is not executable"
        raise SettingError("original", "a program that can be run", repr(words[0]), hint)
    return [os.path.abspath(program), *words[1:]]  # found once: a path or the directory we are in may change


class _Program:
    """A program to be started for each request. `failures` counts those that came to nothing."""

    def __init__(self, name: str, arguments: list[str], parse: Parse, seconds: float):
        self._name, self._arguments, self._parse, self._seconds = name, arguments, parse, seconds
        self.failures: Counter[str] = Counter()

    def ask(self, rows: Table) -> list[Answer]:
        """The program's output for each row."""
        try:
            out, said, code = run(self._arguments, _csv(rows), self._seconds)
        except TimeoutError as error:
            hint = "raise the limit with --timeout, or send fewer rows at once with --request-rows"
            raise self._failed("timeout", f"an answer within {self._seconds:g} s", "none", hint) from error
        except EndlessError as error:
            raise self._failed("output", "a line for each row", f"more than {MOST_BYTES} bytes") from error
        except OSError as error:
            self.failures["start"] += 1
            raise OutageError(self._name, "a program that can be started", str(error)) from error
        if code != 0:
            words = brief(" ".join(said.decode(errors="replace").splitlines()[-5:]))
            raise self._failed("exit", "exit code 0", f"{ending(code)}: {words}" if words else ending(code))
        return self._answers(self._lines(out, len(rows)))

    def _lines(self, out: bytes, n: int) -> list[str]:
        try:
            text = out.decode("utf-8").replace("\r\n", "\n").removesuffix("\n")
        except UnicodeDecodeError as error:
            line = out.count(b"\n", 0, error.start) + 1
            raise self._failed("output", "lines in UTF-8", f"byte {out[error.start]:#04x} in line {line}") from error
        lines = text.split("\n") if out else []
        if len(lines) != n:
            hint = "it should answer every row, in order, and print no header"
            self.failures["output"] += 1
            raise AnswerCountError(self._name, f"{n} lines, one for each row", f"{len(lines)}", hint)
        return lines

    def _answers(self, lines: list[str]) -> list[Answer]:
        answers: list[Answer] = []
        for number, line in enumerate(lines, 1):
            try:
                answers.append(self._parse(line))
            except ValueError as error:
                raise self._failed("output", f"{error} in line {number}", repr(line[:80])) from error
        widths = sorted({len(answer) for answer in answers if isinstance(answer, list)})
        if len(widths) > 1:
            raise self._failed("output", "as many scores in every line", " and ".join(map(str, widths)))
        return answers

    def _failed(self, cause: str, expected: str, found: str, hint: str = "") -> OriginalError:
        self.failures[cause] += 1
        return OriginalError(self._name, expected, found, hint)


# --- what goes in -----------------------------------------------------------------------------------------------------


def _csv(rows: Table) -> bytes:
    """Rows as CSV with a header; numbers read back as they were."""
    names = [f"x{j}" for j in range(rows.shape[1])] if isinstance(rows, np.ndarray) else rows.columns
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    rows = rows if isinstance(rows, np.ndarray) else rows.apply(dates_as_text)
    writer.writerows([_field(value) for value in row] for row in np.asarray(rows, dtype=object).tolist())
    return text.getvalue().encode()


def _field(value: object) -> object:
    missing = value is None or type(value).__name__ in ("NAType", "NaTType") or value != value
    return "" if missing else value


# --- what comes out ---------------------------------------------------------------------------------------------------


def _scores(line: str) -> list[float]:
    try:
        validation.numerals([line])
        return [float(score) for score in line.split(",")]
    except ValueError as error:
        raise ValueError("numbers separated by commas") from error
