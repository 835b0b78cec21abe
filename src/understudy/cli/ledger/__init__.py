"""`understudy ledger`: what was asked, answered and paid; and what can be done with it."""

from __future__ import annotations

import click

from understudy.cli.groups import WithDefault
from understudy.cli.ledger.compact import compact_command
from understudy.cli.ledger.merge import merge_command
from understudy.cli.ledger.show import show_command
from understudy.cli.ledger.verify import verify_command


@click.group("ledger", cls=WithDefault, default="show")
def command() -> None:
    """Show what a run has asked, or check, merge or compact such directories.

    `understudy ledger DIR` is short for `understudy ledger show DIR`. A directory that is called like one of the
    commands is named with its path: ./merge.
    """


command.add_command(show_command)
command.add_command(verify_command)
command.add_command(merge_command)
command.add_command(compact_command)
