"""The kernel is built wherever the package is installed; a kernel that is not there or not ours is refused."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from runpy import run_path

import pytest

import bits
from ectype._kernel import _ffi as ffi
from ectype.errors import KernelError

ROOT = Path(__file__).parents[2]
COPIED = """
import sys, numpy as np, ectype as ec
from ectype._kernel import _ffi as library
result = ec.copy_classifier(lambda X: (X[:, 0] > 0).astype(int), ec.Space.normal(2), budget=100)
assert result.copy.predict(np.array([[-2.0, 0.0], [2.0, 0.0]])).tolist() == [0, 1]
print(library.PATH)
"""
STUB = "int kernel_version(void) { return 999; }"


def environment(folder):
    """A new virtual environment that sees what is installed here, but not our package."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    here = [path for path in sys.path if path.endswith("site-packages")]
    (site / "here.pth").write_text("\n".join(here))  # an editable installation in there is not followed
    return folder / "bin" / "python"


def clone(folder):
    """The project without what was built in it."""
    ignore = shutil.ignore_patterns("__pycache__", "kernel.so", "kernel.dylib", "kernel.dll")
    shutil.copytree(ROOT / "src", folder / "src", ignore=ignore)
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, folder)
    return folder


def pip(python, *arguments, **variables):
    kept = {name: value for name, value in os.environ.items() if name not in ("CC", "PYTHONPATH")}
    kept["CFLAGS"] = "-O1"  # optimising changes no bit, and takes most of an installation's time
    command = [sys.executable, "-m", "pip", "--python", python, *arguments]
    out = subprocess.run(command, env={**kept, **variables}, capture_output=True, text=True)
    assert out.returncode == 0, out.stderr


def kernel_that_copies(python, folder):
    """Copy a classifier in an environment; gives the kernel that did it."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    out = subprocess.run([python, "-c", COPIED], cwd=folder, env=kept, capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    return Path(out.stdout.strip())


@pytest.mark.install
def test_installing_without_a_compiler(tmp_path):
    python = environment(tmp_path / "env")
    (tmp_path / "empty").mkdir()
    pip(python, "install", "--no-deps", clone(tmp_path / "project"), PATH=str(tmp_path / "empty"))
    assert kernel_that_copies(python, tmp_path).is_relative_to(tmp_path / "env")
    assert not list((tmp_path / "project").rglob("kernel.so"))


@pytest.mark.install
def test_an_editable_installation(tmp_path):
    python = environment(tmp_path / "env")
    pip(python, "install", "--no-deps", "-e", clone(tmp_path / "project"))
    assert kernel_that_copies(python, tmp_path).is_relative_to(tmp_path / "project")


@pytest.mark.install
def test_a_source_distribution_builds_a_wheel(tmp_path):
    python = environment(tmp_path / "env")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path / "dist"]
    subprocess.run(command, cwd=clone(tmp_path / "project"), check=True, capture_output=True)
    (sdist,) = (tmp_path / "dist").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    engine = {path.name for path in (ROOT / "src" / "ectype" / "_kernel").glob("*.[ch]")}
    headers = {"kernel.h", "lanes.h", "near.h", "scores.h", "sets.h", "tests.h", "unset.h"}
    assert engine == headers | {"answers.c", "kernel.c", "radial.c", "rows.c", "trees.c"}
    assert {"hatch_build.py", *(f"src/ectype/_kernel/{name}" for name in engine)} <= names
    pip(python, "wheel", "--no-deps", "-w", tmp_path / "dist", sdist)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    assert "-py3-none-" in wheel.name
    assert "-any" not in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        inside = [name for name in archive.namelist() if name.startswith("ectype/_kernel/") and ".py" not in name]
        assert inside == [f"ectype/_kernel/kernel{ffi.SUFFIX}"]
        assert ffi.load(Path(archive.extract(inside[0], tmp_path))).kernel_version() == ffi.KERNEL_VERSION
        assert "ectype/original/skops_trust.txt" in archive.namelist()


def test_all_that_compile_the_kernel_know_all_its_files():
    files = {path.name for path in (ROOT / "src" / "ectype" / "_kernel").glob("*.c")}
    assert {path.name for path in run_path(str(ROOT / "hatch_build.py"))["SOURCES"]} == files
    assert {path.name for path in bits.SOURCES} == files
    included = {line.split('"')[1] for line in bits.DRIVER.read_text().splitlines() if line.startswith('#include "')}
    assert included == files


def test_a_kernel_that_is_missing(tmp_path):
    message = rf"expected version {ffi.KERNEL_VERSION} .* found .*No such file .*; install ectype again"
    with pytest.raises(KernelError, match=message):
        ffi.load(tmp_path / "kernel.so")


@pytest.mark.parametrize("share", [0, 0.001, 0.5, 0.9])
def test_a_kernel_that_was_cut_off(tmp_path, share):
    data = ffi.PATH.read_bytes()
    (tmp_path / "kernel.so").write_bytes(data[: int(share * len(data))])
    with pytest.raises(KernelError, match=r"found .*(too short|a part of the file)"):
        ffi.load(tmp_path / "kernel.so")


@pytest.mark.skipif(sys.platform != "linux", reason="changes the header of a library of Linux")
def test_a_kernel_for_another_platform(tmp_path):
    data = bytearray(ffi.PATH.read_bytes())
    data[18:20] = (8).to_bytes(2, "little")  # the processor: MIPS
    (tmp_path / "kernel.so").write_bytes(data)
    with pytest.raises(KernelError, match=r"for linux on \w+, found .*kernel.so: .*; install ectype again"):
        ffi.load(tmp_path / "kernel.so")


def test_a_kernel_of_another_version(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler to make a stub with")
    (tmp_path / "stub.c").write_text(STUB)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", tmp_path / "kernel.so", tmp_path / "stub.c"], check=True)
    with pytest.raises(KernelError, match="found version 999; install ectype again"):
        ffi.load(tmp_path / "kernel.so")


def test_what_is_no_kernel_at_all_is_said_where_it_is_needed(tmp_path):
    message = rf"kernel\.so: expected version {ffi.KERNEL_VERSION}"
    with bits.kernel(tmp_path / "kernel.so"), pytest.raises(KernelError, match=message):
        bits.digest()
