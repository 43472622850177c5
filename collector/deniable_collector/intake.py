"""What the collector does with a body, without HTTP: decode, validate, add exactly once.

`read` turns bytes into a batch, and separates bad reports, each with a reason. `take` adds up many
batches into one commit for each shard. Both are safe to call from several threads.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from deniable import Registry, WireError
from deniable.coded_message import counted
from deniable.mechanisms import Packing
from deniable.wire import check_batch_id, unpack_columns
from deniable_collector.batches.batch import NAMED, Batch, Receipt, Rejection
from deniable_collector.batches.bodies import check_commas, check_counts, parse
from deniable_collector.batches.catalogue import Catalogue, OpenTally, Refused
from deniable_collector.batches.common import CommonReports
from deniable_collector.batches.folding import Accepted, increments
from deniable_collector.batches.typed import (
    TypedBatch,
    TypedReport,
    decode_batch,
    decode_report,
)
from deniable_collector.operation.metrics import count_receipts
from deniable_collector.refusals import IntakeError, malformed, too_many_reports
from deniable_collector.stores.base import Store
from deniable_collector.stores.commits import Commit, shard_of

_FIELDS = {"metric", "scheme", "window", "row", "columns"}


class Intake:
    """Reads batches by the registry and adds them to the store.

    `max_reports` is the most reports in a batch, `max_metrics` the most metrics in one; `clock`
    returns POSIX time in seconds.
    """

    def __init__(
        self,
        registry: Registry,
        store: Store,
        *,
        max_reports: int = 1000,
        max_metrics: int = 100,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._max_reports = max_reports
        self._max_metrics = max_metrics
        self._clock = clock
        self._catalogue = Catalogue(registry, store, clock)
        self._common = CommonReports(self._catalogue)

    def prepare(self) -> None:
        """Publish the registry's schemes and read those of earlier registries, once.

        Raises:
            StoreUnavailable: the store cannot be reached; the next call tries again.
        """
        self._catalogue.prepare()

    def read_fast(self, body: bytes) -> Batch | None:
        """The fast path of `read`, for a valid batch whose tallies are all known.

        It never calls the store, and so never waits. If it returns None, call `read`.
        """
        typed = decode_batch(body)
        try:
            return None if typed is None else self._find(typed)
        except IntakeError:
            return None

    def read(self, body: bytes) -> Batch:
        """Decode a body and validate each of its reports.

        Raises:
            IntakeError: the body is not a batch, so nothing of it can be counted.
            StoreUnavailable: the published schemes cannot be read.
        """
        check_counts(body, self._max_reports)
        typed = decode_batch(body)
        if typed is not None:
            batch = self._find(typed)
            if batch is not None:
                return batch
            reports = [*map(decode_report, typed.reports)]
            if None not in reports:
                self._check_metrics(each.metric for each in reports if each is not None)
                return self._sift(typed.batch, reports, self._validate_typed)
        return self._read_strictly(body)

    def _read_strictly(self, body: bytes) -> Batch:
        """What `read` makes of a body that is not typed as devices type it."""
        check_commas(body, self._max_reports)
        document = parse(body)
        batch_id = _check_id(document.get("batch"))
        reports = document.get("reports")
        if "development" in document:
            raise malformed(
                "the app is in development mode, whose reports only `deniable dev` takes: leave "
                "DENIABLE_DEV and the option `development` out"
            )
        if set(document) != {"batch", "reports"} or not isinstance(reports, list):
            raise malformed(
                "a batch is an object with a batch id and a list of reports, and no more"
            )
        names = (report.get("metric") for report in reports if isinstance(report, dict))
        self._check_number(len(reports))
        self._check_metrics(name for name in names if isinstance(name, str))
        return self._sift(batch_id, reports, self._validate)

    def _find(self, typed: TypedBatch) -> Batch | None:
        """The batch, if it is one without fault in tallies met before.

        Raises:
            IntakeError: it is none.
        """
        self._check_number(len(typed.reports))
        accepted = self._common.find(typed.reports, self._clock())
        if accepted is None:
            return None
        if len(accepted) > self._max_metrics:
            # Fewer reports than that cannot be of more metrics.
            self._check_metrics(place.key.tally.metric for place, _ in accepted)
        return Batch(typed.batch, accepted, ())

    def _sift(
        self, batch_id: str, reports: Sequence[Any], validate: Callable[[Any, float], Accepted]
    ) -> Batch:
        now = self._clock()
        accepted: list[Accepted] = []
        named: list[Rejection] = []
        refused: Counter[str] = Counter()
        for index, report in enumerate(reports):
            try:
                accepted.append(validate(report, now))
            except Refused as why:
                refused[why.reason] += 1
                if len(named) < NAMED:
                    named.append(Rejection(index, why.reason, why.detail))
        return Batch(batch_id, tuple(accepted), tuple(named), refused=refused)

    @property
    def shards(self) -> int:
        """The number of shards of the store.

        Raises:
            StoreUnavailable: the store cannot be asked.
        """
        return self._store.shards

    def take(self, batches: Sequence[Batch]) -> list[Receipt]:
        """Add the batches to the store, each exactly once, and return a receipt for each.

        Raises:
            StoreError: the store refused or is unavailable. Some shards may have their
                commits by then; sending the same batches again completes the rest.
        """
        self.prepare()
        counts = [len(batch.accepted) for batch in batches]
        number = self._store.shards
        shards: defaultdict[int, dict[str, Batch]] = defaultdict(dict)
        for batch, count in zip(batches, counts, strict=True):
            # The id of a batch without a good report is not stored: nothing in it can be
            # counted twice.
            if count:
                shard = shard_of(batch.id, number) if number > 1 else 0
                shards[shard].setdefault(batch.id, batch)
        folded: set[str] = set()
        for shard, pending in shards.items():
            folded |= self._fold(shard, pending)
        receipts = []
        for batch, count in zip(batches, counts, strict=True):
            if count and batch.id in folded:
                # Another batch with this id was not in the commit.
                folded.remove(batch.id)
                receipts.append(Receipt(batch.id, count, 0, batch.rejected, batch.refused))
            else:
                receipts.append(Receipt(batch.id, 0, count, batch.rejected, batch.refused))
        count_receipts(receipts)
        return receipts

    def _fold(self, shard: int, pending: Mapping[str, Batch]) -> set[str]:
        """Commit what the store has not seen yet, and return the committed ids."""
        left = dict(pending)
        while left:
            reports = chain.from_iterable(batch.accepted for batch in left.values())
            commit = Commit(tuple(left), increments(reports), shard, self._remember(left))
            seen = self._store.fold(commit, self._clock())
            if not seen:
                break
            for batch_id in seen:
                del left[batch_id]
        return set(left)

    def _remember(self, batches: Mapping[str, Batch]) -> dict[str, float]:
        """The ids that must be remembered for longer than others, with the seconds."""
        longest = self._catalogue.remember
        if not longest:
            return {}
        found = {
            batch_id: max(longest.get(metric, 0.0) for metric in batch.metrics)
            for batch_id, batch in batches.items()
        }
        return {batch_id: seconds for batch_id, seconds in found.items() if seconds}

    def _check_number(self, reports: int) -> None:
        if reports > self._max_reports:
            raise too_many_reports(self._max_reports)

    def _check_metrics(self, metrics: Iterable[str]) -> None:
        if len(set(metrics)) > self._max_metrics:
            raise IntakeError(
                "too-many-metrics",
                f"a batch may have reports of up to {counted(self._max_metrics, 'metric')}: "
                "send several batches",
            )

    def _validate(self, report: Any, now: float) -> Accepted:
        if not isinstance(report, dict) or not report.keys() <= _FIELDS:
            raise Refused("malformed", "a report is an object of metric, scheme, window, row "
                          "and columns, and no more")  # fmt: skip
        name, fingerprint, window = (report.get(key) for key in ("metric", "scheme", "window"))
        if not (isinstance(name, str) and isinstance(fingerprint, str) and isinstance(window, str)):
            raise Refused("malformed", "metric, scheme and window must be texts")
        if "columns" not in report:
            raise Refused("malformed", "the report lacks its columns")
        tally = self._catalogue.find(name, fingerprint, window, now)
        return _accept(tally, report.get("row", 0), report["columns"])

    def _validate_typed(self, report: TypedReport, now: float) -> Accepted:
        tally = self._catalogue.find(report.metric, report.scheme, report.window, now)
        return _accept(tally, 0 if report.row == -1 else report.row, report.columns)


def _accept(tally: OpenTally, row: Any, packed: Any) -> Accepted:
    if type(row) is not int or not 0 <= row < len(tally.rows):
        raise Refused("bad_row", _row_detail(len(tally.rows)))
    try:
        columns = unpack_columns(tally.rows[row], packed)
    except WireError as error:
        raise Refused("bad_columns", str(error)) from None
    bitmap = tally.rows[row].packing is Packing.BITMAP
    return tally.places[row], packed.encode() if bitmap else columns


def _row_detail(rows: int) -> str:
    return f"row must be a number from 0 to {rows - 1}"


def _check_id(text: object) -> str:
    try:
        return check_batch_id(text)
    except WireError as error:
        raise IntakeError("bad-batch-id", str(error)) from None
