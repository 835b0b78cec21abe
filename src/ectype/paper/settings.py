"""The settings of the paper's experiments, all of them in one place; nothing is left to a default."""

from __future__ import annotations

from typing import Any

# Table 4 has no row for congressional-voting, which Table 3 lists.
WITHOUT_RESULT = ("congressional-voting",)
METHODS = ("sequential", "one-shot", "pure", "online")
SPACES = ("normal", "learned")
DELTAS = (5e-4, 1e-4, 5e-5, 1e-5, 5e-6, 1e-6, 5e-7, 1e-7, 5e-8, 1e-8, 1e-9, 1e-10)
ITERATIONS, EPOCHS = 30, 1000
# The threshold of `preset="paper"`, by whose square stages end where there is no threshold.
DELTA = 1e-6
# How a round trains: so many epochs whatever the risk, or in the stages of Algorithms 3 and 4.
TRAININGS = ("plain", "staged")
# What trains the networks. Units of another engine are other units: a store takes only those of one.
ENGINE = "native"


def paper_settings(iterations: int = ITERATIONS, epochs: int = EPOCHS) -> dict[str, Any]:
    """What every unit of a sweep has in common, as JSON values.

    The memory term is the bounded one: research/tuning.md.

    The loss, the size and kind of batches and the step size come with the preset.
    """
    return {
        "preset": "paper",
        "batch": 100,
        "iterations": iterations,
        "epochs": epochs,
        "layers": [64, 32, 10],
        "penalty": "bounded",
        "max_kept": None,
        "decay": 0.0,
        "draw": "random",
        "engine": ENGINE,
    }


def copy_arguments(
    settings: dict[str, Any],
    method: str,
    delta: float | None,
    seed: int,
    memory: str | float = "automatic",
    points: int | None = None,
    training: str = "plain",
) -> dict[str, Any]:
    """The arguments of `copy_classifier` for one unit; only the sequential method takes a threshold and has a memory.

    Those that a method does not take are left open.

    >>> copy_arguments(paper_settings(epochs=7), "one-shot", None, seed=1)["schedule"].epochs
    7
    """
    from ectype.algorithm.training import plain, staged

    common = {name: value for name, value in settings.items() if name not in ("epochs", "engine")}
    if points is not None:
        common |= {"batch": points, "iterations": 1}
    epochs, sequential = settings["epochs"], method == "sequential"
    drops = sequential and bool(delta)
    return {
        **common,
        "method": method,
        "to": "mlp",
        "delta": (delta or 0.0) if sequential else None,
        "memory": memory if drops else None,
        "penalty": settings["penalty"] if drops and memory != "none" else None,
        "draw": None if method == "one-shot" else settings["draw"],
        "schedule": plain(epochs) if training == "plain" else staged((delta or DELTA) ** 2, epochs=epochs),
        "budget": None,
        "target": None,
        "until_flat": False,
        "progress": False,
        "certificate_n": 0,
        "repeat": 0.0,
        "retries": None,
        "scores": False,
        "seed": seed,
    }
