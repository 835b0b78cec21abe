"""The options that say how an ORIGINAL is opened, the same for every command that asks one."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection
from contextlib import redirect_stdout
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ectype._common.formatting import printable
from ectype.cli.click_groups import GroupedOption
from ectype.cli.terminal import say
from ectype.original.options import OPTIONS, type_of

if TYPE_CHECKING:
    from ectype.original import Original
    from ectype.types import Json

GROUP = "How to open the original"
# The word for the original of the run in a directory, which vouches for what run.json says; and no word for it.
OF_RUN, REMEMBERED = "run", ""
CLASSES = "The labels it may answer, with commas, where it does not say so itself."


def original_options(command: Callable[..., None], usual: Collection[str] | None = None) -> Callable[..., None]:
    """Give a command the options of an ORIGINAL, as one dictionary, `about`; `--help` shows those that are usual."""

    @wraps(command)
    def called(*arguments: object, **options: object) -> None:
        command(*arguments, about={name: options.pop(f"original_{name}") for name in ("classes", *OPTIONS)}, **options)

    with_about: Callable[..., None] = called
    for name, option in reversed(OPTIONS.items()):
        kind, several = type_of(name)
        how = {
            "type": kind,
            "multiple": several,
            "metavar": option.metavar,
            "shown": option.shown if usual is None else name in usual,
        }
        with_about = _option(option.flag_of(name), name, help=option.text, **how)(with_about)
    return _option("--classes", "classes", help=CLASSES, shown=usual is None or "classes" in usual)(with_about)


def _option(flag: str, name: str, **settings: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """An option under a name that no option of the command itself has: both may be about workers."""
    return click.option(flag, f"original_{name}", cls=GroupedOption, group=GROUP, **settings)


def opened(spec: str | None, about: Json, directory: Path | None = None) -> Original:
    """The original that the command line names; a module beside the caller is importable, as with `python -m`.

    With the directory of a run, it is the one of that run, as the run remembers it, if none is named.
    """
    from ectype.errors import SettingError
    from ectype.original import open_original
    from ectype.original.vendor import Vendor

    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    classes, given = labels(about["classes"]), {k: v for k, v in about.items() if k != "classes"}
    with redirect_stdout(sys.stderr):  # what an original prints is no part of ours
        if directory is None or spec not in (None, OF_RUN, REMEMBERED):
            return open_original(str(spec), classes, **given)
        vendor = Vendor.of_run(directory)
        if spec != OF_RUN and vendor.risk is not None:
            found = f"{printable(vendor.original)}, {vendor.risk}, as run.json says"
            hint = f"name the original; or say `{OF_RUN}` in its place, if you made this run or trust who did"
            raise SettingError(str(directory), "an original that can be asked unseen", found, hint)
        sent = f"; it is sent what {' and '.join(vendor.variables)} holds" if vendor.variables else ""
        say(f"the original is {printable(vendor.original)}, as {directory} remembers it{printable(sent)}", err=True)
        return vendor.open(classes, **given)


def labels(text: str | None) -> list[int] | list[str] | list[bool] | None:
    """Labels from the command line: booleans or whole numbers if all of them are, and told apart by them; else strings.

    >>> labels("1, 2"), labels("a,1"), labels("true,false"), labels("01,1")
    ([1, 2], ['a', '1'], [True, False], ['01', '1'])
    """
    if text is None:
        return None
    words = [word.strip() for word in text.split(",")]
    if all(word in ("true", "false") for word in words):
        return [word == "true" for word in words]
    numbers = all(re.fullmatch("-?[1-9][0-9]{0,19}|0", word) for word in words)
    return [int(word) for word in words] if numbers else words
