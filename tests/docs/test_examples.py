"""Everything public has an example, which the doctests run."""

import pytest

import understudy as us


@pytest.mark.parametrize("name", [name for name in us.__all__ if name != "__version__"])
def test_every_public_name_has_an_example(name):
    assert ">>> " in getattr(us, name).__doc__
