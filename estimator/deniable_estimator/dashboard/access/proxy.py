"""People whom a reverse proxy has signed in, and names in a header of each request.

Only the proxies that the settings list are believed, by the address that the connection comes
from. From anybody else the header is worth nothing: it is ignored and counted.
"""

from __future__ import annotations

import ipaddress
import threading
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from flask import Request

from deniable_collector.operation.events import tell
from deniable_estimator.dashboard.access.people import Person, check_name
from deniable_estimator.dashboard.access.roles import role_of

UNIX = "unix"
"""What the list of proxies calls whoever connects to the dashboard's own socket file."""

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class UnknownPersonError(Exception):
    """A proxy that is believed names nobody who has a role."""


@dataclass
class ProxyHeaders:
    """How a proxy names people: the header with the name, the one with the role ("": the file of
    people has it), and the proxies' addresses. Without a name's header nobody is named."""

    user_header: str = ""
    role_header: str = ""
    proxies: Sequence[str] = ()
    _ignored: int = field(default=0, init=False)
    _unknown: int = field(default=0, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self) -> None:
        self._unix = UNIX in self.proxies
        self._networks: list[_Network] = [
            ipaddress.ip_network(each) for each in self.proxies if each != UNIX
        ]

    def person(self, request: Request, people: Mapping[str, Person]) -> Person | None:
        """The person whom a believed proxy names; None if there is none.

        Raises:
            UnknownPersonError: it names one without a role, or in a form that is no name. Two
                headers of one name arrive joined by a comma, which no name and no role has.
        """
        if not self.user_header:
            return None
        shown = request.headers.get(self.user_header)
        role_shown = request.headers.get(self.role_header) if self.role_header else None
        if shown is None and role_shown is None:
            return None
        if not self._believes(request.environ.get("REMOTE_ADDR", "")):
            self._count_ignored()
            return None
        name = _text(shown or "")
        role = role_of(_text(role_shown or "")) if self.role_header else None
        if not self.role_header and name in people:
            role = people[name].role
        if check_name(name) or role is None:
            self._count_unknown()
            raise UnknownPersonError
        return Person(name, role, by_proxy=True)

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

    def _count_ignored(self) -> None:
        with self._lock:
            self._ignored += 1
            count = self._ignored
        if _power_of_ten(count):
            tell(
                "warning",
                "person-not-believed",
                f"{count} requests named a person in {self.user_header} and did not come from a "
                "proxy in DENIABLE_DASHBOARD_PROXIES: the header was ignored",
                requests=count,
            )

    def _count_unknown(self) -> None:
        with self._lock:
            self._unknown += 1
            count = self._unknown
        if _power_of_ten(count):
            tell(
                "warning",
                "person-unknown",
                f"{count} requests of a proxy named somebody without a role: list the person with "
                "`deniable dashboard people add`, or let the proxy send reader, analyst or "
                "operator",
                requests=count,
            )


def _text(header: str) -> str:
    """A header as UTF-8 text in normal form C; what is not UTF-8 is no name."""
    try:
        text = header.encode("latin-1").decode("utf-8")
    except (UnicodeEncodeError, UnicodeDecodeError):
        return ""
    return unicodedata.normalize("NFC", text)


def _power_of_ten(number: int) -> bool:
    return str(number).rstrip("0") == "1"
