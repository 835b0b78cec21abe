"""A model card in Markdown: what was copied, how, how faithful the copy is, and its known limits.

Everything in it is read from the run's directory; there is no query. Its text is in `page/card.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import file_digest
from pathlib import Path

from ectype._common.atomic_io import directory_errors
from ectype._common.bounded_io import open_regular
from ectype._common.formatting import as_sentence
from ectype.certificate.certificate import Certificate
from ectype.certificate.formatting import GIVEN, about_rows, caveats
from ectype.ledger import LEDGER, summarise_ledger
from ectype.report._markdown import escape_markdown
from ectype.report._templates import environment
from ectype.runs.directory import FILES
from ectype.runs.formatting import picking
from ectype.runs.result import Result, load

# A class with fewer answers than this among the certificate's rows has a bound that says little.
FEW = 50


def model_card(directory: str | Path, types: Sequence[str] = ()) -> str:
    """The card of the finished run in a directory, as Markdown."""
    path, result = Path(directory), load(directory, types)
    labels = result.copy.classes.tolist()
    text = (
        environment()
        .get_template("card.md")
        .render(
            main=result,
            settings=result.settings,
            the_copy=f"{result.family}, {len(labels)} classes: {', '.join(map(repr, labels))}",
            spent=summarise_ledger(path / LEDGER) if (path / LEDGER).is_file() else None,
            certificates=list(_certificates(result.certificate)),
            limits=known_limits(result),
            hashes=file_hashes(path),
        )
    )
    return f"{text}\n"


def _certificates(proof: Certificate | None) -> Iterator[tuple[str, Certificate, list[str]]]:
    """Every certificate of a run with its name and the sentences about its fidelity."""
    if proof is None:
        return
    parts = ("", proof), (" on rows of your own", proof.on_data), (f" on {GIVEN}", proof.on_answers)
    for name, part in parts:
        if part is not None:
            bound = f"{part.estimate:.4f}, at least {part.lower:.4f} with {part.confidence:.0%} confidence."
            about = map(as_sentence, about_rows(part)) if part is proof.on_data else ()
            yield name, part, [bound, *caveats(part), *about]


def known_limits(result: Result, show: Callable[[object], str] = escape_markdown) -> Iterator[str]:
    """Sentences about what the certificate does not cover; `show` escapes text from outside."""
    proof, settings = result.certificate, result.settings
    yield (
        "The bound is about inputs that are drawn as the space says. On others, and where the space draws rarely, the "
        "copy may decide otherwise more often; `ectype certify --data` measures it on rows of your own."
    )
    yield "The copy is like the original, not like the truth: where the original is wrong or unfair, so is the copy."
    if proof is None:
        yield "There is no certificate: the run was asked for none."
    for label, bound in proof.per_class.items() if proof else ():
        if bound.n < FEW:
            yield f"Only {bound.n} of the certificate's rows were {show(repr(label))} to the original: few to tell."
    if proof is not None and proof.absent:
        yield f"None of the certificate's rows was {show(', '.join(map(repr, proof.absent)))} to the original."
    if result.repeats is not None and result.repeats.text:
        yield as_sentence(result.repeats.text)
    if settings.get("exclude"):
        named = show(", ".join(settings["exclude"]))
        yield f"The copy does not see {named}. Other columns may still tell what they held."
    yield from map(show, picking(result))
    if result.tried:
        yield (
            "The copy was chosen by the certificate's rows; the bound allows for that, the estimate is a little high."
        )


def file_hashes(path: Path) -> Iterator[tuple[str, str]]:
    """The files of a run, with their checksums."""
    for name in (*FILES, LEDGER):
        if (path / name).is_file():
            with directory_errors(path / name, "a file that can be read"), open_regular(path / name) as file:
                yield name, file_digest(file, "sha256").hexdigest()
