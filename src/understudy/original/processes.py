"""What originals that run in a process of their own have in common."""

from __future__ import annotations

import math
import signal
from typing import Any

from understudy import checks

# Eleven days: more than anyone waits, and less than what timers of the operating system can count.
MOST_SECONDS = 1e6


def patience(timeout: Any) -> float:
    """The seconds until a request is given up, if they are that.

    >>> patience(60)
    60.0
    """
    expected = f"a number of seconds above 0 and below {MOST_SECONDS:g}"
    return checks.number("timeout", timeout, expected, math.nextafter(0, 1), MOST_SECONDS)


def ending(code: int | None) -> str:
    """How a process ended, in words.

    >>> ending(3), ending(-9)
    ('exit code 3', 'SIGKILL')
    """
    if code is None or code >= 0:
        return f"exit code {code}"
    return {sign.value: sign.name for sign in signal.Signals}.get(-code, f"signal {-code}")


def brief(text: str, most: int = 400) -> str:
    """A message in one line, without its middle if it is long.

    >>> brief("one line\\n and  another")
    'one line and another'
    """
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most // 2]} ... {line[-most // 2 :]}"
