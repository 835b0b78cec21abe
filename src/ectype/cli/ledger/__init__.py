"""`ectype ledger`: what was asked, answered and paid; and what can be done with it."""

from __future__ import annotations

import click

from ectype.cli.click_groups import WithDefault
from ectype.cli.ledger.compact import compact_command
from ectype.cli.ledger.merge import merge_command
from ectype.cli.ledger.show import show_command
from ectype.cli.ledger.verify import verify_command


@click.group("ledger", cls=WithDefault, default="show")
def command() -> None:
    """Show what a run has asked, or check, merge or compact such directories.

    `ectype ledger DIR` is short for `ectype ledger show DIR`. A directory that is called like one of the
    commands is named with its path: ./merge.
    """


command.add_command(show_command)
command.add_command(verify_command)
command.add_command(merge_command)
command.add_command(compact_command)
