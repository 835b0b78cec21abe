"""From what a command line names to an original: one opener for each kind, imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from inspect import signature
from typing import NamedTuple, TypedDict, Unpack

from ectype.errors import SettingError
from ectype.original.base import Original
from ectype.original.decode import THRESHOLD, LabelReader
from ectype.original.fingerprint import digest
from ectype.original.labels import label_array
from ectype.original.stored_answers import LABEL
from ectype.space import PARQUET_SUFFIXES
from ectype.types import Classes, Json, Label


class OriginalAccess(TypedDict, total=False):
    """How an original is reached, and what it takes to trust it."""

    protocol: str | None
    """How an HTTP endpoint is asked: v2, instances, mlflow, template and others, see `docs/originals.md`."""
    template: object
    """For the protocol template: the JSON of a request and where its answer holds the outputs."""
    token_env: str | None
    """The environment variable that holds the bearer token."""
    header: str | Iterable[str] | None
    """Headers that go with every request, as "NAME: VALUE"; a secret as "NAME: env:VARIABLE"."""
    client_cert: str | None
    """The client's certificate, a PEM file."""
    client_key: str | None
    """The key of the client's certificate, a PEM file, where it is not in the same."""
    ca: str | None
    """The authorities that may vouch for the endpoint, a PEM file; no others are trusted then."""
    types: Iterable[str] | None
    """Types that a skops file may contain, beyond those of our own list."""
    trust: str | None
    """SHA-256 of the pickle to be loaded. Loading a pickle runs whatever its author put there."""


class OriginalOptions(OriginalAccess, LabelReader, total=False):
    """What an original may need to be told. Which of these a kind takes is in the signature of its opener."""

    input: str | None
    """The name of the input of a V2, BentoML or LitServe endpoint."""
    output: str | None
    """Which output of an ONNX model or a V2 endpoint to read; for protocols of plain JSON, the path to the outputs."""
    request_rows: int | None
    """The most rows of one request."""
    concurrency: int | None
    """How many requests may be under way at once."""
    rate: float | None
    """The most requests in a second."""
    timeout: float | None
    """Seconds until a request is given up."""
    attempts: int | None
    """How often a request is tried before it counts as failed."""
    poll: float | None
    """Seconds until an answer that was promised with status 202 is given up."""
    engine: str | None
    """What answers for a heavy object in Python: workers on this machine (local), or of a Dask cluster (dask)."""
    workers: int | None
    """How many such workers; one for each core if not given."""
    scheduler: str | None
    """The Dask scheduler of such workers."""
    label: str | None
    """The column of a table of stored answers that holds them."""


# The options that decide what a label means, and what not saying them says: a run is recognised by them.
MEANS: dict[str, object] = {
    "protocol": None,
    "template": None,
    "token_env": None,
    "header": None,
    "decode": "label",
    "threshold": THRESHOLD,
    "input": None,
    "output": None,
    "label": LABEL,
}
# Those that say merely how it is reached: they may change from one call to the next.
MERELY = (
    "client_cert", "client_key", "ca", "types", "trust",
    "request_rows", "concurrency", "rate", "timeout", "attempts", "poll",
    "engine", "workers", "scheduler",
)  # fmt: skip


class OriginalKind(NamedTuple):
    """A kind of original: what its names look like, and the function that opens it."""

    words: str
    fits: Callable[[str], bool]
    opener: str


def _suffix(*endings: str) -> Callable[[str], bool]:
    return lambda spec: spec.lower().endswith(endings)


KINDS = (
    OriginalKind(
        "http(s)://... or grpc(s)://...",
        lambda spec: spec.lower().startswith(("http://", "https://", "grpc://", "grpcs://")),
        "http:open_http",
    ),
    OriginalKind("cmd:...", lambda spec: spec.startswith("cmd:"), "command:open_command"),
    OriginalKind("model.onnx", _suffix(".onnx"), "onnx:open_onnx"),
    OriginalKind("model.skops", _suffix(".skops"), "sklearn_files:open_skops"),
    OriginalKind("model.pkl|.joblib", _suffix(".pkl", ".pickle", ".joblib"), "sklearn_files:open_pickle"),
    OriginalKind("model.txt|.lgb (LightGBM)", _suffix(".txt", ".lgb"), "library_files:open_lightgbm"),
    OriginalKind("model.json|.ubj (XGBoost)", _suffix(".json", ".ubj"), "library_files:open_xgboost"),
    OriginalKind("model.cbm (CatBoost)", _suffix(".cbm"), "library_files:open_catboost"),
    OriginalKind("model.pmml", _suffix(".pmml"), "library_files:open_pmml"),
    OriginalKind("answers.csv|.parquet", _suffix(".csv", *PARQUET_SUFFIXES), "stored_answers:open_table"),
    OriginalKind("package.module:name", lambda spec: ":" in spec, "python:open_python"),
)


def open_original(spec: str, classes: Classes = None, **options: Unpack[OriginalOptions]) -> Original:
    """The original that a command line names; see `Options` for what may have to be said about it.

    A fitted classifier or function as `package.module:name`; a file `model.onnx`, `model.skops`, or, with `trust`,
    `model.pkl` or `.joblib`; a model of LightGBM (`.txt`), XGBoost (`.json`, `.ubj`) or CatBoost (`.cbm`), or PMML; an
    endpoint `http(s)://...`, with its `protocol`; `cmd:...`, a program that reads CSV rows
    and prints a label per line; `answers.csv` or `.parquet`, a table of stored answers.

    >>> open_original("ectype.toy_problems:spirals").name
    'ectype.toy_problems:spirals'
    """
    kind = next((kind for kind in KINDS if isinstance(spec, str) and kind.fits(spec)), None)
    if kind is None:
        raise SettingError("original", "one of " + ", ".join(kind.words for kind in KINDS), repr(spec))
    opener = opener_of(kind)
    listed = None if classes is None else list(classes)
    given = {key: value for key, value in options.items() if value is not None and not _is_empty(value)}
    takes = options_of(opener)
    for key in given:
        if key not in takes:
            takable = "one of " + ", ".join(takes) if takes else "no option"
            raise SettingError(key, f"{takable} for an original of the kind {kind.words}", repr(given[key]))
    original = opener(spec, listed, **given)
    original.opened = {**original.opened, **_meaning(given, listed)}
    original.anew = partial(open_original, spec, listed, **options)
    return original


def opener_of(kind: OriginalKind) -> Callable[..., Original]:
    """The function that opens originals of a kind."""
    module, name = kind.opener.split(":")
    opener: Callable[..., Original] = getattr(import_module(f"ectype.original.{module}"), name)
    return opener


def _meaning(given: Json, classes: list[Label] | None) -> Json:
    """Of these options, those that decide what a label means, unless they say what is so anyway."""
    found = {key: value for key, value in given.items() if key not in MERELY and value != MEANS.get(key)}
    found.update({key: float(value) for key, value in found.items() if isinstance(MEANS.get(key), float)})
    if "template" in found:
        from ectype.original.protocols import Templated

        found["template"] = digest(Templated(found["template"]).template.model_dump())
    if "header" in found:  # which may name a model, and may hold a secret
        found["header"] = digest(sorted([given["header"]] if isinstance(given["header"], str) else given["header"]))
    if found.get("decode") and classes is not None:  # the order of the outputs; else that of labels means nothing
        found["outputs"] = label_array(classes).tolist()
    return found


def options_of(opener: Callable[..., Original]) -> list[str]:
    """What an opener names in its signature, and how outputs are read where it passes that on."""
    named = signature(opener).parameters
    passed_on = LabelReader.__annotations__ if "reading" in named else {}
    return [key for key in OriginalOptions.__annotations__ if key in named or key in passed_on]


def _is_empty(value: object) -> bool:
    return isinstance(value, tuple) and not value
