"""Whether a server can listen where it is told to: gunicorn tries for some seconds, and then says
little."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Mapping
from pathlib import Path

_INHERITED = ("LISTEN_FDS", "GUNICORN_FD")
"""Variables of a server that gets its sockets from systemd, or from its predecessor."""


def cannot_listen(addresses: Mapping[str, str]) -> list[str]:
    """What is wrong with these addresses (`settings.parse_bind`), by the name of their setting.

    Port 0 and an empty address are fine.
    """
    if any(name in os.environ for name in _INHERITED):
        return []
    return [
        f"{name} {why}" for name, address in addresses.items() if address and (why := _why(address))
    ]


def _why(address: str) -> str:
    if address.startswith("unix:"):
        folder = Path(address.removeprefix("unix:")).parent
        return "" if folder.is_dir() else "names a socket in a folder that is not there"
    host, _, port = address.rpartition(":")
    try:
        family, kind, _, _, place = socket.getaddrinfo(
            host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind) as probe:
            # As gunicorn binds: connections that have just ended are in nobody's way.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except socket.gaierror:
        return "names a host that is not known"
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return f"names port {port}, where another program listens: end it, or take another port"
        if error.errno == errno.EADDRNOTAVAIL:
            return "names an address that this machine does not have"
        if error.errno == errno.EACCES:
            return f"names port {port}, where this user may not listen"
        return f"cannot be listened at: {os.strerror(error.errno or 0).lower()}"
    return ""
