"""A round of a fleet works on every due model once. An interrupted round continues with the models that are left.

Without that, each start after a kill would check anew what the last one had checked, and pay for it again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from time import time

from ectype._common.atomic_io import write_text
from ectype._common.bounded_io import UNREADABLE, check_type, parse_json
from ectype.errors import DirectoryError
from ectype.fleet._config import FleetModel
from ectype.ledger import SESSION_LIFETIME

# The file that is there while a fleet is at work, and after it was interrupted.
ROUND_FILE = "round.json"


@dataclass
class FleetRound:
    """The models that are done, in a round that was begun at a time in seconds since 1970."""

    folder: Path
    refresh: bool
    begun: float = field(default_factory=time)
    done: dict[str, str] = field(default_factory=dict)
    """Models by name, each with a digest of its line in the table."""

    @classmethod
    def of(cls, folder: Path, refresh: bool) -> FleetRound:
        """The round that was interrupted in a fleet's directory, if it was like this and not long ago; or a new one."""
        path = folder / ROUND_FILE
        if not path.exists():
            return cls(folder, refresh)
        try:
            found = parse_json(path.read_bytes())
            check_type(found, dict, "round")
            before = cls(folder, **found)
            check_type([before.refresh, before.begun, before.done], tuple[bool, float, dict[str, str]], "round")
        except UNREADABLE as error:
            hint = "remove it, and models that were checked are checked again"
            raise DirectoryError(str(path), "the models that are done", str(error), hint) from error
        return (
            before if before.refresh == refresh and time() - before.begun < SESSION_LIFETIME else cls(folder, refresh)
        )

    def left(self, models: Sequence[FleetModel]) -> list[FleetModel]:
        """Those of the models that are not done, or whose line in the table has changed since."""
        return [model for model in models if self.done.get(model.name) != _digest(model)]

    def finish(self, model: FleetModel) -> None:
        """Write down that a model is done."""
        self.done[model.name] = _digest(model)
        content = {"refresh": self.refresh, "begun": self.begun, "done": self.done}
        write_text(self.folder / ROUND_FILE, json.dumps(content) + "\n")

    def end(self) -> None:
        """The round is over: the next one begins with all models."""
        (self.folder / ROUND_FILE).unlink(missing_ok=True)


def _digest(model: FleetModel) -> str:
    return sha256(json.dumps(asdict(model), sort_keys=True, default=str).encode()).hexdigest()
