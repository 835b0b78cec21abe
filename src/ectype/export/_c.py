"""A copy as one C file without dependencies: tables of numbers, and the few functions that read them."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from ectype._kernel import LEAF
from ectype._version import __version__
from ectype.algorithm.mlp import Network
from ectype.export._c_snippets import fill_snippet, snippet
from ectype.export._category_text import words_of
from ectype.models.base import Model
from ectype.models.blend import FLOOR, Blend
from ectype.models.copy_classifier import CopyClassifier
from ectype.models.linear import Linear
from ectype.models.rbf import RadialModel
from ectype.models.trees import Trees
from ectype.space import Category, Column, Encoding

# Characters of a line, and of the part of a comment that names levels.
LINE, SOME = 116, 60


def c_name(stem: str) -> str:
    """The beginning of all names that a file defines, from its own name.

    >>> c_name("loan-model"), c_name("7")
    ('loan_model', 'copy_7')
    """
    name = re.sub(r"[^A-Za-z0-9_]", "_", stem)
    return name if re.match(r"[A-Za-z]", name) else f"copy_{name}".rstrip("_")


def c_text(copy: CopyClassifier, name: str = "copy") -> str:
    """The file."""
    tables = _Tables()
    answer = _answer(tables, copy.model, copy.encoding.width)
    gaps = ", ".join(str(int(bool(column.missing))) for column in copy.space.columns)
    parts = [
        _head(copy, name),
        f"\nconst char *const {name}_column_names[] = {_words(copy.space.names)};",
        f"const char *const {name}_class_names[] = {_words(str(label) for label in copy.classes.tolist())};\n",
        _levels(copy, name),
        *_encode(copy.encoding, [bool(column.missing) for column in copy.space.columns]),
        *tables.functions(),
        "",
        *tables.lines,
        *answer,
        "\n" + fill_snippet("entry", name=name, gaps=gaps, d=copy.space.d),
    ]
    return "\n".join(parts)


def level_words(column: Column) -> list[str] | None:
    """The words of a column's levels; None for a column of numbers or booleans."""
    return words_of(column, [""]) if isinstance(column, Category) else None


# How a row has dates.
DATES = {"date": "whole days since 1970-01-01", "timestamp": "whole seconds since 1970-01-01, UTC"}


def c_string(word: str) -> str:
    """A string as C writes it, byte by byte where a byte is no plain character.

    >>> c_string('a"b?')
    '"a\\\\"b\\\\?"'
    """
    special = {ord('"'): '\\"', ord("\\"): "\\\\", ord("?"): "\\?"}
    said = "".join(special.get(byte, chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in word.encode())
    return f'"{said}"'


def _head(copy: CopyClassifier, name: str) -> str:
    columns = "\n".join(f"   {j:>6}  {_column_comment(column)}" for j, column in enumerate(copy.space.columns))
    title = f"A copy of a classifier: {copy.model.kind}, {len(copy.classes)} classes."
    about = {"title": title, "version": __version__}
    sizes = {"d": copy.space.d, "n_c": len(copy.classes), "inputs": copy.encoding.width}
    names = {"name": name, "macro": name.upper(), "file": f"{name}.c", "columns": columns}
    empty = " and for an empty word" if _has_empty(copy) else ""
    return fill_snippet("head", **about, **sizes, **names, empty=empty)


def _column_comment(column: Column) -> str:
    """A column in a comment, which nothing of it may end."""
    kind = {"boolean": "0 or 1", "integer": "a whole number", "float": "a number", **DATES}.get(column.kind, "")
    if isinstance(column, Category):
        kind = f"a level: {', '.join(str(level) for level in column.levels)}"
    shown = f"{column.name}: {kind[:SOME]}{', may have gaps' if column.missing else ''}"
    plain = "".join(c if c.isprintable() and c.isascii() else "?" for c in shown)
    return plain.replace("*/", "* /").replace("/*", "/ *")


def _has_empty(copy: CopyClassifier) -> bool:
    """Whether an empty word is a gap: no column has a level of that name."""
    return not any("" in (level_words(column) or ()) for column in copy.space.columns)


def _levels(copy: CopyClassifier, name: str) -> str:
    words, known = list[str](), list[str]()
    for j, column in enumerate(copy.space.columns):
        own = level_words(column)
        if own:
            known.append(f"{{{j}, {len(words)}, {len(own)}}}")
            words += own
    if not known:
        return "\n" + fill_snippet("no_levels", name=name)
    said = ",\n    ".join(c_string(word) for word in words)
    empty = " || !*word" if _has_empty(copy) else ""
    return "\n" + fill_snippet("levels", name=name, words=said, known=", ".join(known), empty=empty)


def _words(words: Iterable[str]) -> str:
    return "{" + ", ".join(c_string(word) for word in words) + "}"


def _encode(encoding: Encoding, gaps: list[bool]) -> list[str]:
    """A row as a copy's inputs, one statement for each."""
    lines = list[str]()
    for k, j in enumerate(encoding.numbers):
        scaled = f"standard(row[{j}], {_double(encoding.center[k])}, {_double(encoding.scale[k])})"
        there = f"row[{j}] >= 0" if k in encoding.ordered else f"row[{j}] == row[{j}]"
        lines.append(f"x[{k}] = {f'{there} ? {scaled} : 0' if k in encoding.ordered or gaps[j] else scaled};")
    at = len(lines)
    for j, count in encoding.levels:
        lines += [f"x[{at + code}] = row[{j}] == {code};" for code in range(count)]
        at += count
    for j, order, middles in encoding.nearest:
        ends = ["-HUGE_VAL", *map(_double, middles), "HUGE_VAL"]
        own = [f"x[{at + place}] = row[{j}] > {ends[i]} && row[{j}] <= {ends[i + 1]};" for i, place in enumerate(order)]
        lines += own
        at += len(order)
    lines += [f"x[{at + i}] = row[{j}] != row[{j}];" for i, j in enumerate(encoding.gaps)]
    standard = ["\n" + snippet("standard")] if encoding.numbers else []
    return [*standard, "static void encode(const double *row, float *x) {", *(f"    {line}" for line in lines), "}"]


class _Tables:
    """Arrays of numbers with names, and the functions that read them."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._functions: dict[str, str] = {}
        self._widest = 1

    def use(self, *functions: str) -> None:
        """Add functions, by the names of their snippets."""
        self._functions |= {function: "\n" + snippet(function) for function in functions}

    def widen(self, width: int) -> None:
        """Make room for so many numbers of a layer."""
        self._widest = max(self._widest, width)

    def functions(self) -> list[str]:
        """All functions in use."""
        room = [f"\nenum {{ WIDEST = {self._widest} }};"] if "network" in self._functions else []
        return [*room, *self._functions.values()]

    def add(self, kind: str, items: Iterable[str]) -> str:
        """A table; gives its name."""
        name, line = f"table_{len(self.lines)}", "   "
        rows = list[str]()
        for item in items:
            if len(line) + len(item) + 2 > LINE:
                rows.append(line)
                line = "   "
            line += f" {item},"
        self.lines.append(f"static const {kind} {name}[] = {{\n" + "\n".join([*rows, line]) + "\n};")
        return name


def _answer(tables: _Tables, model: Model, inputs: int) -> list[str]:
    """The function that makes probabilities of inputs."""
    members = list(model.members) if isinstance(model, Blend) else [model]
    bodies = [_statement(tables, member, inputs) for member in members]
    if not isinstance(model, Blend):
        return ["", "static void answer(const float *x, double *p) {", *bodies[0], "}"]
    tables.use("softmax")
    powers = tables.add("double", map(_double, model.powers))
    lines = ["", "static void member(int m, const float *x, double *p) {", "    switch (m) {"]
    for m, body in enumerate(bodies):
        lines += [f"    case {m}:", *(f"    {line}" for line in body), "        break;"]
    pool = fill_snippet("pool", members=len(members), powers=powers, floor=FLOOR)
    return [*lines, "    }", "}", "", pool.rstrip("\n")]


def _statement(tables: _Tables, model: Model, inputs: int) -> list[str]:
    link = "softmax"
    if isinstance(model, Network):
        called = _network(tables, model, inputs)
    elif isinstance(model, Linear):
        tables.use("linear")
        weights, biases = (tables.add("double", map(_double, part.ravel())) for part in (model.weights, model.biases))
        called = f"linear({weights}, {biases}, x, p);"
    elif isinstance(model, RadialModel):
        tables.use("radial")
        parts = (model.centres, model.weights, model.offset)
        centres, weights, offset = (tables.add("float", map(_float, part.ravel())) for part in parts)
        numbers = f"{_double(model.gamma)}, {_double(model.sharpness)}"
        called = f"radial({centres}, {len(model.centres)}, {weights}, {offset}, {numbers}, x, p);"
    else:
        assert isinstance(model, Trees)
        link, called = model.link, _trees(tables, model)
    tables.use(link)
    return [f"    {called}", f"    {link}(p);"]


def _network(tables: _Tables, model: Network, inputs: int) -> str:
    tables.use("network")
    tables.widen(max(*model.mlp.widths, inputs))
    layers = []
    for weights, biases in model.mlp.layers(model.theta):
        names = [tables.add("float", map(_float, part.ravel())) for part in (weights, biases)]
        layers.append(f"{{{names[0]}, {names[1]}, {len(weights)}, {len(biases)}}}")
    pieces, n = "0", 0
    if model.pieces is not None and len(model.pieces.column):
        fields = zip(model.pieces.column, model.pieces.slope, model.pieces.shift, strict=True)
        pieces = tables.add("struct piece", (f"{{{j}, {_float(a)}, {_float(b)}}}" for j, a, b in fields))
        n = len(model.pieces.column)
    table = tables.add("struct layer", layers)
    return f"network({table}, {len(layers)}, {int(model.activation == 'mish')}, {pieces}, {n}, x, p);"


def _trees(tables: _Tables, model: Trees) -> str:
    tables.use("trees")
    leaf = model.feature == LEAF
    left = np.where(leaf, np.cumsum(leaf) - 1, model.left)
    fields = zip(model.feature.tolist(), model.threshold, left.tolist(), model.right.tolist(), strict=True)
    nodes = tables.add("struct node", (f"{{{f if f != LEAF else -1}, {_float(t)}, {a}, {b}}}" for f, t, a, b in fields))
    roots, outputs = (tables.add("int", map(str, part.tolist())) for part in (model.roots, model.outputs))
    values, base = (tables.add("double", map(_double, part.ravel())) for part in (model.values[leaf], model.base))
    width = model.values.shape[1]
    return f"trees({nodes}, {roots}, {outputs}, {len(model.roots)}, {values}, {width}, {base}, x, p);"


def _double(number: float) -> str:
    return repr(float(number)) if np.isfinite(number) else "-HUGE_VAL"


def _float(number: np.floating) -> str:
    return f"{_with_point(str(number))}f"


def _with_point(text: str) -> str:
    return text if "." in text or "e" in text else f"{text}.0"
