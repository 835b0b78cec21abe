"""What a user may set about a run, declared once: `copy_classifier`, the estimators and the command derive from it.

`Settings` are what the user said. `ectype.plan.plan` checks them and decides what they leave open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from ectype.algorithm.memory import FUNCTION, PENALTIES
from ectype.algorithm.training import Schedule
from ectype.plan.presets import PRESETS
from ectype.types import Classifier

FAMILIES = ("mlp", "linear", "tree", "forest", "boosting")
BLEND, AUTO = "blend", "auto"
# How rows are chosen: `ectype.methods.acquisition` has a policy for each.
DRAWS = ("random", "margin", "balanced", "committee", "boundary")
METHODS = ("sequential", "pure", "one-shot", "online")
# How options are grouped where they are listed.
ASK, MAKE, STOP, RUN = "What to ask", "What to make", "When to stop", "How to run"
# Values that are neither a number, a flag nor one of some words.
COLUMNS, SIZES, WEIGHT = "columns", "sizes", "weight"

T = TypeVar("T")


@dataclass(frozen=True)
class SettingInfo:
    """The type and the documentation of a setting."""

    group: str
    text: str
    kind: type[int] | type[float] | type[bool] | str | tuple[str, ...]
    """What a value is: a number, a flag, one of some words, names of columns, sizes of layers, or a weight."""
    open: str = ""
    """The default, where it is left open."""


def _set(default: T, *about: Any) -> T:
    made: Any = field(default=default, metadata={"about": SettingInfo(*about)})
    return made  # a field, which becomes an attribute of the default's type


@dataclass(kw_only=True)
class SharedSettings:
    """The settings that functions, estimators and the command share, each with its documentation.

    A family is a name, or an unfitted scikit-learn classifier; a schedule is a number of epochs, or a
    `training.Schedule`, such as `training.steps(200)`.
    """

    budget: int | None = _set(None, ASK, "The most training queries, in whole batches.", int, "3000")
    batch: int | None = _set(
        None,
        ASK,
        "Queries per iteration, the paper's n.",
        int,
        "more from one to the next, up to three quarters of max_kept; a third of the budget with the preset fast; 100 "
        "with paper, delta, or the method online",
    )
    iterations: int | None = _set(None, ASK, "The most iterations.", int, "as many as the budget pays for")
    draw: str | None = _set(
        None,
        ASK,
        "Which rows to ask: random ones (random), mostly those with the smallest margins (margin), those on which a "
        "committee of quick models wavers (committee), on the copy's boundary (boundary), or all classes equally "
        "(balanced).",
        DRAWS,
        "committee; margin with the preset fast; random with the paper's",
    )
    rows_share: float | None = _set(
        None, ASK, "The share of training queries that are about rows of your own, where you give some.", float, "0.25"
    )
    scores: bool = _set(
        False,
        ASK,
        "Learn from the original's probabilities too, where it gives them: a copy then needs about half the "
        "queries. Refused if its label is not always the class with the highest.",
        bool,
    )
    repeat: float | None = _set(
        None, ASK, "The share of queries asked again, to see how consistently the original answers.", float, "0.02"
    )
    retries: float | None = _set(
        None,
        ASK,
        "The rows that may be sent again after failures, as a share of all queries. They are part of the sum that is "
        "announced; more are never sent, and the run can go on with a higher share.",
        float,
        "0.25, and room for three requests at least",
    )
    to: str | Classifier | None = _set(
        None,
        MAKE,
        "The family of the copy; blend is several of them, weighed; auto is the most faithful that the limits allow, "
        "or the smallest that reaches the target.",
        (*FAMILIES, BLEND, AUTO),
        "auto; mlp with the presets fast and the paper's, with layers, with delta, or with the method online",
    )
    layers: Sequence[int] | None = _set(
        None, MAKE, "The hidden layers of the network.", SIZES, "by the number of answers; the paper: 64,32,10"
    )
    max_depth: int | None = _set(None, MAKE, "How deep trees may grow.", int)
    max_leaves: int | None = _set(None, MAKE, "How many leaves a tree may have.", int)
    exclude: Sequence[str] = _set((), MAKE, "Columns that the copy may not see; the original still gets them.", COLUMNS)
    increasing: Sequence[str] = _set(
        (), MAKE, "Columns with which the last of two classes may only get likelier; not for networks.", COLUMNS
    )
    decreasing: Sequence[str] = _set(
        (), MAKE, "Columns with which the last of two classes may only get less likely; not for networks.", COLUMNS
    )
    max_bytes: int | None = _set(None, MAKE, "The most bytes that the saved copy may take.", int)
    max_latency: float | None = _set(
        None, MAKE, "The most milliseconds that a single row may take, on this machine.", float
    )
    target: float | None = _set(None, STOP, "Stop as soon as the certificate's lower bound reaches this.", float)
    until_flat: bool = _set(
        False,
        STOP,
        "Stop when twice as many queries made the copy less than 0.1 points more faithful.",
        bool,
    )
    certificate_n: int = _set(
        2000, STOP, "Held-out queries for the certificate, on top of the budget; 0 for none.", int
    )
    confidence: float = _set(0.95, STOP, "The certificate's confidence.", float)
    preset: str = _set(
        "default", RUN, "Defaults for settings that are not given, and how networks are trained.", tuple(PRESETS)
    )
    delta: float | None = _set(
        None, RUN, "Drop points with an uncertainty rho below this, in every round.", float, "0; the paper: 1e-6"
    )
    max_kept: int | None = _set(
        None,
        RUN,
        "The most points kept from round to round; beside them there is one batch, which is never larger.",
        int,
        "all of them",
    )
    memory: str | float | None = _set(
        None, RUN, "The weight of the memory term: automatic, none, or a number.", WEIGHT, "7; the paper: automatic"
    )
    penalty: str | None = _set(
        None,
        RUN,
        "The memory term: rehearsal of the last copy's answers to unlabelled rows (function), tanh of the mean square "
        "between parameters (bounded), or their distance, as printed in the paper (norm).",
        (*PENALTIES, FUNCTION),
        "function; the paper: bounded",
    )
    schedule: Schedule | int | None = _set(None, RUN, "How many epochs an iteration trains.", int, "as the preset says")
    progress: bool = _set(
        True, RUN, "Show how far it is, on a terminal or in a notebook. It is no part of the run itself.", bool
    )
    decay: float | None = _set(None, RUN, "Weight decay, as a multiple of the step size.", float, "by the inputs")


@dataclass(kw_only=True)
class Settings(SharedSettings):
    """What a run is asked to do. See `copy_classifier` for what each setting means.

    >>> asked = Settings(budget=1000, to="tree")
    >>> asked.to, asked.certificate_n
    ('tree', 2000)
    """

    method: str = _set(
        "sequential",
        ASK,
        "How to copy: sequential (Algorithm 5), pure (Algorithm 1, keeps every point), one-shot or online single-pass.",
        METHODS,
    )
    seed: int = _set(0, RUN, "The seed: same seed, same answers, same copy.", int)


def about(name: str) -> SettingInfo:
    """The type and the documentation of a setting, by name."""
    return next(part.metadata["about"] for part in fields(Settings) if part.name == name)
