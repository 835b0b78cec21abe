"""Answers that a run is given, as rows of its ledger: in it like all others, and never sent."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import numpy as np

from ectype.ledger._hash_chain import Row
from ectype.ledger._label_codes import Vocabulary
from ectype.ledger._purpose import Purpose
from ectype.original import CHUNK, LabelledRows


def given_rows(told: LabelledRows, vocabulary: Vocabulary, number: int = 1) -> Iterator[Row]:
    """Answers as rows of a ledger that knows these labels, in requests from this number on.

    As many attempts are taken back as each request has rows, so that none of them counts as asked.

    >>> from ectype.original import Answers
    >>> told = np.zeros((2, 1)), Answers(np.array(["no", "yes"]))
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
        yield "requests", (at, Purpose.GIVEN, n, now, rows[part].tobytes())
        yield "attempts", (None, at, now, -n)
        if said.scores is not None:
            yield "scores", (at, said.scores[part].tobytes())
        yield "answers", (at, now, codes[part].tobytes())
