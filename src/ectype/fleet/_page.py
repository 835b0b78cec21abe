"""The page about a fleet: every model with a link to its report, beginning with what needs attention."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ectype._common.formatting import printable
from ectype.fleet._state_store import DONE, STATES, ModelState, utc_now
from ectype.report import write_page as write
from ectype.types import Json

if TYPE_CHECKING:
    from ectype.fleet._runner import FleetStatus

PAGE_NAME = "index.html"


def write_page(folder: Path, outlook: FleetStatus) -> Path:
    """Write the page into the fleet's directory."""
    counts, states = outlook.counts, [_shown(state) for state in outlook.states]
    return write(
        folder / PAGE_NAME,
        "fleet.html",
        f"Fleet of {len(states)} {'model' if len(states) == 1 else 'models'}",
        verdict=fleet_verdict(outlook),
        counts={name: counts[name] for name in STATES if name in counts},
        meanings={name: meaning for name, meaning in STATES.items() if name in counts},
        states=states,
        spent=outlook.spent,
        span=f" in {outlook.spent.span}" if outlook.spent.span else "",
        written=utc_now()[:16].replace("T", " "),
    )


def _shown(state: ModelState) -> Json:
    """What the page has of a model."""
    return {**state.as_json(), "note": printable(state.note), "proof": state.proof}


def fleet_verdict(outlook: FleetStatus) -> str:
    """How a fleet stands, in a line."""
    well, n = outlook.counts.get(DONE, 0), len(outlook.states)
    return f"All {n} are done" if well == n else f"{n - well} of {n} need attention"
