"""The options of an original: one table, from which the command line, fleets and `vendor.toml` take theirs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict, get_args, get_origin, get_type_hints

# The least score of the second class, unless another is given.
THRESHOLD = 0.5
# The column of stored answers that holds them, unless another is given.
LABEL = "label"


@dataclass(frozen=True)
class OriginalOption:
    """An option of an original, as its annotation in `OriginalOptions` declares it."""

    help: str
    kinds: str = ""
    """The kinds of original that take it, in words; their openers' signatures decide."""
    semantic: bool = False
    """Whether it changes what a label means, so that a run is recognised by it."""
    default: object = None
    """Of a semantic option: what leaving it out means."""
    flag: str = ""
    metavar: str | None = None
    file: bool = False
    """Whether it may name a file."""
    shown: bool = False
    """Whether `--help` lists it; `--help-all` lists all."""
    remembered: bool = True
    """Whether a run keeps it: no hash that vouches for a pickle is kept."""

    @property
    def text(self) -> str:
        """Its help on the command line."""
        return f"{self.kinds}: {self.help}" if self.kinds else self.help[:1].upper() + self.help[1:]

    def flag_of(self, name: str) -> str:
        """The option of this name on the command line."""
        return self.flag or f"--{name.replace('_', '-')}"


class OriginalAccess(TypedDict, total=False):
    """How an original is reached, and what it takes to trust it."""

    protocol: Annotated[
        str | None,
        OriginalOption(
            "v2, instances, object, columns, template and more; see the docs.", "HTTP", semantic=True, shown=True
        ),
    ]
    template: Annotated[
        object, OriginalOption("the JSON file of --protocol template.", "HTTP", semantic=True, file=True)
    ]
    token_env: Annotated[
        str | None,
        OriginalOption("the environment variable with the bearer token.", "HTTP", semantic=True, metavar="NAME"),
    ]
    header: Annotated[
        str | Iterable[str] | None,
        OriginalOption('"NAME: VALUE"; a secret as "NAME: env:VARIABLE".', "HTTP", semantic=True, metavar="HEADER"),
    ]
    client_cert: Annotated[
        str | None, OriginalOption("the certificate that shows who asks.", "HTTPS", metavar="PEM", file=True)
    ]
    client_key: Annotated[
        str | None, OriginalOption("its key, where it is in another file.", "HTTPS", metavar="PEM", file=True)
    ]
    ca: Annotated[
        str | None, OriginalOption("the only authorities that are trusted.", "HTTPS", metavar="PEM", file=True)
    ]
    types: Annotated[Iterable[str] | None, OriginalOption("a type that a skops file may hold.", metavar="NAME")]
    trust: Annotated[
        str | None,
        OriginalOption("load this very pickle, which runs the code in it.", metavar="SHA256", remembered=False),
    ]


class LabelReader(TypedDict, total=False):
    """How an original's outputs become labels."""

    decode: Annotated[
        str | None,
        OriginalOption(
            "how outputs become labels: label, argmax (of scores or one-hot), threshold, or scores (argmax of "
            "probabilities that the copy may learn from).",
            semantic=True,
            default="label",
            shown=True,
        ),
    ]
    threshold: Annotated[
        float | None,
        OriginalOption("the second class's least score.", "For --decode threshold", semantic=True, default=THRESHOLD),
    ]


class OriginalOptions(OriginalAccess, LabelReader, total=False):
    """What an original may need to be told. Which of these a kind takes is in the signature of its opener."""

    input: Annotated[str | None, OriginalOption("the name of the input.", "V2, BentoML, LitServe", semantic=True)]
    output: Annotated[
        str | None,
        OriginalOption("which output to read. HTTP: where the answer holds it.", "ONNX, V2", semantic=True),
    ]
    request_rows: Annotated[int | None, OriginalOption("the most rows of one request.", "HTTP, command")]
    concurrency: Annotated[int | None, OriginalOption("requests under way at once.", "HTTP, command")]
    rate: Annotated[float | None, OriginalOption("the most requests in a second.", "HTTP")]
    timeout: Annotated[float | None, OriginalOption("seconds until a request is given up.", "HTTP, command, ONNX")]
    attempts: Annotated[int | None, OriginalOption("how often a request is tried.", "HTTP")]
    poll: Annotated[float | None, OriginalOption("seconds until a promised answer is given up.", "HTTP 202")]
    engine: Annotated[
        str | None, OriginalOption("workers that answer for it: local or dask.", "Python", flag="--ask-engine")
    ]
    workers: Annotated[
        int | None,
        OriginalOption("how many such workers.  [default: one for each core]", flag="--ask-workers"),
    ]
    scheduler: Annotated[
        str | None, OriginalOption("the Dask scheduler of such workers.", flag="--ask-scheduler", metavar="URL")
    ]
    label: Annotated[
        str | None, OriginalOption("the column that holds them.", "Stored answers", semantic=True, default=LABEL)
    ]


def _declared() -> dict[str, tuple[Any, OriginalOption]]:
    hints = get_type_hints(OriginalOptions, include_extras=True)
    return {name: (hints[name].__origin__, hints[name].__metadata__[0]) for name in OriginalOptions.__annotations__}


_DECLARED = _declared()
OPTIONS = {name: option for name, (_, option) in _DECLARED.items()}
"""Every option of an original, by the name that `open_original` has for it."""

SEMANTIC_OPTIONS = {name: option.default for name, option in OPTIONS.items() if option.semantic}
"""Those that decide what a label means, with what leaving them out means: a run is recognised by them."""

ACCESS_OPTIONS = tuple(name for name in OPTIONS if name not in SEMANTIC_OPTIONS)
"""Those that say merely how it is reached: they may change from one call to the next."""

FILES = tuple(name for name, option in OPTIONS.items() if option.file)
"""Those that may name a file."""


def type_of(name: str) -> tuple[type, bool]:
    """The type of an option's value, and whether it may be given several times.

    >>> type_of("rate"), type_of("header"), type_of("template")
    ((<class 'float'>, False), (<class 'str'>, True), (<class 'str'>, False))
    """
    parts = get_args(_DECLARED[name][0]) or (str,)
    several = any(get_origin(part) is Iterable for part in parts)
    return (parts[0] if parts[0] in (int, float) else str), several


OriginalOptions.__doc__ = "\n".join(
    [f"{OriginalOptions.__doc__}\n", *(f"- ``{name}``: {option.text}" for name, option in OPTIONS.items())]
)
