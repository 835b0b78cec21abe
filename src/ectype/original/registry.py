"""The kinds of original, and the opener of each, imported when it is needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from inspect import signature
from typing import NamedTuple, Unpack

from ectype.errors import SettingError
from ectype.original.base import Original
from ectype.original.fingerprint import digest
from ectype.original.labels import label_array
from ectype.original.options import ACCESS_OPTIONS, OPTIONS, SEMANTIC_OPTIONS, LabelReader, OriginalOptions
from ectype.original.vendor import Vendor, is_vendor_file
from ectype.space import PARQUET_SUFFIXES
from ectype.types import Classes, Json, Label


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
        "http.factory:open_http",
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
    """The original that a command line names; see `OriginalOptions` for its options.

    A fitted classifier or function as `package.module:name`; a file `model.onnx`, `model.skops`, or, with `trust`,
    `model.pkl` or `.joblib`; a model of LightGBM (`.txt`), XGBoost (`.json`, `.ubj`) or CatBoost (`.cbm`), or PMML; an
    endpoint `http(s)://...`, with its `protocol`; `cmd:...`, a program that reads CSV rows
    and prints a label per line; `answers.csv` or `.parquet`, a table of stored answers; `vendor.toml`, a file that says
    which of these it is, with its options.

    >>> open_original("ectype.toy_problems:spirals").name
    'ectype.toy_problems:spirals'
    """
    if is_vendor_file(spec):
        return Vendor.read(spec).open(classes, **options)
    kind = next((kind for kind in KINDS if isinstance(spec, str) and kind.fits(spec)), None)
    if kind is None:
        words = ", ".join([*(kind.words for kind in KINDS), "vendor.toml"])
        raise SettingError("original", f"one of {words}", repr(spec))
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
    original.vendor = Vendor(spec, listed, options=given).remembered()
    original.reopen = partial(open_original, spec, listed, **options)
    return original


def opener_of(kind: OriginalKind) -> Callable[..., Original]:
    """The function that opens originals of a kind."""
    module, name = kind.opener.split(":")
    opener: Callable[..., Original] = getattr(import_module(f"ectype.original.{module}"), name)
    return opener


def _meaning(given: Json, classes: list[Label] | None) -> Json:
    """Of these options, those that change what a label means and differ from their defaults."""
    found = {
        key: value for key, value in given.items() if key not in ACCESS_OPTIONS and value != SEMANTIC_OPTIONS.get(key)
    }
    found.update({key: float(value) for key, value in found.items() if isinstance(SEMANTIC_OPTIONS.get(key), float)})
    if "template" in found:
        from ectype.original.protocols import Templated

        found["template"] = digest(Templated(found["template"]).template.model_dump())
    if "header" in found:  # which may name a model, and may hold a secret
        found["header"] = digest(sorted([given["header"]] if isinstance(given["header"], str) else given["header"]))
    if found.get("decode") and classes is not None:  # the order of the outputs; else that of labels means nothing
        found["outputs"] = label_array(classes).tolist()
    return found


def options_of(opener: Callable[..., Original]) -> list[str]:
    """The options that an opener takes: those in its signature, and those of `LabelReader` if it passes them on."""
    named = signature(opener).parameters
    passed_on = LabelReader.__annotations__ if "reading" in named else {}
    return [key for key in OPTIONS if key in named or key in passed_on]


def _is_empty(value: object) -> bool:
    return isinstance(value, tuple) and not value
