"""Documents, benchmarks and examples are run as users run them. What covers our lines are the tests of their rooms."""

import pytest


@pytest.fixture(autouse=True)
def _as_users_run_it(unmeasured):
    pass
