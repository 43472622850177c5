"""Addresses that may be a collector's, and those of this machine, for development mode alone.

The check of this machine's is a strict form, not a list of tricks: a spelling that some resolver or
proxy could read otherwise (decimal or short IPv4 addresses, IPv6-mapped ones, names, user names) is
refused.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_ADDRESS = re.compile(
    r"http://(?P<host>[a-z0-9.]+|\[::1\])(?::(?P<port>[1-9][0-9]{0,4}))?/?", re.ASCII
)
_ADVICE = "write it as `deniable dev` prints it, like http://127.0.0.1:8099"


def check_endpoint(endpoint: str) -> None:
    """Refuse an address that cannot be a collector's.

    Raises:
        ValueError: it is not an http or https address of a host, has an impossible port, or has
            more than a path.
    """
    advice = "write it like https://telemetry.example.com"
    if not isinstance(endpoint, str):
        raise ValueError(f"the endpoint must be text, not {type(endpoint).__name__}: {advice}")
    try:
        parts = urlsplit(endpoint)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"the endpoint {endpoint!r} is no address ({error}): {advice}") from None
    if parts.scheme not in ("https", "http"):
        raise ValueError(
            "the endpoint must begin with https:// (or http://, which others on the way can read: "
            f"for networks of your own), not {endpoint!r}"
        )
    if not _is_host(parts.hostname) or port == 0 or not re.fullmatch(r"[^\s\\]+", endpoint):
        raise ValueError(f"the endpoint {endpoint!r} names no host that can be reached: {advice}")
    if not parts.path.isascii():
        raise ValueError(f"the path of {endpoint!r} must be ASCII: write other letters as %XX")
    if parts.username is not None:
        raise ValueError(f"the endpoint holds a name or password, which is not sent: {advice}")
    if parts.query or parts.fragment or endpoint.endswith(("?", "#")):
        raise ValueError(f"the endpoint {endpoint!r} has a query or fragment: {advice}")


def loopback_address(address: object, name: str) -> str:
    """The address as http://HOST:PORT, where HOST is 127.0.0.0/8 or [::1] as a number.

    `localhost` becomes 127.0.0.1, where `deniable dev` listens: no resolver is asked.

    Args:
        address: what was given.
        name: what errors call it.

    Raises:
        ValueError: it is not the address of a server on this machine.
        TypeError: it is no text.
    """
    if not isinstance(address, str):
        raise TypeError(
            f"{name} must be the address of `deniable dev`, or False; not {type(address).__name__}"
        )
    found = _ADDRESS.fullmatch(address)
    if found is None or not is_loopback_host(found["host"]):
        raise ValueError(
            f"{name} must be an address of this machine, with http:// and without a name or path, "
            f"because development mode sends nothing elsewhere: {_ADVICE}"
        )
    port = int(found["port"] or 80)
    if port >= 1 << 16:
        raise ValueError(f"{name} names the port {port}, which does not exist: {_ADVICE}")
    host = found["host"].replace("localhost", "127.0.0.1")
    return f"http://{host}:{port}"


def is_loopback_host(host: str) -> bool:
    """Whether a host, in lower case as it stands in an address, is always this machine."""
    if host in ("localhost", "[::1]"):
        return True
    from ipaddress import IPv4Address  # only development mode asks

    try:
        # No names: 127.0.0.1.example.com is one.
        return IPv4Address(host).is_loopback
    except ValueError:
        return False


def _is_host(name: str | None) -> bool:
    try:
        return 0 < len((name or "").encode("idna")) <= 253
    except UnicodeError:
        return False
