"""The templates of pages and cards, and how numbers are written in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from math import floor
from typing import TYPE_CHECKING, Any

from ectype._common.formatting import as_sentence
from ectype.certificate.formatting import strata
from ectype.conditions.formatting import word
from ectype.queries import describe_answers
from ectype.report._markdown import escape_markdown
from ectype.space import Category, Date, Number

if TYPE_CHECKING:
    from jinja2 import Environment


def percent(share: float) -> str:
    """A share, with as many digits as it takes to tell it from all, and never rounded up to all.

    >>> percent(0.9321), percent(0.99514), percent(0.99996), percent(1.0), percent(0.0)
    ('93.2 %', '99.51 %', '99.99 %', '100 %', '0 %')
    """
    if share in (0.0, 1.0):
        return f"{100 * share:.0f} %"
    digits = 2 if share > 0.99 else 1
    found = round(100 * share, digits)
    if found >= 100:
        found = floor(100 * share * 10**digits) / 10**digits
    return f"{found:.{digits}f} %"


def count(number: float) -> str:
    """A number of things.

    >>> count(12345)
    '12,345'
    """
    return f"{number:,.0f}"


def size(bytes: int) -> str:
    """Bytes as people say them.

    >>> size(999), size(15_300), size(1_561_072)
    ('999 bytes', '15 kB', '1.6 MB')
    """
    if bytes < 1000:
        return f"{bytes} bytes"
    return f"{bytes / 1e3:.0f} kB" if bytes < 1e6 else f"{bytes / 1e6:.1f} MB"


def milliseconds(ms: float | None) -> str:
    """A latency.

    >>> milliseconds(0.1234), milliseconds(12.34), milliseconds(None)
    ('0.12 ms', '12 ms', 'not measured')
    """
    if ms is None:
        return "not measured"
    return f"{ms:.2g} ms" if ms < 10 else f"{ms:.0f} ms"


def duration(seconds: float) -> str:
    """A time span.

    >>> duration(3.21), duration(95.0), duration(7300.0)
    ('3.2 s', '1 min 35 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def one_in(share: float) -> str:
    """How often something happens, as people say it, with two digits.

    >>> one_in(0.068), one_in(1 / 143), one_in(0.9)
    ('About one input in 15', 'About one input in 140', '90.0 % of inputs')
    """
    about = 1 / share
    if about < 1.5:
        return f"{percent(share)} of inputs"
    digits = min(0, 2 - len(f"{about:.0f}"))
    return f"About one input in {round(about, digits):,.0f}"


def code_spans(text: str) -> str:
    """Text in which what stands between backticks is code.

    >>> code_spans("run `a<b`")
    Markup('run <code>a&lt;b</code>')
    """
    from markupsafe import Markup, escape

    parts = [escape(part) for part in text.split("`")]
    whole = [part if k % 2 == 0 else Markup("<code>{}</code>").format(part) for k, part in enumerate(parts)]
    return Markup("").join(whole)


def level(share: float) -> str:
    """A share that is a round number.

    >>> level(0.95), level(0.5)
    ('95 %', '50 %')
    """
    return f"{100 * share:.3g} %"


def script_data(value: Any) -> str:
    """JSON inside a script element, which nothing in it may end."""
    from markupsafe import Markup

    return Markup(json.dumps(value, separators=(",", ":")).replace("<", "\\u003c"))


def column_values(column: object) -> str:
    """The values that a column may have."""
    if isinstance(column, Category):
        return ", ".join(map(str, column.levels))
    if isinstance(column, Date):
        return column.summary
    if isinstance(column, Number):
        mean, std = column.moments
        return f"mean {mean:.4g}, deviation {std:.4g}"
    return "true, false"


FILTERS: dict[str, Callable[..., Any]] = {
    "percent": percent,
    "count": count,
    "size": size,
    "level": level,
    "ms": milliseconds,
    "duration": duration,
    "one_in": one_in,
    "sentence": as_sentence,
    "word": word,
    "code_spans": code_spans,
    "data": script_data,
    "md": escape_markdown,
    "repr": repr,
    "describe_answers": describe_answers,
    "column_values": column_values,
    "strata": strata,
}


@cache
def environment() -> Environment:
    """The templates in `page/`: HTML is escaped by itself, Markdown by the filter `md`."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader("ectype.report", "page"),
        autoescape=lambda name: name is None or name.endswith(".html"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(FILTERS)
    return found
