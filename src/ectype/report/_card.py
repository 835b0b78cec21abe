"""A model card in Markdown: what was copied, how, how faithful the copy is, and its known limits.

Everything in it is read from the run's directory; there is no query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import file_digest
from pathlib import Path

from ectype._common.atomic_io import directory_errors
from ectype._common.bounded_io import open_regular
from ectype._common.formatting import as_sentence
from ectype.certificate.certificate import Certificate, Differences
from ectype.certificate.formatting import GIVEN, about_rows, caveats, strata
from ectype.ledger import LEDGER, Summary, summarise_ledger
from ectype.queries import describe_answers
from ectype.report._markdown import escaped, table
from ectype.runs.directory import FILES
from ectype.runs.formatting import picking
from ectype.runs.result import Result, load
from ectype.space import Category, Date, Number

# A class with fewer answers than this among the certificate's rows has a bound that says little.
FEW = 50


def card(directory: str | Path, types: Sequence[str] = ()) -> str:
    """The card of the finished run in a directory, as Markdown."""
    path, result = Path(directory), load(directory, types)
    asked = summarise_ledger(path / LEDGER) if (path / LEDGER).is_file() else None
    sections = {
        f"A copy of {escaped(result.settings['original'])}": _facts(result),
        "Inputs": _inputs(result),
        "Queries": _queries(result, asked),
        "Certificate": _certificate(result),
        "Families tried": _families(result),
        "Known limits": (f"- {line}" for line in limits(result)),
        "Settings": _table(("setting", "value"), ((key, value) for key, value in sorted(result.settings.items()))),
        "Versions": _table(("package", "version"), result.versions.items()),
        "Files": _files(path, result),
    }
    first, *others = sections.items()
    text = [f"# {first[0]}", "", *first[1]]
    for title, lines in others:
        text += ["", f"## {title}", "", *lines]
    return "\n".join(text) + "\n"


def limits(result: Result, show: Callable[[object], str] = escaped) -> Iterator[str]:
    """What the certificate does not cover, a sentence each; `show` writes what comes from outside."""
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


def _facts(result: Result) -> Iterator[str]:
    proof, settings = result.certificate, result.settings
    model = f"{result.family}, {len(result.copy.classes)} classes: {', '.join(map(repr, result.copy.classes.tolist()))}"
    rows: list[tuple[str, object]] = [
        ("original", settings["original"]),
        ("its fingerprint", settings.get("fingerprint") or "not known"),
        ("the copy", model),
        (
            "made with",
            f"ectype {result.versions['ectype']}, method {settings['method']}, seed {settings.get('seed')}",
        ),
        ("queries", sum(result.queries.values())),
    ]
    rows += [("answers given", describe_answers(given)) for given in result.supplied]
    if settings.get("stages"):
        earlier = " and ".join(map(str, settings["stages"]))
        rows.append(("went on", f"to {settings['budget']} training queries, after {earlier}"))
    for name, part in _proofs(proof):
        bound = f"{part.estimate:.4f}, at least {part.lower:.4f} with {part.confidence:.0%} confidence"
        about = map(as_sentence, about_rows(part)) if proof is not None and part is proof.on_data else ()
        rows.append((f"fidelity{name}", " ".join([f"{bound}.", *caveats(part), *about])))
    yield from _table(("", ""), rows)


def _proofs(proof: Certificate | None) -> Iterator[tuple[str, Certificate]]:
    """The certificates that there are, with what tells them apart."""
    if proof is None:
        return
    parts = ("", proof), (" on rows of your own", proof.on_data), (f" on {GIVEN}", proof.on_answers)
    yield from ((name, part) for name, part in parts if part is not None)


def _inputs(result: Result) -> Iterator[str]:
    space, excluded = result.space, result.settings.get("exclude") or ()
    yield f"{space.d} columns, given to the original as {'a data frame' if space.frame else 'an array'}."
    yield ""
    heads = ("column", "kind", "values", "missing", "seen by the copy")
    rows = (
        (c.name, c.kind, _values(c), f"{c.missing:.1%}", "no" if c.name in excluded else "yes") for c in space.columns
    )
    yield from _table(heads, rows)
    if space.correlation is not None:
        yield ""
        yield "Columns are drawn together, with the dependence that space.json holds."
    if space.rules:
        yield ""
        yield "Every row keeps these rules:"
        yield ""
        yield from (f"- {escaped(rule)}" for rule in space.rules)


def _values(column: object) -> str:
    if isinstance(column, Category):
        return ", ".join(map(str, column.levels))
    if isinstance(column, Date):
        return column.summary
    if isinstance(column, Number):
        mean, std = column.moments
        return f"mean {mean:.4g}, deviation {std:.4g}"
    return "true, false"


def _queries(result: Result, asked: Summary | None) -> Iterator[str]:
    rows: list[tuple[str, object]] = [(f"for {purpose}", n) for purpose, n in result.queries.items()]
    rows.append(("points kept in the end", result.kept))
    rows.append(("eff, the share of points saved over all rounds", f"{result.eff:.3f}"))
    rows.append(("the run stopped at its", result.stopped))
    if asked is not None:
        rows += [("rows sent, by the ledger", asked.asked), ("of them without an answer", asked.maybe_paid)]
        rows += [(f"failed: {cause}", n) for cause, n in asked.failures.items()]
    yield from _table(("queries", "n"), rows)


def _certificate(result: Result) -> Iterator[str]:
    proof = result.certificate
    if proof is None:
        yield "None."
        return
    for number, (name, part) in enumerate(_proofs(proof)):
        if number:
            yield from ("", f"### The certificate{name}", "")
            yield f"Its bounds are about the population that these {part.n} rows are a random sample of."
        else:
            yield f"On {part.n} rows that training never saw, {part.confidence:.0%} confidence."
        yield "The bounds of single classes hold one at a time."
        yield from _bounds(part)


def _bounds(proof: Certificate) -> Iterator[str]:
    """One certificate: its bounds as a table, and where copy and original differ."""
    for line in strata(proof):
        yield f"It is {line}." if line.startswith("stratified") else f"{line[0].upper()}{line[1:]}."
    yield ""
    rows = [("all", proof.n, f"{proof.estimate:.4f}", f"{proof.lower:.4f}")]
    for label, bound in proof.per_class.items():
        rows.append((f"the original says {label!r}", bound.n, f"{bound.estimate:.4f}", f"{bound.lower:.4f}"))
    for name, region in (("where the copy is unsure", proof.near), ("elsewhere", proof.away)):
        if region is not None:
            rows.append((name, region.n, f"{region.estimate:.4f}", f"{region.lower:.4f}"))
    yield from _table(("where", "rows", "fidelity", "at least"), rows)
    if proof.differences is not None:
        yield ""
        yield from _differences(proof.differences)


def _differences(found: Differences) -> Iterator[str]:
    yield f"They differ on {found.n} of these rows."
    if found.flips:
        yield ""
        yield from _table(
            ("the original says", "the copy says", "rows"), ((f.original, f.copy, f.n) for f in found.flips)
        )
    if found.rules:
        yield ""
        rules = ((rule.text, rule.n, f"{rule.share:.4f}", f"{rule.lower:.4f}") for rule in found.rules)
        yield from _table(("they differ more often where", "rows", "differ", "at least"), rules)
    elif found.note:
        yield ""
        yield f"No rule says where: {escaped(found.note)}."


def _families(result: Result) -> Iterator[str]:
    if not result.tried:
        yield f"Only {result.family}: no other family was made to compare it with."
        return
    heads = ("family", "taught by", "fidelity", "bytes")
    rows = ((one["family"], one["teacher"], f"{one['fidelity']:.4f}", one["bytes"]) for one in result.tried)
    yield from _table(heads, rows)
    yield ""
    yield "The first is the copy. Fidelity is that on the certificate's rows."


def _files(path: Path, result: Result) -> Iterator[str]:
    yield from _table(("file", "sha256"), hashes(path))
    yield ""
    if result.checked:
        yield "All of them agree with the checksums in run.json."
    else:
        yield "None was checked: they were written by version 0.1, without checksums."
    yield f"Signature: {result.signature}."


def hashes(path: Path) -> Iterator[tuple[str, str]]:
    """The files of a run, with their checksums."""
    for name in (*FILES, LEDGER):
        if (path / name).is_file():
            with directory_errors(path / name, "a file that can be read"), open_regular(path / name) as file:
                yield name, file_digest(file, "sha256").hexdigest()


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    yield table(heads, rows, escaped)
