"""Metrics for Prometheus, summed over all processes, at an address of their own.

They are counted once for each commit, never for each report. No label has values that a
sender could choose: names of metrics come from the registry, all others from lists in the code.
"""

from __future__ import annotations

import os
import platform
from collections import Counter as Tallied
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector

import deniable
from deniable_collector.batches.batch import REASONS, Receipt
from deniable_collector.refusals import PROBLEMS
from deniable_collector.serving.gunicorn import METRICS_FOLDER
from deniable_collector.serving.responses import counting
from deniable_collector.stores.base import Store
from deniable_collector.stores.commits import Commit
from deniable_collector.stores.errors import StoreError

OWN = CollectorRegistry()
"""What this process counts."""

counter, gauge = partial(Counter, registry=OWN), partial(Gauge, registry=OWN)
histogram = partial(Histogram, registry=OWN)

REQUESTS = counter(
    "deniable_requests",
    "Requests that were answered, by status and, for problems, by code.",
    ["status", "problem"],
)
BATCHES = counter(
    "deniable_batches",
    "Batches that were acknowledged: accepted, duplicate, or empty of good reports.",
    ["outcome"],
)
REPORTS = counter(
    "deniable_reports",
    "Reports of acknowledged batches: accepted, duplicate or rejected.",
    ["outcome"],
)
REJECTED = counter(
    "deniable_reports_rejected", "Reports that were rejected, by reason.", ["reason"]
)
BY_METRIC = counter(
    "deniable_metric_reports",
    "Reports in the store's commits, by metric of the registry.",
    ["metric"],
)
COMMIT_SECONDS = histogram(
    "deniable_commit_seconds",
    "How long the store took for a commit.",
    buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5),
)
COMMIT_BATCHES = histogram(
    "deniable_commit_batches",
    "How many batches a commit held.",
    buckets=(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000),
)
STORE_FAILURES = counter("deniable_store_failures", "Calls of the store that found it unavailable.")
QUEUE = gauge(
    "deniable_queue_bytes",
    "Bytes of bodies that wait for their commit.",
    multiprocess_mode="livesum",
)
JOURNAL = gauge(
    "deniable_journal_seconds",
    "Age of the oldest single commit in the store's journal in seconds, at most.",
    multiprocess_mode="livemax",
)


def begin_counts(metrics: Iterable[str]) -> None:
    """Tell what a collector may count from 0 on: of a series that begins with its first count,
    Prometheus sees no increase, and none at all where nothing was ever counted."""
    for code, kind in PROBLEMS.items():
        REQUESTS.labels(str(kind.status), code)
    REQUESTS.labels("202", "")
    for counter, labels in (
        (BATCHES, ("accepted", "duplicate", "empty")),
        (REPORTS, ("accepted", "duplicate", "rejected")),
        (REJECTED, REASONS),
        (BY_METRIC, metrics),
    ):
        for label in labels:
            counter.labels(label)


def count_answer(status: int, problem: str = "", number: int = 1) -> None:
    """Count answered requests; `problem` is the code of a problem document."""
    REQUESTS.labels(str(status), problem).inc(number)


counting.append(count_answer)


def count_receipts(receipts: Iterable[Receipt]) -> None:
    """Count batches that are about to be acknowledged by 202, one each."""
    outcomes: Tallied[str] = Tallied()
    reports: Tallied[str] = Tallied()
    rejected: Tallied[str] = Tallied()
    for receipt in receipts:
        accepted, duplicate = receipt.accepted, receipt.duplicate
        outcomes["accepted" if accepted else "duplicate" if duplicate else "empty"] += 1
        reports["accepted"] += accepted
        reports["duplicate"] += duplicate
        if receipt.refused:
            rejected.update(receipt.refused)
    _add(BATCHES, outcomes)
    _add(REJECTED, rejected)
    _add(REPORTS, {**reports, "rejected": rejected.total()})
    count_answer(202, number=outcomes.total())


def count_commit(commit: Commit, seen: frozenset[str], seconds: float) -> None:
    """Count a commit; if the store has seen some of the ids, it added nothing."""
    COMMIT_SECONDS.observe(seconds)
    if seen:
        return
    COMMIT_BATCHES.observe(len(commit.ids))
    reports: Tallied[str] = Tallied()
    for tally, addition in commit.additions.items():
        reports[tally.metric] += addition.reports
    _add(BY_METRIC, reports)


def _add(counter: Counter, numbers: Mapping[str, int]) -> None:
    for label, number in numbers.items():
        if number:
            counter.labels(label).inc(number)


def store_figures(store: Store, metrics: int) -> Iterator[Metric]:
    """Metrics of a collector that are computed at each scrape; `metrics` is how many its registry
    declares."""
    try:
        store.ping()
        up = 1
    except StoreError:
        up = 0
    yield GaugeMetricFamily(
        "deniable_store_up", "1 if the store can take a commit now, else 0.", up
    )
    yield GaugeMetricFamily(
        "deniable_registry_metrics", "Metrics that the registry declares.", metrics
    )
    yield build_info()


def build_info() -> Metric:
    """The versions of deniable and of Python."""
    build = GaugeMetricFamily(
        "deniable_build_info", "Always 1; the versions.", labels=["version", "python"]
    )
    build.add_metric([deniable.__version__, platform.python_version()], 1)
    return build


class _AllProcesses(MultiProcessCollector):
    """The numbers of all processes, as they write them to files."""

    def collect(self) -> Iterable[Metric]:
        # A process that starts creates its file before it gives it a size, and an empty one cannot
        # be read. A file that is gone belonged to a process that has ended.
        files = []
        for path in Path(self._path).glob("*.db"):
            with suppress(FileNotFoundError):
                if path.stat().st_size:
                    files.append(str(path))
        found: Iterable[Metric] = self.merge(files)  # type: ignore[no-untyped-call]
        return found


def summed() -> CollectorRegistry:
    """The numbers of all processes, at each scrape; without the shared folder, of this one."""
    registry = CollectorRegistry()
    if METRICS_FOLDER in os.environ:
        _AllProcesses(registry)  # type: ignore[no-untyped-call]  # it registers itself
    else:
        registry.register(OWN)
    return registry
