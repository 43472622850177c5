"""Whatever an app, a clock and a network do in any order, the promises of the device hold."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections import Counter
from fractions import Fraction
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from deniable import Client, Registry, TransportError
from deniable.device.ledger import Ledger
from deniable.device.transport import Reply

from .conftest import metrics_toml

CHOICE = {"type": "category", "values": ["a", "b", "c"], "expires": "2027-03-01"}
SOON = {"aggregate": "first", "answer": "at_once", "epsilon": 0.5}
REGISTRY = metrics_toml(
    "lifetime_epsilon = 9.0",
    daily={**CHOICE, "aggregate": "any", "lifetime_epsilon": 4.0},
    weekly={"window": "week", "expires": "2027-03-01", "epsilon": 0.7, "lifetime_epsilon": 2.1},
    sampled={"sample_rate": 0.5},
    once={**CHOICE, **SOON, "lifetime_epsilon": 2.0},
    once_a_week={**SOON, "window": "week", "sample_rate": 0.5},
    kept={
        "longitudinal": "memoize",
        "epsilon": 0.1,
        "memo_epsilon": 0.2,
        "lifetime_epsilon": 0.3,
    },
)
START = 1_798_761_600.0  # 2027-01-01T00:00:00Z


class Network:
    """Loses requests, loses replies, refuses and acknowledges; remembers what it counted."""

    def __init__(self):
        self.bodies: dict[str, bytes] = {}
        self.counted: dict[str, bytes] = {}
        self.mood = "fine"

    def send(self, body):
        batch = json.loads(body)["batch"]
        assert self.bodies.setdefault(batch, body) == body, "a retry sent other bytes"
        if self.mood in ("fine", "reply_lost"):
            self.counted.setdefault(batch, body)
        if self.mood == "fine":
            return Reply(202, json.dumps({"batch": batch, "rejected": []}).encode())
        if self.mood == "refusing":
            return Reply(400)
        if self.mood == "busy":
            return Reply(503, retry_after="30")
        raise TransportError(self.mood)


class DeviceLife(RuleBasedStateMachine):
    """One device's life; its promises are checked after every step."""

    @initialize()
    def begin(self):
        self.folder = tempfile.mkdtemp()
        self.registry = Registry.parse(REGISTRY)
        self.network = Network()
        self.now = START
        self.bits = random.Random(1)
        self.client = self.make()

    def make(self):
        return Client(
            self.registry,
            state_dir=self.folder,
            clock=lambda: self.now,
            bits=self.bits.getrandbits,
            transport=self.network,
            background=False,
            on_trouble=self.check_trouble,
            consent=True,
        )

    def check_trouble(self, error):
        assert isinstance(error, TransportError), error

    @rule(name=st.sampled_from(["daily", "once"]), value=st.sampled_from("abc"))
    def record_category(self, name, value):
        self.client.record(name, value)

    @rule(name=st.sampled_from(["weekly", "sampled", "once_a_week", "kept"]), value=st.booleans())
    def record_boolean(self, name, value):
        self.client.record(name, value)

    @rule(hours=st.integers(-400, 400))
    def set_clock(self, hours):
        self.now = max(START, self.now + 3600 * hours)

    @rule(hours=st.sampled_from([24, 48, 24 * 7]))
    def wait(self, hours):
        self.now += 3600 * hours

    @rule(mood=st.sampled_from(["fine", "reply_lost", "request_lost", "refusing", "busy"]))
    def flush(self, mood):
        self.network.mood = mood
        self.client.flush()

    @rule()
    def restart(self):
        self.network.mood = "fine"
        self.client.close()
        self.client = self.make()

    @rule()
    def change_their_mind(self):
        self.client.opt_out()
        self.client.opt_in()

    @rule()
    def erase(self):
        self.client.erase()

    @invariant()
    def promises(self):
        if not hasattr(self, "client"):
            return
        with self.client._state.transaction() as connection:
            ledger = Ledger(connection)
            spent = {metric.name: ledger.spent(metric.name) for metric in self.registry}
            memos = ledger.memos("kept")
            total = ledger.spent()
            kept = {name for (name,) in connection.execute("SELECT metric FROM open_values")}
        sent: Counter[tuple[str, str]] = Counter()
        cost: Counter[str] = Counter()
        for body in self.network.bodies.values():
            for report in json.loads(body)["reports"]:
                sent[report["metric"], report["window"]] += 1
                cost[report["metric"]] += 1
        assert all(count == 1 for count in sent.values()), "two reports for one window"
        for metric in self.registry:
            epsilon = Fraction(metric.scheme.mechanism.epsilon)
            limited = memos if metric.name == "kept" else spent[metric.name]
            assert limited <= Fraction(metric.lifetime_epsilon)
            assert spent[metric.name] >= cost[metric.name] * epsilon, "sent and not in the ledger"
        assert total <= 9
        assert kept <= {"daily", "weekly", "sampled", "kept"}, (
            "a value that is answered at once was kept"
        )

    def teardown(self):
        if hasattr(self, "client"):
            self.network.mood = "fine"
            self.client.close()
            shutil.rmtree(self.folder)


def test_promises_hold_in_any_order():
    """Never two reports for a metric and window, never other bytes under a batch id, spending
    never above a lifetime and never below what left the device."""
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        DeviceLife,
        settings=settings(
            max_examples=15,
            stateful_step_count=40,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_the_machine_reaches_exhaustion():
    """The rules above can spend a lifetime: without that the promises would be empty."""
    machine: Any = DeviceLife()
    machine.begin()
    for _ in range(12):
        machine.record_category("daily", "a")
        machine.wait(24)
        machine.flush("fine")
    machine.promises()
    assert len(machine.network.counted) == 4
    machine.teardown()
