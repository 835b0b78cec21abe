"""The command `ectype`: one short file per command, imported only when that command is asked for."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, TextIO

import click

from ectype._version import __version__
from ectype.cli.click_groups import SuggestingGroup

if TYPE_CHECKING:
    from ectype.errors import EctypeError

# By what people want to do: the command's name, its module here, and one line of help that must not cost an import.
GROUPS = {
    "Make a copy": {
        "copy": ("copy", "Copy an original into a directory."),
        "remake": ("remake", "Make another copy from the answers of a run: another family, smaller, or constrained."),
        "demo": ("demo", "Copy a built-in original, certify the copy and show both side by side."),
        "space": ("space", "Describe inputs from unlabelled rows."),
    },
    "Judge it": {
        "certify": ("certify", "Measure how alike a finished copy and an original decide, and where they differ."),
        "frontier": ("frontier", "Show how small and fast further copies can be, from the answers of a run."),
        "report": ("report", "Write one self-contained HTML page about a finished copy."),
        "card": ("card", "Write a model card for those who audit a copy."),
        "ledger": ("ledger", "Show what a run has asked, or check, merge or compact such answers."),
    },
    "Use it": {
        "export": ("export", "Write a finished copy as one file: ONNX, SQL, C, rules or skops; or for MLflow."),
        "serve": ("serve", "Answer in the original's place, over HTTP."),
    },
    "Keep it up to date": {
        "refresh": ("refresh", "See whether an original changed, and bring its copy up to date."),
        "fleet": ("fleet", "Copy, check and refresh all the originals in a table."),
    },
}
COMMANDS = {name: found for group in GROUPS.values() for name, found in group.items()}
# Packages of their own give further commands, by an entry point of this group. Of those that we know, the help tells
# without reading entry points, which takes as long as the rest of it: the heading, the package, how it is installed,
# and the line.
ENTRY_POINTS = "ectype.commands"
PLUGINS = {
    "paper": (
        "Reproduce the paper", "ectype_paper", "pip install ./reproduction", "Run the experiments of the paper."
    ),
}  # fmt: skip


class Deferred(SuggestingGroup):
    """A group that imports a command's module only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order people need them."""
        return [*COMMANDS, *(name for name, (_, package, _, _) in PLUGINS.items() if find_spec(package) is not None)]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command itself, or nothing if there is none by that name."""
        if name not in COMMANDS:
            return _plugin(name)
        return import_module(f"ectype.cli.{COMMANDS[name][0]}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands under what they are for, without importing them."""
        there = self.list_commands(ctx)
        width = max(map(len, there))
        groups = [(heading, {name: line for name, (_, line) in those.items()}) for heading, those in GROUPS.items()]
        groups += [(heading, {name: line}) for name, (heading, _, _, line) in PLUGINS.items() if name in there]
        for heading, lines in groups:
            with formatter.section(heading):
                formatter.write_dl([(f"{name:<{width}}", line) for name, line in lines.items()])


def _plugin(name: str) -> click.Command | None:
    """A command that another package gives; one that we know and is not installed is an error that says how it is."""
    from importlib.metadata import entry_points

    for found in entry_points(group=ENTRY_POINTS, name=name):
        command: click.Command = found.load()
        return command
    if name not in PLUGINS:
        return None
    from ectype.errors import SettingError

    _, package, install, _ = PLUGINS[name]
    distribution = package.replace("_", "-")
    hint = f"{install}, in a checkout of ectype"
    raise SettingError(f"ectype {name}", f"the package {distribution}", "none that is installed", hint)


@click.group(cls=Deferred, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="ectype")
def cli() -> None:
    """Copy a classifier you can only query, and prove how alike the copy decides.

    For models you are entitled to copy.
    """
    from ectype.cli.environment import check_surroundings

    check_surroundings()


def main(arguments: list[str] | None = None) -> None:
    """Run the command; errors become a line on stderr and an exit code."""
    from ectype.cli.standard_streams import standard_streams

    with standard_streams() as output:
        code = _code_of(arguments)
        if output is not None:
            sys.stdout.flush()
            if output.lost is not None:
                code = _said(_unprinted(output.lost)) if code == 0 else code
    sys.exit(code)


def _code_of(arguments: list[str] | None) -> int:
    """Run the command, and give its exit code."""
    from ectype._common.formatting import printable
    from ectype.cli.environment import rather_shortage, shortage
    from ectype.cli.terminal import Terminated
    from ectype.errors import EctypeError

    try:
        with _warnings_as_lines():
            code = cli.main(args=arguments, prog_name="ectype", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except SystemExit as end:  # an original may end us too, and with words
        if isinstance(end.code, str):
            click.echo(f"ectype: {printable(end.code)}", err=True)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except EctypeError as error:
        return _said(rather_shortage(error))
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort) as error:
        cause = error.__cause__ or error  # click raises an error of its own from it
        word, code = ("terminated", 143) if isinstance(cause, Terminated) else ("interrupted", 130)
        click.echo(f"ectype: {'; '.join([word, *getattr(cause, '__notes__', ())])}", err=True)
        return code
    except Exception as error:
        lacking = shortage(error)
        return _bug() if lacking is None else _said(lacking)


def _said(error: EctypeError) -> int:
    """Print an error as a line; gives its exit code."""
    from ectype._common.formatting import printable

    click.echo(f"ectype: {printable(error)}", err=True)
    return error.exit_code


def _bug() -> int:
    """Print the error that is being handled, a fault of ours: 1 would say that a target was missed."""
    from ectype._common.formatting import printable

    for line in traceback.format_exc().splitlines():
        click.echo(printable(line), err=True)
    click.echo("ectype: this is a bug; please report it with the lines above", err=True)
    return 70


def _unprinted(error: OSError) -> EctypeError:
    """What the command was to print did not arrive; what it did is done."""
    from ectype.errors import WriteError

    hint = "what the command did is done and kept: only what it prints is lost; give it another place to print to"
    return WriteError("standard output", "room to write", error, hint)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Within, what we warn of is a line like our errors, without a place in our code."""
    from ectype._common.formatting import printable
    from ectype.errors import EctypeWarning

    with warnings.catch_warnings():
        usual = warnings.showwarning

        def said(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, EctypeWarning):
                click.echo(f"ectype: warning: {printable(message)}", err=True)
            else:
                usual(message, category, filename, lineno, file, line)

        warnings.showwarning = said
        yield
