"""Exactly once, the hard way: a real collector is killed while devices send."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections import Counter

from hearsay import windows, wire

BATCHES = 1_000
SENDERS = 8
KILLS = 5


def test_killing_the_collector_neither_loses_nor_repeats(home, new_collector, registry, until):
    """1,000 batches are sent by 8 threads, each retried until it is acknowledged, while the
    whole collector is killed five times: the tallies equal the reports that were sent."""
    window = windows.window_at("day", time.time() - 86_400)
    draw = random.Random(7)
    truth = {name: Counter() for name in ("browser", "dark_mode")}
    batches = []
    for _ in range(BATCHES):
        answers = []
        for _ in range(draw.randint(1, 5)):
            metric = registry[draw.choice(list(truth))]
            column = draw.randrange(metric.scheme.mechanism.rows[0].width)
            truth[metric.name][column] += 1
            answers.append(wire.Answer(metric.name, metric.scheme.fingerprint, window, 0, column))
        batches.append(wire.encode_batch(wire.new_batch_id(), answers))

    collector = new_collector(**home.environ)
    waiting, lock = list(batches), threading.Lock()
    statuses: Counter[int | str] = Counter()
    duplicates, paused = [], threading.Event()

    def send():
        host = collector.address.removeprefix("http://")
        while True:
            with lock:
                if not waiting:
                    return
                batch = waiting.pop()
            while True:
                try:
                    connection = http.client.HTTPConnection(host, timeout=30)
                    connection.request(
                        "POST", "/v1/reports", batch, {"Content-Type": "application/json"}
                    )
                    with connection.getresponse() as response:
                        status, answer = response.status, json.load(response)
                except (OSError, http.client.HTTPException, ValueError):
                    status = "broken"
                finally:
                    connection.close()
                statuses[status] += 1
                if status == 202:
                    assert not answer["rejected"]
                    duplicates.append(answer["duplicate"])
                    break
                paused.wait(0.02)

    senders = [threading.Thread(target=send) for _ in range(SENDERS)]
    for sender in senders:
        sender.start()
    for kill in range(1, KILLS + 1):
        # Spread over the run by what was acknowledged, so that each kill meets traffic.
        goal = kill * BATCHES // (KILLS + 1)
        until(lambda goal=goal: len(duplicates) >= goal, "the senders make no progress", 300)
        assert len(duplicates) < BATCHES
        collector.kill()
        collector.start()
    for sender in senders:
        sender.join(300)
        assert not sender.is_alive()

    assert statuses[202] == BATCHES
    assert statuses["broken"] > 0, "no kill met a request"
    store = home.open()
    for name, counts in truth.items():
        tally = store.tally(name, registry[name].scheme.fingerprint, [window])
        assert tally.reports == counts.total()
        cells = tally.rows[0].cells.tolist()
        assert cells == [counts[column] for column in range(len(cells))]
