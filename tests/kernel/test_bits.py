"""Every bit of the engine's results is the same for instruction sets, compilers, threads and processors."""

import platform
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import bits
from ectype._kernel import _ffi as ffi
from optional_packages import needs

x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="instruction sets of x86-64")


@pytest.fixture(autouse=True)
def _best_set():
    yield
    ffi.use()


def wanted(name):
    """Use an instruction set, or skip."""
    if ffi.use(name) != name:
        pytest.skip(f"this processor lacks {name}")


@x86
@pytest.mark.parametrize("name", ["AVX2", "AVX-512"])
def test_instruction_sets(name):
    wanted(name)
    assert bits.digest() == bits.EXPECTED


@x86
@pytest.mark.parametrize("results", [bits.of_woods, bits.of_tables])
def test_trees_radial_functions_and_rows_need_no_fused_multiplication(results):
    found = [array.tobytes() for array in results()]
    assert ffi.use("plain") == "plain"
    assert [array.tobytes() for array in results()] == found


@pytest.mark.parametrize("threads", [1, 2])
def test_threads(threads):
    if ffi.use() == "plain" and platform.machine() == "x86_64":
        pytest.skip("this processor lacks fused multiply-add")
    with ThreadPoolExecutor(threads) as pool:
        assert {*pool.map(lambda _: bits.digest(), range(threads))} == {bits.EXPECTED}


@pytest.mark.parametrize("compiler", ["gcc", "clang", "zig"])
def test_compilers(compiler, tmp_path):
    if compiler == "zig":
        needs("ziglang")
    if compiler != "zig" and shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} here")
    command = bits.zig(f"{platform.machine()}-linux-gnu.2.17") if compiler == "zig" else [compiler]
    level = "-O3" if compiler == "zig" else "-O1"  # optimising changes no bit either, and takes ten seconds
    with bits.kernel(bits.compiled(command, tmp_path / "kernel.so", level)):
        for name in ("AVX2", "AVX-512") if platform.machine() == "x86_64" else ("plain",):
            if ffi.use(name) == name:
                assert bits.digest() == bits.EXPECTED


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc to build the driver with")
def test_the_program_that_emulators_run():
    assert bits.emulated(["gcc"], [], "-O0") == bits.EXPECTED


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc with sanitizers")
def test_a_few_random_cases_touch_no_memory_of_others():
    tool = bits.ROOT / "tools" / "fuzz_kernel.py"
    limits = ["--cases", "100", "--seconds", "3600", "--level=-O0"]  # all of them, however busy the machine is
    out = subprocess.run([sys.executable, tool, *limits], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    assert "100 cases" in out.stdout
