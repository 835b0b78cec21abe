"""The ledger: every query and its answer, durable in one SQLite file, so that nothing is paid for twice.

It is a write-ahead log: a request is announced before it is sent and answered after, each in a transaction that has
reached the disk. One that was announced and never answered may have been paid for. Rows are kept as they are drawn, a
blob of float64 per request; answers as codes of the labels. Rounds of training are kept as well: a run that is resumed
takes them from here.
"""

from __future__ import annotations

from ectype.ledger._compact import compact_ledger
from ectype.ledger._connections import BESIDE_LEDGER, LEDGER, SESSIONS
from ectype.ledger._import_rows import copy_ledger, write_ledger
from ectype.ledger._ledger import Ledger
from ectype.ledger._purpose import Purpose
from ectype.ledger._reader import (
    LedgerEntry,
    chain_anchor,
    query_table,
    read_answers,
    read_answers_and_round,
    read_entries,
    settings_of,
    space_of,
)
from ectype.ledger._recovery import salvage_ledger
from ectype.ledger._schema import FURTHER_COLUMNS, LEDGER_FORMAT
from ectype.ledger._session import SESSION_LIFETIME, Session, open_session, read_sessions, take_over_session
from ectype.ledger._summary import (
    RowCounts,
    Summary,
    read_timeline,
    summarise_ledger,
    verify_ledger,
)

__all__ = [
    "BESIDE_LEDGER",
    "FURTHER_COLUMNS",
    "LEDGER",
    "LEDGER_FORMAT",
    "SESSIONS",
    "SESSION_LIFETIME",
    "Ledger",
    "LedgerEntry",
    "Purpose",
    "RowCounts",
    "Session",
    "Summary",
    "chain_anchor",
    "compact_ledger",
    "copy_ledger",
    "open_session",
    "query_table",
    "read_answers",
    "read_answers_and_round",
    "read_entries",
    "read_sessions",
    "read_timeline",
    "salvage_ledger",
    "settings_of",
    "space_of",
    "summarise_ledger",
    "take_over_session",
    "verify_ledger",
    "write_ledger",
]
