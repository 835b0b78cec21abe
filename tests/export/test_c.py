"""C files answer what the copy answers, compiled by whatever compilers are there, as strictly as they can."""

import ctypes
import math
import os
import subprocess
import sys
import warnings
from shutil import which

import numpy as np
import pytest

import ectype as ec
from ectype.errors import EctypeWarning, ExportError
from ectype.export import _c_verification as c_verification
from ectype.export import _verification as verification
from ectype.export._c import c_text
from ectype.models.copy_classifier import CopyClassifier
from ectype.models.families import constant
from make_copies import APART, KINDS, fresh, made
from optional_packages import needs

# The second is clang, as a package.
COMPILERS = {"gcc": ["gcc"], "zig": [sys.executable, "-m", "ziglang", "cc"]}


def rows_of(copy, n):
    """Fresh rows, some with levels that the space does not know."""
    return verification.fresh_rows(copy, n, 5)


@pytest.fixture
def answers(tmp_path):
    def ask(copy, rows):
        path = tmp_path / "copy.c"
        path.write_text(c_text(copy))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EctypeWarning)
            return c_verification.c_answers(copy, path, "copy", rows).labels, copy.predict(rows)

    return ask


@pytest.mark.parametrize("name", ["loans", "odd"])
@pytest.mark.parametrize("family", [kind for kind in KINDS if kind != "forest"])
def test_c_answers_what_the_copy_answers(copies, family, name, answers, monkeypatch):
    monkeypatch.setattr(c_verification, "FLAGS", (*c_verification.FLAGS[:-1], "-O0"))
    monkeypatch.setattr(c_verification, "APART", APART[family])
    copy = copies(family, name)
    found, expected = answers(copy, rows_of(copy, 600))
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("compiler", COMPILERS)
def test_every_compiler_takes_it(copies, compiler, answers, monkeypatch):
    if compiler == "zig":
        needs("ziglang")
    if compiler == "gcc" and not which(compiler):
        pytest.skip("gcc is not installed")
    monkeypatch.setattr(c_verification, "compiler", lambda: COMPILERS[compiler])
    copy = CopyClassifier(
        copies("plain", "odd").model, np.array(["a??/b", 'c"d', "\u00e9\n*/"]), copies("plain", "odd").space
    )
    found, expected = answers(copy, rows_of(copy, 100))
    assert found.tolist() == expected.tolist()


def test_the_interface(copies, tmp_path):
    """A library, as somebody would call it."""
    copy = copies("tree", "loans")
    ec.export(copy, tmp_path / "loan-model.c")
    subprocess.run(
        [
            *c_verification.compiler(),
            "-shared",
            "-fPIC",
            "-o",
            str(tmp_path / "x.so"),
            str(tmp_path / "loan-model.c"),
            "-lm",
        ],
        check=True,
    )
    library = ctypes.CDLL(str(tmp_path / "x.so"))
    library.loan_model_level.restype = ctypes.c_double
    names = list(copy.space.names)
    region, grade, employer = (names.index(name) for name in ("region", "grade", "employer"))
    levels = copy.space.columns[region].levels
    assert library.loan_model_level(region, levels[2].encode()) == 2
    assert library.loan_model_level(region, b"mars") == -1
    assert library.loan_model_level(grade, levels[0].encode()) == -1  # a level of another column
    assert math.isnan(library.loan_model_level(employer, None))
    assert math.isnan(library.loan_model_level(employer, b""))
    rows = copy.space.read(fresh(copy, 50), "test")
    words = (ctypes.c_char_p * 2).in_dll(library, "loan_model_class_names")
    found = (ctypes.c_double * 2)()
    for row, label, said in zip(rows, copy.predict(fresh(copy, 50)), copy.predict_proba(fresh(copy, 50)), strict=True):
        given = (ctypes.c_double * len(row))(*row)
        code = library.loan_model_predict(given)
        assert words[code].decode() == label
        assert library.loan_model_predict_proba(given, found) == code
        assert list(found) == said.tolist()
    for wrong in (math.nan, math.inf):
        row = rows[0].copy()
        row[names.index("age")] = wrong
        assert library.loan_model_predict((ctypes.c_double * len(row))(*row)) == -1


@pytest.mark.parametrize("family", ["linear", "boosting", "blend"])
def test_classes_that_were_never_answered(family, rng, answers):
    X = rng.normal(size=(300, 2)).astype(np.float32)
    copy = CopyClassifier(made(family, X, np.where(X[:, 0] > 0, 3, 1), 5), np.arange(5), ec.Space.normal(2))
    found, expected = answers(copy, rng.normal(size=(300, 2)))
    assert found.tolist() == expected.tolist()


def test_a_file_that_does_not_compile_or_answers_otherwise_is_not_written(copies, tmp_path, monkeypatch):
    copy, other = copies("tree", "spirals"), copies("linear", "spirals")
    for text, message in (
        (c_text(copy) + "int unused(void) { int x; }\n", "compiles, found"),
        (c_text(other), "within"),
    ):
        monkeypatch.setattr(verification, "content", lambda *_, text=text: text.encode())
        with pytest.raises(ExportError, match=message):
            ec.export(copy, tmp_path / "copy.c")
    monkeypatch.setenv("CC", "/nowhere/cc")
    with pytest.raises(ExportError, match="expected a C compiler, found /nowhere/cc"):
        ec.export(copy, tmp_path / "copy.c")
    assert os.listdir(tmp_path) == []


def test_without_a_compiler_the_file_is_written_and_it_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(c_verification, "find_spec", lambda name: None)
    copy = CopyClassifier(constant(1, 2), np.array(["a", "b"]), ec.Space.normal(2))
    written = ec.export(copy, tmp_path / "copy.c")
    assert (written.rows, written.engine) == (0, "no C compiler here, and no ziglang")
    assert written.bytes == (tmp_path / "copy.c").stat().st_size
