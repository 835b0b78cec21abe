"""A query in stages: each is computed once from the one before, so that no expression is repeated in the next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ectype.export._sql import too_large
from ectype.export._sql_dialects import Dialect


@dataclass(frozen=True)
class QueryColumn:
    """A number for every row, by its expression, in the first stage that has all it uses."""

    stage: int
    expression: str
    uses: frozenset[str]


class QueryStages:
    """Numbers of rows, step by step; those of stage 0 are made from the columns of a table."""

    def __init__(self, dialect: Dialect, table: str, keep: Sequence[str]):
        self.dialect, self._table, self._keep = dialect, dialect.table_name(table), list(keep)
        self._steps: dict[str, QueryColumn] = {}
        self._prefix = "u"
        while any(name.lower().startswith(self._prefix) for name in [*keep, *table.split(".")]):
            self._prefix += "_"

    def first(self, expression: str) -> str:
        """A number that is made from columns of the table; gives its name."""
        return self._named(QueryColumn(0, expression, frozenset()))

    def add(self, expression: str, uses: Iterable[str]) -> str:
        """A number that is made from others; gives its name."""
        names = frozenset(uses)
        return self._named(
            QueryColumn(1 + max((self._steps[name].stage for name in names), default=0), expression, names)
        )

    def text(self, name: str, result: str, uses: Iterable[str]) -> str:
        """The whole query: the columns that are kept, and a result by its name."""
        used, kept = frozenset(uses), [self.dialect.identifier(column) for column in self._keep]
        last = max(self._steps[step].stage for step in used)
        until = self._needed(used, last)
        parts, source = [], self._table
        for stage in range(last + 1):
            columns = [
                *kept,
                *(self._column(step, stage) for step in self._steps if self._is_there(step, stage, until)),
            ]
            if len(columns) > self.dialect.columns:
                raise too_large(self.dialect, f"at most {self.dialect.columns} columns in a stage", f"{len(columns)}")
            written = self.dialect.stage.format(columns=",\n  ".join(columns), source=source)
            source = f"{self._prefix}stage_{stage}"
            parts.append(f"{source} {written}")
        final = ", ".join([*kept, f"{result} AS {self.dialect.identifier(name)}"])
        return "WITH " + ",\n".join(parts) + f"\nSELECT {final}\nFROM {source}"

    def _named(self, step: QueryColumn) -> str:
        name = f"{self._prefix}{len(self._steps)}"
        self._steps[name] = step
        return name

    def _needed(self, used: frozenset[str], last: int) -> dict[str, int]:
        """By name, the last stage that has to hand a number on."""
        until = dict.fromkeys(used, last)
        for step in reversed(self._steps.values()):  # made from others that came before
            for name in step.uses:
                until[name] = max(until.get(name, 0), step.stage - 1)
        return until

    def _is_there(self, name: str, stage: int, until: dict[str, int]) -> bool:
        return self._steps[name].stage <= stage <= until.get(name, -1)

    def _column(self, name: str, stage: int) -> str:
        step = self._steps[name]
        return f"{step.expression} AS {name}" if step.stage == stage else name
