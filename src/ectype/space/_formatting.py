"""A space as text for a terminal, and as HTML for a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ectype._common.formatting import Grid, paragraphs, printable, screen_width, shorten

if TYPE_CHECKING:
    from ectype.space._space import Space

# Of more columns and rules than this, text shows the first; a notebook has room for more.
COLUMNS, RULES = 15, 3
MOST = 100


def space_title(space: Space) -> str:
    """How many columns and rules a space has."""
    columns = f"{space.d} column{'s' if space.d > 1 else ''}"
    rules = f", {len(space.rules)} rule{'s' if len(space.rules) > 1 else ''}" if space.rules else ""
    return columns + rules


def columns_table(space: Space, most: int | None = None, covers: bool = False) -> Grid:
    """What each column holds; of more than so many, the first. Perhaps with the share of rows that it covers."""
    rows = [
        (column.name, column.kind, f"{column.missing:.1%}" if column.missing else "", column.summary)
        for column in space.columns[:most]
    ]
    if not covers or not space.readings:
        return Grid(("column", "kind", "missing", "values"), rows, right=("missing",))
    known = [
        (name, kind, one.share, missing, summary)
        for one, (name, kind, missing, summary) in zip(space.readings, rows, strict=False)
    ]
    return Grid(("column", "kind", "covers", "missing", "values"), known, right=("covers", "missing"))


def space_text(space: Space) -> str:
    """A space in a few lines."""
    lines = [f"A space of {space_title(space)}, {_about(space)}", columns_table(space, COLUMNS, covers=True).text()]
    lines += [f" and {space.d - COLUMNS} more"] if space.d > COLUMNS else []
    return "\n".join([*lines, *(shorten(f"rule: {printable(rule)}", screen_width()) for rule in _rules(space))])


def space_html(space: Space) -> str:
    """A space as HTML, for notebooks."""
    after = [f"and {space.d - MOST} more"] if space.d > MOST else []
    after += [f"rule: {rule}" for rule in _rules(space, MOST)]
    return (
        paragraphs([f"A space of {space_title(space)}, {_about(space)}"])
        + columns_table(space, MOST, covers=True).html()
        + paragraphs(after)
    )


def _about(space: Space) -> str:
    drawn = "independent of each other" if space.correlation is None else "which depend on each other"
    return f"{drawn}; the original gets {'data frames' if space.frame else 'arrays'}"


def _rules(space: Space, most: int = RULES) -> list[str]:
    more = [f"and {len(space.rules) - most} more"] if len(space.rules) > most else []
    return [*space.rules[:most], *more]
