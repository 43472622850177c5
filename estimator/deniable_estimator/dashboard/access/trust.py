"""Whom to believe: wrong tokens are counted for each network, slowed, and told to the operator, and
people whom a reverse proxy has signed in are named in a header of each request.

A right token is never refused, whatever else came from its network: tokens have 256 bits, so that
no rate of guessing finds one, and a stranger must not be able to lock anybody out. Only the
proxies that the settings list are believed, by the address that the connection comes from. From
anybody else the header is worth nothing: it is ignored and counted.
"""

from __future__ import annotations

import ipaddress
import math
import threading
import time
import unicodedata
from collections.abc import Callable, Mapping

from flask import Request

from deniable.protocol.coded_message import counted
from deniable_collector.operation.events import tell
from deniable_collector.serving.admission import NetworkRate, client_address
from deniable_estimator.dashboard.access.people import Person, check_name, role_of
from deniable_estimator.dashboard.problems import ApiProblem
from deniable_estimator.dashboard.settings import UNIX, DashboardSettings
from deniable_estimator.messages import message

_RATE = "10/minute"
"""So many wrong tokens of a network (/24, /48) are told that they are wrong."""

_STRETCH = 60.0
"""Seconds whose wrong tokens are told as one number."""


class Incidents:
    """Counts what strangers can bring about, and tells it at 1, 10 and 100: whoever brings it about
    must not be able to fill the log. After `stretch` seconds it begins anew."""

    def __init__(
        self, event: str, stretch: float = math.inf, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._event, self._stretch, self._clock = event, stretch, clock
        self._lock = threading.Lock()
        self._ends, self._count = -math.inf, 0

    def count(self, member: str, told: str) -> None:
        """Count one. `told` says so, with {count} for their number, which is logged as `member`
        too, or with {requests}, which is "1 request" or "10 requests"."""
        with self._lock:
            if self._clock() >= self._ends:
                self._ends, self._count = self._clock() + self._stretch, 0
            self._count += 1
            count = self._count
        if str(count).rstrip("0") == "1":
            requests = counted(count, "request")
            tell(
                "warning",
                self._event,
                told.format(count=count, requests=requests),
                **{member: count},
            )


class Guesses:
    """Counts wrong tokens. `hops` reverse proxies in front are believed.

    The log has numbers alone: no token and no address.
    """

    def __init__(self, hops: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._hops = NetworkRate(_RATE, clock), hops
        self._incidents = Incidents("wrong-token", _STRETCH, clock)

    def wrong(self, request: Request) -> None:
        """Count a wrong token.

        Raises:
            ApiProblem: 429, as this network has shown too many.
        """
        told = "wrong tokens shown to the dashboard within a minute: {count}"
        self._incidents.count("wrong", told)
        forwarded = request.headers.get("X-Forwarded-For", "")
        address = client_address(request.environ.get("REMOTE_ADDR", ""), forwarded, self._hops)
        if self._rate.hit(address):
            return
        wait = math.ceil(self._rate.seconds_left())
        raise ApiProblem(
            429,
            "too-many-guesses",
            message("Too many wrong tokens"),
            message(
                "The token is wrong, as were too many from this network. Wait {seconds} s before "
                "you try another; the right one opens at any time.",
                seconds=wait,
            ),
            retry_after=wait,
        )


class ProxyHeaders:
    """How a proxy names people, as the settings say: the header with the name, the one with the
    role ("": the file of people has it), and the proxies' addresses. Without a name's header nobody
    is named."""

    def __init__(self, settings: DashboardSettings) -> None:
        self._user_header = settings.dashboard_user_header
        self._role_header = settings.dashboard_role_header
        proxies = settings.dashboard_proxies
        self._ignored, self._unknown = Incidents("person-not-believed"), Incidents("person-unknown")
        self._unix = UNIX in proxies
        self._networks = [ipaddress.ip_network(each) for each in proxies if each != UNIX]

    def person(self, request: Request, people: Mapping[str, Person]) -> Person | None:
        """The person whom a believed proxy names; None if there is none.

        Raises:
            ApiProblem: it names one without a role, or in a form that is no name. Two headers of
                one name arrive joined by a comma, which no name and no role has.
        """
        if not self._user_header:
            return None
        shown = request.headers.get(self._user_header)
        role_shown = request.headers.get(self._role_header) if self._role_header else None
        if shown is None and role_shown is None:
            return None
        if not self._believes(request.environ.get("REMOTE_ADDR", "")):
            self._ignored.count(
                "requests",
                "{requests} named a person in "
                f"{self._user_header} and did not come from a proxy in DENIABLE_DASHBOARD_PROXIES: "
                "the header was ignored",
            )
            return None
        name = _text(shown or "")
        listed = people.get(name)
        role = listed.role if listed else None
        if self._role_header:
            role = role_of(_text(role_shown or ""))
        if check_name(name) or role is None:
            advice = "list the person with `deniable dashboard people add`"
            if self._role_header:
                advice = f"the proxy must send reader, analyst or operator in {self._role_header}"
            told = f"{{requests}} of a proxy named somebody without a role: {advice}"
            self._unknown.count("requests", told)
            raise ApiProblem(
                403,
                "unknown-person",
                message("Forbidden"),
                message(
                    "You are signed in at the proxy, and have no role at this dashboard. Ask its "
                    "operator for one."
                ),
            )
        return Person(name, role, by_proxy=True, entry=listed.entry if listed else None)

    def _believes(self, address: str) -> bool:
        """Whether the connection comes from a listed proxy. A socket file has no address."""
        if not address:
            return self._unix
        try:
            found = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        return any(found in network for network in self._networks)


def _text(header: str) -> str:
    """A header as UTF-8 text in normal form C; what is not UTF-8 is no name."""
    try:
        text = header.encode("latin-1").decode("utf-8")
    except (UnicodeEncodeError, UnicodeDecodeError):
        return ""
    return unicodedata.normalize("NFC", text)
