"""FLEET.toml: a table of originals, with what to copy each to, and what they may cost together."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ectype._common import validation
from ectype.errors import SettingError
from ectype.fleet._quotas import SPANS, FleetLimits
from ectype.original.options import FILES, OPTIONS
from ectype.original.vendor import Vendor, beside, is_vendor_file, refuse_unknown_keys
from ectype.plan.settings import Settings
from ectype.queries import DRIFT_TEST_ROWS
from ectype.types import Json

# What a model may say beside the settings of a run and the options of an original.
OWN = ("name", "original", "files", "space", "rows", "classes", "cost", "check", "every", "deterministic")
SETTINGS = tuple(part.name for part in fields(Settings) if part.name not in ("progress", "schedule"))
UNITS = {"m": 60.0, "h": 3600.0, "d": 86400.0}
# Names become directories.
NAMES = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class FleetModel:
    """One line of the table: an original, its space, and what to make of it."""

    name: str
    original: str
    space: str
    rows: str | None = None
    """Unlabelled rows of the user's own."""
    classes: list[Any] | None = None
    cost: float = 0.0
    """Of a row."""
    check: int = DRIFT_TEST_ROWS
    """Rows that are asked again to see whether the original changed."""
    every: float = 0.0
    """Seconds after which it is checked again; 0 is whenever the fleet runs."""
    deterministic: bool = False
    settings: Json = field(default_factory=dict)
    options: Json = field(default_factory=dict)

    @property
    def host(self) -> str:
        """The host that is asked, or nothing if that is this machine itself.

        >>> FleetModel("a", "https://scoring.example:8443/v2/models/a", "a.json").host
        'scoring.example:8443'
        """
        remote = self.original.lower().startswith(("http://", "https://", "grpc://", "grpcs://"))
        return urlsplit(self.original).netloc.rpartition("@")[2].lower() if remote else ""


@dataclass(frozen=True)
class Fleet:
    """A table of models, and the limits that they share."""

    models: tuple[FleetModel, ...]
    limits: FleetLimits
    folder: Path
    """Where the table is: files are named from there, and modules found."""


def read_fleet(path: str | Path) -> Fleet:
    """Read a table; what is wrong with it is an error that says where."""
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingError(str(path), "a table in TOML", str(error)) from error
    refuse_unknown_keys(str(path), content, ("limits", "defaults", "model"))
    listed, defaults = content.get("model", []), _table(f"{path}: [defaults]", content.get("defaults", {}))
    if not isinstance(listed, list) or not listed:
        raise SettingError(str(path), "at least one [[model]]", "none")
    refuse_unknown_keys(f"{path}: [defaults]", defaults, (*(key for key in OWN if key != "name"), *SETTINGS, *OPTIONS))
    folder = path.parent.absolute()
    models: dict[str, FleetModel] = {}
    for number, entry in enumerate(listed, 1):
        for model in _models(
            f"{path}: model {number}", {**defaults, **_table(f"{path}: model {number}", entry)}, folder
        ):
            if model.name in models:
                raise SettingError(f"{path}: model {number}", "a name of its own", repr(model.name))
            models[model.name] = model
    return Fleet(tuple(models.values()), _limits(f"{path}: [limits]", content.get("limits", {})), folder)


def _models(where: str, entry: Mapping[str, Any], folder: Path) -> Iterator[FleetModel]:
    """The models of an entry: one, or one for each file of a glob."""
    refuse_unknown_keys(where, entry, (*OWN, *SETTINGS, *OPTIONS))
    if "files" not in entry:
        yield _model(where, entry, folder)
        return
    if "original" in entry or "name" in entry:
        raise SettingError(where, "files, or a name and an original", "both")
    found = sorted(folder.glob(_text(where, entry, "files")))
    if not found:
        raise SettingError(where, f"files such as {entry['files']}", f"none in {folder}")
    for file in found:
        one = {key: value for key, value in entry.items() if key != "files"}
        yield _model(where, {**one, "original": str(file), "name": file.stem}, folder)


def _model(where: str, entry: Mapping[str, Any], folder: Path) -> FleetModel:
    name = _text(where, entry, "name")
    if not NAMES.fullmatch(name):
        raise SettingError(f"{where}: name", "letters, digits, dots, dashes and underscores", repr(name))
    where = f"{where} ({name})"
    filled = {key: _fill_name(value, name) for key, value in entry.items()}
    options = {key: beside(folder, filled[key]) if key in FILES else filled[key] for key in OPTIONS if key in filled}
    original = beside(folder, _text(where, filled, "original"))
    vendor = Vendor.read(original) if is_vendor_file(original) else Vendor(original)
    vendor = vendor.override(options=options)
    rows = filled.get("rows")
    return FleetModel(
        name=name,
        original=vendor.original,
        space=beside(folder, _text(where, filled, "space")),
        rows=None if rows is None else beside(folder, _text(where, filled, "rows")),
        classes=filled.get("classes", vendor.classes),
        cost=_cost(f"{where}: cost", filled.get("cost", vendor.cost)),
        check=validation.count(f"{where}: check", filled.get("check", DRIFT_TEST_ROWS), 1),
        every=_seconds(f"{where}: every", filled.get("every", 0)),
        deterministic=bool(filled.get("deterministic", False)),
        settings={key: filled[key] for key in SETTINGS if key in filled},
        options=vendor.options,
    )


def _limits(where: str, entry: object) -> FleetLimits:
    table = _table(where, entry)
    refuse_unknown_keys(where, table, ("queries", "cost", "per", "hosts"))
    hosts = _table(f"{where}: hosts", table.get("hosts", {}))
    above = "a number of rows a second above 0"
    return FleetLimits(
        hosts={
            host.lower(): validation.number(f"{where}: hosts: {host}", rate, above, 1e-9, float("inf"))
            for host, rate in hosts.items()
        },
        queries=None if "queries" not in table else validation.count(f"{where}: queries", table["queries"], 0),
        cost=None if "cost" not in table else _cost(f"{where}: cost", table["cost"]),
        per=validation.choice(f"{where}: per", table.get("per", "ever"), tuple(SPANS)),
    )


def _cost(where: str, found: Any) -> float:
    return validation.number(where, found, "a number of at least 0", 0, float("inf"))


def _table(where: str, found: object) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise SettingError(where, "a table", repr(found)[:80])
    return found


def _text(where: str, entry: Mapping[str, Any], key: str) -> str:
    if not isinstance(entry.get(key), str):
        raise SettingError(where, f"{key} = a text", repr(entry[key]) if key in entry else "none")
    return str(entry[key])


def _fill_name(value: Any, name: str) -> Any:
    """A value with the model's name in its place."""
    return value.replace("{name}", name) if isinstance(value, str) else value


def _seconds(where: str, text: object) -> float:
    """A time span such as 12h.

    >>> _seconds("every", "12h"), _seconds("every", 0)
    (43200.0, 0.0)
    """
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([mhd])", text.strip()) if isinstance(text, str) else None
    if found:
        return float(found[1]) * UNITS[found[2]]
    if text in (0, "0"):
        return 0.0
    raise SettingError(where, "a time such as 30m, 12h or 1d", repr(text))
