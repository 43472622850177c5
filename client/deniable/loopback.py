"""Addresses of this machine, the only ones that development mode uses.

The check is a strict form, not a list of tricks: a spelling that some resolver or proxy could
read otherwise (decimal or short IPv4 addresses, IPv6-mapped ones, names, user names) is refused.
"""

from __future__ import annotations

import re
import socket
from ipaddress import IPv4Address, ip_address

_ADDRESS = re.compile(
    r"http://(?P<host>[a-z0-9.]+|\[::1\])(?::(?P<port>[1-9][0-9]{0,4}))?/?", re.ASCII
)
_ADVICE = "write it as `deniable dev` prints it, like http://127.0.0.1:8099"


def loopback_address(address: str, name: str) -> str:
    """The address as http://HOST:PORT, where HOST is 127.0.0.0/8 or [::1] as a number.

    `localhost` is looked up here, once, so that no later answer of a resolver can lead elsewhere.

    Args:
        address: what was given.
        name: what errors call it.

    Raises:
        ValueError: it is not the address of a server on this machine.
    """
    found = _ADDRESS.fullmatch(address)
    if found is None or not is_loopback_host(found["host"]):
        raise ValueError(
            f"{name} must be an address of this machine, with http:// and without a name or path, "
            f"because development mode sends nothing elsewhere: {_ADVICE}"
        )
    port = int(found["port"] or 80)
    if port >= 1 << 16:
        raise ValueError(f"{name} names the port {port}, which does not exist: {_ADVICE}")
    host = _looked_up(name) if found["host"] == "localhost" else found["host"]
    return f"http://{host}:{port}"


def is_loopback_host(host: str) -> bool:
    """Whether a host, in lower case as it stands in an address, is always this machine."""
    if host in ("localhost", "[::1]"):
        return True
    try:
        # No names: 127.0.0.1.example.com is one.
        return isinstance(found := ip_address(host), IPv4Address) and found.is_loopback
    except ValueError:
        return False


def _looked_up(name: str) -> str:
    """The number of `localhost`."""
    try:
        answers = socket.getaddrinfo("localhost", None, type=socket.SOCK_STREAM)
    except OSError:
        answers = []
    numbers = [ip_address(str(answer[4][0])) for answer in answers]
    if not numbers or not all(each.is_loopback for each in numbers):
        raise ValueError(f"{name} says localhost, which is not this machine here: {_ADVICE}")
    # `deniable dev` listens at an IPv4 address.
    return next((str(each) for each in numbers if each.version == 4), "[::1]")
