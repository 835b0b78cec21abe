"""Copy a classifier: checks what it is given, finds or makes the run, and gives its result."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from understudy.algorithm.network import PAPER_LAYERS
from understudy.algorithm.training import Schedule
from understudy.errors import SettingError
from understudy.original import Original, as_original
from understudy.queries import check_fit
from understudy.runs.directory import claim, finished, open_run
from understudy.runs.evaluation import Truth
from understudy.runs.result import Record, Result, load
from understudy.runs.run import Run
from understudy.runs.settings import Settings
from understudy.space import Space
from understudy.space.encoding import View


def copy_classifier(
    original: Any,
    space: Space,
    *,
    method: str = "sequential",
    to: Any = "mlp",
    batch: int | None = None,
    iterations: int | None = None,
    budget: int | None = None,
    target: float | None = None,
    until_flat: bool = False,
    certificate_n: int = 2000,
    confidence: float = 0.95,
    preset: str = "default",
    delta: float | None = None,
    max_kept: int | None = None,
    memory: str | float | None = None,
    penalty: str | None = None,
    layers: Sequence[int] = PAPER_LAYERS,
    schedule: Schedule | int | None = None,
    seed: int = 0,
    draw: str | None = None,
    repeat: float = 0.02,
    decay: float | None = None,
    max_depth: int | None = None,
    max_leaves: int | None = None,
    exclude: Sequence[str] = (),
    increasing: Sequence[str] = (),
    decreasing: Sequence[str] = (),
    max_bytes: int | None = None,
    max_latency: float | None = None,
    classes: Iterable[Any] | None = None,
    out: str | Path | None = None,
    test: tuple[Any, ...] | None = None,
) -> Result:
    """Copy a classifier that can only be queried.

    Parameters
    ----------
    original : a fitted estimator, a function rows -> labels, or an `Original`.
    space : what inputs look like; queries are drawn from it.
    method : "sequential" (Algorithm 5), "pure" (Algorithm 1, keeps every point), "one-shot" or "online" single-pass.
    to : the family of the copy: "mlp", "linear", "tree", "forest", "boosting"; "auto", the most faithful of them on the
        certificate's rows, or the smallest that reaches the target; or an unfitted classifier of scikit-learn's.
    batch : queries per iteration (the paper's n): 100, with the preset "fast" a third of the budget.
    iterations : 30, with the preset "fast" 3, or as many as the budget pays for.
    budget : the most training queries, in whole batches; batch * iterations if not given.
    target : stop as soon as the certificate's lower bound reaches this.
    until_flat : stop as soon as five iterations are on average less than 0.1 points of fidelity better than the five
        before, on the certificate's rows; its bound allows for that.
    certificate_n : queries on top of the budget, for rows that training never sees; 0 for no certificate.
    confidence : the certificate's.
    preset : "default"; "fast", for a network in a fraction of the time that is a little less faithful; or "paper", for
        the setting of the paper's experiments: what parameters are where they are not given, and the loss, batches and
        step size of training.
    delta : points with uncertainty below this are dropped in every round ("sequential" only); 0, and so none but those
        that `max_kept` leaves no room for, by default.
    max_kept : the most points kept in any round ("sequential" only). If not given, 5000 until the last tenth of the
        rounds, in which the sample set shrinks to 15 % of the training queries, but at least 400 points.
    memory : the weight of the memory term: "automatic", "none", or a fixed number ("sequential" only).
    penalty : the memory term: "function" (what the copy answers on rows that cost nothing), "bounded" (tanh of the mean
        square between parameters) or "norm" (as printed in the paper).
    layers : the hidden layers of the network.
    schedule : how long an iteration trains: a number of epochs, or a `training.Schedule` such as `training.steps(200)`.
    seed : same seed, same machine, same copy.
    classes : the labels the original may answer, where it does not say so itself.
    draw : "random"; "margin": after the first batches, mostly rows on which the copy is least sure; "committee": on
        which it and trees fitted to the latest answers are split; "boundary": rows on its boundary, between rows that
        the space gives; or "balanced": rows that the copy takes for its classes in equal parts.
    decay : how much weights shrink in a step of training, as a multiple of the step size.
    max_depth, max_leaves : what a tree may grow to, in the families that have some.
    exclude : columns that the copy may not see. The original gets them, the copy decides without.
    increasing, decreasing : columns with which the last of two classes, as sorted, may only get more likely, or only
        less; every family but networks keeps to it.
    max_bytes : the most that the copy may take when it is written down.
    max_latency : the most milliseconds it may take for a row that comes alone, measured on this machine.
    repeat : the share of queries that are asked again, to see whether the original always answers alike.
    out : a directory that keeps every answer as it comes. The same call with the same directory goes on where it was
        interrupted, and loads a run that is finished; originals are told apart by their names.
    test : rows and true labels, to record accuracy by iteration; and, as a third part, the original's answers to these
        rows, to record how often the copy agrees with them.

    Examples
    --------
    >>> disc = lambda rows: (rows**2).sum(axis=1) < 1
    >>> result = copy_classifier(disc, Space.normal(2), budget=300, schedule=100, certificate_n=500)
    >>> result.copy.predict([[0.0, 0.0], [3.0, 3.0]])
    array([ True, False])
    >>> result.queries
    {'training': 300, 'certificate': 500, 'repeat': 16}
    """
    settings = Settings(
        method,
        to,
        batch,
        iterations,
        budget,
        target,
        until_flat,
        certificate_n,
        confidence,
        preset,
        delta,
        max_kept,
        memory,
        penalty,
        layers,
        schedule,
        seed,
        draw,
        repeat,
        decay,
        max_depth,
        max_leaves,
        exclude,
        increasing,
        decreasing,
        max_bytes,
        max_latency,
    )
    return finish(copy_steps(original, space, settings, classes=classes, out=out, test=test))


def finish(run: Generator[Record, None, Result], show: Callable[[Record], object] = lambda record: None) -> Result:
    """Consume a run for its result, showing each record on the way."""
    while True:
        try:
            record = next(run)
        except StopIteration as end:
            return end.value
        show(record)


def copy_steps(
    original: Any,
    space: Space,
    settings: Settings | None = None,
    *,
    classes: Iterable[Any] | None = None,
    out: str | Path | None = None,
    test: tuple[Any, ...] | None = None,
) -> Generator[Record, None, Result]:
    """`copy_classifier` as a generator: yields a record per iteration, returns the result."""
    asked = Settings() if settings is None else settings
    if not isinstance(asked, Settings):
        raise SettingError("settings", "a Settings", type(asked).__name__)
    original = as_original(original, classes)
    settings = (asked if original.stored is None else replace(asked, repeat=0.0)).checked()
    check_fit(original, space)
    truth = None if test is None else Truth.of(test, space, View(space, settings.exclude))
    about = describe(original, space, settings, 0 if truth is None else len(truth.labels))
    limited_by = "iterations" if asked.budget is None or asked.iterations == settings.iterations else "budget"
    if out is None:
        return (yield from Run(original, space, settings, about, limited_by, truth).steps())
    if finished(claim(out, about)):
        result = load(out)
        yield from result.history
        return result
    with open_run(out, about, space) as ledger:
        result = yield from Run(original, space, settings, about, limited_by, truth, ledger).steps()
        result.save(out)
    return result


def describe(original: Original, space: Space, settings: Settings, test: int = 0) -> dict[str, Any]:
    """What makes a run this run and no other, as JSON values; a run's directory is recognised by it."""
    classes = None if original.declared is None else original.declared.classes.tolist()
    about = {"original": original.name, "fingerprint": original.fingerprint, "classes": classes}
    return {**settings.as_json(), **about, "space": space.digest, "test": test}
