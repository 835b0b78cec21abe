"""`vendor.toml`: how an original is opened, said once in a file; and what a run remembers of it, without secrets."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Unpack
from urllib.parse import urlsplit

from ectype._common import validation
from ectype._common.atomic_io import as_path
from ectype._common.manifest import RUN, read_run
from ectype.errors import SettingError
from ectype.original.base import Original
from ectype.original.labels import label_array
from ectype.original.options import FILES, OPTIONS, OriginalOptions, type_of
from ectype.types import Classes, Json, Label

# What a vendor.toml may say beside the options of an original.
KEYS = ("original", "classes", "cost")
# Where run.json remembers how its original was opened; and, in there, what is not kept.
VENDOR, LEFT_OUT = "vendor", "left_out"
QUERY, TEMPLATE = "query", "template"
SUFFIX = ".toml"


# Options by which a user vouches for the code in a file, and those with which a request shows who sends it.
VOUCHING, SHOWING = ("trust", "types"), ("client_cert", "client_key")


@dataclass(frozen=True)
class Vendor:
    """How an original is opened: its name and its options, as `vendor.toml` or a run says them.

    >>> Vendor("https://vendor.example/score?key=hush", options={"token_env": "TOKEN"}).remembered()
    {'original': 'https://vendor.example/score', 'token_env': 'TOKEN', 'left_out': ['query']}
    """

    original: str
    classes: list[Label] | None = None
    cost: float = 0.0
    """Of a row."""
    options: Json = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    """What a run did not keep, and has to be given again: headers by name, a query, a template."""

    @classmethod
    def read(cls, path: str | Path) -> Vendor:
        """Read a vendor.toml; the files that it names are looked for beside it."""
        path = Path(path)
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise SettingError(str(path), "a file in TOML that says how an original is opened", str(error)) from error
        refuse_unknown_keys(str(path), content, (*KEYS, *OPTIONS))
        found = cls._of(str(path), content)
        if found.original.lower().endswith(SUFFIX):
            raise SettingError(f"{path}: original", "an original itself", f"another {SUFFIX} file")
        options = {key: beside(path.parent, value) if key in FILES else value for key, value in found.options.items()}
        return replace(found, original=beside(path.parent, found.original), options=options)

    @classmethod
    def of_run(cls, directory: str | Path) -> Vendor:
        """How the original of a run was opened, as its run.json remembers it."""
        content = read_run(as_path(directory)).get(VENDOR)
        if content is None:
            found = "one that was made of an object in memory, or by version 0.1"
            hint = "name the original: package.module:name, a file, a URL, or a vendor.toml"
            raise SettingError(str(directory), "a run that remembers how its original is opened", found, hint)
        where = f"{Path(directory) / RUN}: {VENDOR}"
        refuse_unknown_keys(where, content, (*KEYS, LEFT_OUT, *OPTIONS))
        return replace(cls._of(where, content), left_out=tuple(content.get(LEFT_OUT, ())))

    @classmethod
    def _of(cls, where: str, content: Mapping[str, Any]) -> Vendor:
        """The values of a file, each of the type that it should be."""
        original, classes, cost = (content.get(key) for key in KEYS)
        if not isinstance(original, str):
            raise SettingError(where, 'original = "..."', "none" if original is None else repr(original))
        if classes is not None and not isinstance(classes, list):
            raise SettingError(f"{where}: classes", "a list of labels", repr(classes))
        amount = 0.0 if cost is None else cost
        amount = validation.number(f"{where}: cost", amount, "a number of at least 0", 0, float("inf"))
        options = {key: _checked(f"{where}: {key}", key, content[key]) for key in OPTIONS if key in content}
        return cls(original, classes, amount, options)

    @property
    def risk(self) -> str | None:
        """What somebody else's run.json could do by what it names: run code, or be sent a secret of ours."""
        if self.variables:
            return f"which is sent what {' and '.join(self.variables)} holds"
        if is_vendor_file(self.original):
            return "which may name code that would be run"
        code = self.original.startswith("cmd:") or (":" in self.original and not _is_url(self.original))
        if code or any(self.options.get(key) for key in VOUCHING):
            return "which is code that would be run"
        if self.options.get("protocol") == "sagemaker" or any(self.options.get(key) for key in SHOWING):
            return "which is shown credentials of yours"
        return None

    @property
    def variables(self) -> list[str]:
        """The environment variables whose values the original is sent."""
        named, _ = _headers(self.options.get("header"))
        token = self.options.get("token_env")
        return [*([] if token is None else [token]), *(header.rpartition("env:")[2] for header in named)]

    def override(self, classes: Classes = None, options: Mapping[str, Any] | None = None) -> Vendor:
        """The same with other classes and options, as far as they are given; of headers, those of the same names."""
        given = {key: value for key, value in (options or {}).items() if value not in (None, ())}
        merged = {**self.options, **given}
        names = {_name(header) for header in _listed(given.get("header"))}
        if names and "header" in self.options:
            others = [header for header in _listed(self.options["header"]) if _name(header) not in names]
            merged["header"] = [*others, *_listed(given["header"])]
        left = tuple(name for name in self.left_out if name not in given and _name(name) not in names)
        listed = self.classes if classes is None else list(classes)
        return replace(self, classes=listed, options=merged, left_out=left)

    def open(self, classes: Classes = None, **options: Unpack[OriginalOptions]) -> Original:
        """The original itself. What is given here goes before what the file says."""
        from ectype.original.registry import open_original

        wanted = self.override(classes, options)
        wanted._refuse_left_out()
        original = open_original(wanted.original, wanted.classes, **wanted.options)
        original.vendor = wanted.remembered()
        return original

    def _refuse_left_out(self) -> None:
        """Refuse to ask an original in another way than its run did."""
        if self.left_out:
            name = self.left_out[0]
            words = {QUERY: "the query in its URL", TEMPLATE: "its template"}.get(name, f"the header {name}")
            hint = "name the original with its URL" if name == QUERY else f"give it again, with --{_option(name)}"
            found = "a run that does not keep it, as it may be secret"
            raise SettingError("original", words, found, hint)

    def remembered(self) -> Json:
        """What a run keeps: all but what may be secret.

        The names of environment variables are kept, and headers that name one. Literal values of headers, queries and
        passwords in URLs, templates that are no file, and the hash that vouches for a pickle are not.
        """
        found: Json = {"original": _original(self.original)}
        if self.classes is not None:
            found["classes"] = label_array(self.classes).tolist()
        if self.cost:
            found["cost"] = self.cost
        left = [QUERY] if _is_url(self.original) and urlsplit(self.original).query else []
        for key, value in self.options.items():
            if key == "header":
                named, literal = _headers(value)
                found |= {key: named} if named else {}
                left += literal
            elif key == TEMPLATE and not isinstance(value, (str, Path)):
                left.append(TEMPLATE)
            elif OPTIONS[key].remembered:
                found[key] = _value(key, value)
        return {**found, **({LEFT_OUT: left} if left else {})}


def is_vendor_file(spec: object) -> bool:
    """Whether an original is named by a file that says how it is opened."""
    return isinstance(spec, str) and spec.lower().endswith(SUFFIX)


def refuse_unknown_keys(where: str, found: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """Refuse keys of a file that mean nothing."""
    for key in found:
        if key not in known:
            alike = get_close_matches(key, known, 1)
            raise SettingError(where, "keys that it knows", repr(key), f"is it {alike[0]!r}?" if alike else "")


def beside(folder: Path, name: Any) -> Any:
    """The path of a file in a folder; what names none there stays as it is."""
    return str(folder / name) if isinstance(name, str) and name and os.path.isfile(folder / name) else name


def _checked(where: str, key: str, value: Any) -> Any:
    """A value of a file, if it is of the option's type."""
    kind, several = type_of(key)
    if key == TEMPLATE or (several and isinstance(value, list) and all(isinstance(one, str) for one in value)):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float) if kind is float else kind):
        words = {int: "a whole number", float: "a number", str: "a text"}[kind]
        raise SettingError(where, f"{words}, or a list of them" if several else words, repr(value)[:80])
    return value


def _option(name: str) -> str:
    return "template" if name == TEMPLATE else f'header "{name}: VALUE"'


def _listed(headers: Any) -> list[Any]:
    return [headers] if isinstance(headers, str) else list(headers or ())


def _name(header: Any) -> str:
    """The name of a header, in small letters."""
    return str(header).partition(":")[0].lower()


def _headers(given: Any) -> tuple[list[str], list[str]]:
    """The headers whose value is an environment variable; and the names of the others."""
    listed = _listed(given)
    if not listed:
        return [], []
    from ectype.original.http.headers import names_variable

    literal = [header.partition(":")[0] for header in listed if not names_variable(header)]
    return [header for header in listed if names_variable(header)], literal


def _is_url(text: str) -> bool:
    return urlsplit(text).scheme.lower() in ("http", "https", "grpc", "grpcs", "tcp", "tls")


def _public(url: str) -> str:
    """A URL without user, password, query and fragment."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _original(spec: str) -> str:
    """The name of an original by which it is found from any folder."""
    if _is_url(spec):
        return _public(spec)
    return str(Path(spec).absolute()) if os.path.isfile(spec) else spec


def _value(key: str, value: Any) -> Any:
    if key in FILES:
        return str(Path(value).absolute())
    if key == "scheduler":
        return _public(str(value))
    return value if isinstance(value, (str, int, float)) else list(value)
