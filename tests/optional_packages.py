"""Packages of the extra `test-all`: large, and each needed by a few tests only."""

import importlib
import os
from importlib.util import find_spec
from types import ModuleType

import pytest


def needs(name: str) -> ModuleType:
    """A module of such a package; skips the test, or its whole file, where it is missing: in CI that is a failure."""
    if find_spec(name.partition(".")[0]) is None:
        reason = f'{name} is not installed: pip install -e ".[test-all]"'
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason, allow_module_level=True)
    return importlib.import_module(name)
