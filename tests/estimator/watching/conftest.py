"""Rules, and a store that is filled day by day."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from deniable_estimator.analyses import sample_tally
from deniable_estimator.watching.run import Watcher

FIRST = date(2026, 10, 5)
"""A Monday."""


def day(number):
    """The day of that number, from 0."""
    return (FIRST + timedelta(number)).isoformat()


def noon(number):
    """Noon of the day after that day: it has ended 12 hours ago."""
    when = datetime.combine(FIRST + timedelta(number + 1), datetime.min.time(), UTC)
    return when.timestamp() + 43_200


@pytest.fixture
def report(registry, fill):
    """Store a day of the browser metric: report(number, firefox=0.4, devices=20_000)."""
    rng = np.random.default_rng(5)
    scheme = registry["browser"].scheme

    def store(number, firefox=0.4, devices=20_000):
        shares = np.array([firefox, (1 - firefox) / 2, (1 - firefox) / 4, (1 - firefox) / 4])
        counts = rng.multinomial(devices, shares)
        tally = sample_tally(scheme, counts, rng, metric="browser", window=day(number))
        fill(tally, scheme)

    return store


class RenewedWatcher(Watcher):
    """A watcher that reads the store anew in each run, as `deniable watch` does."""

    def run(self, *run, **options):
        watcher = replace(self, reader=self.reader.renewed())
        return super(RenewedWatcher, watcher).run(*run, **options)


class Hook:
    """A server that keeps what is posted to it, and responds with `status`."""

    def __init__(self):
        self.status = 200
        self.bodies: list[bytes] = []
        hook = self

        class _Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                hook.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(hook.status)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/secret-path"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def hook():
    """A webhook's server on this machine."""
    made = Hook()
    yield made
    made.close()
