"""Settings from DENIABLE_* variables of the environment, each declared once, in `Settings`.

A variable NAME can be given as NAME_FILE instead: the path of a file that holds the
value, which is how secrets are mounted. An empty variable counts as not set.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar, Self

from deniable import DeniableError

OFF = "off"
"""The rate that limits nobody."""

ROOM = 64
"""How many connections beyond a limit get an answer at the same time; others are cut off. As many
connections are reserved for the private address."""

_PREFIX = "DENIABLE_"

_SURE, _LIKELY = 0.8, 0.6
"""How much a name must be like a setting's to be taken for it, and to be asked about
(`difflib.get_close_matches`)."""

_UNITS = {"": 1, "KIB": 1 << 10, "MIB": 1 << 20}


class SettingsError(DeniableError):
    """Settings have mistakes; `problems` says for each what to do."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(["settings to correct:", *(f"  {each}" for each in problems)]))


def one_path(value: str) -> str:
    """The path of a registry.

    Raises:
        ValueError: it is the registry itself.
    """
    if "\n" in value:
        raise ValueError(
            "must be one path: a file that DENIABLE_REGISTRY_FILE names holds the registry's path, "
            "not the registry"
        )
    return value


def parse_bind(value: str) -> str:
    """An address to listen at, as it was written.

    Raises:
        ValueError: it is none.
    """
    found = re.fullmatch(r"(?:\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):(\d{1,5})", value)
    if (found and int(found[1]) < 1 << 16) or re.fullmatch(r"unix:\S+", value):
        return value
    raise ValueError("must be host:port, [v6]:port or unix:/path")


def matching(pattern: str, told: str) -> Callable[[str], str]:
    """Takes what a regular expression matches, and says of all else what it must be."""

    def parse(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(told)
        return value

    return parse


def _private_bind(value: str) -> str:
    if re.fullmatch(r"(?:\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):[1-9]\d{0,4}", parse_bind(value)):
        return value
    raise ValueError("must be host:port or [v6]:port, with a port of its own")


def whole(lowest: int, highest: int, least: int = 1, why: str = "") -> Callable[[str], int]:
    """Takes a whole number in these bounds; one above 0 must be at least `least`, as `why` says."""

    def parse(value: str) -> int:
        # A dozen digits are enough for every setting; longer input is refused cheaply.
        if not re.fullmatch(r"[0-9]{1,12}", value) or not lowest <= int(value) <= highest:
            raise ValueError(f"must be a whole number from {lowest} to {highest}")
        if 0 < int(value) < least:
            raise ValueError(why)
        return int(value)

    return parse


def _size(value: str) -> int:
    found = re.fullmatch(r"([0-9]{1,9}) ?(|KiB|MiB)", value, re.IGNORECASE)
    if not found or not 1024 <= (size := int(found[1]) * _UNITS[found[2].upper()]) <= 1 << 28:
        raise ValueError("must be a size from 1 KiB to 256 MiB, like 1048576 or 1 MiB")
    return size


def port_of(address: str) -> int:
    """The port of a HOST:PORT; 0, which no connection has, of none."""
    return int(address.rpartition(":")[2] or 0)


rate_of = matching(
    rf"{OFF}|[1-9][0-9]{{0,8}}/(?:second|minute|hour|day)",
    f"must be a number for each second, minute, hour or day, like 600/minute, or {OFF}",
)
"""A rate, as it was written."""


def _listed(value: str) -> list[str]:
    """The items between commas and line ends; a line that begins with # is a comment."""
    lines = (line for line in value.splitlines() if not line.lstrip().startswith("#"))
    return [word for line in lines for each in line.split(",") if (word := each.strip())]


def _origins(value: str) -> tuple[str, ...]:
    origins = _listed(value)
    if origins == ["*"]:
        return ("*",)
    origin = re.compile(r"[a-z][a-z0-9+.-]*://[a-z0-9.:\[\]-]+")
    if not origins or not all(origin.fullmatch(each) for each in origins):
        raise ValueError(
            "must be * alone, or origins in lower case without a path, like https://app.example"
        )
    return tuple(origins)


def _keys(value: str) -> tuple[bytes, ...]:
    """The SHA-256 of each key; the keys themselves are not stored."""
    keys = _listed(value)
    # What RFC 6750 allows in an Authorization header.
    if not keys or not all(re.fullmatch(r"[A-Za-z0-9._~+/-]{16,256}=*", each) for each in keys):
        raise ValueError("must be keys of 16 to 256 letters, digits and - . _ ~ + / each")
    return tuple(hashlib.sha256(each.encode()).digest() for each in keys)


def setting(
    default: Any, parse: Callable[[str], Any], summary: str, *, secret: bool = False
) -> Any:
    """A field of settings: `parse` reads its text, or raises ValueError with what it must be."""
    return field(default=default, repr=not secret, metadata={"parse": parse, "help": summary})


@dataclass(frozen=True)
class Settings:
    """How a collector runs. Each field is the variable DENIABLE_ and its name in capitals.

    `others` are names that the same environment may hold for others: the dashboard, the SDK
    (DEV, DISABLED), `deniable doctor` (INGEST_KEY), a relay (RELAY_), `deniable release`
    (RELEASE_) and the tests (REQUIRE_ALL).
    """

    others: ClassVar[re.Pattern[str]] = re.compile(
        "DASHBOARD_.*|PUBLIC_URL|API_TOKENS|FAKES|ALARM_LEVEL|CANDIDATES_DIR|DATA|BOARDS|DEV|DISABLED|INGEST_KEY|REQUIRE_ALL"
        "|RELAY_(GATEWAY|BIND|KEY|TIMEOUT)|RELEASES|RELEASE_(BUDGET|DELTA)|SHARE_RELEASES"
    )

    registry: str = setting("metrics.toml", one_path, "path of the registry")
    store: str = setting(
        "sqlite:///deniable.db",
        str,
        "where the tallies are: sqlite:///file.db, redis://host:port/0, rediss://, unix://, "
        "or redis+cluster://host:port,host:port",
        secret=True,
    )
    redis_prefix: str = setting(
        "deniable",
        matching("[A-Za-z0-9_.:-]{1,64}", "must be up to 64 letters, digits and . _ : -"),
        "what every key in Redis begins with",
    )
    shards: int = setting(
        1, whole(1, 1024), "shards of a new store in Redis; cannot change once it is in use"
    )
    redis_password: str = setting(
        "", str, "password of the user whom Redis's address names, if it has none", secret=True
    )
    redis_replicas: int = setting(
        0, whole(0, 16), "replicas that must have a batch before it is acknowledged"
    )
    keep_days: int = setting(
        0,
        # A window that is dropped while it accepts reports would start again at zero.
        whole(0, 36_500, 8, "must be 0, or at least 8: windows take reports for six days"),
        "days after its end for which a window is kept; 0: for ever, else at least 8",
    )
    journal_seconds: int = setting(
        60,
        # With one second the journal would be cleared all the time.
        whole(0, 86_400, 2, "must be 0, or from 2 to 86400 seconds"),
        "seconds after which single commits must be gone from the store's journal; 0: the "
        "collector does not clear it",
    )
    bind: str = setting("127.0.0.1:8080", parse_bind, "host:port or unix:/path to listen at")
    workers: int = setting(2, whole(1, 256), "processes")
    max_body: int = setting(
        1 << 20,
        _size,
        "largest body, once it is decompressed; compressed it may have a sixteenth",
    )
    max_reports: int = setting(1000, whole(1, 1_000_000), "most reports in one batch")
    queue: int = setting(
        1 << 25, _size, "bytes of bodies that wait in one process; beyond that it responds with 503"
    )
    trusted_proxies: int = setting(
        0, whole(0, 10), "reverse proxies in front, whose X-Forwarded headers are believed"
    )
    metrics_bind: str = setting(
        "", _private_bind, "private host:port to serve /metrics at as well; empty: nowhere"
    )
    log_format: str = setting(
        "text", matching("text|json", "must be text or json"), "lines of the log: text or json"
    )
    request_timeout: int = setting(
        30, whole(1, 3600), "seconds in which a request must arrive whole"
    )
    keep_alive: int = setting(15, whole(1, 3600), "seconds for which an idle connection stays open")
    max_connections: int = setting(
        900,
        whole(1, 1_000_000),
        "most connections of one process; beyond that it responds with 503",
    )
    network_connections: int = setting(
        600,
        whole(1, 1_000_000),
        "most of these from a network (/24, /48); behind trusted proxies: any number",
    )
    rate: str = setting(
        "20/second",
        rate_of,
        "most batches from a network (/24, /48) to one process, and as many other requests, like "
        "600/minute; off: any number",
    )
    ingest_keys: tuple[bytes, ...] = setting(
        (), _keys, "keys of which a batch must carry one, as a list", secret=True
    )
    cors_origins: tuple[str, ...] = setting(
        (), _origins, "origins whose web pages may send batches, as a list, or *"
    )
    gateway_keys: str = setting(
        "", str, "file of a gateway's keys, for batches in two hops; empty: it is no gateway"
    )
    relay_keys: tuple[bytes, ...] = setting(
        (), _keys, "keys of relays, as a list: DENIABLE_RATE does not hold for them", secret=True
    )

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Self:
        """The settings from the environment.

        Raises:
            SettingsError: some have mistakes; all of these are listed.
        """
        environ = os.environ if environ is None else environ
        values: dict[str, Any] = {}
        problems = [told for told, sure in cls._unknown(environ) if sure]
        for each in fields(cls):
            name = _PREFIX + each.name.upper()
            try:
                text = look_up(name, environ)
                if text:
                    values[each.name] = each.metadata["parse"](text)
            except ValueError as error:
                problems.append(f"{name} {error}")
        if (private := values.get("metrics_bind", "")) and (
            private.rpartition(":")[2] == values.get("bind", cls.bind).rpartition(":")[2]
        ):
            problems.append(f"{_PREFIX}METRICS_BIND must be at another port than {_PREFIX}BIND")
        if problems:
            raise SettingsError(problems)
        return cls(**values)

    @classmethod
    def strangers(cls, environ: Mapping[str, str] | None = None) -> list[str]:
        """What to tell of variables that begin as settings do and are none; `from_env` refuses
        those that are nearly a setting's name."""
        environ = os.environ if environ is None else environ
        return [told for told, sure in cls._unknown(environ) if not sure]

    @classmethod
    def _unknown(cls, environ: Mapping[str, str]) -> Iterator[tuple[str, bool]]:
        """What to tell of each variable that is no setting, and whether one is surely meant."""
        known = [each.name.upper() for each in fields(cls)]
        for name in sorted(each for each in environ if each.startswith(_PREFIX)):
            bare = name.removesuffix("_FILE")
            short = bare.removeprefix(_PREFIX)
            if {name.removeprefix(_PREFIX), short} & {*known} or cls.others.fullmatch(short):
                continue
            near = get_close_matches(short, known, 1, _LIKELY)
            meant = _PREFIX + near[0] + name[len(bare) :] if near else ""
            if get_close_matches(short, known, 1, _SURE):
                yield f"{name} is no setting: write {meant}", True
            else:
                asked = meant and f": did you mean {meant}?"
                yield f"{name} is no setting, and is ignored{asked}", False

    @property
    def addresses(self) -> dict[str, str]:
        """Where the collector listens, by the variable that says so."""
        return {f"{_PREFIX}BIND": self.bind, f"{_PREFIX}METRICS_BIND": self.metrics_bind}

    @property
    def max_capsule(self) -> int:
        """The most bytes of a capsule: padding may double a batch, and 1 KiB has its key, its tag
        and the header of its request."""
        return 2 * self.max_body + (1 << 10)

    @classmethod
    def heeded(cls) -> list[Field[Any]]:
        """The fields that this server heeds."""
        return [*fields(cls)]

    def in_force(self) -> dict[str, Any]:
        """Every variable with its value, without those that may hold a secret."""
        return {
            _PREFIX + each.name.upper(): getattr(self, each.name)
            for each in self.heeded()
            if each.repr
        }

    @classmethod
    def table(cls) -> list[tuple[str, Any, str]]:
        """Every variable with its default and what it means."""
        return [
            (_PREFIX + each.name.upper(), each.default, each.metadata["help"])
            for each in cls.heeded()
        ]


def look_up(name: str, environ: Mapping[str, str]) -> str:
    """The value of a variable, from itself or from the file that NAME_FILE names; "" for none.

    Raises:
        ValueError: both are set, or the file holds no text.
    """
    text, path = environ.get(name, ""), environ.get(f"{name}_FILE", "")
    if not path:
        return text
    if text:
        raise ValueError(f"and {name}_FILE are both set: keep one of them")
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ValueError(f"cannot be read from the file in {name}_FILE: {reason}") from None
    if not text:
        # A lost secret must not disable the check that it belongs to.
        raise ValueError(f"cannot be read from the file in {name}_FILE: it is empty")
    return text
