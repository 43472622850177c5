"""What the collector does with a body, without HTTP: decode, validate, add exactly once.

`read` turns bytes into a batch, and separates bad reports, each with a reason. `take` adds up many
batches into one commit for each shard. Both are safe to call from several threads.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from msgspec import UNSET

from deniable import Registry, WireError
from deniable.protocol.coded_message import counted
from deniable_collector.batches.batch import NAMED, Batch, Receipt, Rejection
from deniable_collector.batches.bodies import read_batch
from deniable_collector.batches.catalogue import Catalogue, Refused
from deniable_collector.batches.folding import Accepted, additions
from deniable_collector.operation.prometheus import count_receipts
from deniable_collector.refusals import IntakeError
from deniable_collector.stores.base import Store
from deniable_collector.stores.commits import Commit, shard_of
from deniable_collector.stores.errors import StoreUnavailable

MOST_METRICS = 100
"""Metrics in a batch. A batch of the SDK holds as many reports: none is refused for its metrics."""

_MALFORMED = (
    "a report is an object of metric, scheme and window, which are texts, columns, and perhaps "
    "row, and no more"
)


class Intake:
    """Reads batches by the registry and adds them to the store.

    `max_reports` is the most reports in a batch; `clock` returns POSIX time in seconds.
    """

    def __init__(
        self,
        registry: Registry,
        store: Store,
        *,
        max_reports: int = 1000,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._max_reports = max_reports
        self._clock = clock
        self._catalogue = Catalogue(registry, store, clock)

    def prepare(self) -> None:
        """Publish the registry's schemes and read those of earlier registries, once.

        Raises:
            StoreUnavailable: the store cannot be reached; the next call tries again.
        """
        self._catalogue.prepare()

    def read(self, body: bytes, wait: bool = True) -> Batch:
        """Read a body and validate each of its reports; without `wait`, if that needs no call of
        the store.

        Raises:
            IntakeError: the body is not a batch, so nothing of it can be counted.
            MustWait: it has reports for tallies that were not met before.
            StoreUnavailable: the published schemes cannot be read.
        """
        sent = read_batch(body, self._max_reports)
        if len(sent.reports) > MOST_METRICS:
            # Fewer reports than that cannot be of more metrics.
            metrics = {each.metric for each in sent.reports if each is not None}
            if len(metrics) > MOST_METRICS:
                raise IntakeError(
                    "too-many-metrics",
                    f"a batch may have reports of up to {counted(MOST_METRICS, 'metric')}: "
                    "send several batches",
                )
        now, find = self._clock(), self._catalogue.find
        accepted: list[Accepted] = []
        named: list[Rejection] = []
        refused: dict[str, int] = {}
        for index, report in enumerate(sent.reports):
            try:
                if report is None:
                    raise Refused("malformed", _MALFORMED)
                tally = find(report.metric, report.scheme, report.window, now, wait)
                row, places = report.row, tally.places
                if row is UNSET:
                    row = 0
                elif type(row) is not int or not 0 <= row < len(places):
                    raise Refused("bad_row", f"row must be a number from 0 to {len(places) - 1}")
                place = places[row]
                accepted.append((place, place.read(report.columns)))
            except (Refused, WireError) as why:
                reason = why.reason if isinstance(why, Refused) else "bad_columns"
                refused[reason] = refused.get(reason, 0) + 1
                if len(named) < NAMED:
                    named.append(Rejection(index, reason, str(why)))
        return Batch(sent.batch, tuple(accepted), tuple(named), refused)

    def take(self, batches: Sequence[Batch]) -> list[Receipt | Exception]:
        """Add the batches to the store, each exactly once, and return a receipt for each, or why
        there is none: StoreUnavailable, StoreError. Sending it again completes the rest.

        The batches of each shard are committed together and, if that is refused, one by one. So a
        batch that the store refuses, or that triggers a bug, fails alone. If a shard is away,
        nothing is tried again: all of its batches that are not committed yet fail, and those of
        the other shards do not.
        """
        try:
            self.prepare()
            number = self._store.shards
        except Exception as error:
            return [error] * len(batches)
        shards: defaultdict[int, list[int]] = defaultdict(list)
        for place, batch in enumerate(batches):
            shards[shard_of(batch.id, number)].append(place)
        outcomes: dict[int, Receipt | Exception] = {}
        for shard, places in shards.items():
            found = self._take_together(shard, [batches[place] for place in places])
            outcomes.update(zip(places, found, strict=True))
        count_receipts(each for each in outcomes.values() if isinstance(each, Receipt))
        return [outcomes[place] for place in range(len(batches))]

    def _take_together(self, shard: int, batches: Sequence[Batch]) -> list[Receipt | Exception]:
        try:
            return [*self._fold(shard, batches)]
        except StoreUnavailable as error:
            return [error] * len(batches)
        except Exception as error:
            if len(batches) == 1:
                return [error]
        outcomes: list[Receipt | Exception] = []
        for batch in batches:
            outcomes += self._take_together(shard, [batch])
            if isinstance(outcomes[-1], StoreUnavailable):
                return outcomes + outcomes[-1:] * (len(batches) - len(outcomes))
        return outcomes

    def _fold(self, shard: int, batches: Sequence[Batch]) -> list[Receipt]:
        """Commit what the store has not seen yet.

        Raises:
            StoreError: the store refused or is unavailable.
        """
        left: dict[str, Batch] = {}
        for batch in batches:
            # The id of a batch without a good report is not stored: nothing in it can be
            # counted twice.
            if batch.accepted:
                left.setdefault(batch.id, batch)
        while left:
            reports = chain.from_iterable(batch.accepted for batch in left.values())
            commit = Commit(tuple(left), additions(reports), shard, self._remember(left))
            seen = self._store.fold(commit, self._clock())
            if not seen:
                break
            for batch_id in seen:
                del left[batch_id]
        receipts = []
        for batch in batches:
            count = len(batch.accepted)
            # Another batch with this id was not in the commit.
            new = bool(count) and left.pop(batch.id, None) is not None
            numbers = (count, 0) if new else (0, count)
            receipts.append(Receipt(batch.id, *numbers, batch.rejected, batch.refused))
        return receipts

    def _remember(self, batches: Mapping[str, Batch]) -> dict[str, float]:
        """The ids that must be remembered for longer than others, with the seconds."""
        longest = self._catalogue.remember
        if not longest:
            return {}
        found = {
            batch_id: max(longest.get(place.tally.metric, 0.0) for place, _ in batch.accepted)
            for batch_id, batch in batches.items()
        }
        return {batch_id: seconds for batch_id, seconds in found.items() if seconds}
