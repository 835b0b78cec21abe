"""Every error says the same four things: where, what was expected, what was found, and what to do.

>>> from ectype import Settings, Space, copy_classifier
>>> try:
...     copy_classifier(len, Space.normal(2), budget=-1)
... except EctypeError as error:
...     print(error)
budget: expected a whole number of at least 1, found -1
"""

from __future__ import annotations

import os
import sys
import warnings
from functools import cache
from types import FrameType

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class EctypeError(Exception):
    """Base of every error raised on purpose.

    >>> raise SettingError("batch", "a whole number above zero", 0, "leave it out to use 100")
    Traceback (most recent call last):
        ...
    ectype.errors.SettingError: batch: expected a whole number above zero, found 0; leave it out to use 100
    """

    exit_code = 2

    def __init__(self, where: str, expected: str, found: object, hint: str = ""):
        self.where, self.expected, self.found, self.hint = where, expected, found, hint
        message = f"{where}: expected {expected}, found {found}"
        super().__init__(f"{message}; {hint}" if hint else message)

    def __reduce__(self) -> tuple[type[EctypeError], tuple[str, str, object, str]]:
        return type(self), (self.where, self.expected, self.found, self.hint)


class SettingError(EctypeError, ValueError):
    """An argument or option that cannot be used."""


class TargetError(EctypeError, ValueError):
    """A target above what the original's noise allows; what was answered is kept."""

    exit_code = 1


class PriorAnswersError(SettingError):
    """Prior answers that were given to a run are not those of its original."""


class TooManyLabelsError(SettingError):
    """Nearly every row got a label of its own: the original is no classifier, or answers an identifier."""


class SpaceError(EctypeError, ValueError):
    """A description of the inputs, or rows of inputs, that cannot be used."""


class DirectoryError(EctypeError):
    """A run's directory that is missing, damaged, or holds something else."""


class IntegrityError(DirectoryError):
    """A file of a run has another checksum or content than what was written."""


class WriteError(DirectoryError):
    """A result could not be written; the answers are kept, and the same command resumes."""

    exit_code = 3


class ExportError(EctypeError):
    """A copy cannot be written in a format, or the file disagrees with the copy; nothing was written."""


class OriginalError(EctypeError):
    """The original failed, or answered something that is not a label."""

    exit_code = 3


class AnswerCountError(OriginalError):
    """The original answered, but not with one label for every row."""


class OutageError(OriginalError):
    """The original is unavailable; asking about other rows would not help."""


class QuotaError(OutageError):
    """No more rows may be sent, also not again after failures; what was answered is kept."""


class SharedQuotaError(QuotaError):
    """A quota that the models of a fleet share does not allow the request."""


class BudgetError(EctypeError):
    """A query was about to exceed the budget; it was not sent."""


class WorkerError(EctypeError):
    """The connection to the workers was lost; what is finished is kept."""

    exit_code = 3


class KernelError(EctypeError):
    """The compiled kernel cannot be loaded, or was given what it cannot compute with."""


class EctypeWarning(UserWarning):
    """Something a user should know before trusting a copy."""


def warn(message: str) -> None:
    """Warn at the user's line: the nearest one on the way here that is neither this package's nor a library's.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     warn("a column is missing")
    >>> caught[0].message
    EctypeWarning('a column is missing')
    """
    frame = _user_frame(sys._getframe(1))
    about, registry = frame.f_globals, frame.f_globals.setdefault("__warningregistry__", {})
    where = frame.f_code.co_filename, frame.f_lineno, about.get("__name__") or "<string>"
    warnings.warn_explicit(EctypeWarning(message), None, *where, registry)


def _user_frame(frame: FrameType) -> FrameType:
    """The nearest frame of the user's own code; without any, the nearest that is not of this package."""
    calls = [frame]
    while (caller := calls[-1].f_back) is not None:
        calls.append(caller)
    others = [call for call in calls if not call.f_code.co_filename.startswith((_PACKAGE, "<frozen "))]
    users = [call for call in others if not call.f_code.co_filename.startswith(_libraries())]
    return (users or others or calls)[0]


@cache
def _libraries() -> tuple[str, ...]:
    import sysconfig

    return tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib"))
