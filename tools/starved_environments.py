"""Run every command where something is missing that it usually has: output, room, memory, files, a directory, a home.

Each command starts beside a finished run. Whatever the environment, it ends with one of its documented exit codes, and
if that is not 0 with a sentence, wherever there is an output left for one. Refused: exit code 70, a traceback, death by
a signal, a hang, an earlier run that is not byte for byte what it was, and answers of a `copy` that were paid for and
are asked again by the same command in a good environment.

    python tools/starved_environments.py
    python tools/starved_environments.py --only closed --commands copy,export
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from urllib.request import urlopen

ORIGINAL = """
import os
import numpy as np

def disc(rows):
    with open(os.environ["ASKED"], "a") as book:
        book.writelines(f"{row.tobytes().hex()}\\n" for row in np.asarray(rows))
    return np.where((np.asarray(rows) ** 2).sum(axis=1) < 1, "für", "wider →")
"""
# The same original, but for its book: what writes nothing to a full disk.
SILENT = """

def quiet(rows):
    return np.where((np.asarray(rows) ** 2).sum(axis=1) < 1, "für", "wider →")
"""
QUICK = ("--space", "normal:2", "--preset", "fast", "--budget", "200", "--certificate-n", "50", "--repeat", "0")
COMMANDS = {
    "copy": ("copy", "mine:disc", *QUICK, "--out", "ROOM/new"),
    "certify": ("certify", "FOLDER/run", "mine:disc", "--n", "50"),
    "export c": ("export", "FOLDER/run", "ROOM/made.c"),
    "export sql": ("export", "FOLDER/run", "ROOM/made.sql"),
    "export onnx": ("export", "FOLDER/run", "ROOM/made.onnx"),
    "report": ("report", "FOLDER/run"),
    "card": ("card", "FOLDER/run"),
    "remake": ("remake", "FOLDER/run", "--out", "ROOM/tree", "--to", "tree"),
    "frontier": ("frontier", "FOLDER/run"),
    "refresh": ("refresh", "FOLDER/run", "mine:disc", "--out", "ROOM/again"),
    "ledger": ("ledger", "FOLDER/run", "--json"),
    "compact": ("ledger", "compact", "FOLDER/run"),
    "space": ("space", "FOLDER/rows.csv", "--out", "ROOM/space.json"),
    "demo": ("demo", "--budget", "300", "--out", "ROOM/demo"),
    "serve": ("serve", "FOLDER/run", "--port", "PORT"),
    "help": ("--help",),
}
# What may change an earlier run on purpose.
CHANGES = ("compact",)
DONE = {0, 1, 2, 3, 130, 143}
SECONDS = 120


@dataclass(frozen=True)
class Environment:
    """What is done before a command, in a shell, and to its streams; and which variables are others."""

    name: str
    streams: str = ""
    before: str = ""
    variables: tuple[tuple[str, str | None], ...] = ()
    after: str = ""
    """What its output is piped into."""
    user: int | None = None
    small: bool = False
    """Whether nothing can be written to the disk: then the original keeps no book."""

    def script(self) -> str:
        """For bash; the command is in its arguments."""
        # A signal is for the command, and the shell waits for it.
        piped = f'trap : TERM; "$@" {self.streams} | {self.after}; exit ${{PIPESTATUS[0]}}'
        return f"{self.before}\n{piped if self.after else f'exec {chr(34)}$@{chr(34)} {self.streams}'}\n"


GONE = 'mkdir "$FOLDER/gone"; cd "$FOLDER/gone"; rmdir "$FOLDER/gone"'
# A file system of its own, where the user may have one: mounted over the folder, for this command alone.
OWN = 'exec unshare -m bash -c \'{mount}; exec "$@"\' _ "$@"'
ENVIRONMENTS = [
    Environment("as usual"),
    Environment("closed stdout", ">&-"),
    Environment("closed stderr", "2>&-"),
    Environment("closed stdin", "<&-"),
    Environment("all closed", "<&- >&- 2>&-"),
    Environment("full stdout", "> /dev/full"),
    Environment("full stderr", "2> /dev/full"),
    Environment("full both", "> /dev/full 2>&1"),
    Environment("stdout to head -1", "", after="head -1"),
    Environment("stdout nobody reads", "", after="true"),
    Environment("deleted directory", before=GONE),
    Environment("100 MB of memory", before="ulimit -v 102400"),
    Environment("200 MB of memory", before="ulimit -v 204800"),
    Environment("400 MB of memory", before="ulimit -v 409600"),
    Environment("800 MB of memory", before="ulimit -v 819200"),
    Environment("16 open files", before="ulimit -n 16"),
    Environment("files of 0 bytes", before="ulimit -f 0", small=True),
    Environment("files of 8 KB", before="ulimit -f 8", small=True),
    Environment("no further process", before="ulimit -u 1", user=65534),
    Environment("read-only disk", before=OWN.format(mount='mount --bind -o ro "$FOLDER" "$FOLDER"'), small=True),
    Environment(
        "full disk", before=OWN.format(mount="mount -t tmpfs -o size=400k,mode=777 none $FOLDER/room"), small=True
    ),
    Environment("no /dev/shm", before=OWN.format(mount="mount -t tmpfs -o size=4k,ro none /dev/shm")),
    Environment("no HOME", variables=(("HOME", None),)),
    Environment("HOME that is not there", variables=(("HOME", "/nonexistent"),)),
    Environment("TMPDIR that is not there", variables=(("TMPDIR", "/nonexistent"),)),
    Environment("TMPDIR not writable", variables=(("TMPDIR", "/proc"),)),
    Environment("ASCII", variables=(("LC_ALL", "C"), ("PYTHONIOENCODING", "ascii"), ("PYTHONUTF8", "0"))),
    Environment("TERM=dumb COLUMNS=1", variables=(("TERM", "dumb"), ("COLUMNS", "1"))),
    Environment("PYTHONOPTIMIZE=2", variables=(("PYTHONOPTIMIZE", "2"),)),
    Environment("PYTHONHASHSEED=1", variables=(("PYTHONHASHSEED", "1"),)),
]


@dataclass(frozen=True)
class Trial:
    """A command in an environment, and what came of it."""

    environment: str
    command: str
    code: int | None
    last: str
    wrong: str


def run_command(words: Sequence[str], environment: Environment, folder: Path, port: int) -> tuple[int | None, str]:
    """How a command ends, None for a hang, and what it said."""
    names = {"FOLDER": str(folder), "ROOM": str(folder / "room"), "PORT": str(port)}
    if environment.small:
        names["mine:disc"] = "mine:quiet"
    for name, value in names.items():
        words = [word.replace(name, value) for word in words]
    variables = {**os.environ, "FOLDER": str(folder), "ASKED": str(folder / "asked"), "PYTHONWARNINGS": "ignore"}
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    for name, given in environment.variables:
        variables.pop(name, None) if given is None else variables.update({name: given})
    process = subprocess.Popen(
        ["bash", "-c", environment.script(), "_", sys.executable, "-m", "ectype", *words],
        cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True, user=environment.user,
    )  # fmt: skip
    with ThreadPoolExecutor(1) as pool:
        assert process.stdout is not None
        said = pool.submit(process.stdout.read)
        code = await_service(process, port) if words[0] == "serve" else await_end(process)
        with suppress(ProcessLookupError):  # what it left holds the pipe
            os.killpg(process.pid, signal.SIGKILL)
        return code, said.result().decode(errors="replace")


def await_end(process: subprocess.Popen[bytes]) -> int | None:
    """Its exit code; None if it had to be killed."""
    try:
        return process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None


def await_service(process: subprocess.Popen[bytes], port: int) -> int | None:
    """The same of a service, which is terminated as soon as it answers."""
    begun = monotonic()
    while process.poll() is None and monotonic() - begun < SECONDS:
        with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/v2/health/live", timeout=1):
            os.killpg(process.pid, signal.SIGTERM)
            break
        sleep(0.05)
    return await_end(process)


def free_port() -> int:
    """A port that nobody has."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def trial(environment: Environment, name: str, whole: Path, scratch: Path) -> Trial:
    """Run one command in one environment, beside a copy of a finished run."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    shutil.copytree(whole, folder, dirs_exist_ok=True)
    (folder / "room").mkdir()
    for path in (folder, folder / "room", *folder.rglob("*")):
        path.chmod(0o777)
    before = content(folder / "run")
    code, said = run_command(COMMANDS[name], environment, folder, free_port())
    lines = [line for line in said.splitlines() if line.strip()]
    wrong = []
    if code is None:
        wrong.append("it hung")
    elif code not in DONE:
        wrong.append(f"exit code {code}")
    if "Traceback" in said or "this is a bug" in said:
        wrong.append("a traceback")
    if code and not lines and not any(word in environment.name for word in ("stderr", "all", "both")):
        wrong.append("no sentence")
    if name not in CHANGES and {key: before[key] for key in before} != {
        key: value for key, value in content(folder / "run").items() if key in before
    }:
        wrong.append("the earlier run is another")
    if name == "copy" and not environment.small:
        wrong += paid_again(folder)
    shutil.rmtree(folder, ignore_errors=True)
    return Trial(environment.name, name, code, lines[-1] if lines else "", "; ".join(wrong))


def paid_again(folder: Path) -> list[str]:
    """What is wrong with a copy after the same command ran where nothing is missing."""
    asked = folder / "asked"
    paid = asked.read_text().split() if asked.exists() else []
    code, said = run_command(COMMANDS["copy"], ENVIRONMENTS[0], folder, 0)
    if code:
        return [f"the same command ends with {code} as usual: {said[-200:]}"]
    every = asked.read_text().split()
    wrong = [] if len(set(every)) == len(every) else [f"{len(every) - len(set(every))} rows were asked again"]
    return wrong if set(paid) <= set(every) else [*wrong, "other rows were asked"]


def content(folder: Path) -> dict[str, bytes]:
    """The files of a run; SQLite's index and log come and go."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith(("-shm", "-wal"))}


def make(folder: Path) -> None:
    """A finished run, its original and a table of rows."""
    (folder / "mine.py").write_text(ORIGINAL + SILENT, encoding="utf-8")
    rows = "".join(f"{k},{k % 7}\n" for k in range(60))
    (folder / "rows.csv").write_text(f"a,b\n{rows}")
    words = [word.replace("ROOM/new", str(folder / "run")) for word in COMMANDS["copy"]]
    variables = {**os.environ, "ASKED": os.devnull, "PYTHONWARNINGS": "ignore"}
    subprocess.run([sys.executable, "-m", "ectype", *words], cwd=folder, env=variables, check=True, capture_output=True)
    (folder / "run" / "report.html").unlink()


def possible(environment: Environment) -> bool:
    """Whether this environment can be had here: some take the rights of root."""
    if "unshare" in environment.before:
        return subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0
    if environment.user is None:
        return True
    try:
        subprocess.run([sys.executable, "-c", ""], user=environment.user, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):  # it may not read this Python
        return False
    return True


def trials(environments: Sequence[Environment], commands: Sequence[str], jobs: int) -> Iterator[Trial]:
    """All commands in all environments, in order."""
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(jobs) as pool:
        whole, scratch = Path(place) / "whole", Path(place) / "scratch"
        Path(place).chmod(0o755)
        whole.mkdir()
        scratch.mkdir()
        make(whole)
        pairs = [(environment, name) for environment in environments for name in commands]
        yield from pool.map(lambda pair: trial(pair[0], pair[1], whole, scratch), pairs)


def main() -> None:
    """Print a line for each command in each environment, then the exit codes; exit code 1 if one is refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="environments whose names contain this")
    parser.add_argument("--commands", default=",".join(COMMANDS))
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    chosen = [one for one in ENVIRONMENTS if options.only in one.name]
    here, names = [one for one in chosen if possible(one)], options.commands.split(",")
    codes: dict[tuple[str, str], str] = {}
    bad = 0
    for one in trials(here, names, options.jobs):
        bad += bool(one.wrong)
        shown = "hang" if one.code is None else str(one.code)
        codes[one.environment, one.command] = f"{shown}!" if one.wrong else shown
        line = f"{one.environment:<26}{one.command:<13}{shown:>5}  {one.last}"
        print(
            textwrap.shorten(line, 400) if one.wrong else line[:170],
            f"  REFUSED: {one.wrong}" if one.wrong else "",
            flush=True,
        )
    print("\n" + " " * 26 + "".join(f"{name:>12}" for name in names))
    for environment in here:
        print(f"{environment.name:<26}" + "".join(f"{codes[environment.name, name]:>12}" for name in names))
    for environment in chosen:
        if environment not in here:
            print(f"{environment.name:<26}  takes rights that are not to be had here")
    print(f"\n{len(codes)} trials, {bad} refused")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
