"""From a run's directory to the service that answers for its copy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ectype.cascades import cascade, has_held_out_rows, queryable_original
from ectype.errors import SettingError
from ectype.models.copy_classifier import CopyClassifier
from ectype.runs.result import Result, load
from ectype.serve._app import Service
from ectype.serve._fallback import Fallback
from ectype.serve._inference import InferenceModel
from ectype.serve._settings import ServiceSettings
from ectype.serve._shadow import Shadow
from ectype.serve._shared_counters import SharedCounters


@dataclass(frozen=True)
class LoadedCopy:
    """A copy under its name, and the run that made it."""

    model: InferenceModel
    result: Result


def load_copy(directory: Path, settings: ServiceSettings) -> LoadedCopy:
    """The copy in this directory, whose name it has unless the settings name it."""
    name = _path_segment("--name", directory.resolve().name if settings.name is None else settings.name)
    version = _path_segment("--model-version", settings.version)
    result = load(directory)
    return LoadedCopy(InferenceModel(result.copy, name, version, settings.max_rows), result)


def build_service(copy: LoadedCopy, settings: ServiceSettings, counts: SharedCounters | None = None) -> Service:
    """A service that answers for a copy, with an original beside it, or behind it."""
    shadow = fallback = None
    if settings.shadow is not None:
        _refuse_excluded("--shadow", copy.result.copy)
        shadow = Shadow(copy.result.copy, settings)
    if settings.fallback is not None:
        fallback = certify_fallback(copy.result, settings)
    return Service(copy.model, copy.result.certificate, shadow, settings, counts, fallback)


def certify_fallback(result: Result, settings: ServiceSettings) -> Fallback:
    """The cascade, certified; refused if the copy may answer nothing alone."""
    assert settings.fallback is not None
    _refuse_excluded("--fallback", result.copy)
    n, agree = settings.fallback_n, settings.agree
    if n is None and not has_held_out_rows(result):
        raise SettingError("--fallback-n", "rows to ask, or the held-out rows of a run", "none in the run's directory")
    original = queryable_original(settings.fallback(), "--fallback")
    routing = cascade(result, original, agree, n=n, progress=False).routing
    if not routing.alone:
        advice = routing.advice.replace(" n=", " --fallback-n ").replace("certificate_n", "--certificate-n")
        raise SettingError("--agree", "an agreement that is certified for some rows", f"{agree:g}", advice)
    return Fallback(result.copy, routing, settings, original)


def _path_segment(where: str, text: str) -> str:
    """A part of a URL's path."""
    if not text or "/" in text:
        raise SettingError(where, "a word without a slash", repr(text))
    return text


def _refuse_excluded(option: str, copy: CopyClassifier) -> None:
    """Refuse an original that needs columns which what is served does not take."""
    if copy.excluded:
        hint = "leave it out: what is served takes no column that was kept from the copy, and the original needs them"
        raise SettingError(option, "a copy that sees every column", f"{len(copy.excluded)} kept from it", hint)
