"""Builds the kernel into the wheel: a few C files, one command, a shared library that ctypes loads.

The compiler is `$CC`, or the first of cc, gcc and clang that can compile the kernel; it is given `$CFLAGS`, too. Where
there is none, the build asks for `ziglang`, a whole clang on PyPI. `ECTYPE_TARGET` names another platform to build
for.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("src/ectype/_kernel")
SOURCES = tuple(FOLDER / name for name in ("kernel.c", "answers.c", "trees.c", "radial.c", "rows.c"))
# Contraction would fuse operations on some processors only, and so change bits.
FLAGS = ("-ffp-contract=off", "-fvisibility=hidden", "-shared")
ZIG = "ziglang>=0.13"


class Target(NamedTuple):
    """A platform: its name for zig, its wheels' tag, how its libraries' names end, and flags that only it takes."""

    zig: str
    tag: str
    suffix: str = ".so"
    flags: tuple[str, ...] = ("-fPIC",)


TARGETS = {
    "linux-x86_64": Target("x86_64-linux-gnu.2.17", "manylinux_2_17_x86_64.manylinux2014_x86_64"),
    "linux-aarch64": Target("aarch64-linux-gnu.2.17", "manylinux_2_17_aarch64.manylinux2014_aarch64"),
    "musl-x86_64": Target("x86_64-linux-musl", "musllinux_1_2_x86_64"),
    "musl-aarch64": Target("aarch64-linux-musl", "musllinux_1_2_aarch64"),
    "macos-x86_64": Target("x86_64-macos.11.0", "macosx_11_0_x86_64", ".dylib"),
    "macos-arm64": Target("aarch64-macos.11.0", "macosx_11_0_arm64", ".dylib"),
    "windows-x86_64": Target("x86_64-windows-gnu", "win_amd64", ".dll", ()),
}


def here() -> Target:
    """The platform of the Python that runs this."""
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine())
    if sys.platform == "darwin":
        return TARGETS[f"macos-{platform.machine()}"]
    if sys.platform == "win32":
        return Target(f"{machine}-windows-gnu", sysconfig.get_platform().replace("-", "_"), ".dll", ())
    musl = "musl" in (sysconfig.get_config_var("HOST_GNU_TYPE") or "")
    known = TARGETS.get(
        f"{'musl' if musl else 'linux'}-{machine}", Target(f"{machine}-linux-{'musl' if musl else 'gnu'}", "")
    )
    # A compiler of the system links with the system's library: the tag promises no more than this machine.
    return known._replace(tag=sysconfig.get_platform().replace("-", "_").replace(".", "_"))


def sources(root: Path) -> list[str]:
    """The C files of the project in a folder."""
    return [str(root / source) for source in SOURCES]


def zig(target: Target) -> list[str]:
    """The compiler from the package registry. Without a target, it would build for the very processor at hand."""
    return [sys.executable, "-m", "ziglang", "cc", "-target", target.zig, "-s"]


@cache
def compiler_of_the_system() -> list[str]:
    """`$CC`, or the first compiler that can build the kernel; too old a one, or one without headers, does not count."""
    if named := os.environ.get("CC"):
        return named.split()
    root = Path(__file__).parent
    for path in filter(None, map(shutil.which, ("cc", "gcc", "clang"))):
        with tempfile.TemporaryDirectory() as folder:
            command = [path, *FLAGS, *here().flags, "-o", str(Path(folder, "kernel")), *sources(root)]
            if subprocess.run(command, capture_output=True).returncode == 0:
                return [path]
    return []


def compile_kernel(out: Path, target: Target, compiler: list[str]) -> None:
    """Compile the kernel; a failure shows what the compiler said."""
    own = shlex.split(os.environ.get("CFLAGS", ""))  # before ours, which decide how numbers are rounded
    command = [*compiler, "-O3", *own, *FLAGS, *target.flags, "-o", str(out), *sources(Path(__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(
            f"the kernel did not compile:\n{' '.join(command)}\n{done.stderr}\n"
            "set CC to a C compiler (gcc 12, clang 12 or newer), or unset it to use ziglang"
        )


class KernelHook(BuildHookInterface):
    """Compiles the kernel whenever a wheel is built."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What the build needs beside hatchling."""
        return [ZIG] if os.environ.get("ECTYPE_TARGET") or not compiler_of_the_system() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile: beside its source for an editable installation, else into the wheel and nowhere else."""
        named = os.environ.get("ECTYPE_TARGET")
        target = TARGETS[named] if named else here()
        compiler = zig(target) if named else compiler_of_the_system() or zig(target)
        name = f"kernel{target.suffix}"
        if version == "editable":
            compile_kernel(Path(self.root, FOLDER, name), target, compiler)
        else:
            self._folder = tempfile.TemporaryDirectory()
            out = Path(self._folder.name, name)
            compile_kernel(out, target, compiler)
            build_data["force_include"][str(out)] = f"ectype/_kernel/{name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{target.tag}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was compiled, now that the wheel has it."""
        if version != "editable":
            self._folder.cleanup()
