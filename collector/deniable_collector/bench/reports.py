"""Made-up batches for measuring a collector: random values, through the real mechanisms.

Reports are drawn beforehand and reused in batches with new ids, so that generating them does
not slow the load down.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence

from deniable import DeniableError, Metric, Registry, windows
from deniable.types import Discovery
from deniable.wire import LATEST, SealedReport, encode_batch, new_batch_id, pack_columns
from deniable_collector.batches.catalogue import SKEW

__all__ = ["PREFIX", "BenchError", "MadeUp", "choose", "open_window"]

PREFIX = "bench_"
"""The prefix of the names of metrics that exist for load tests."""

_POOL = 500
"""How many reports are drawn for each metric."""


class BenchError(DeniableError):
    """There is no metric for the load test; the message says what to do."""


def choose(registry: Registry, names: Sequence[str]) -> list[Metric]:
    """The metrics of these names; without any, those that begin with `PREFIX`.

    Raises:
        BenchError: a name is not declared, or none begins with `PREFIX`.
    """
    unknown = [name for name in names if name not in registry.metrics]
    if unknown:
        raise BenchError(f"the registry declares no metric {', '.join(sorted(unknown))}")
    chosen = [each for each in registry if each.name in names] if names else [
        each for each in registry if each.name.startswith(PREFIX)
    ]  # fmt: skip
    if not chosen:
        raise BenchError(
            f"the registry declares no metric whose name begins with {PREFIX}: add one, or name "
            "others with --metric, whose tallies will then contain made-up reports for ever"
        )
    return chosen


def open_window(metric: Metric, now: float) -> str | None:
    """The latest window of the metric that has ended and accepts reports at `now` (POSIX
    seconds); else one that ends within a day; None if the collector accepts none."""
    current = windows.window_at(metric.window, now)
    previous = windows.window_at(metric.window, windows.start(current) - 1)
    for label in (previous, current):
        end = windows.end(label)
        expired = windows.start(label) >= windows.end(metric.expires.isoformat())
        if end - SKEW <= now <= end + LATEST - 3_600 and not expired:
            return label
    return None


class MadeUp:
    """Makes bodies of `reports` reports each, mixed from all the metrics.

    `now` is POSIX time in seconds.

    Raises:
        BenchError: a metric takes no reports now.
    """

    def __init__(self, metrics: Sequence[Metric], reports: int, now: float) -> None:
        self._reports = reports
        self._pool: list[str] = []
        for metric in metrics:
            window = open_window(metric, now)
            if window is None:
                raise BenchError(
                    f"{metric.name} has no window that takes reports today: it has expired, or "
                    f"its last {metric.window} ended more than six days ago"
                )
            for _ in range(_POOL):
                body = encode_batch("", [_sealed(metric, window)])
                self._pool.append(json.dumps(json.loads(body)["reports"][0]))

    def __call__(self) -> bytes:
        """One body, with a new id."""
        reports = ",".join([secrets.choice(self._pool) for _ in range(self._reports)])
        return f'{{"batch":"{new_batch_id()}","reports":[{reports}]}}'.encode()


def _sealed(metric: Metric, window: str) -> SealedReport:
    is_open = metric.needs_candidates or isinstance(metric.type, Discovery)
    text = secrets.token_hex(4) if is_open else secrets.choice(metric.values)
    mechanism = metric.scheme.mechanism
    report = mechanism.randomize(metric.item(text))
    columns = pack_columns(mechanism.rows[report.row], report)
    row = secrets.randbelow(len(metric.scheme.combinations)) * len(mechanism.rows) + report.row
    return SealedReport(metric.name, metric.scheme.fingerprint, window, row, columns)
