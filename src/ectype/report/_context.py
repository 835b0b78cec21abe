"""Everything that a page shows, computed before it is written."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from ectype.certificate.certificate import Certificate
from ectype.certificate.formatting import about_rows, caveats
from ectype.original import Original
from ectype.plan.resolve import resolve
from ectype.plan.settings import Settings
from ectype.report import _charts as charts
from ectype.report._answers import PaidAnswers
from ectype.report._bins import bins_of
from ectype.report._card import hashes, limits
from ectype.report._decision_map import maps_of
from ectype.report._differences import by_column, examples_of, flip_matrix
from ectype.report._filters import percent
from ectype.report._importance import drivers
from ectype.report._learning_curve import paper_curves, reached
from ectype.report._try_form import form_of
from ectype.report._verdict import verdict
from ectype.rng import Stream, stream
from ectype.runs.decision_grid import COLOURS
from ectype.runs.result import Result
from ectype.types import Json

# Rows of the space that cost nothing: they show what values a column has.
DRAWN = 4000


def content(evidence: PaidAnswers, results: Mapping[str, Result], original: Original | None) -> Json:
    """What the page's template is filled with."""
    result = evidence.result
    drawn = result.space.sample(DRAWN, stream(0, Stream.PAGE))
    bins = [bins_of(column, drawn[:, j]) for j, column in enumerate(result.space.columns)]
    columns, scale = by_column(evidence, bins)
    examples, proof = examples_of(evidence), result.certificate
    head = verdict(evidence)
    return {
        "main": result,
        "proof": proof,
        "caveats": [] if proof is None else list(caveats(proof, percent)),
        "results": results,
        "verdict": head,
        "bars": [] if proof is None else _bars(proof.estimate, [rival.fidelity for rival in head.rivals]),
        "classes": {} if proof is None else _classes(result),
        "matrix": None if proof is None else flip_matrix(proof),
        "columns": columns,
        "scale": scale,
        "examples": examples,
        "drivers": drivers(evidence, bins, drawn),
        "reached": reached(result),
        "curves": list(paper_curves({name: one for name, one in results.items() if one.remade is None})),
        "spent": evidence.spent,
        "maps": maps_of(result, original, evidence.run),
        "colours": len(COLOURS),
        "original_drawn": original is not None and result.space.d == result.copy.space.d,
        "own_rows": [] if proof is None else _own_rows(proof),
        "form": form_of(evidence, drawn, examples),
        "limits": list(limits(result, str)),
        "given": given(result),
        "excluded": result.settings.get("exclude") or [],
        "hashes": [] if evidence.directory is None else list(hashes(evidence.directory)),
    }


def _own_rows(proof: Certificate) -> list[str]:
    """What has to be known beside the fidelity on the user's own rows."""
    return (
        [] if proof.on_data is None else [*caveats(proof.on_data, percent), *islice(about_rows(proof.on_data), 1, None)]
    )


def _bars(copy: float, rivals: list[float]) -> list[str]:
    scale = charts.AxisScale(0.0, 1.0)
    return [charts.bar(copy, "copy", scale), *(charts.bar(rival, "original", scale) for rival in rivals)]


def _classes(result: Result) -> Json:
    """The tracks of fidelity by label, near the boundary and away from it, all on one scale."""
    proof = result.certificate
    assert proof is not None
    bounds = [*proof.per_class.values(), *(one for one in (proof.near, proof.away) if one)]
    scale = charts.share_scale(bound.lower for bound in bounds)
    tracks = [charts.interval(bound.estimate, bound.lower, scale, proof.estimate) for bound in bounds]
    return {"tracks": tracks, "scale": scale}


def given(result: Result) -> Json:
    """The settings that are not what they are by themselves: what the user wrote."""
    usual = resolve(Settings()).as_json()
    return {key: value for key, value in result.settings.items() if key in usual and value != usual[key]}
