"""What the collector does with a body, without HTTP: decode, validate, fold exactly once.

`read` turns bytes into a batch whose bad reports are set aside, each with a reason;
`take` folds many batches into one commit for each shard. Both are safe to call from
several threads.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain
from typing import Any

from hearsay import Metric, Registry, Scheme, WindowError, WireError, windows
from hearsay.wire import check_batch_id, unpack_columns
from hearsay_collector.bodies import IntakeError, parse
from hearsay_collector.folding import Accepted, increments
from hearsay_collector.stores.base import (
    ID_RETENTION,
    Commit,
    Store,
    TallyKey,
    TallyRowKey,
    shard_of,
)

__all__ = ["REASONS", "SKEW", "Batch", "Intake", "Receipt", "Rejection"]

SKEW = 86_400.0
"""Seconds by which a device's clock may run ahead of ours."""

_REFRESH_SECONDS = 60.0

REASONS = (
    "malformed",
    "unknown_metric",
    "bad_window",
    "expired_metric",
    "window_not_closed",
    "window_too_old",
    "unknown_scheme",
    "bad_row",
    "bad_columns",
)
"""Why a report can be rejected, in the order in which it is looked at."""

_FIELDS = {"metric", "scheme", "window", "row", "columns"}


@dataclass(frozen=True)
class Rejection:
    """A report that was not counted: its place in the batch, a reason code and its meaning."""

    index: int
    reason: str
    detail: str


@dataclass(frozen=True)
class Batch:
    """A batch that has been read: what may be counted, and what may not."""

    id: str
    accepted: tuple[Accepted, ...]
    rejected: tuple[Rejection, ...]


@dataclass(frozen=True)
class Receipt:
    """What became of a batch. Its accepted reports are in the tallies, durably, by now.

    Either `accepted` or `duplicate` is 0: a batch is counted as a whole, or was before.
    """

    batch: str
    accepted: int
    duplicate: int
    rejected: tuple[Rejection, ...]


class _Refused(Exception):
    """A report cannot be counted, for this reason."""

    def __init__(self, reason: str, detail: str) -> None:
        self.reason = reason
        self.detail = detail
        super().__init__(reason)


class Intake:
    """Reads batches by the registry and folds them into the store.

    `clock` returns POSIX time in seconds.
    """

    def __init__(
        self,
        registry: Registry,
        store: Store,
        *,
        max_reports: int = 1000,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._registry = registry
        self._store = store
        self._max_reports = max_reports
        self._clock = clock
        self._lock = threading.Lock()
        self._schemes: Mapping[str, Mapping[str, Scheme]] | None = None
        self._refreshed = 0.0

    def prepare(self) -> None:
        """Publish the registry's schemes and read those of earlier registries, once.

        Raises:
            StoreUnavailable: the store cannot be reached; the next call tries again.
        """
        self._known()

    def read(self, body: bytes) -> Batch:
        """Decode a body and validate each of its reports.

        Raises:
            IntakeError: the body is no batch, so that nothing of it can be counted.
            StoreUnavailable: the published schemes cannot be read.
        """
        document = parse(body)
        try:
            batch_id = check_batch_id(document.get("batch"))
        except WireError as error:
            raise IntakeError("bad-batch-id", 400, "Bad batch id", str(error)) from None
        reports = document.get("reports")
        if set(document) != {"batch", "reports"} or not isinstance(reports, list):
            raise IntakeError(
                "malformed-batch",
                400,
                "Malformed batch",
                "a batch is an object with a batch id and a list of reports, and no more",
            )
        if len(reports) > self._max_reports:
            raise IntakeError(
                "too-many-reports",
                413,
                "Too many reports",
                f"a batch may hold up to {self._max_reports} reports: send several batches",
            )
        now = self._clock()
        accepted: list[Accepted] = []
        rejected: list[Rejection] = []
        for index, report in enumerate(reports):
            try:
                accepted.append(self._validate(report, now))
            except _Refused as refused:
                rejected.append(Rejection(index, refused.reason, refused.detail))
        return Batch(batch_id, tuple(accepted), tuple(rejected))

    def take(self, batches: Sequence[Batch]) -> list[Receipt]:
        """Fold the batches, each exactly once, and return a receipt for each of them.

        Raises:
            StoreError: the store refused or is unavailable. Some shards may hold their
                commits by then; sending the same batches again completes the rest.
        """
        self.prepare()
        shards: dict[int, dict[str, Batch]] = {}
        for batch in batches:
            # Nothing is remembered of a batch without one good report: there is nothing
            # in it to count twice.
            if batch.accepted:
                shard = shard_of(batch.id, self._store.shards)
                shards.setdefault(shard, {}).setdefault(batch.id, batch)
        folded: set[str] = set()
        for shard, pending in shards.items():
            folded |= self._fold(shard, pending)
        receipts = []
        for batch in batches:
            count = len(batch.accepted)
            if batch.accepted and batch.id in folded:
                # The next batch of this id, if there is one, was not in the commit.
                folded.remove(batch.id)
                receipts.append(Receipt(batch.id, count, 0, batch.rejected))
            else:
                receipts.append(Receipt(batch.id, 0, count, batch.rejected))
        return receipts

    def _fold(self, shard: int, pending: Mapping[str, Batch]) -> set[str]:
        """Commit what the store has not seen yet, and return the ids of that."""
        left = dict(pending)
        while left:
            added = increments(chain.from_iterable(batch.accepted for batch in left.values()))
            seen = self._store.fold(Commit(tuple(left), added, shard), self._clock())
            if not seen:
                break
            for batch_id in seen:
                del left[batch_id]
        return set(left)

    def _validate(self, report: Any, now: float) -> Accepted:
        if not isinstance(report, dict) or not report.keys() <= _FIELDS:
            raise _Refused("malformed", "a report is an object of metric, scheme, window, row "
                           "and columns, and no more")  # fmt: skip
        name, fingerprint, window = (report.get(key) for key in ("metric", "scheme", "window"))
        if not (isinstance(name, str) and isinstance(fingerprint, str) and isinstance(window, str)):
            raise _Refused("malformed", "metric, scheme and window must be texts")
        if "columns" not in report:
            raise _Refused("malformed", "the report lacks its columns")
        metric = self._registry.metrics.get(name)
        if metric is None:
            raise _Refused("unknown_metric", "the registry declares no metric of that name")
        _check_window(metric, window, now)
        scheme = self._scheme(name, fingerprint)
        if scheme is None:
            raise _Refused("unknown_scheme", "the metric has never had a scheme of that name")
        rows = scheme.mechanism.rows
        row = report.get("row", 0)
        if type(row) is not int or not 0 <= row < len(rows):
            raise _Refused("bad_row", f"row must be a number from 0 to {len(rows) - 1}")
        try:
            columns = unpack_columns(rows[row], report["columns"])
        except WireError as error:
            raise _Refused("bad_columns", str(error)) from None
        return Accepted(TallyRowKey(TallyKey(name, fingerprint, window), row), rows[row], columns)

    def _scheme(self, metric: str, fingerprint: str) -> Scheme | None:
        known = self._known().get(metric, {})
        if fingerprint not in known:
            # Another collector, with a newer registry, may have published it meanwhile.
            with self._lock:
                if abs(self._clock() - self._refreshed) >= _REFRESH_SECONDS:
                    self._refresh()
            known = self._known().get(metric, {})
        return known.get(fingerprint)

    def _known(self) -> Mapping[str, Mapping[str, Scheme]]:
        if self._schemes is None:
            with self._lock:
                if self._schemes is None:
                    # No tally may exist before its scheme can be read back.
                    self._store.publish({each.name: [each.scheme] for each in self._registry})
                    self._refresh()
        assert self._schemes is not None
        return self._schemes

    def _refresh(self) -> None:
        published = self._store.schemes()
        for metric in self._registry:
            published.setdefault(metric.name, {})[metric.scheme.fingerprint] = metric.scheme
        self._schemes = published
        self._refreshed = self._clock()


def _check_window(metric: Metric, label: str, now: float) -> None:
    """Refuse a window that is of another kind, too early, too late, or beyond the expiry.

    A store remembers a batch id for ID_RETENTION. The first time that a report of a window
    can be accepted is end - SKEW, so an id that was folded then is forgotten from
    end - SKEW + ID_RETENTION on. From that moment the window itself is refused: a retry
    that meets no memory of its id is refused with it, and never counted twice.
    """
    try:
        kind, first, last = _span(label)
    except WindowError as error:
        raise _Refused("bad_window", f"the window is no label of a {metric.window}") from error
    if kind != metric.window:
        raise _Refused("bad_window", f"the metric is asked once a {metric.window}, not a {kind}")
    if datetime.fromtimestamp(first, UTC).date() > metric.expires:
        raise _Refused("expired_metric", f"the metric has expired on {metric.expires}")
    if now < last - SKEW:
        raise _Refused("window_not_closed", "the window has not ended yet")
    if now > last + ID_RETENTION - SKEW:
        raise _Refused("window_too_old", "the window ended too long ago")


@lru_cache(maxsize=4096)
def _span(label: str) -> tuple[windows.Kind, float, float]:
    return windows.kind_of(label), windows.start(label), windows.end(label)
