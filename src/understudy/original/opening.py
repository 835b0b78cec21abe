"""From what a command line names to an original: one opener for each kind, imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from inspect import signature
from typing import NamedTuple, TypedDict, Unpack

from understudy.errors import SettingError
from understudy.original.base import Original
from understudy.original.decode import Reading
from understudy.types import Classes


class Access(TypedDict, total=False):
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


class Options(Access, Reading, total=False):
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
    label: str | None
    """The column of a table of stored answers that holds them."""


class _Kind(NamedTuple):
    words: str
    fits: Callable[[str], bool]
    opener: str


def _suffix(*endings: str) -> Callable[[str], bool]:
    return lambda spec: spec.lower().endswith(endings)


KINDS = (
    _Kind(
        "http(s)://... or grpc(s)://...",
        lambda spec: spec.lower().startswith(("http://", "https://", "grpc://", "grpcs://")),
        "http:open_http",
    ),
    _Kind("cmd:...", lambda spec: spec.startswith("cmd:"), "command:open_command"),
    _Kind("model.onnx", _suffix(".onnx"), "onnx:open_onnx"),
    _Kind("model.skops", _suffix(".skops"), "files:open_skops"),
    _Kind("model.pkl|.joblib", _suffix(".pkl", ".pickle", ".joblib"), "files:open_pickle"),
    _Kind("model.txt|.lgb (LightGBM)", _suffix(".txt", ".lgb"), "model_files:open_lightgbm"),
    _Kind("model.json|.ubj (XGBoost)", _suffix(".json", ".ubj"), "model_files:open_xgboost"),
    _Kind("model.cbm (CatBoost)", _suffix(".cbm"), "model_files:open_catboost"),
    _Kind("model.pmml", _suffix(".pmml"), "model_files:open_pmml"),
    _Kind("answers.csv", _suffix(".csv"), "table:open_table"),
    _Kind("package.module:name", lambda spec: ":" in spec, "python:open_python"),
)


def open_original(spec: str, classes: Classes = None, **options: Unpack[Options]) -> Original:
    """The original that a command line names; see `Options` for what may have to be said about it.

    A fitted classifier or function as `package.module:name`; a file `model.onnx`, `model.skops`, or, with `trust`,
    `model.pkl` or `.joblib`; a model of LightGBM (`.txt`), XGBoost (`.json`, `.ubj`) or CatBoost (`.cbm`), or PMML; an
    endpoint `http(s)://...`, with its `protocol`; `cmd:...`, a program that reads CSV rows
    and prints a label per line; `answers.csv`, a table of stored answers.

    >>> open_original("understudy.toys:spirals").name
    'understudy.toys:spirals'
    """
    kind = next((kind for kind in KINDS if isinstance(spec, str) and kind.fits(spec)), None)
    if kind is None:
        raise SettingError("original", "one of " + ", ".join(kind.words for kind in KINDS), repr(spec))
    module, name = kind.opener.split(":")
    opener: Callable[..., Original] = getattr(import_module(f"understudy.original.{module}"), name)
    given = {key: value for key, value in options.items() if value is not None and not _is_empty(value)}
    takes = _options_of(opener)
    for key in given:
        if key not in takes:
            takable = "one of " + ", ".join(takes) if takes else "no option"
            raise SettingError(key, f"{takable} for an original of the kind {kind.words}", repr(given[key]))
    return opener(spec, classes, **given)


def _options_of(opener: Callable[..., Original]) -> list[str]:
    """What an opener names in its signature, and how outputs are read where it passes that on."""
    named = signature(opener).parameters
    passed_on = Reading.__annotations__ if "reading" in named else {}
    return [key for key in Options.__annotations__ if key in named or key in passed_on]


def _is_empty(value: object) -> bool:
    return isinstance(value, tuple) and not value
