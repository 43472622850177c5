"""A relay's metrics for Prometheus, summed over all processes.

No label has a value that a device or the gateway could choose, and none says anything of an address
or a capsule.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from deniable_collector.operation.metrics import build_info, summed
from deniable_collector.operation.metrics_folder import VARIABLE

_own = CollectorRegistry()

GATEWAY_SECONDS = Histogram(
    "deniable_relay_gateway_seconds",
    "How long the gateway took to respond to a capsule.",
    buckets=(0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10),
    registry=_own,
)
HELD = Gauge(
    "deniable_relay_held_bytes",
    "Bytes of capsules that wait for the gateway.",
    multiprocess_mode="livesum",
    registry=_own,
)

_SHARED = "deniable_requests"
"""The only one of the collector's metrics that a relay has too."""


class _RelayFigures(Collector):
    """What a relay counts, without the rest of what the collector's code counts."""

    def __init__(self, source: CollectorRegistry) -> None:
        self._source = source

    def collect(self) -> Iterable[Metric]:
        for family in self._source.collect():
            if family.name == _SHARED or family.name.startswith("deniable_relay_"):
                yield family
        yield build_info()


def exposition() -> bytes:
    """All metrics in Prometheus's text format. It reads files: call it in a thread."""
    source = summed()
    if VARIABLE not in os.environ:  # else the shared folder has these too
        source.register(_own)
    chosen = CollectorRegistry()
    chosen.register(_RelayFigures(source))
    return generate_latest(chosen)
