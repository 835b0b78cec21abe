"""What tests of the engine share."""

import pytest

from ectype._kernel._ffi import SETS, use


@pytest.fixture(params=SETS)
def instructions(request):
    """Each instruction set that this processor has."""
    if use(request.param) != request.param:
        use()
        pytest.skip(f"this processor has no {request.param}")
    yield request.param
    use()
