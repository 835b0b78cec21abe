"""The states of a fleet's models: each model has a directory, with its numbered copies and its state."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from time import time

from ectype._common.atomic_io import make_folder, write_text
from ectype._common.bounded_io import MOST_JSON_BYTES, SHOWN, UNREADABLE, check_type, parse_json, read_bytes
from ectype._common.formatting import shorten
from ectype.certificate.certificate import Certificate
from ectype.errors import DirectoryError
from ectype.ledger import LEDGER
from ectype.runs.directory import finished
from ectype.types import Json

STATE_FILE = "state.json"
# From what needs attention first to what needs none, with what each means.
STATES = {
    "failed": "it could not be asked, or not be copied",
    "limited": "the fleet's limits were reached before it was done",
    "changed": "the original answers otherwise than when it was copied: refresh it",
    "missed": "the copy is not as faithful as it was to be",
    "waiting": "it was not begun yet",
    "done": "the copy is as faithful as it was to be",
}
FAILED, LIMITED, CHANGED, MISSED, WAITING, DONE = STATES


@dataclass(frozen=True)
class ModelState:
    """What is known of a model."""

    name: str
    state: str = WAITING
    note: str = ""
    """Why it failed, or what was found, in a line."""
    did: str = ""
    """What was done last: copied, went on, remade, checked, refreshed."""
    at: str = ""
    """When that was, in UTC."""
    checked: str = ""
    """When its original was last seen to answer as its copy was made from."""
    copy: str = ""
    """The directory of its copy, from the fleet's own."""
    recipe: Json = field(default_factory=dict)
    """What the copy was asked to be."""
    target: float | None = None
    fidelity: Json | None = None
    """Of the certificate: estimate, lower bound, confidence and rows, and the same by label."""
    family: str = ""
    bytes: int | None = None
    ms: float | None = None
    queries: int = 0
    """Training queries of the copy."""
    seconds: float = 0.0
    """That the last of what was done took."""

    @property
    def proof(self) -> Certificate | None:
        """The certificate, as far as it is known; earlier versions kept nothing of single labels."""
        return None if self.fidelity is None else Certificate.from_json({"per_class": [], **self.fidelity})

    @property
    def goes_on(self) -> bool:
        """Whether the model could not be done yet, so that the next run of the fleet tries again."""
        return self.state in (FAILED, LIMITED, WAITING)

    @property
    def attention(self) -> tuple[int, str]:
        """Where it stands in a list that begins with what needs attention."""
        return list(STATES).index(self.state), self.name

    def as_json(self) -> Json:
        """The state as JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class ModelFolder:
    """The directory of a model: copies `copy-1`, `copy-2` and so on, and its state."""

    folder: Path
    name: str

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.folder / self.name

    @property
    def current(self) -> Path | None:
        """The latest copy that is finished."""
        return next((path for path in reversed(self._copies()) if finished(path)), None)

    @property
    def next(self) -> Path:
        """Where the next copy goes: one that was begun goes on."""
        copies = self._copies()
        if copies and not finished(copies[-1]) and (copies[-1] / LEDGER).is_file():
            return copies[-1]
        return self.path / f"copy-{1 + sum(finished(path) for path in copies)}"

    def read(self) -> ModelState:
        """The state as it was written last; that of a model that was never begun, if none was."""
        path = self.path / STATE_FILE
        try:
            if not path.exists():
                return ModelState(self.name)
            found, known = parse_json(read_bytes(path, MOST_JSON_BYTES)), {part.name for part in fields(ModelState)}
            state = ModelState(**{**{key: value for key, value in found.items() if key in known}, "name": self.name})
            _check(state, path.name)
            return state
        except UNREADABLE as error:
            hint = "remove it: the copies beside it stay, and the next run writes it anew"
            raise DirectoryError(str(path), "the state of a model", str(error), hint) from error

    def write(self, state: ModelState) -> None:
        """Write the state, whole or not at all."""
        make_folder(self.path)
        write_text(self.path / STATE_FILE, json.dumps(state.as_json(), indent=1) + "\n")

    def _copies(self) -> list[Path]:
        found = [path for path in self.path.glob("copy-*") if path.name[5:].isdigit()]
        return sorted(found, key=lambda path: int(path.name[5:]))


def _check(state: ModelState, where: str) -> None:
    """ValueError for a state that no fleet has written."""
    check_type(state, ModelState, where)
    check_type(state.proof, Certificate | None, f"{where}: fidelity")
    if state.state not in STATES:
        raise ValueError(
            f"{where}: state: expected one of {', '.join(STATES)}, found {shorten(repr(state.state), SHOWN)}"
        )
    if state.checked and datetime.fromisoformat(state.checked).tzinfo is None:
        raise ValueError(f"{where}: checked: expected a time in UTC, found {state.checked!r}")


def states(folder: str | Path) -> list[ModelState]:
    """What is known of every model of a fleet, beginning with what needs attention."""
    path = Path(folder)
    if not path.is_dir():
        raise DirectoryError(str(path), "the directory of a fleet", "none", "run `ectype fleet` first")
    found = [ModelFolder(path, one.parent.name).read() for one in path.glob(f"*/{STATE_FILE}")]
    return sorted(found, key=lambda state: state.attention)


def utc_now() -> str:
    """The time, in UTC."""
    return utc_time(time())


def utc_time(moment: float) -> str:
    """A time in seconds since 1970, in UTC."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
