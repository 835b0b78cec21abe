"""What clients of a served copy may take; its defaults are those of the command and of `service`."""

from __future__ import annotations

from dataclasses import dataclass

from ectype._common import validation

# The most rows of a parallel run that wait for the original.
WAITING_ROWS = 10_000
# The most rows of real traffic in a directory, and the days after its first one in which it takes more.
KEPT_ROWS, KEPT_DAYS = 100_000, 30.0


@dataclass(frozen=True)
class ServeLimits:
    """The most bytes and rows of a request, the most clients at once, and how long things may take.

    A client has `seconds` to send a request and to read its answer, and may be idle for as long. Once told to stop, the
    server goes on for `drain` seconds, in which it says that it is not ready, and then has `grace` seconds to finish.
    """

    bytes: int = 4 * 2**20
    rows: int = 10_000
    connections: int = 256
    seconds: float = 30.0
    grace: float = 10.0
    drain: float = 0.0

    def __post_init__(self) -> None:
        validation.count("--max-bytes", self.bytes, 1)
        validation.count("--max-rows", self.rows, 1)
        validation.count("--max-connections", self.connections, 1)
        validation.number("--client-timeout", self.seconds, "a number above 0", 5e-324, float("inf"))
        validation.number("--drain", self.drain, "a number of at least 0", 0, float("inf"))
        validation.number("--grace", self.grace, "a number of at least 0", 0, float("inf"))
