"""A package whose modules are underscored is imported from by its `__init__` alone, and a public class has one name."""

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "ectype"
TREES = {
    path: ast.parse(path.read_text(encoding="utf-8"))
    for folder in ("src", "reproduction")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "tests" not in path.relative_to(ROOT).parts
}
API = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
DOORS = [door.parent for door in sorted(PACKAGE.glob("*/__init__.py")) if not [*door.parent.glob("[!_]*.py")]]


def imported(path):
    """The dotted names that a module imports from others."""
    found = [node for node in ast.walk(TREES[path]) if isinstance(node, ast.ImportFrom)]
    return {f"{node.module}.{alias.name}" for node in found for alias in node.names}


def imported_elsewhere(package):
    return set().union(*(imported(path) for path in TREES if package not in path.parents))


def exported(package):
    """The names of others that a package lists in `__all__`, apart from what its `__init__` defines itself."""
    body = TREES[package / "__init__.py"].body
    lists = [node.value for node in body if isinstance(node, ast.Assign) and "__all__" in ast.unparse(node.targets[0])]
    defined = {getattr(node, "name", None) for node in body}
    return {name for value in lists for name in ast.literal_eval(value)} - defined


def test_private_modules_are_imported_by_their_own_package_alone():
    assert DOORS
    for package in DOORS:
        private = f"ectype.{package.name}._"
        assert [name for name in sorted(imported_elsewhere(package)) if name.startswith(private)] == []


def test_a_package_exports_what_others_import_and_nothing_else():
    for package in DOORS:
        used = {name.removeprefix(f"ectype.{package.name}.") for name in imported_elsewhere(package)}
        used |= {*re.findall(rf"ectype\.{package.name}\.(\w+)", API)}  # what the reference names
        assert (package.name, exported(package) - used) == (package.name, set())


def test_no_two_public_classes_have_the_same_name():
    classes = [node.name for tree in TREES.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    assert [name for name, n in Counter(classes).items() if n > 1 and not name.startswith("_")] == []
