"""The dashboard's settings: the collector's, because both read one store, and its own."""

from __future__ import annotations

import ipaddress
import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import deniable_collector.settings
from deniable_collector.settings import SettingsError, parse_bind, rate_of, setting, whole
from deniable_estimator.analyses.anomalies import ALARM_LEVEL
from deniable_estimator.analyses.base import FAKES
from deniable_estimator.asking.listed import MOST_STRINGS
from deniable_estimator.dashboard.access.tokens import parse_tokens
from deniable_estimator.files import CheckedFileError
from deniable_estimator.privacy.outsider import MOST_DELTA, SMALLEST_DELTA

_HARD = 25
"""A token must be as hard to guess as so many random decimal digits, by the estimate of zxcvbn.
Who has a cookie can test guesses without asking the dashboard, as cookies are signed with a key
that is derived from the token."""

_JUDGED = 64
"""So many characters of it are looked at."""

_MAKE = "python3 -c 'import secrets; print(secrets.token_urlsafe(32))'"

_TAKEN = frozenset(
    {
        *("accept", "accept-encoding", "accept-language", "authorization", "connection"),
        *("content-length", "content-type", "cookie", "forwarded", "host", "origin", "referer"),
        *("sec-fetch-site", "user-agent", "x-forwarded-for", "x-forwarded-host"),
        "x-forwarded-proto",
    }
)
"""Headers that have another meaning, and that clients send by themselves."""

UNIX = "unix"
"""What the list of proxies calls whoever connects to the dashboard's own socket file."""

_UNITS = {"": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}


def _token(value: str) -> str:
    # It brings lists of words, which only this needs.
    from zxcvbn import zxcvbn  # type: ignore[import-untyped]

    # Its work grows with the square of the length, and what follows can only make it harder.
    if zxcvbn(value[:_JUDGED])["guesses_log10"] < _HARD:
        raise ValueError(f"can be guessed: make a random one with `{_MAKE}`")
    return value


def _public(value: str) -> str:
    if not re.fullmatch(r"https?://(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?", value):
        raise ValueError("must be an address without a path, like https://deniable.acme.example")
    return value


def _switch(value: str) -> bool:
    if value not in ("0", "1"):
        raise ValueError("must be 1 or 0")
    return value == "1"


def _bytes(value: str) -> int:
    found = re.fullmatch(r"([0-9]{1,12}) ?(|KiB|MiB|GiB)", value, re.IGNORECASE)
    if not found or not 1024 <= (size := int(found[1]) * _UNITS[found[2].lower()]) <= 1 << 40:
        raise ValueError("must be a size from 1 KiB to 1024 GiB, like 1048576 or 256 MiB")
    return size


def _memory(value: str) -> int:
    size = _bytes(value)
    if size < 1 << 29:
        raise ValueError("must be at least 512 MiB: less is not enough to begin with")
    return size


def _tokens(value: str) -> str:
    try:
        parse_tokens(value)
    except CheckedFileError as error:
        told = [f"{each.where}: {each.message}".removeprefix(": ") for each in error.problems]
        raise ValueError("; ".join(told)) from None
    return value


def _header(value: str) -> str:
    # Servers may take an underscore for a hyphen, so that a sender could name the header too.
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{0,63}", value) or value.lower() in _TAKEN:
        raise ValueError(
            "must be the name of a header of its own, in letters, digits and hyphens, like "
            "X-Forwarded-User"
        )
    return value


def _proxies(value: str) -> tuple[str, ...]:
    listed = value.replace(",", " ").split()
    for each in listed:
        try:
            fine = each == UNIX or ipaddress.ip_network(each).prefixlen > 0
        except ValueError:
            fine = False
        if not fine:
            raise ValueError(
                "must be addresses or networks of your proxies, like 127.0.0.1 10.1.2.0/24, or "
                "unix for whoever connects to the dashboard's socket file"
            )
    return tuple(listed)


def _sign_out(value: str) -> str:
    if not re.fullmatch(r"(?:https?://[a-z0-9.-]+(?::[0-9]{1,5})?)?/[!-~]{0,200}", value) or (
        value.startswith("//")
    ):
        raise ValueError("must be a path or an address, like /oauth2/sign_out")
    return value


def _origins(value: str) -> str:
    origins = value.replace(",", " ").split()
    # No wildcard, because anybody could own a matching host.
    if not all(re.fullmatch(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?", each) for each in origins):
        raise ValueError("must be origins like https://wiki.acme.example, with spaces between")
    return " ".join(origins)


def _decimal(lowest: float, highest: float, told: str) -> Callable[[str], float]:
    """Takes a number in these bounds; `told` says which ones there are."""

    def parse(value: str) -> float:
        # Decimals alone: float() also takes words like "inf".
        fine = re.fullmatch(r"(?=\.?[0-9])[0-9]{0,20}\.?[0-9]{0,40}(?:[eE][+-]?[0-9]{1,3})?", value)
        if not fine or not lowest <= (found := float(value)) <= highest:
            raise ValueError(told)
        return found

    return parse


_ABOVE_ZERO, _BELOW_ONE = math.ulp(0.0), math.nextafter(1.0, 0.0)
_part = _decimal(_ABOVE_ZERO, _BELOW_ONE, "must be a number between 0 and 1, like 0.01")
_epsilon = _decimal(_ABOVE_ZERO, sys.float_info.max, "must be an epsilon above 0, like 2.5")
_delta = _decimal(
    SMALLEST_DELTA, MOST_DELTA, "must be a probability from 1e-30 to 0.001, like 1e-6"
)


def _folder(value: str) -> str:
    if not Path(value).is_dir():
        raise ValueError("must be a folder that exists")
    return value


@dataclass(frozen=True)
class DashboardSettings(deniable_collector.settings.Settings):
    """How a dashboard runs. Each field is the variable DENIABLE_ and its name in capitals."""

    others: ClassVar[re.Pattern[str]] = re.compile("DEV|DISABLED|INGEST_KEY|REQUIRE_ALL")

    dashboard_token: str = setting("", _token, "what lets people in", secret=True)
    dashboard_bind: str = setting(
        "127.0.0.1:8090", parse_bind, "host:port or unix:/path to listen at"
    )
    request_timeout: int = setting(
        10, whole(1, 3600), "seconds in which a request must arrive whole, or a response be read"
    )
    keep_alive: int = setting(10, whole(1, 3600), "seconds for which an idle connection stays open")
    dashboard_rate: str = setting(
        "100/second", rate_of, "most requests from a network (/24, /48); off: any number"
    )
    dashboard_login_link: bool = setting(False, _switch, "1: /login?token=... signs in, once")
    dashboard_demo: str = setting(
        "", _public, "the demo's own page, to which the header links; `deniable demo` sets it"
    )
    data: str = setting(
        "",
        str,
        "the folder that keeps links, people, annotations and sessions; `deniable dashboard` makes "
        "deniable-data",
    )
    dashboard_user_header: str = setting(
        "", _header, "the header in which a proxy names the person who has signed in there"
    )
    dashboard_role_header: str = setting(
        "", _header, "the header in which it sends the role; none: the file of people has it"
    )
    dashboard_proxies: tuple[str, ...] = setting(
        (), _proxies, "addresses and networks of the proxies whose headers are believed, or unix"
    )
    dashboard_sign_out: str = setting(
        "", _sign_out, "where people whom a proxy has signed in sign out, like /oauth2/sign_out"
    )
    dashboard_link_days: int = setting(
        90, whole(1, 3660), "most days for which a shared link opens"
    )
    releases: str = setting(
        "", str, "the ledger of `deniable release`, whose releases pages show; none: no releases"
    )
    release_budget: float | None = setting(
        None,
        _epsilon,
        "the budget that `deniable release` keeps, so that pages show it; none: no limit",
    )
    release_delta: float = setting(
        1e-6, _delta, "the delta at which all releases together are accounted for"
    )
    share_releases: bool = setting(
        False, _switch, "1: links and frames of a metric show its newest release, never its sums"
    )
    public_url: str = setting(
        "", _public, "where people reach the dashboard, like https://deniable.acme.example"
    )
    dashboard_upload: int = setting(
        2 << 20, _bytes, "largest list of candidates that can be sent, in bytes"
    )
    dashboard_cache: int = setting(
        256 << 20, _bytes, "bytes of memory for estimates that were calculated"
    )
    dashboard_strings: int = setting(
        MOST_STRINGS, whole(1, 1_000_000), "most strings in a list of candidates that is sent"
    )
    dashboard_workers: int = setting(2, whole(1, 64), "processes for long calculations")
    # The most that any mechanism takes for as many strings as it can decode, and a fifth more.
    dashboard_memory: int = setting(
        3 << 29, _memory, "most memory of each of these processes, in bytes"
    )
    dashboard_seconds: int = setting(
        120,
        whole(1, 3600),
        "most seconds of CPU time for one list in one period, one plan or one file",
    )
    dashboard_queue: int = setting(
        32,
        whole(1, 1000),
        "most long calculations that wait or run; beyond that it responds with 503",
    )
    dashboard_queue_of_one: int = setting(
        8,
        whole(1, 1000),
        "most of these of one reader: a token of the API, a person, or a browser's session",
    )
    api_tokens: str = setting(
        "",
        _tokens,
        "tokens of the read API, in TOML; `deniable dashboard token new` writes their lines",
        secret=True,
    )
    dashboard_frame_ancestors: str = setting(
        "", _origins, "origins of the sites that may show charts in frames; none: none may"
    )
    fakes: float = setting(
        FAKES, _part, "the part of all reports that the poisoning budget takes to be fake"
    )
    alarm_level: float = setting(
        ALARM_LEVEL, _part, "how often honest reports of a metric may be called anomalous"
    )
    candidates_dir: str = setting(
        "", _folder, "a folder of METRIC.txt files: the strings to look for, one on each line"
    )
    boards: str = setting("", _folder, "a folder of boards: NAME.toml is shown at /boards/NAME")

    def kept(self, name: str) -> str:
        """The path of a file in the folder of data; "" without one."""
        return str(Path(self.data) / name) if self.data else ""

    def __post_init__(self) -> None:
        """Refuse the settings of a proxy that do not fit together.

        Raises:
            SettingsError: some are missing; all mistakes are listed.
        """
        user, role = self.dashboard_user_header, self.dashboard_role_header
        problems = []
        if user and not self.dashboard_proxies:
            problems.append(
                "DENIABLE_DASHBOARD_PROXIES is missing: name the proxies that may send "
                "DENIABLE_DASHBOARD_USER_HEADER, as anybody could"
            )
        if user and not (role or self.data):
            problems.append(
                "DENIABLE_DASHBOARD_USER_HEADER names people, and nothing says their roles: set "
                "DENIABLE_DASHBOARD_ROLE_HEADER, or DENIABLE_DATA to the folder of people.toml"
            )
        if user and user.lower() == role.lower():
            problems.append(
                "DENIABLE_DASHBOARD_ROLE_HEADER must be another header than "
                "DENIABLE_DASHBOARD_USER_HEADER"
            )
        without = {
            "DENIABLE_DASHBOARD_ROLE_HEADER": role,
            "DENIABLE_DASHBOARD_PROXIES": self.dashboard_proxies,
            "DENIABLE_DASHBOARD_SIGN_OUT": self.dashboard_sign_out,
        }
        if not user:
            problems += [
                f"{name} does nothing without DENIABLE_DASHBOARD_USER_HEADER: set both or none"
                for name, value in without.items()
                if value
            ]
        if problems:
            raise SettingsError(problems)
