"""Ports for servers that cannot say which one they were given."""

from __future__ import annotations

import itertools
import os
import socket

_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_PORTS = itertools.count(20_000 + 150 * (_WORKER % 16))


def free_port() -> int:
    """A port that nobody listens at. The system gives none below 32,768 to anybody who does not
    name it, and each worker has a range of its own, so it is free until it is used."""
    for port in _PORTS:
        with socket.socket() as probe, socket.socket() as bus:
            try:
                probe.bind(("127.0.0.1", port))
                # A node of a cluster also listens 10,000 above.
                bus.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
        return port
    raise AssertionError("no port is free")
