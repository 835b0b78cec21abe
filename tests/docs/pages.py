"""The pages of the site, read as a person would follow them: blocks in order, files saved, commands typed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from commands import run_code, run_command
from server_process import Process

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md") if "_build" not in path.parts)
# What has to be run; all other blocks are shown and not typed.
RUN = ("python", "sh")
FENCE = re.compile(r"^( *)```(\S+)\n(.*?)^\1```$", flags=re.M | re.S)
NOT_RUN = re.compile(r"<!-- not run: (.+) -->\s*$")
# A paragraph that ends with a colon and begins with a file's name says where the next block is saved.
SAVED = re.compile(r"(?:^|\n\n)`([\w.-]+\.\w+)`[^\n]*:\s*$")
# Programs of the repository take minutes and hours. Tests run them at their smallest, and check their arguments.
PROGRAMS = ("python benchmarks/", "python compat/", "python tools/")


class Block(NamedTuple):
    """A block of code: its language, its lines, the file that it is saved as, and why it is not run."""

    kind: str
    text: str
    file: str | None
    not_run: str | None


def blocks(page: str) -> list[Block]:
    """The blocks of a page, in order."""
    text = (DOCS / page).read_text()
    made = []
    for found in FENCE.finditer(text):
        before = text[: found.start()]
        reason, saved = NOT_RUN.search(before), SAVED.search(before)
        lines = re.sub(rf"^{found[1]}", "", found[3], flags=re.M)
        if found[2] == "sh":
            lines = re.sub(r" *\\\n *", " ", lines)  # a command that goes on in the next line
        made.append(Block(found[2], lines, saved and saved[1], reason and reason[1]))
    return made


def to_run(page: str) -> list[Block]:
    """The blocks that a reader would run, but for those of programs that take hours."""
    found = [block for block in blocks(page) if block.kind in RUN and block.not_run is None]
    return [block for block in found if not block.text.startswith(PROGRAMS)]


def commands(page: str) -> list[str]:
    """The lines of its shell blocks that are typed."""
    return [line for block in to_run(page) if block.kind == "sh" for line in block.text.strip().splitlines()]


class Reader:
    """Follows pages in a folder; `instead` are words to replace, such as the address of an endpoint that is down.

    What was printed is in `said`, one text for each block or command.
    """

    def __init__(self, folder: Path, instead: Mapping[str, str] | None = None):
        self.folder, self.instead, self.said = folder, dict(instead or {}), list[str]()

    def follow(self, page: str) -> list[str]:
        """Save and run all of its blocks, in order."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
            for block in blocks(page):
                self._take(block, patch)
        return self.said

    def _take(self, block: Block, patch: pytest.MonkeyPatch) -> None:
        text = block.text
        for word, other in self.instead.items():
            text = text.replace(word, other)
        if block.not_run is not None or block.text.startswith(PROGRAMS):
            return
        if block.file is not None:
            (self.folder / block.file).write_text(text)
        elif block.kind == "python":
            self._python(text)
        elif block.kind == "sh":
            for command in whole_commands(text):
                self._type(command, patch)

    def _python(self, code: str) -> None:
        done = run_code(code, cwd=self.folder)
        assert done.returncode == 0, done.stderr
        self.said.append(done.stdout)

    def _type(self, command: str, patch: pytest.MonkeyPatch) -> None:
        if found := re.fullmatch(r"export (\w+)=(\S+)", command):
            patch.setenv(found[1], found[2])
        elif re.match(r"ectype serve [^|&>]+$", command):
            with Process(*shlex.split(command)[2:], cwd=self.folder):
                self.said.append("")
        elif re.match(r"ectype (?!serve )[^|&>;\n]+$", command):
            self._ended(command, *run_command(*shlex.split(command)[1:], cwd=self.folder))
        else:
            shell = subprocess.run(["bash", "-c", command], cwd=self.folder, capture_output=True, text=True)
            self._ended(command, shell.returncode, shell.stdout, shell.stderr)

    def _ended(self, command: str, code: int, out: str, errors: str) -> None:
        assert code == 0, f"{command}\n{errors}"
        self.said.append(out)


def whole_commands(text: str) -> list[str]:
    """Lines, each a command; those of a loop belong together."""
    made: list[str] = []
    inside = False
    for line in text.strip().splitlines():
        if inside:
            made[-1] += f"\n{line}"
        else:
            made.append(line.partition("  #")[0].rstrip())
        inside = (inside or line.startswith(("for ", "while "))) and line != "done"
    return made
