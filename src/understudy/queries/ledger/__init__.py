"""The ledger: every query and its answer, durable in one SQLite file, so that nothing is paid for twice.

It is a write-ahead log: a request is announced before it is sent and answered after, each in a transaction that has
reached the disk. One that was announced and never answered may have been paid for. Rows are kept as they are drawn, a
blob of float64 per request; answers as codes of the labels. Rounds of training are kept as well: a run that is resumed
takes them from here.
"""

from __future__ import annotations

from understudy.queries.ledger.book import Ledger
from understudy.queries.ledger.compacting import compacted
from understudy.queries.ledger.entry import Entry, answered, write_new
from understudy.queries.ledger.file import CHECK, FORMAT, FURTHER, GIVEN, REPEAT, TRAFFIC, USER_ROWS
from understudy.queries.ledger.opening import BESIDE, NAME, SESSIONS
from understudy.queries.ledger.reading import (
    Summary,
    anchored,
    answers,
    duplicate,
    entries,
    last_round,
    learned,
    settings_of,
    space_of,
    summary,
)
from understudy.queries.ledger.salvage import salvage
from understudy.queries.ledger.timeline import Timeline, timeline
from understudy.queries.ledger.verifying import Verified, verify

__all__ = [
    "BESIDE",
    "CHECK",
    "FORMAT",
    "FURTHER",
    "GIVEN",
    "NAME",
    "REPEAT",
    "SESSIONS",
    "TRAFFIC",
    "USER_ROWS",
    "Entry",
    "Ledger",
    "Summary",
    "Timeline",
    "Verified",
    "anchored",
    "answered",
    "answers",
    "compacted",
    "duplicate",
    "entries",
    "last_round",
    "learned",
    "salvage",
    "settings_of",
    "space_of",
    "summary",
    "timeline",
    "verify",
    "write_new",
]
