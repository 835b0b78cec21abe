"""The settings of a run as options of a command, in groups; what they are and mean is declared in `plan.settings`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from typing import Any

import click

from ectype._common import validation
from ectype.cli.click_groups import GroupedOption
from ectype.errors import SettingError
from ectype.plan.settings import COLUMNS, MAKE, SIZES, WEIGHT, SettingInfo, Settings, about

# The settings that `--help` shows; `--help-all` has all of them.
USUAL = {
    *("budget", "scores", "method", "preset", "seed", "target", "certificate_n"),
    *("to", "max_leaves", "max_bytes", "max_latency", "max_kept", "exclude"),
}


def settings_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command an option for every setting, under the setting's own name."""
    for part in reversed(_in_groups()):
        command = _option(part)(command)
    return command


def making_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command an option for every setting about what to make; what is not given stays as it was."""
    for part in reversed(_in_groups()):
        if about(part.name).group == MAKE:
            command = _option(part, kept="as it was")(command)
    return command


def _in_groups() -> list[Field[Any]]:
    """Settings in the order of their groups; what a group comes to first, the declaration tells."""
    order = list(dict.fromkeys(about(part.name).group for part in fields(Settings)))
    return sorted(fields(Settings), key=lambda part: (order.index(about(part.name).group), part.name != "method"))


def _option(part: Field[Any], kept: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    found, flag = about(part.name), f"--{part.name.replace('_', '-')}"
    flag += f"/--no-{flag[2:]}" if part.default is True else ""
    usual = kept or found.open
    shown = f"{found.text}  [default: {usual}]" if usual else found.text
    default = None if part.default is MISSING else part.default
    return click.option(
        flag,
        part.name,
        cls=GroupedOption,
        group=found.group,
        shown=part.name in USUAL,
        help=shown,
        default=default,
        show_default=default not in (None, False, True, ()),
        **_reading(found),
    )


def _reading(found: SettingInfo) -> dict[str, Any]:
    """How a value is read from the command line."""
    if found.kind is bool:
        return {"is_flag": True}
    if isinstance(found.kind, tuple):
        return {"type": click.Choice(found.kind)}
    if found.kind == COLUMNS:
        return {"multiple": True, "metavar": "COLUMN"}
    if isinstance(found.kind, str):
        return {"type": {SIZES: Sizes, WEIGHT: Weight}[found.kind]()}
    return {"type": found.kind}


class Sizes(click.ParamType):
    """Sizes of layers, such as 64,32,10."""

    name = "sizes"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """The sizes that a text names."""
        return layers(value) if isinstance(value, str) else value


class Weight(click.ParamType):
    """A number, or a word, which is checked with the other settings."""

    name = "weight"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """The number that a text is, if it is one."""
        try:
            validation.numerals([value])
            return float(value) if isinstance(value, str) else value
        except ValueError:
            return value


def layers(text: str) -> tuple[int, ...]:
    """The sizes of layers that the command line names.

    >>> layers("16,8")
    (16, 8)
    """
    try:
        validation.numerals([text])
        return tuple(int(size) for size in text.split(","))
    except ValueError as error:
        raise SettingError("--layers", "sizes such as 64,32,10", repr(text)) from error
