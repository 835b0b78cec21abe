"""Interrupts of what the kernel is at."""

import signal
import time

import pytest


def interrupted(work, after=0.05):
    """Interrupt work after so much of the process's own time; gives how much more of it passed until that was heard."""
    before = signal.signal(signal.SIGVTALRM, signal.default_int_handler)
    start = time.process_time()
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, after)
        with pytest.raises(KeyboardInterrupt):
            work()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    return time.process_time() - start - after
