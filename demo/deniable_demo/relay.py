"""A relay, which sends the batches of many devices to the collector in one request.

A company would put it between its users and the collector, so that not even the collector's
network sees their addresses. Here it also saves two cores 50,000 requests. It posts a batch
like any other.
"""

from __future__ import annotations

import json
from typing import Any

from deniable import DeniableError
from deniable.device.transport import HttpTransport, Reply, read_reply
from deniable.protocol.coded_message import counted
from deniable.protocol.wire import new_batch_id

_FULL = 900
"""Reports in one request; the collector takes a thousand."""


class RelayError(DeniableError):
    """The collector left out some of what the devices sent."""


class Relay:
    """A transport for many clients of one process; `forward` sends what is still waiting."""

    def __init__(self, endpoint: str) -> None:
        self._collector = HttpTransport(endpoint)
        self._reports: list[dict[str, Any]] = []

    def send(self, body: bytes) -> Reply:
        """Take one device's batch.

        Raises:
            TransportError: the collector cannot be reached.
            RelayError: it refused a report.
        """
        batch = json.loads(body)
        self._reports += batch["reports"]
        if len(self._reports) >= _FULL:
            self.forward()
        receipt = {"batch": batch["batch"], "rejected": []}
        return Reply(202, json.dumps(receipt).encode())

    def forward(self) -> None:
        """Post all reports as one batch, and start a new one."""
        if not self._reports:
            return
        batch_id = new_batch_id()
        body = json.dumps({"batch": batch_id, "reports": self._reports}).encode()
        rejected = read_reply(self._collector.send(body), batch_id, lambda: 0.0)
        if rejected:
            raise RelayError(
                f"the collector refused {counted(len(rejected), 'report')}: {rejected}"
            )
        self._reports = []
