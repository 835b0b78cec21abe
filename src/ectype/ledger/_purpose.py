"""What queries are made for."""

from __future__ import annotations

from enum import StrEnum


class Purpose(StrEnum):
    """What a query is made for, as ledgers and run.json have it.

    >>> Purpose("rows").words, Purpose.describe("an experiment of one's own")
    ('about rows of your own', "for an experiment of one's own")
    """

    TRAINING = "training"
    """Rows that the copy learns from."""
    CERTIFICATE = "certificate"
    """Held-out rows of the space, which measure the copy."""
    REPEAT = "repeat"
    """Rows asked once more on purpose, to see whether the original answers alike."""
    USER_ROWS = "rows"
    """The user's own rows that were held out, which measure the copy in its run."""
    RECHECK = "same"
    """Rows of prior answers, asked once more to see whether they are this original's."""
    DATA = "data"
    """The user's own rows in a session that certifies a finished copy."""
    GIVEN = "given"
    """Rows of prior answers. Their requests were never sent."""
    TRAFFIC = "traffic"
    """Rows that users asked about while a copy answered in its original's place."""
    CHECK = "check"
    """Rows of an earlier run, asked once more to see whether the original changed."""
    CASCADE = "cascade"
    """Rows that calibrate a cascade."""
    PAGE = "page"
    """Rows of a grid, for the picture of a decision boundary."""

    @property
    def words(self) -> str:
        """The purpose in a sentence that counts queries."""
        return _WORDS.get(self, f"for {self}")

    @classmethod
    def describe(cls, name: str) -> str:
        """The words of a purpose that a file names; it may be one that this version does not know."""
        return cls(name).words if name in cls.__members__.values() else f"for {name}"


_WORDS = {
    Purpose.TRAINING: "to learn from",
    Purpose.CERTIFICATE: "for the certificate",
    Purpose.REPEAT: "asked again",
    Purpose.USER_ROWS: "about rows of your own",
    Purpose.CHECK: "to see whether answers changed",
    Purpose.RECHECK: "to see whether the answers given are its own",
}
