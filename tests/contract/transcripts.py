"""Runs a transcript on a device, and says what every step gave.

A transcript is what drives one device: a stream of random bytes, and steps in their order.
`client/vectors/transcripts.json` holds them with what they must give;
docs/reference/protocol.md explains them.
A new case is written there by hand, without what its steps give, and taken with `--take`.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from deniable import Registry
from deniable.device.device import ACTIVE, Device
from deniable.device.ledger import Ledger
from deniable.device.outbox import OutgoingBatch
from deniable.device.state import State
from deniable.device.transport import Reply
from deniable.protocol.errors import SegmentError, TransportError

FILE = Path(__file__).parents[2] / "client" / "vectors" / "transcripts.json"

Step = dict[str, Any]

ASKED = frozenset(
    {
        *("at", "segments", "records", "take", "reply", "leave", "opt_out", "opt_in", "erase"),
        *("restart", "upgrade"),
    }
)
"""The keys that say what a step does; all others are what it gave."""


class Stream:
    """A source of bits over a stream of bytes, read as `system_bits` reads the system's."""

    def __init__(self, data):
        self.data = data
        self.drawn = bytearray()

    def __call__(self, count):
        size = (count + 7) >> 3
        taken = bytes(next(self.data) for _ in range(size))
        self.drawn += taken
        return int.from_bytes(taken, "little") >> (8 * size - count)


def seeded(name):
    """Bytes that look random and depend on the name alone, without end."""
    block = 0
    while True:
        yield from hashlib.sha256(f"{name} {block}".encode()).digest()
        block += 1


class Script:
    """A collector that replies as a step says."""

    def __init__(self):
        self.reply: Any = None

    def send(self, body):
        reply = self.reply
        if reply == "lost":
            raise TransportError("the reply was lost")
        if "rejected" in reply:
            batch = json.loads(body)
            rejected = [
                {"index": int(index), "reason": reason}
                for index, reason in reply["rejected"].items()
            ]
            document = {"batch": batch["batch"], "accepted": 0, "rejected": rejected}
            return Reply(202, json.dumps(document).encode())
        problem = reply.get("problem", "store-unavailable")
        after = reply.get("retry_after")
        return Reply(
            reply["status"],
            json.dumps({"type": f"urn:deniable:problem:{problem}"}).encode(),
            None if after is None else str(after),
        )


class Driver:
    """One device with its state in a folder, driven step by step."""

    def __init__(self, document, spread, bits, folder):
        self.spread, self.bits, self.folder = spread, bits, folder
        self.now = 0.0
        self.consent = True
        self.script = Script()
        self.leaves = False
        self.batch: OutgoingBatch | None = None
        self.upgrade(document)

    def upgrade(self, document):
        """Begin anew with a registry, as a process does: memory is lost, the state is not."""
        self.registry: Registry = Registry.from_document(document)
        self.state = State(self.folder, self.registry.app)
        with self.state.transaction() as connection:
            pass
        connection.execute("PRAGMA synchronous = OFF")  # nobody pulls the plug here
        self.device = Device(
            self.registry,
            self.state,
            self.script,
            clock=lambda: self.now,
            bits=self.bits,
            spread=self.spread,
        )
        self.document = document

    def step(self, step):
        """Do one step. Returns it with everything that it must give."""
        self.now = step.get("at", self.now)
        if "segments" in step:
            for name, value in step["segments"].items():
                assert self.device.set_segment(name, value) is None
            return step
        if "records" in step:
            return {**step, **self._write(step["records"])}
        if "take" in step:
            self.batch = self.device.take(urgent=step["take"] == "urgent", ending=self.leaves)
            self.leaves = False
            body = None if self.batch is None else self.batch.body.decode()
            return {**step, "body": body}
        if "reply" in step:
            return {**step, **self._reply(step["reply"])}
        if "opt_out" in step:
            self.consent = False
            self.device.state.withdraw()
        elif "opt_in" in step:
            self.consent = True
        elif "erase" in step:
            self.device.state.erase(self.device.clock())
        elif "leave" in step:
            self.leaves = True
        elif "restart" in step:
            self.state.close()
            self.upgrade(self.document)
        elif "upgrade" in step:
            self.state.close()
            self.upgrade(step["upgrade"])
        else:
            return {**step, **self._holds()}
        return step

    def _write(self, records):
        if not self.consent:
            return {}
        with self.state.transaction() as connection:
            (last,) = connection.execute("SELECT ifnull(max(id), 0) FROM reports").fetchone()
        admitted = []
        for name, value in records:
            with suppress(SegmentError):  # a record whose segment is not known is not kept
                value = ACTIVE if value is None else value
                admitted.append(self.device.admit(name, value))
        self.device.write([each for each in admitted if each])
        with self.state.transaction() as connection:
            rows = connection.execute(
                "SELECT metric, window, ready FROM reports WHERE id > ? ORDER BY id", (last,)
            ).fetchall()
        return {"sealed": [list(row) for row in rows]} if rows else {}

    def _reply(self, reply):
        assert self.batch is not None
        self.script.reply = reply
        try:
            refused = self.device.deliver(self.batch)
        except TransportError:
            return {"counted": False, "final": False}
        if any(isinstance(each, TransportError) for each in refused):
            return {"counted": False, "final": True}
        waits = [each.reason for each in refused if each.waits]
        return {"counted": True, "waits": waits} if waits else {"counted": True}

    def _holds(self):
        with self.state.transaction() as connection:
            ledger = Ledger(connection)
            (waiting,) = connection.execute(
                "SELECT count(*) FROM reports WHERE status = 'queued'"
            ).fetchone()
            (values,) = connection.execute("SELECT count(*) FROM open_values").fetchone()
            rows = connection.execute(
                "SELECT metric, window, state FROM windows ORDER BY metric, window"
            ).fetchall()
            reports = connection.execute(
                "SELECT metric, window, status, reason FROM reports ORDER BY id"
            ).fetchall()
            spent: dict[str, dict[str, Any]] = {}
            for name, count in ledger.reports().items():
                spent[name] = {
                    "reports": count,
                    "spent": str(ledger.spent(name)),
                }
                if memos := ledger.memos(name):
                    spent[name]["memos"] = str(memos)
        windows: dict[str, dict[str, str]] = {}
        for name, window, state in rows:
            windows.setdefault(name, {})[window] = state
        return {
            "ledger": spent,
            "waiting": waiting,
            "values": values,
            "windows": windows,
            "reports": [list(row) for row in reports],
        }


def run(case, stream, folder):
    """Do what all steps of a transcript say. Returns them with everything that they gave."""
    driver = Driver(case["registry"], case["spread"], stream, folder)
    done = [
        driver.step({key: value for key, value in step.items() if key in ASKED})
        for step in case["steps"]
    ]
    driver.state.close()
    return done


def text(cases):
    """The text of the file: a line for each step."""
    parts = []
    for case in cases:
        steps = ",\n    ".join(json.dumps(step, ensure_ascii=False) for step in case["steps"])
        head = ",\n  ".join(
            f"{json.dumps(key)}: {json.dumps(case[key], ensure_ascii=False)}"
            for key in ("name", "about", "registry", "spread", "bytes")
        )
        parts.append(f'{{{head},\n  "steps": [\n    {steps}\n  ]}}')
    return "[\n" + ",\n".join(parts) + "\n]\n"
