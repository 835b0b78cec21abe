"""Where onnx and onnxruntime are not installed: what needs them names the extra, and all else works."""

import os
import subprocess
import sys
import textwrap

import pytest

import ectype as ec

# As if neither library were installed: importing one is an error, and looking for it finds nothing.
BLOCKED = "import sys\nsys.modules['onnx'] = sys.modules['onnxruntime'] = None\n"
MISSING = "expected the libraries onnx and onnxruntime, found no onnx and no onnxruntime; "
MISSING += 'install them: pip install "ectype[onnx]"'


def python(code, folder):
    """What a process says that has neither library."""
    command = [sys.executable, "-c", BLOCKED + textwrap.dedent(code)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a run, and a file that would be an original."""
    folder = tmp_path_factory.mktemp("without")
    settings = {"budget": 200, "certificate_n": 100, "preset": "fast", "to": "tree"}
    ec.copy_classifier(lambda rows: rows[:, 0] > 0, ec.Space.normal(2), out=folder / "run", **settings)
    (folder / "model.onnx").write_bytes(b"a model")
    return folder


@pytest.mark.parametrize(
    ("command", "where"),
    [
        (("export", "run", "made.onnx"), "format onnx"),
        (("export", "run", "made", "--format", "mlflow"), "format mlflow"),
        (("copy", "model.onnx", "--space", "normal:2", "--out", "made"), "model.onnx"),
        (("certify", "run", "model.onnx"), "model.onnx"),
    ],
)
def test_what_needs_them_names_the_extra(folder, command, where):
    there = sorted(os.listdir(folder))
    done = python(f"from ectype.cli import main\nmain({list(command)})", folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{where}: {MISSING}" in " ".join(done.stderr.split())
    assert sorted(os.listdir(folder)) == there


def test_all_else_works(folder):
    """All modules are imported but those that write ONNX, and other formats are written."""
    code = """
    import importlib, pkgutil
    import ectype as ec
    for module in pkgutil.walk_packages(ec.__path__, "ectype."):
        if module.name not in ("ectype.__main__", "ectype._kernel.kernel"):  # the command itself, and a library of C
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as error:
                print(module.name.removeprefix("ectype."))
    copy = ec.load("run").copy
    for name in ("copy.sql", "copy.skops"):
        assert ec.export(copy, name).disagreements == 0
    """
    done = python(code, folder)
    assert done.returncode == 0, done.stderr
    need = ("_mlflow", "_mlflow_loader", "_onnx", "_onnx_graph")
    assert done.stdout.split() == [f"export.{name}" for name in need]
