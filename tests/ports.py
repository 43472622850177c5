"""Ports for servers that cannot say which one they were given."""

from __future__ import annotations

import socket

_HELD: list[socket.socket] = []


def free_port() -> int:
    """A port of 127.0.0.1 that stays this process's own until it ends.

    The socket that holds it does not listen, so a server that sets SO_REUSEADDR, as Redis, nginx
    and gunicorn do, can; and the system gives the port to nobody else meanwhile.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    _HELD.append(holder)
    port: int = holder.getsockname()[1]
    return port
