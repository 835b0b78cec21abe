"""What tests of exports share."""

import pytest

from make_copies import copy_of


@pytest.fixture(scope="session")
def copies():
    known = {}

    def copy(family, name):
        if (family, name) not in known:
            known[family, name] = copy_of(family, name)
        return known[family, name]

    return copy
