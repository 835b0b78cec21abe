"""The options of `ectype serve`, declared once: the command and the function `service` derive from them."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Sequence
from dataclasses import Field, dataclass, field, fields
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ectype._common import validation
from ectype._common.atomic_io import as_path
from ectype.cascades import DEFAULT_AGREEMENT, ON_OUTAGE, RAISE_ERROR
from ectype.errors import SettingError

if TYPE_CHECKING:
    from ectype.original import Original

# How options are grouped where they are listed.
MODEL, LISTEN, LIMITS, ORIGINAL = "The model", "Where to listen", "Limits", "An original beside the copy"
CASCADE = "A cascade: the original behind the copy"
# An option that may be given several times.
COLUMNS = "columns"
ABOVE_ZERO, NOT_NEGATIVE = (5e-324, inf), (0, inf)

T = TypeVar("T")
Opener = Callable[[], "Original"]


@dataclass(frozen=True)
class Address:
    """A host and a port to listen on; port 0 is any that is free."""

    host: str = "127.0.0.1"
    port: int = 8080
    scheme: str = "http"

    def __str__(self) -> str:
        return f"{self.scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


@dataclass(frozen=True)
class ServeOption:
    """An option on the command line: its name, group, type and documentation."""

    group: str
    text: str
    kind: type[int] | type[float] | type[str] | type[Path] | str = str
    shown: bool = True
    """Whether most people need it."""
    flag: str = ""
    """Its name, where that is not the field's."""
    alias: str = ""
    metavar: str | None = None
    open: str = ""
    """The default, where it is left open."""


def _set(default: T, *about: Any, **more: Any) -> T:
    made: Any = field(default=default, metadata={"option": ServeOption(*about, **more)})
    return made  # a field, which becomes an attribute of the default's type


@dataclass(frozen=True, kw_only=True)
class ServiceSettings:
    """Settings of a service under any server: its model, its limits, and the original beside it or behind it.

    `shadow` and `fallback` open an original. With a `token`, clients have to send it.
    """

    name: str | None = _set(None, MODEL, "The model's name in its URL.", open="the directory's")
    version: str = _set("1", MODEL, "The model's version in its URL.", shown=False, flag="--model-version")
    max_bytes: int = _set(4 * 2**20, LIMITS, "The longest request body.", int)
    max_rows: int = _set(10_000, LIMITS, "The most rows of a request.", int)
    grace: float = _set(10.0, LIMITS, "Seconds to finish in when stopped.", float, False)
    shadow: Opener | None = _set(
        None, ORIGINAL, "Ask this original too, and count where it answers otherwise.", metavar="ORIGINAL"
    )
    shadow_log: str | Path | None = _set(None, ORIGINAL, "A CSV file for rows that it answers otherwise.", Path)
    shadow_rows: int = _set(10_000, ORIGINAL, "The most rows that wait for it.", int, False)
    traffic: str | Path | None = _set(
        None,
        ORIGINAL,
        "A directory to keep real rows in, with the answers of --shadow, for --answers of other commands.",
        Path,
        alias="--keep",
        metavar="DIR",
    )
    keep_rows: int = _set(100_000, ORIGINAL, "The most rows kept in all.", int, False)
    keep_days: float = _set(30.0, ORIGINAL, "The days after the first kept row in which others are kept.", float, False)
    keep_without: Sequence[str] = _set((), ORIGINAL, "A column that is not kept.", COLUMNS, False)
    keep_masked: Sequence[str] = _set((), ORIGINAL, "A number or a date that is kept only to a tenth.", COLUMNS, False)
    fallback: Opener | None = _set(
        None, CASCADE, "Ask this original where the copy is not certified to agree with it.", metavar="ORIGINAL"
    )
    agree: float = _set(DEFAULT_AGREEMENT, CASCADE, "How often they must agree where the copy answers alone.", float)
    fallback_outage: str = _set(
        RAISE_ERROR, CASCADE, "If it is out: status 503, or the copy's own answer.", metavar="|".join(ON_OUTAGE)
    )
    fallback_n: int | None = _set(
        None, CASCADE, "Fresh rows to ask it before serving.", int, False, open="none; the run's held-out rows"
    )
    fallback_rows: int = _set(10_000, CASCADE, "The most rows that wait for it.", int, False)
    fallback_timeout: float = _set(10.0, CASCADE, "Seconds that a request waits for it.", float, False)
    fallback_pause: float = _set(5.0, CASCADE, "Seconds that it is left alone when it was out.", float, False)
    token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        validation.count("--max-bytes", self.max_bytes, 1)
        validation.count("--max-rows", self.max_rows, 1)
        validation.number("--grace", self.grace, "a number of at least 0", *NOT_NEGATIVE)
        validation.count("--shadow-rows", self.shadow_rows, 1)
        validation.count("--keep-rows", self.keep_rows, 1)
        validation.number("--keep-days", self.keep_days, "a number above 0", *ABOVE_ZERO)
        validation.fraction("--agree", self.agree)
        validation.choice("--fallback-outage", self.fallback_outage, ON_OUTAGE)
        validation.count("--fallback-rows", self.fallback_rows, 1)
        validation.number("--fallback-timeout", self.fallback_timeout, "a number above 0", *ABOVE_ZERO)
        validation.number("--fallback-pause", self.fallback_pause, "a number of at least 0", *NOT_NEGATIVE)
        if self.fallback_n is not None:
            validation.count("--fallback-n", self.fallback_n, 1)
        if self.traffic is not None:
            object.__setattr__(self, "traffic", as_path(self.traffic))
        self._check_needs("fallback", "agree", *(name for name in defaults() if name.startswith("fallback_")))
        self._check_needs("shadow", "shadow_log", "traffic")
        self._check_needs("traffic", *(name for name in defaults() if name.startswith("keep_")))
        if self.shadow is not None and self.fallback is not None:
            hint = "a parallel run asks about every row, so that a cascade would save nothing: start two servers"
            raise SettingError("--shadow and --fallback", "one of them", "both", hint)

    def _check_needs(self, needed: str, *names: str) -> None:
        """Refuse options that are of no use without another one."""
        if getattr(self, needed) is not None:
            return
        for name in names:
            if getattr(self, name) not in (defaults()[name], []):
                expected = "a directory" if needed == "traffic" else "an original"
                raise SettingError(f"--{needed}", f"{expected}, since --{name.replace('_', '-')} is given", "none")


@dataclass(frozen=True, kw_only=True)
class ServeSettings(ServiceSettings):
    """The same, and what is the server's: where it listens, in how many processes, and how long clients may take.

    A client has `client_timeout` seconds to send a request and to read its answer, and may be idle for as long. Once
    told to stop, the server goes on for `drain` seconds, in which it says that it is not ready, and then has `grace`
    seconds to finish.
    """

    host: str = _set("127.0.0.1", LISTEN, "The address to listen on.")
    port: int = _set(8080, LISTEN, "The port to listen on; 0 is any.", int)
    grpc_port: int | None = _set(None, LISTEN, "A port for V2 over gRPC as well; 0 is any.", int, open="none")
    tls_cert: Path | None = _set(None, LISTEN, "A PEM file with a certificate: serve by TLS.", Path)
    tls_key: Path | None = _set(None, LISTEN, "A PEM file with the certificate's key.", Path)
    auth_env: str | None = _set(
        None, LISTEN, "The environment variable with the token that clients must send.", metavar="NAME"
    )
    workers: int = _set(1, LISTEN, "How many processes answer.", int)
    max_connections: int = _set(256, LIMITS, "The most clients at once.", int, False)
    client_timeout: float = _set(
        30.0,
        LIMITS,
        "Seconds that a client has to send a request, to read its answer, and may be idle.",
        float,
        False,
    )
    drain: float = _set(
        0.0,
        LIMITS,
        "Seconds to go on for when stopped, as not ready, until nobody is sent here any more.",
        float,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        validation.count("--max-connections", self.max_connections, 1)
        validation.number("--client-timeout", self.client_timeout, "a number above 0", *ABOVE_ZERO)
        validation.number("--drain", self.drain, "a number of at least 0", *NOT_NEGATIVE)
        validation.count("--port", self.port, 0, 65535)
        if self.grpc_port is not None:
            validation.count("--grpc-port", self.grpc_port, 0, 65535)
        alone = self.shadow is not None or self.fallback is not None
        validation.count("--workers", self.workers, 1, 1 if alone else 1024)
        if (self.tls_cert is None) != (self.tls_key is None):
            raise SettingError("--tls-cert and --tls-key", "both or none", "one")
        self.tls_context()  # so that files that are no certificate are found out at once
        if self.auth_env is not None:
            token = os.environ.get(self.auth_env, "").strip()
            if not token:
                found = f"{self.auth_env}, which is empty"
                raise SettingError("--auth-env", "an environment variable that holds a token", found)
            object.__setattr__(self, "token", token)

    @property
    def address(self) -> Address:
        """The address to listen on."""
        return Address(self.host, self.port, "http" if self.tls_cert is None else "https")

    def tls_context(self) -> ssl.SSLContext | None:
        """The certificate and its key as a server takes them, if there are any."""
        if self.tls_cert is None or self.tls_key is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(self.tls_cert, self.tls_key, password=lambda: "")  # or it asks on the terminal
        except (OSError, ssl.SSLError) as error:
            expected = "PEM files of a certificate and its key, which has no password"
            raise SettingError("--tls-cert and --tls-key", expected, str(error)) from error
        return context


def defaults() -> dict[str, Any]:
    """The default of every option of a service."""
    return {part.name: part.default for part in fields(ServiceSettings)}


def serve_options() -> list[tuple[Field[Any], ServeOption]]:
    """Every option of the command, in the order of their groups."""
    found = [(part, part.metadata["option"]) for part in fields(ServeSettings) if "option" in part.metadata]
    order = (MODEL, LISTEN, LIMITS, ORIGINAL, CASCADE)
    return sorted(found, key=lambda one: order.index(one[1].group))
