"""A crowd of devices that sends batches until each is acknowledged, and knows what it sent."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
import urllib.error
import urllib.request
from collections import Counter

from tests.ports import until

from deniable.protocol import windows, wire


def fetch(url, body=None, **headers):
    """(status, body) of a request, over a connection of its own."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    request = urllib.request.Request(url, body, {"Content-Type": "application/json", **named})
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def post(address, body):
    """Send a batch; the status and the response's document.

    Raises:
        OSError, http.client.HTTPException, ValueError: no response came, or a broken one.
    """
    status, text = fetch(f"{address}/v1/reports", body)
    return status, json.loads(text)


class Devices:
    """`count` batches of yesterday's reports; `addresses` are asked in turn, in `senders` threads.

    A batch is sent again, unchanged, until it is answered with 202; each thread then rests
    for `pause` seconds, so that a run lasts long enough to be disturbed.
    """

    def __init__(self, registry, count, addresses, *, senders=8, pause=0.02):
        self._registry = registry
        self._pause = pause
        self.window = windows.window_at("day", time.time() - 86_400)
        draw = random.Random(7)
        self._truth = {name: Counter[int]() for name in ("browser", "dark_mode")}
        self.batches = []
        for _ in range(count):
            reports = []
            for _ in range(draw.randint(1, 5)):
                metric = registry[draw.choice(list(self._truth))]
                column = draw.randrange(metric.scheme.mechanism.rows[0].width)
                self._truth[metric.name][column] += 1
                fingerprint = metric.scheme.fingerprint
                reports.append(wire.SealedReport(metric.name, fingerprint, self.window, 0, column))
            self.batches.append(wire.encode_batch(wire.new_batch_id(), reports))
        self.addresses = addresses
        self.statuses: Counter[int | str] = Counter()
        self.acknowledged = 0
        self.done: list[bytes] = []
        """The batches that were acknowledged, in this order."""
        self._waiting = list(self.batches)
        self._lock = threading.Lock()
        self._mistakes: list[object] = []
        self._threads = [
            threading.Thread(target=self._work, args=(number,), daemon=True)
            for number in range(senders)
        ]

    def start(self):
        for thread in self._threads:
            thread.start()

    def disturb(self, times, trouble):
        """Make trouble so often, spread over the run by what was acknowledged, so that each
        time it meets traffic; then wait until every batch is acknowledged."""
        for turn in range(1, times + 1):
            self.wait(turn * len(self.batches) // (times + 1))
            assert self.acknowledged < len(self.batches), "the trouble came too late"
            trouble()
        self.finish()

    def wait(self, acknowledged):
        """Wait until so many batches are acknowledged."""
        until(lambda: self.acknowledged >= acknowledged, self.statuses)

    def finish(self):
        """Wait until every batch is acknowledged."""
        self.wait(len(self.batches))
        for thread in self._threads:
            thread.join(300)
        assert not self._mistakes, self._mistakes[:3]

    def check(self, store):
        """The tallies are exactly the reports of all batches: none lost, none counted twice."""
        for name, counts in self._truth.items():
            tally = store.tally(name, self._registry[name].scheme.fingerprint, [self.window])
            assert tally.reports == counts.total()
            cells = tally.rows[0].cells.tolist()
            assert cells == [counts[column] for column in range(len(cells))]

    def _work(self, number):
        turn = number
        while True:
            with self._lock:
                if not self._waiting:
                    return
                batch = self._waiting.pop()
            status: int | str = ""
            while status != 202:
                turn += 1
                try:
                    status, answer = post(self.addresses[turn % len(self.addresses)], batch)
                except (OSError, http.client.HTTPException, ValueError):
                    status, answer = "broken", {}
                with self._lock:
                    self.statuses[status] += 1
                if status != 202:
                    time.sleep(0.02)
            with self._lock:
                self.acknowledged += 1
                self.done.append(batch)
                if answer["rejected"]:
                    self._mistakes.append(answer)
            time.sleep(self._pause)
