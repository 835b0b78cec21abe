"""The options that say what `ectype serve` keeps of real traffic."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path

import click

from ectype.serve import KEPT_DAYS, KEPT_ROWS

_OPTIONS = (
    click.option(
        "--keep",
        type=click.Path(path_type=Path),
        help="A directory to keep real rows in, with the answers of --shadow, for --answers of other commands.",
    ),
    click.option("--keep-rows", type=int, default=KEPT_ROWS, show_default=True, help="The most rows kept in all."),
    click.option(
        "--keep-days",
        type=float,
        default=KEPT_DAYS,
        show_default=True,
        help="The days after the first kept row in which others are kept.",
    ),
    click.option("--keep-without", multiple=True, metavar="COLUMN", help="A column that is not kept."),
    click.option(
        "--keep-masked", multiple=True, metavar="COLUMN", help="A number or a date that is kept only to a tenth."
    ),
)


def keep_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these options; they reach it as one `keep`, None where nothing is kept."""

    @wraps(command)
    def with_keep(
        keep: Path | None,
        keep_rows: int,
        keep_days: float,
        keep_without: tuple[str, ...],
        keep_masked: tuple[str, ...],
        **others: object,
    ) -> None:
        from ectype.serve import kept_as

        command(keep=kept_as(keep, keep_rows, keep_days, keep_without, keep_masked), **others)

    for option in reversed(_OPTIONS):
        with_keep = option(with_keep)
    return with_keep
