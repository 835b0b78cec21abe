"""Answers that a run is given, as rows of its ledger: in it like all others, and never sent."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import numpy as np

from understudy.original import CHUNK, Told
from understudy.queries.ledger.chain import Row
from understudy.queries.ledger.file import GIVEN
from understudy.queries.ledger.vocabulary import Vocabulary


def given_rows(told: Told, vocabulary: Vocabulary, number: int = 1) -> Iterator[Row]:
    """Answers as rows of a ledger that knows these labels, in requests from this number on.

    As many attempts are taken back as each request has rows, so that none of them counts as asked.

    >>> from understudy.original import Said
    >>> told = np.zeros((2, 1)), Said(np.array(["no", "yes"]))
    >>> [table for table, _ in given_rows(told, Vocabulary(["no"]))]
    ['labels', 'requests', 'attempts', 'answers']
    """
    rows, said = np.ascontiguousarray(told[0]), told[1]
    codes, new = vocabulary.codes(said.labels)
    yield from (("labels", (code, json.dumps(value))) for code, value in new)
    now = time.time()
    for at, start in enumerate(range(0, len(rows), CHUNK), number):
        part = slice(start, min(start + CHUNK, len(rows)))
        n = part.stop - part.start
        yield "requests", (at, GIVEN, n, now, rows[part].tobytes())
        yield "attempts", (None, at, now, -n)
        if said.scores is not None:
            yield "scores", (at, said.scores[part].tobytes())
        yield "answers", (at, now, codes[part].tobytes())
