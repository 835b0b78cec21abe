"""PostgreSQL and MariaDB as Debian has them: started in a temporary folder, not by root, and asked by their clients."""

import contextlib
import csv
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from ectype.export._sql import is_query
from ectype.export._sql_dialects import DIALECTS
from ectype.export._sql_verification import column_declarations, records

NULL = "\\N"
PACKAGES = {"postgresql": "postgresql", "mysql": "mariadb-server"}
TABLE = "copy_input"


@contextlib.contextmanager
def started(dialect):
    """A server that speaks a dialect; skipped where it is not installed, but never in continuous integration."""
    start = {"postgresql": _postgresql, "mysql": _mariadb}[dialect]
    folder = Path(tempfile.mkdtemp(prefix="us-"))  # a socket's path is short
    try:
        os.chmod(folder, 0o755)
        with contextlib.ExitStack() as stack:
            yield Server(dialect, start(_Own(folder), stack))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def program(name, dialect):
    """A program of a server, which need not be on the path."""
    folders = [*os.environ.get("PATH", "").split(os.pathsep), "/usr/sbin", *map(str, _versions())]
    found = shutil.which(name, path=os.pathsep.join(folders))
    if found is None:
        say = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        say(f"{name} is not installed: apt-get install {PACKAGES[dialect]}")
    return found


def _versions():
    root = Path("/usr/lib/postgresql")
    return sorted(root.glob("*/bin"), reverse=True) if root.is_dir() else []


class _Own:
    """A folder of an ordinary user, and programs that this user runs: servers refuse to be run by root."""

    def __init__(self, folder):
        self.folder, self.who = folder, {}
        if os.geteuid() == 0:
            user = pwd.getpwnam("nobody")
            self.who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            os.chown(folder, user.pw_uid, user.pw_gid)

    def run(self, *arguments):
        subprocess.run(arguments, cwd=self.folder, check=True, stdout=subprocess.DEVNULL, timeout=120, **self.who)


def _postgresql(own, stack):
    """Listens on a socket only; the client comes with the server."""
    tools = {name: program(name, "postgresql") for name in ("initdb", "pg_ctl", "psql")}
    data = str(own.folder / "data")
    own.run(tools["initdb"], "-D", data, "-U", "copy", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
    how = f"-k {own.folder} -c listen_addresses= -c fsync=off -c jit=off"
    own.run(tools["pg_ctl"], "-D", data, "-l", str(own.folder / "log"), "-o", how, "-w", "start")
    stack.callback(own.run, tools["pg_ctl"], "-D", data, "-m", "immediate", "-w", "stop")
    quiet = ("-X", "-q", "-A", "-t", "-P", f"null={NULL}", "-v", "ON_ERROR_STOP=1")
    return [tools["psql"], *quiet, "-h", str(own.folder), "-U", "copy", "postgres"]


def _mariadb(own, stack):
    """Listens on a socket only, and asks for no password."""
    tools = {name: program(name, "mysql") for name in ("mariadbd", "mariadb-install-db", "mariadb")}
    data, socket = str(own.folder / "data"), str(own.folder / "socket")
    own.run(
        tools["mariadb-install-db"], "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal"
    )
    arguments = ("--no-defaults", f"--datadir={data}", f"--socket={socket}", "--skip-networking", "--skip-grant-tables")
    server = subprocess.Popen(
        [tools["mariadbd"], *arguments], cwd=own.folder, stderr=subprocess.PIPE, text=True, **own.who
    )
    stack.callback(server.wait)
    stack.callback(server.kill)
    stack.callback(server.stderr.close)
    said = []
    for line in server.stderr:
        said.append(line)
        if "ready for connections" in line:
            break
    else:
        raise AssertionError("".join(said[-20:]))
    return [tools["mariadb"], "--no-defaults", f"--socket={socket}", "-N", "-B", "--local-infile=1", "test"]


class Server:
    """A server, asked by its own client."""

    def __init__(self, dialect, client):
        self.dialect, self._client = DIALECTS[dialect], client

    def run(self, text):
        """Run statements; gives the lines that are printed."""
        done = subprocess.run(self._client, input=text, capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise AssertionError(done.stderr[-2000:])
        return done.stdout.splitlines()

    def answers(self, copy, text, rows, folder):
        """The labels that a file gives to rows, as words; None for NULL."""
        self.fill(copy, rows, folder)
        if not is_query(text):
            return self.labels(f"SELECT ({text}) FROM {TABLE} ORDER BY row_id")
        return self.labels(f"SELECT * FROM ({text}) AS answered ORDER BY row_id")

    def fill(self, copy, rows, folder):
        """A table with the copy's columns, and numbers of the rows."""
        columns = ", ".join([*column_declarations(copy, self.dialect), "row_id INT"])
        null = "NULL" if self.dialect.name == "mysql" else NULL
        path = Path(folder) / "rows.csv"
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_MINIMAL, lineterminator="\n")
            for number, record in enumerate(records(copy, rows)):
                writer.writerow(
                    [null if v is None else int(v) if isinstance(v, bool) else v for v in (*record, number)]
                )
        os.chmod(path, 0o644)
        how = f"\\copy {TABLE} FROM '{path}' WITH (FORMAT csv, NULL '{NULL}')"
        if self.dialect.name == "mysql":
            how = f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE {TABLE} CHARACTER SET utf8mb4 FIELDS TERMINATED BY ',' "
            how += "OPTIONALLY ENCLOSED BY '\"' ESCAPED BY '';"
        self.run(f"DROP TABLE IF EXISTS {TABLE};\nCREATE TABLE {TABLE} ({columns});\n{how}\n")

    def labels(self, asked):
        """The last column of what is asked."""
        found = [line.split("|" if self.dialect.name == "postgresql" else "\t")[-1] for line in self.run(asked + ";\n")]
        return [None if label in (NULL, "NULL") else label for label in found]
