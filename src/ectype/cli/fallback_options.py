"""The options of `ectype serve` about the original behind the copy: the cascade."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ectype.cli.click_groups import GroupedOption
from ectype.cli.original_options import OF_RUN, opened
from ectype.types import Json

if TYPE_CHECKING:
    from ectype.serve import CascadeConfig

GROUP = "A cascade: the original behind the copy"
# The name that `behind` knows an option by: what it is on the command line, and what it means. Its defaults are there.
_OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "fallback": (
        "--fallback",
        {
            "metavar": "[ORIGINAL]",
            "is_flag": False,
            "flag_value": OF_RUN,
            "help": "Ask this original where the copy is not certified to agree with it.  [without a value, or `run`: "
            "the one that it was copied from]",
        },
    ),
    "agree": (
        "--agree",
        {"type": float, "help": "How often they must agree where the copy answers alone.  [default: 0.995]"},
    ),
    "on_outage": (
        "--fallback-outage",
        {"metavar": "error|copy", "help": "If it is out: status 503, or the copy's own answer.  [default: error]"},
    ),
    "n": (
        "--fallback-n",
        {"type": int, "help": "Fresh rows to ask it before serving.  [default: none; the run's held-out rows]"},
    ),
    "rows": ("--fallback-rows", {"type": int, "help": "The most rows that wait for it.  [default: 10000]"}),
    "seconds": ("--fallback-timeout", {"type": float, "help": "Seconds that a request waits for it.  [default: 10]"}),
    "pause": (
        "--fallback-pause",
        {"type": float, "help": "Seconds that it is left alone when it was out.  [default: 5]"},
    ),
}


def fallback_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these options; they reach it as one dictionary, `fallback`."""

    @wraps(command)
    def with_fallback(*arguments: object, **options: object) -> None:
        command(*arguments, fallback={name: options.pop(f"fallback_{name}") for name in _OPTIONS}, **options)

    for name, (flag, settings) in reversed(_OPTIONS.items()):
        option = click.option(flag, f"fallback_{name}", cls=GroupedOption, group=GROUP, **settings)
        with_fallback = option(with_fallback)
    return with_fallback


def behind_of(fallback: Json, about: Json, directory: Path) -> CascadeConfig | None:
    """The original behind the copy in a directory, if there is one; `about` says how it is asked."""
    from ectype.serve import build_cascade

    spec, options = fallback["fallback"], {name: value for name, value in fallback.items() if name != "fallback"}
    if spec is not None and options["n"]:
        click.echo(f"ectype: at most {options['n']} rows are asked first, to certify the cascade", err=True)
    return build_cascade(None if spec is None else partial(opened, spec, about, directory), **options)
