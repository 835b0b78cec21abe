"""Commands and programs of ours in this process: what tests need unless they are about processes."""

from __future__ import annotations

import importlib
import os
import runpy
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest

from ectype.cli import main
from ectype.errors import EctypeWarning


class Ended(NamedTuple):
    """How a command ended, by the names that `subprocess` has for it."""

    returncode: int
    stdout: str
    stderr: str


def run_command(*arguments: object, cwd: Path | None = None) -> Ended:
    """Run `ectype` with these arguments, as `python -m ectype` does in the directory."""
    return _ended(lambda: main([str(argument) for argument in arguments]), cwd)


def run_code(code: str, cwd: Path | None = None) -> Ended:
    """Run a script, as `python -W error -c` does in the directory."""
    return _ended(lambda: exec(compile(code, "<script>", "exec"), {"__name__": "__main__"}), cwd)


def run_program(file: Path, *arguments: object) -> Ended:
    """Run a program, as `python file` does."""
    with pytest.MonkeyPatch.context() as patch, _same_cores():
        patch.setattr(sys, "argv", [str(file), *map(str, arguments)])
        patch.syspath_prepend(file.parent)
        return _ended(lambda: runpy.run_path(str(file), run_name="__main__"), None)


@contextmanager
def _same_cores() -> Iterator[None]:
    """After it, this process may use the cores that it could before: some programs keep to one."""
    cores = os.sched_getaffinity(0)
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def _ended(work: Callable[[], None], cwd: Path | None) -> Ended:
    out, said, code = StringIO(), StringIO(), 0
    with _beside(Path.cwd() if cwd is None else cwd), redirect_stdout(out), redirect_stderr(said), _warnings_said():
        try:
            work()
        except SystemExit as end:
            if isinstance(end.code, str):  # as Python does
                print(end.code, file=sys.stderr)
            code = 1 if isinstance(end.code, str) else end.code or 0
    return Ended(code, out.getvalue(), said.getvalue())


@contextmanager
def _beside(folder: Path) -> Iterator[None]:
    """Within, its modules can be imported, and no others of the same names, which many folders of tests have."""
    names = [file.stem for file in folder.glob("*.py")]
    path, others = list(sys.path), {name: sys.modules.pop(name) for name in names if name in sys.modules}
    importlib.invalidate_caches()
    with chdir(folder):
        sys.path.insert(0, os.getcwd())
        try:
            yield
        finally:
            sys.path[:] = path
            for name in names:
                sys.modules.pop(name, None)
            sys.modules.update(others)


@contextmanager
def _warnings_said() -> Iterator[None]:
    """Within, what we warn of is said on stderr, as everywhere but under pytest; other warnings stay errors."""

    def say(message, category, filename, lineno, file=None, line=None):
        sys.stderr.write(warnings.formatwarning(message, category, filename, lineno, line))

    with warnings.catch_warnings():
        warnings.simplefilter("default", EctypeWarning)
        warnings.showwarning = say
        yield
