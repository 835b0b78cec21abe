"""Build wheels for every platform from one machine, by zig, and look into each.

pip install hatchling lief ziglang && python tools/wheels.py
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import zipfile
from pathlib import Path

import lief
from hatchling.build import build_wheel

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from hatch_build import SOURCES, TARGETS  # noqa: E402

FORMATS = {"linux": "ELF", "musl": "ELF", "macos": "MACHO", "windows": "PE"}
FUNCTIONS = {
    name for source in SOURCES for name in re.findall(r"^API \w+ (\w+)\(", (ROOT / source).read_text(), flags=re.M)
}
# Symbols of every Mach-O library, by the linker.
OF_THE_LINKER = {"_mh_dylib_header", "__dso_handle"}
# The C library that manylinux2014 promises.
GLIBC = (2, 17)


def build(target: str, folder: Path) -> Path:
    """One wheel."""
    os.environ["ECTYPE_TARGET"] = target
    return folder / build_wheel(str(folder))


def kernel_of(wheel: Path, target: str) -> lief.Binary:
    """The library in a wheel, which has one only."""
    name = f"ectype/_kernel/kernel{TARGETS[target].suffix}"
    with zipfile.ZipFile(wheel) as archive:
        found = [each for each in archive.namelist() if each.startswith("ectype/_kernel/kernel")]
        parsed = lief.parse(list(archive.read(name))) if found == [name] else None
    if parsed is None:
        raise SystemExit(f"{wheel.name}: expected a library {name}, found {found}")
    return parsed


def inspect(wheel: Path, target: str) -> str:
    """Make sure that a wheel's kernel is for its platform, and shows our functions and no others; says what it is."""
    system, _, machine = target.partition("-")
    parsed = kernel_of(wheel, target)
    shown = {function.name.removeprefix("_" * (system == "macos")) for function in parsed.exported_functions}
    found = {
        "format": parsed.format.name,
        "processor": parsed.abstract.header.architecture.name,
        "symbols": sorted(shown - OF_THE_LINKER),
        "signed": target != "macos-arm64" or parsed.has_code_signature,  # macOS loads no other on these processors
        "glibc": system != "linux" or max(glibc(parsed)) <= GLIBC,
    }
    processor = {"aarch64": "ARM64"}.get(machine, machine.upper())
    expected = {"format": FORMATS[system], "processor": processor, "symbols": sorted(FUNCTIONS)}
    for name, value in {**expected, "signed": True, "glibc": True}.items():
        if found[name] != value:
            raise SystemExit(f"{wheel.name}: {name}: expected {value}, found {found[name]}")
    return f"{wheel.name}: {found['format']}, {processor}, {len(FUNCTIONS)} symbols, {wheel.stat().st_size // 1000} kB"


def glibc(parsed: lief.Binary) -> list[tuple[int, ...]]:
    """The versions of the C library that an ELF library asks for."""
    names = [each.name for library in parsed.symbols_version_requirement for each in library.get_auxiliary_symbols()]
    return [tuple(map(int, name.removeprefix("GLIBC_").split("."))) for name in names]


def main() -> None:
    """Build and inspect."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; all unless named")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where wheels go")
    arguments = parser.parse_args()
    folder = arguments.out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(ROOT)
    for target in arguments.targets or TARGETS:
        print(inspect(build(target, folder), target), flush=True)


if __name__ == "__main__":
    main()
