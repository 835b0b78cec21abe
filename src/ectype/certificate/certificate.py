"""Certificates as plain values: how often copy and original agree, with a bound, and where they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from ectype._common.formatting import shorten
from ectype.certificate import formatting
from ectype.types import Label

# Fields that JSON leaves out where they are empty.
LATER = ("strata", "sample", "on_answers", "reasons", "outside", "further")


@dataclass(frozen=True)
class Bound:
    """A fidelity estimate from n rows, with its lower confidence bound."""

    estimate: float
    lower: float
    n: int


@dataclass(frozen=True)
class LabelShare:
    """On how many of the n rows with a label the copy agrees."""

    label: Label
    agreed: int
    n: int

    def __str__(self) -> str:
        return f"{self.name}, {self.agreed} of {self.n}"

    @property
    def name(self) -> str:
        """The label in words that fit on a line."""
        return shorten(repr(self.label), formatting.NAME)

    @property
    def estimate(self) -> float:
        """The share."""
        return self.agreed / self.n

    def as_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {**asdict(self), "estimate": self.estimate}


def worst_of(shares: Iterable[LabelShare]) -> LabelShare | None:
    """The label with the lowest share, however few its rows; None if there is no label.

    Equal shares are ordered by Laplace's rule of succession: none of 5 before none of 1, 3 of 3 before 500 of 500.
    """
    return min(shares, key=lambda one: (one.estimate, (one.agreed + 1) / (one.n + 2)), default=None)


@dataclass(frozen=True)
class Stratum:
    """A part of the space by how sure the copy is, with its exact weight, and the rows of it that were asked."""

    where: str
    """`near` the copy's boundary, or `away` from it."""
    weight: float
    n: int
    agreed: int


@dataclass(frozen=True)
class Flip:
    """A cell of the confusion matrix: on so many rows the original gives one label, and the copy another."""

    original: Label
    copy: Label
    n: int


@dataclass(frozen=True)
class DifferenceRule:
    """A condition on raw columns under which copy and original differ more often than elsewhere.

    Found on one half of the rows and measured on the other: of its `n` rows there, they differ on `share`. With the
    certificate's confidence, for all rules at once, they differ on at least `lower` of all such rows.
    """

    text: str
    n: int
    share: float
    lower: float


@dataclass(frozen=True)
class Example:
    """A row on which they differ, by the names of its columns (None is a gap), and both labels."""

    row: dict[str, Any]
    original: Label
    copy: Label


@dataclass(frozen=True)
class Differences:
    """Where copy and original differ, as far as the rows of a certificate show it."""

    n: int
    """The number of rows on which they differ."""
    flips: tuple[Flip, ...]
    """From the most frequent to the least."""
    rules: tuple[DifferenceRule, ...]
    note: str
    """Why there are no rules, if there are none."""
    examples: tuple[Example, ...]

    def as_json(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Differences:
        """Read what `as_json` wrote."""
        kinds: dict[str, type[Flip | DifferenceRule | Example]] = {
            "flips": Flip,
            "rules": DifferenceRule,
            "examples": Example,
        }
        parts = {name: tuple(kind(**part) for part in content[name]) for name, kind in kinds.items()}
        return cls(**{**content, **parts})


@dataclass(frozen=True, repr=False)
class Certificate:
    """Fidelity on fresh rows of the space: estimate, exact lower bound, and the same for parts of it.

    With confidence `confidence`, the true fidelity is at least `lower`. Bounds of parts hold one at a time.

    >>> from ectype import Space, certify
    >>> proof = certify(lambda rows: rows[:, 0] > 0.1, lambda rows: rows[:, 0] > 0, Space.normal(1), n=1000)
    >>> proof.estimate > proof.lower > 0.9, sorted(proof.per_class)
    (True, [False, True])
    >>> proof.worst.estimate <= proof.estimate, proof.baseline.estimate < 0.6, proof.beats_baseline
    (True, True, True)
    """

    estimate: float
    lower: float
    confidence: float
    n: int
    per_class: dict[Label, Bound] = field(default_factory=dict)
    """By the label that the original gives."""
    level: float | None = None
    """The confidence of each bound: higher, by a Bonferroni correction, where the same rows selected the copy."""
    margin: float | None = None
    """Rows where the copy's margin is below this are near the boundary."""
    near: Bound | None = None
    away: Bound | None = None
    ece: float | None = None
    """The expected calibration error: by how much, on average, the copy's probability of its own label differs from how
    often the original gives that label."""
    differences: Differences | None = None
    on_data: Certificate | None = None
    """The same for the user's rows; its bounds are about the population that these are a random sample of."""
    on_answers: Certificate | None = None
    """The same for answers that were given, such as of real traffic; likewise."""
    distinct: int | None = None
    """Of the user's rows: how many are distinct."""
    left_out: int | None = None
    """Of the user's rows or answers: how many more were left out."""
    reasons: dict[str, int] = field(default_factory=dict)
    """Why, and how many for each reason, such as that they `taught` the copy."""
    outside: int | None = None
    """Of the user's rows: how many are outside the space, and so unlike any that the copy was made from."""
    further: tuple[str, ...] = ()
    """Of the user's rows: the columns that the space lacks, and that the original was sent all the same."""
    strata: tuple[Stratum, ...] = ()
    """Of a stratified design: the parts that estimate and bound are made up of."""
    sample: int | None = None
    """Of a stratified design: how many of the rows are a plain sample of the space; all bounds of parts, and the
    differences, come from these."""
    absent: tuple[Label, ...] = ()
    """Labels that the copy or the original may give, and the original gave to none of the rows: nothing is known of
    them."""

    def __repr__(self) -> str:
        own = "" if self.on_data is None else f", on_data={self.on_data!r}"
        shown = f"estimate={self.estimate:.4f}, lower={self.lower:.4f}, confidence={self.confidence:g}, n={self.n}"
        beside = "".join(f", {part}" for part in formatting.short_caveats(self))
        return f"Certificate({shown}{beside}{own})"

    def __str__(self) -> str:
        return formatting.text(self)

    def _repr_html_(self) -> str:
        return formatting.html(self)

    @property
    def design(self) -> str:
        """How the rows were drawn: `plain`, or `stratified` with more of them where the copy is unsure."""
        return "stratified" if self.strata else "plain"

    @property
    def sampled(self) -> int:
        """How many rows are a plain sample of the space."""
        return self.n if self.sample is None else self.sample

    @property
    def worst(self) -> LabelShare | None:
        """The original's label that the copy misses most often: on how many of its rows the copy gives it."""
        return worst_of(LabelShare(label, round(one.estimate * one.n), one.n) for label, one in self.per_class.items())

    @property
    def baseline(self) -> LabelShare | None:
        """The majority baseline: on how many of the rows always answering the original's commonest label is right."""
        if not self.per_class:
            return None
        label, bound = max(self.per_class.items(), key=lambda entry: entry[1].n)
        return LabelShare(label, bound.n, sum(bound.n for bound in self.per_class.values()))

    @property
    def beats_baseline(self) -> bool:
        """Whether the copy agrees more often than always answering the commonest label would."""
        return self.baseline is None or self.estimate > self.baseline.estimate

    def among(self, labels: Iterable[Label]) -> Certificate:
        """The same, and `absent` are those of these labels that none of its rows had."""
        known, own = list(labels), ("on_data", "on_answers")
        parts = {name: getattr(self, name) for name in own}
        parts = {name: None if part is None else part.among(known) for name, part in parts.items()}
        return replace(self, absent=tuple(label for label in known if label not in self.per_class), **parts)

    @property
    def width(self) -> float:
        """How far the bound is below the estimate."""
        return self.estimate - self.lower

    @property
    def whole(self) -> Bound:
        """The bound of all rows, beside those of parts of them."""
        return Bound(self.estimate, self.lower, self.n)

    def as_json(self) -> dict[str, Any]:
        """The certificate as JSON values; classes become a list, because JSON keys would lose their type.

        The worst label and the baseline are there for those who read it; they follow from the classes.
        """
        content = {part.name: getattr(self, part.name) for part in fields(self)}
        content["per_class"] = [{"label": label, **asdict(bound)} for label, bound in self.per_class.items()]
        for name in ("near", "away"):
            content[name] = None if content[name] is None else asdict(content[name])
        for name in ("differences", "on_data", "on_answers"):
            content[name] = None if content[name] is None else content[name].as_json()
        content["strata"], content["further"] = [asdict(part) for part in self.strata], list(self.further)
        content["absent"] = list(self.absent)
        for name, share in (("worst", self.worst), ("baseline", self.baseline)):
            content[name] = None if share is None else share.as_json()
        left_out = [name for name in LATER if content[name] in (None, [], {})]  # which earlier versions do not have
        return {name: value for name, value in content.items() if name not in left_out}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Certificate:
        """Read what `as_json` wrote, also before there were parts other than classes."""
        readers: dict[str, Callable[[Any], Any]] = {
            "near": lambda part: Bound(**part),
            "away": lambda part: Bound(**part),
            "differences": Differences.from_json,
            "on_data": cls.from_json,
            "on_answers": cls.from_json,
            "strata": lambda parts: tuple(Stratum(**part) for part in parts),
            "further": tuple,
            "absent": tuple,
        }
        content = {name: value for name, value in content.items() if name not in ("worst", "baseline")}
        parts = {name: read(content[name]) for name, read in readers.items() if content.get(name) is not None}
        classes = {
            entry["label"]: Bound(entry["estimate"], entry["lower"], entry["n"]) for entry in content["per_class"]
        }
        return cls(**{**content, **parts, "per_class": classes})
