"""What `--help` shows, and `--help-all`; what is said where a command or an option is misspelt."""

import json
import re

import click
import pytest
from click.testing import CliRunner

from commands import run_command
from ectype.cli import COMMANDS, GROUPS, PLUGINS, cli

COPY, SERVE = 25, 20


def shown(*arguments):
    return CliRunner().invoke(cli, list(arguments)).output


def options(text):
    return set(re.findall(r"^  (?:-\w, )?(--[a-z][a-z-]*)", text, re.M))


def test_commands_stand_under_what_they_are_for():
    text = shown("--help")
    places = [text.index(f"{heading}:") for heading in (*GROUPS, *(heading for heading, *_ in PLUGINS.values()))]
    assert places == sorted(places)
    assert all(re.search(rf"^  {name} ", text, re.M) for name in (*COMMANDS, *PLUGINS))


def test_help_of_copy_shows_what_people_use():
    usual, complete = options(shown("copy", "--help")), options(shown("copy", "--help-all"))
    assert len(usual) <= COPY
    assert {"--space", "--budget", "--out", "--to", "--target", "--protocol", "--help-all"} <= usual < complete
    declared = {name for found in cli.get_command(None, "copy").params for name in found.opts if name.startswith("--")}
    assert declared <= complete


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_all_is_only_where_help_leaves_something_out(name):
    command = cli.get_command(None, name)
    with click.Context(command) as ctx:
        names = {found.name for found in command.get_params(ctx)}
    assert ("help_all" in names) == any(not getattr(found, "shown", True) for found in command.params)


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [(["copi"], "Did you mean 'copy'?"), (["copy", "--bugdet", "3"], "'--budget'"), (["certifi", "x"], "'certify'")],
)
def test_what_was_meant_is_asked(arguments, meant):
    result = CliRunner().invoke(cli, arguments)
    assert (result.exit_code, meant in result.output) == (2, True)


def test_a_word_like_no_command_is_refused_without_a_guess():
    assert shown("zzz").splitlines()[-1] == "Error: No such command 'zzz'."


def test_a_dry_run_says_what_would_be_asked_and_asks_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "asked.py").write_text(
        "from pathlib import Path\ndef disc(rows):\n    Path('asked').touch()\n    return (rows**2).sum(axis=1) < 1\n"
    )
    arguments = [
        "copy",
        "asked:disc",
        "--space",
        "normal:2",
        "--out",
        "run",
        "--budget",
        "100",
        "--certificate-n",
        "50",
    ]
    said = run_command(*arguments, "--dry-run", cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith("ask    100 rows in 6 rounds: 40 random, then 8, 10, 11, 14, 17")
    assert "run is new" in said.stdout
    found = json.loads(run_command(*arguments, "--dry-run", "--json", cwd=tmp_path).stdout)
    assert (found["plan"]["budget"], found["state"]) == (100, "new")
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__") == ["asked.py"]

    assert run_command(*arguments, cwd=tmp_path).returncode == 0
    assert "run holds this run: nothing is asked" in run_command(*arguments, "--dry-run", cwd=tmp_path).stdout
    arguments[arguments.index("100")] = "200"
    assert "this goes on from" in run_command(*arguments, "--dry-run", cwd=tmp_path).stdout
