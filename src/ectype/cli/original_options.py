"""The options that say how an ORIGINAL is opened, the same for every command that asks one."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ectype.cli.click_groups import GroupedOption

if TYPE_CHECKING:
    from ectype.original import Original
    from ectype.types import Json

GROUP = "How to open the original"
# Those that `--help` shows; `--help-all` has all of them.
USUAL = ("protocol", "classes", "decode")
# The name that `open_original` knows an option by: what it is on the command line, and what it means.
_OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "classes": ("--classes", {"help": "The labels it may answer, with commas, where it does not say so itself."}),
    "decode": ("--decode", {"help": "How outputs become labels: label, argmax (of scores or one-hot) or threshold."}),
    "threshold": ("--threshold", {"type": float, "help": "For --decode threshold: the second class's least score."}),
    "trust": ("--trust", {"metavar": "SHA256", "help": "Load this very pickle, which runs the code in it."}),
    "types": (
        "--types",
        {"multiple": True, "metavar": "NAME", "help": "A type that a skops file may hold."},
    ),
    "output": ("--output", {"help": "ONNX, V2: which output to read. HTTP: where the answer holds it."}),
    "input": ("--input", {"help": "V2, BentoML, LitServe: the name of the input."}),
    "protocol": ("--protocol", {"help": "HTTP: v2, instances, object, columns, template and more; see the docs."}),
    "template": ("--template", {"help": "HTTP: the JSON file of --protocol template."}),
    "token_env": ("--token-env", {"metavar": "NAME", "help": "HTTP: the environment variable with the bearer token."}),
    "header": (
        "--header",
        {"multiple": True, "metavar": "HEADER", "help": 'HTTP: "NAME: VALUE"; a secret as "NAME: env:VARIABLE".'},
    ),
    "client_cert": ("--client-cert", {"metavar": "PEM", "help": "HTTPS: the certificate that shows who asks."}),
    "client_key": ("--client-key", {"metavar": "PEM", "help": "HTTPS: its key, where it is in another file."}),
    "ca": ("--ca", {"metavar": "PEM", "help": "HTTPS: the only authorities that are trusted."}),
    "request_rows": ("--request-rows", {"type": int, "help": "HTTP, command: the most rows of one request."}),
    "concurrency": ("--concurrency", {"type": int, "help": "HTTP, command: requests under way at once."}),
    "rate": ("--rate", {"type": float, "help": "HTTP: the most requests in a second."}),
    "timeout": ("--timeout", {"type": float, "help": "HTTP, command, ONNX: seconds until a request is given up."}),
    "attempts": ("--attempts", {"type": int, "help": "HTTP: how often a request is tried."}),
    "poll": ("--poll", {"type": float, "help": "HTTP 202: seconds until a promised answer is given up."}),
    "engine": ("--ask-engine", {"help": "Python: workers that answer for it: local or dask."}),
    "workers": ("--ask-workers", {"type": int, "help": "How many such workers.  [default: one for each core]"}),
    "scheduler": ("--ask-scheduler", {"metavar": "URL", "help": "The Dask scheduler of such workers."}),
    "label": ("--label", {"help": "Stored answers: the column that holds them."}),
}


def original_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of an ORIGINAL; they reach it as one dictionary, `about`."""

    @wraps(command)
    def with_about(*arguments: object, **options: object) -> None:
        command(*arguments, about={name: options.pop(f"original_{name}") for name in _OPTIONS}, **options)

    for name, (flag, settings) in reversed(_OPTIONS.items()):
        # Under a name that no option of the command itself has: both may be about workers.
        how = {"cls": GroupedOption, "group": GROUP, "shown": name in USUAL, **settings}
        with_about = click.option(flag, f"original_{name}", **how)(with_about)
    return with_about


def opened(spec: str, about: Json) -> Original:
    """The original that the command line names; a module beside the caller is importable, as with `python -m`."""
    from ectype.original import open_original

    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    with redirect_stdout(sys.stderr):  # what an original prints is no part of ours
        return open_original(spec, labels(about["classes"]), **{k: v for k, v in about.items() if k != "classes"})


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
