"""Ports for servers that cannot say which one they were given, and waiting for them."""

import itertools
import os
import socket
import time
from contextlib import ExitStack

_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_PORTS = itertools.count(20_000 + 150 * (_WORKER % 16))
_HELD = ExitStack()


def free_port():
    """A port that stays this process's own until it ends.

    The system gives none below 32,768 to anybody who does not name it. A socket that does not
    listen holds it, so nobody else finds it free; but a server that sets SO_REUSEADDR, as Redis,
    nginx and gunicorn do, can listen there.
    """
    for port in _PORTS:
        with ExitStack() as held:
            try:
                # A node of a cluster also listens 10,000 above.
                for each in (port, port + 10_000):
                    holder = held.enter_context(socket.socket())
                    holder.bind(("127.0.0.1", each))
                    # Only now: with it, this bind would not see that somebody else holds the port.
                    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            except OSError:
                continue
            _HELD.push(held.pop_all())
        return port
    raise AssertionError("no port is free")


def until(condition, complaint=""):
    """The first true answer of a condition that another thread or process makes true: it is given
    five minutes."""
    deadline = time.monotonic() + 300
    while not (found := condition()):
        assert time.monotonic() < deadline, complaint or condition
        time.sleep(0.01)
    return found
