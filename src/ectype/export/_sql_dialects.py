"""SQL as databases speak it: how each writes names, words, numbers and stages of a query, and how much it takes.

Three things are silently different between databases, and are therefore spelled out: `"x0"` is a string in MySQL; words
are equal there whatever their case; a number with a point is a decimal in some, a double in others.
"""

from __future__ import annotations

from dataclasses import dataclass

from ectype.errors import ExportError

# MySQL and MariaDB read what stands in such a comment: they refuse files of other dialects instead of taking the names
# of columns for words.
GUARD = "/*! not for MySQL or MariaDB: export with --dialect mysql */\n"
# Decimals of so many digits are read as the nearest double by any reader.
SAFE_DIGITS = 15
# Doubles hold all integers up to here.
EXACT = 2**53
MEGABYTE = 2**20


@dataclass(frozen=True)
class Dialect:
    """Standard SQL, and what other dialects change of it."""

    name: str = "ansi"
    head: str = GUARD
    stage: str = "AS (SELECT {columns} FROM {source})"
    """A stage of a query, which should be computed once."""
    columns: int = 1000
    """The most columns of a stage."""
    bytes: int = 16 * MEGABYTE
    """The most bytes of a statement."""
    nesting: int = 40
    """How deeply CASE is nested, before one CASE lists all that is below."""
    whole: str = "BIGINT"
    real: str = "DOUBLE PRECISION"
    flag: str = "BOOLEAN"
    word: str = "VARCHAR(1000)"

    def identifier(self, name: str) -> str:
        """The name of a column, or of a table.

        >>> Dialect().identifier('a "b"')
        '"a ""b""\"'
        """
        return '"' + name.replace('"', '""') + '"'

    def text(self, word: str) -> str:
        """A string.

        >>> Dialect().text("it's")
        "'it''s'"
        """
        return "'" + word.replace("'", "''") + "'"

    def truth(self, value: bool) -> str:
        """True or false."""
        return "TRUE" if value else "FALSE"

    def label(self, value: object) -> str:
        """A label, in its own type."""
        if isinstance(value, bool):
            return self.truth(value)
        if isinstance(value, float):
            return self.number(value)
        return self.text(value) if isinstance(value, str) else str(value)

    def number(self, number: float) -> str:
        """A double; in parentheses if it is negative, so that it may follow any operator.

        >>> Dialect().number(-0.5)
        '(-0.5E0)'
        """
        text = repr(float(number))
        return _signed(text if "e" in text else f"{text}E0")

    def factor(self, number: float) -> str:
        """A number beside an operand that is a double; shorter than `number` where the operand's type is enough."""
        return self.number(number)

    def times(self, number: float, name: str) -> str:
        """A named value, which is a double, times a number."""
        return f"{self.factor(number)} * {name}"

    def compare(self, value: str, sign: str, cut: float) -> str:
        """The comparison of a value with a number, to the last bit."""
        whole = isinstance(cut, int) and abs(cut) < EXACT
        return f"{value} {sign} {cut if whole else self.number(cut)}"

    def nan_as_null(self, name: str) -> str:
        """A column of numbers, NULL where it is not a number."""
        return name

    def double(self, name: str) -> str:
        """A column of numbers as doubles, NULL where it is not a number."""
        return f"CAST({self.nan_as_null(name)} AS {self.real})"

    def comparable(self, name: str) -> str:
        """A column of words, as it is compared with `word`: by every character."""
        return name

    def level(self, word: str) -> str:
        """A word that a column is compared with."""
        return self.text(word)

    def greatest(self, *values: str) -> str:
        """The largest of some numbers."""
        return f"GREATEST({', '.join(values)})"

    def least(self, *values: str) -> str:
        """The smallest of some numbers."""
        return f"LEAST({', '.join(values)})"

    def table_name(self, table: str) -> str:
        """The name of a table, with that of its schema before a point."""
        return ".".join(map(self.identifier, table.split(".")))


class PostgreSQL(Dialect):
    """NaN is a number above all others, and decimals are exact until a double stands beside them."""

    def text(self, word: str) -> str:
        """A string; with E, backslashes mean the same whatever the server's settings are."""
        plain = super().text(word)
        return plain if "\\" not in word else "E" + plain.replace("\\", "\\\\")

    def number(self, number: float) -> str:
        """A typed literal."""
        return f"FLOAT8 '{float(number)!r}'"

    def factor(self, number: float) -> str:
        """A decimal, which becomes a double beside one."""
        return _signed(repr(float(number)))

    def nan_as_null(self, name: str) -> str:
        """NaN equals itself."""
        return f"NULLIF({name}, FLOAT8 'NaN')"

    def comparable(self, name: str) -> str:
        """The collation of bytes."""
        return f'CAST({name} AS TEXT) COLLATE "C"'


class MySQL(Dialect):
    """MySQL and MariaDB: words compare without case and trailing spaces, unless they are bytes."""

    def identifier(self, name: str) -> str:
        """Double quotes would make a string."""
        return "`" + name.replace("`", "``") + "`"

    def text(self, word: str) -> str:
        """Plain characters as they are; others as bytes, whatever the connection's settings are."""
        return super().text(word) if _is_plain(word) else f"CONVERT({self._bytes(word)} USING utf8mb4)"

    def double(self, name: str) -> str:
        """Adding 0 works in versions that cannot cast to a double."""
        return f"({name} + 0E0)"

    def comparable(self, name: str) -> str:
        """The bytes of UTF-8."""
        return f"CAST(CONVERT({name} USING utf8mb4) AS BINARY)"

    def level(self, word: str) -> str:
        """Bytes; a string beside bytes is compared as its bytes."""
        return super().text(word) if _is_plain(word) else self._bytes(word)

    def _bytes(self, word: str) -> str:
        return f"x'{word.encode().hex()}'"


class SQLite(Dialect):
    """A name in double quotes that no column has is a string; in backticks it is an error."""

    def identifier(self, name: str) -> str:
        """In backticks."""
        return "`" + name.replace("`", "``") + "`"

    def number(self, number: float) -> str:
        """A decimal; of a long one, the last bit is not certain."""
        return _signed(repr(float(number)))

    def times(self, number: float, name: str) -> str:
        """The same, in time that does not grow with the statement."""
        return f"{_apart(self.factor(number), name)} * {name}"

    def compare(self, value: str, sign: str, cut: float) -> str:
        """By whole numbers where the decimal is long: SQLite reads some as the double next to it.

        >>> DIALECTS["sqlite"].compare("x", "<=", 0.1)
        'x <= IFNULL(0.1, x)'
        >>> DIALECTS["sqlite"].compare("x", "<=", 0.1 + 0.2)
        'x*4503599627370496 <= IFNULL(1351079888211149, x)'
        """
        numerator, denominator = float(cut).as_integer_ratio()
        if abs(numerator) < 2**63 and (denominator == 1 or _digits(repr(float(cut))) > SAFE_DIGITS):
            times, constant = _times(denominator), str(numerator)
        else:
            times, constant = "", self.number(cut)
        return f"{value}{times} {sign} {_apart(constant, value) if value.isidentifier() else constant}"

    def nan_as_null(self, name: str) -> str:
        """Imported tables have numbers as text, and an empty one for a gap."""
        return f"CAST(NULLIF({name}, '') AS REAL)"

    def double(self, name: str) -> str:
        """Already cast."""
        return self.nan_as_null(name)

    def comparable(self, name: str) -> str:
        """By its bytes, whatever the column's own collation is."""
        return f"CAST({name} AS TEXT) COLLATE BINARY"

    def greatest(self, *values: str) -> str:
        """MAX of several arguments is no aggregate."""
        return f"MAX({', '.join(values)})"

    def least(self, *values: str) -> str:
        """MIN of several arguments is no aggregate."""
        return f"MIN({', '.join(values)})"


class DuckDB(Dialect):
    """NaN is a number above all others."""

    def nan_as_null(self, name: str) -> str:
        """NaN equals itself."""
        return f"NULLIF({name}, 'NaN'::DOUBLE)"

    def comparable(self, name: str) -> str:
        """The cast drops a collation."""
        return f"CAST({name} AS VARCHAR)"


_ONCE = "AS MATERIALIZED (SELECT {columns} FROM {source})"
_KNOWN: tuple[Dialect, ...] = (
    Dialect(),
    PostgreSQL("postgresql", stage=_ONCE, columns=1600, bytes=64 * MEGABYTE, word="TEXT"),
    MySQL("mysql", head="", stage="AS (SELECT {columns} FROM {source} LIMIT 18446744073709551615)", real="DOUBLE"),
    SQLite(
        "sqlite", stage=_ONCE, columns=2000, bytes=64 * MEGABYTE, nesting=9, whole="INTEGER", real="REAL", word="TEXT"
    ),
    DuckDB("duckdb", stage=_ONCE, columns=5000, bytes=2 * MEGABYTE, real="DOUBLE"),  # four took 2 GB, and minutes
)
DIALECTS = {dialect.name: dialect for dialect in _KNOWN}


def refuse_nul(dialect: Dialect, words: list[str]) -> None:
    """Refuse words with a character that databases do not keep."""
    wrong = [word for word in words if "\0" in word]
    if wrong:
        raise ExportError(f"sql, {dialect.name}", "words without the character NUL", repr(wrong[0]), "rename it")


def _apart(constant: str, name: str) -> str:
    """A constant that SQLite does not look up among all others of the statement, one after the other.

    It does that for every constant that is an operand by itself: statements of a megabyte would take it seconds, of
    ten a hundred times as long. Here the operand could be the name's value, though it never is.
    """
    return f"IFNULL({constant}, {name})"


def _times(power: int) -> str:
    """Times a power of two, which leaves doubles exact; in factors that are whole numbers of 64 bits."""
    exponent = power.bit_length() - 1
    return "".join(f"*{2 ** min(62, exponent - at)}" for at in range(0, exponent, 62))


def _signed(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


def _digits(text: str) -> int:
    return len(text.partition("e")[0].replace("-", "").replace(".", "").strip("0"))


def _is_plain(word: str) -> bool:
    return word.isascii() and word.isprintable() and "\\" not in word
