"""The Pareto frontier of size, latency and fidelity: every family in several sizes, from one run's answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ectype._common import validation
from ectype._common.atomic_io import as_path
from ectype.algorithm.sample_set import SampleSet
from ectype.certificate.bounds import HeldOut
from ectype.errors import DirectoryError, SettingError
from ectype.models.copy_classifier import CopyClassifier
from ectype.models.distillation import Candidate, FitContext, outcomes
from ectype.models.families import FamilyLimits
from ectype.original import Labels
from ectype.plan.plan import Plan
from ectype.plan.resolve import plan_of_json
from ectype.plan.settings import BLEND, FAMILIES
from ectype.progress import COPIES, show_progress
from ectype.runs.model_selection import fit_context, latency
from ectype.runs.previous_run import PreviousRun
from ectype.runs.result import Result
from ectype.space import FeatureView

if TYPE_CHECKING:
    import pandas as pd

# The size limits of each family, one after the other: leaves of a tree, bytes of an ensemble, layers of a network.
LEAVES = (4, 8, 16, 32, 64, 128, 256, 512)
BYTES = (5_000, 20_000, 80_000, 320_000)
LAYERS = ((8,), (32, 16))
MADE = (BLEND, *FAMILIES)


def frontier(directory: str | Path, families: Sequence[str] | None = None, *, progress: bool = True) -> pd.DataFrame:
    """Copies of every family in several sizes, made from a run's answers without a query.

    A row each: its family, its size limit, its teacher, bytes, milliseconds for a single row, fidelity on the
    certificate's rows and its lower bound, which holds for all rows of the table at once. `worst_label` is the label
    on which it agrees least often, on `worst_agreed` of `worst_n` rows; `baseline` is what always answering the
    commonest label has, and `beats_baseline` whether the copy has more. `best_by_bytes` and `best_by_ms` mark the
    Pareto frontiers. `progress` shows how far it is, on a terminal or in a notebook.

    >>> from tempfile import TemporaryDirectory
    >>> from ectype import Space, copy_classifier
    >>> with TemporaryDirectory() as folder:
    ...     settings = {"budget": 300, "preset": "fast", "out": f"{folder}/run"}
    ...     _ = copy_classifier(lambda rows: rows[:, 0] > 0, Space.normal(1), **settings)
    ...     table = frontier(f"{folder}/run", ["linear"])
    >>> table["family"].tolist(), bool(table["fidelity"][0] > 0.9)
    (['linear'], True)
    """
    import pandas as pd

    named = [validation.choice("families", family, MADE) for family in families or MADE]
    parts = _Parts.of(as_path(directory))
    # By actual size, not by limit: a tree without a limit may be smaller than one with a high limit.
    total = sum(1 for family in named for _ in parts.sizes(family))
    with show_progress("frontier", total, wanted=progress, step=COPIES) as tell:
        made = list[tuple[str, Candidate]]()
        for size, one in parts.made(named):
            made.append((size, one))
            tell(len(made), f"{one.family} {size}".rstrip())
    made.sort(key=lambda pair: (named.index(pair[1].family), pair[1].size))
    result = parts.result
    # Bonferroni: these rows selected each of them from several, and all are shown.
    among = sum(outcomes([one.family]) for _, one in made)
    held_out = HeldOut(parts.held_out.X, parts.held_out.y, Labels(result.copy.classes))
    rows = []
    for size, one in made:
        copy = CopyClassifier(one.model, result.copy.classes, result.copy.space, result.copy.excluded)
        proof = held_out.certify(copy.decide(held_out.X), parts.plan.asked.confidence, among)
        assert proof.worst is not None
        assert proof.baseline is not None
        rows.append(
            {
                "family": one.family,
                "size": size,
                "teacher": one.teacher,
                "bytes": one.size,
                "ms": latency(copy),
                "fidelity": proof.estimate,
                "lower": proof.lower,
                "worst_label": proof.worst.label,
                "worst_agreed": proof.worst.agreed,
                "worst_n": proof.worst.n,
                "baseline": proof.baseline.estimate,
                "beats_baseline": proof.beats_baseline,
            }
        )
    table = pd.DataFrame(rows)
    for column in ("bytes", "ms"):
        table[f"best_by_{column}"] = _unbeaten(table[column].to_numpy(), table["lower"].to_numpy())
    return table


def taken(directory: Path, row: tuple[str, str]) -> tuple[Candidate, int]:
    """The model in the row of a run's frontier that has this family and size, and what its bound is corrected for."""
    parts = _Parts.of(directory)
    sizes = [(family, size, limits) for family in MADE for size, limits in parts.sizes(family)]
    for family, size, limits in sizes:
        if (family, size) == row:
            one = parts.better(family, limits)
            model = parts.workshop.calibrate(family, one.model)
            return replace(one, model=model), sum(outcomes([family]) for family, _, _ in sizes)
    found, hint = f"{row[0]!r} of size {row[1]!r}", "name one as `ectype frontier` shows it"
    raise SettingError("take", f"a family and size among {[pair[:2] for pair in sizes]}", found, hint)


def _unbeaten(costs: Any, lower: Any) -> list[bool]:
    """Which are Pareto-optimal: nothing that costs as little has a higher bound."""
    return [not any((costs <= costs[k]) & (lower > lower[k])) for k in range(len(costs))]


@dataclass(frozen=True)
class _Parts:
    """What is used of a finished run: its result, what copies are made from, and held-out rows to measure them."""

    result: Result
    plan: Plan
    workshop: FitContext
    held_out: SampleSet

    @classmethod
    def of(cls, path: Path) -> _Parts:
        past = PreviousRun.of(path)
        plan = plan_of_json(past.result.settings, to="auto", max_bytes=None)
        view, labels = FeatureView(past.result.space, plan.asked.exclude), Labels(past.result.copy.classes)
        learned, held = past.points(view, labels)
        if not len(learned) or not len(held):
            hint = "copy again with a directory (out= or --out) and a certificate"
            raise DirectoryError(str(path), "a ledger with answers for training and for a certificate", "less", hint)
        return cls(past.result, plan, fit_context(plan, past.result.space, view, learned, len(labels)), held)

    def made(self, families: Sequence[str]) -> Iterator[tuple[str, Candidate]]:
        """Every family in its sizes: the size limit, and the better of a student and a model without a teacher."""
        for family in families:
            for size, limits in self.sizes(family):
                yield size, self.better(family, limits)

    def better(self, family: str, limits: FamilyLimits) -> Candidate:
        """The better of a student and a model without a teacher, within these limits."""
        found = replace(self.workshop, limits=limits, shared=self.workshop).candidates(family, self.held_out)
        return max(found, key=lambda one: one.fidelity)

    def sizes(self, family: str) -> Iterator[tuple[str, FamilyLimits]]:
        """One size limit after the other, then the run's own limits."""
        limits = self.workshop.limits
        if family == "tree":
            for leaves in LEAVES:
                if limits.max_leaves is None or leaves < limits.max_leaves:
                    yield f"{leaves} leaves", replace(limits, max_leaves=leaves)
        elif family in ("forest", "boosting"):
            for most in BYTES:
                yield f"{most} bytes", replace(limits, max_bytes=most)
        elif family == "mlp":
            for layers in LAYERS:
                yield _layers(layers), replace(limits, layers=layers)
        yield _layers(limits.layers) if family == "mlp" else "", limits


def _layers(layers: Sequence[int]) -> str:
    return "-".join(map(str, layers))
