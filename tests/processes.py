"""Processes that tests start, and what they show."""

import os
import pty
import select
import subprocess
from contextlib import suppress
from pathlib import Path


def child_processes():
    """The processes that this one has started and not waited for yet."""
    return children_of("self")


def children_of(pid):
    """The processes that a process has started and not waited for yet."""
    found = set()
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended meanwhile
            found.update(map(int, (task / "children").read_text().split()))
    return found


def command_of(pid):
    """The command line of a process, as bytes."""
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def await_end(pid):
    """Wait for the end of any process."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([handle], [], [], 20)[0], "the process goes on"
    finally:
        os.close(handle)


def shown_on_a_terminal(command, **options):
    """What a command that ends well shows on a terminal: its standard error."""
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=slave, env=environment, **options)
    os.close(slave)
    shown = b""
    try:
        while part := os.read(master, 4096):
            shown += part
    except OSError:  # the other side closed
        pass
    os.close(master)
    process.communicate(timeout=60)
    assert process.returncode == 0
    return shown
