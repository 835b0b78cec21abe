"""`understudy paper`: the experiments of the paper."""

from __future__ import annotations

import click

from understudy.cli.paper_import import import_command
from understudy.cli.paper_sweep import sweep_command


@click.group("paper")
def command() -> None:
    """Run the experiments of the paper: its problems, its originals, its methods."""


command.add_command(import_command)
command.add_command(sweep_command)
