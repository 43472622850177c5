"""Simulated devices, so that a developer sees the pages that the product team will see.

Their values are made up (`made_up`), and every page says so. For the window of now, up to
REAL devices report one by one: the real randomizer draws each report, with the operating system's
randomness, and the real intake counts it. For more devices, and for the windows before, the tally
is drawn from its exact distribution, which is the same distribution.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable import Metric, Registry
from deniable.protocol import windows
from deniable.protocol.mechanisms.number_range import NumberRange
from deniable.protocol.types.discovery import Discovery
from deniable.protocol.types.number import Number
from deniable.protocol.types.pair import Pair
from deniable.protocol.types.retention import Retention
from deniable.protocol.wire import SealedReport, encode_batch, new_batch_id, pack_columns
from deniable_collector.intake import Intake
from deniable_collector.stores.base import Store
from deniable_collector.stores.commits import Commit, TallyKey
from deniable_collector.stores.vectors import addition_of
from deniable_collector.tally import Tally
from deniable_estimator.analyses import sample_tally
from deniable_estimator.development.gate import at_once
from deniable_estimator.messages import message
from deniable_estimator.planning.population import lognormal_crowd, normal_crowd, zipf_shares
from deniable_estimator.planning.retention_crowd import Life, tallies_of
from deniable_estimator.statistics.intervals import FloatArray

REAL = 20_000
"""Up to so many devices report one by one."""

BEFORE = 7
"""So many complete windows before the window of now have reports as well."""

STRINGS = 20
"""Of a metric for any string, so many made-up ones are recorded, if there is no list."""

WORDS = ("cafe", "decade", "face", "bead", "feed", "cab", "deaf", "fade", "bed", "added")
"""What simulated devices have of a discovery: words whose letters every alphabet has."""

_YES_AND_NO = np.array([0.3, 0.7])
"""The shares of devices that say yes, and no, to a boolean metric."""

_BATCH = 1_000
"""Reports that the intake counts at once."""


@dataclass
class SimulatedCrowd:
    """The simulated devices, and what their reports are."""

    devices: int = 0
    drawn: bool = False
    """Whether the tallies were drawn, because there are more than REAL devices."""
    done: float = 1.0
    """The part of the metrics that is finished."""
    now: dict[str, int] = field(default_factory=dict)
    """Metric -> how many of its reports in the window of now are theirs."""
    strings: dict[str, list[str]] = field(default_factory=dict)
    """Metric -> the strings that they recorded."""
    shares: dict[str, str] = field(default_factory=dict)
    """Metric -> its made-up shares, in words."""
    _schemes: set[tuple[str, str]] = field(default_factory=set)

    def add(
        self,
        store: Store,
        registry: Registry,
        listed: Callable[[Metric], Sequence[str] | None],
        *,
        clock: Callable[[], float] = time.time,
        progress: Callable[[int], None] = lambda done: None,
    ) -> None:
        """Let the devices report every metric whose scheme they have not reported yet.

        `listed` gives the strings of a metric for any strings, if there is a list. `progress` is
        called with how many metrics are done.
        """
        if not self.devices:
            return
        today = datetime.fromtimestamp(clock(), UTC).date()
        new = [
            metric
            for metric in registry
            # No collector takes reports of a metric that has expired.
            if metric.expires >= today
            and (metric.name, metric.scheme.fingerprint) not in self._schemes
        ]
        self.drawn = self.devices > REAL
        for count, metric in enumerate(new, 1):
            self._schemes.add((metric.name, metric.scheme.fingerprint))
            now = clock()
            newest = windows.window_at(metric.window, now)
            labels = [windows.shifted(newest, -ago) for ago in range(BEFORE, -1, -1)]
            if isinstance(metric.type, Retention):
                self._add_lives(store, metric, labels, now)
            else:
                self._add_values(store, registry, metric, labels, listed(metric), now)
            self.done = count / len(new)
            progress(count)

    def _add_values(
        self,
        store: Store,
        registry: Registry,
        metric: Metric,
        labels: Sequence[str],
        listed: Sequence[str] | None,
        now: float,
    ) -> None:
        rng, made = np.random.default_rng(), made_up(metric, listed)
        intake = Intake(at_once(registry), store, max_reports=_BATCH, clock=lambda: now)
        if metric.needs_candidates or isinstance(metric.type, Discovery):
            self.strings[metric.name] = made.values
        self.shares[metric.name] = made.words
        # Devices are evenly divided over the segments; without any, there is one part.
        places = len(metric.scheme.combinations)
        for label in labels:
            self.now[metric.name] = 0
            for place, devices in enumerate(
                rng.multinomial(self.devices, np.full(places, 1 / places)).tolist()
            ):
                counts = rng.multinomial(devices, made.shares)
                # On a given day each device takes part with the probability that is declared.
                counts = rng.binomial(counts, metric.rate)
                if label != labels[-1] or self.drawn:
                    about = {"metric": metric.name, "window": label}
                    tally = sample_tally(metric.scheme, counts, rng, values=made.values, **about)
                    fold_tally(store, metric, tally, place, now)
                else:
                    reports = _reports(metric, made.values, counts, place, label)
                    while part := list(islice(reports, _BATCH)):
                        batch = intake.read(encode_batch(new_batch_id(), part))
                        assert not batch.refused, batch.refused
                        (outcome,) = intake.take([batch])
                        if isinstance(outcome, Exception):
                            raise outcome
                self.now[metric.name] += int(counts.sum())

    def _add_lives(self, store: Store, metric: Metric, labels: Sequence[str], now: float) -> None:
        """Windows of devices that come, stay and go, each drawn as a whole."""
        life, rng = Life.steady(self.devices), np.random.default_rng()
        self.shares[metric.name] = message(
            "{new:.0%} are new; {back:.0%} of them come back in the next window",
            new=life.new / self.devices,
            back=life.back,
        )
        lives = [life] * len(labels)
        for tally, _ in tallies_of(metric, labels, lives, rng, older=self.devices - life.new):
            fold_tally(store, metric, tally, 0, now)
            self.now[metric.name] = tally.reports


class MadeUp(NamedTuple):
    """What devices have of a metric: normalized texts, the share of each, and these in words."""

    values: list[str]
    shares: FloatArray
    words: str


def made_up(metric: Metric, listed: Sequence[str] | None = None) -> MadeUp:
    """The made-up values of a metric, which is no retention."""
    kind = metric.type
    if isinstance(kind, Number):
        return _made_up_numbers(metric, kind.range)
    if isinstance(kind, Pair):
        # As if the two had nothing to do with each other.
        one, two = (
            _YES_AND_NO if len(part.values) == 2 else zipf_shares(len(part.values), 1.0)
            for part in kind.parts
        )
        told = message("the values of the two metrics are independent of each other")
        return MadeUp(list(metric.values), np.outer(one, two).ravel(), told)
    if kind.name == "boolean":
        told = message("{percent}% say yes", percent=f"{100 * _YES_AND_NO[0]:g}")
        return MadeUp(["true", "false"], _YES_AND_NO, told)
    if isinstance(kind, Discovery):
        values = list(dict.fromkeys(map(metric.normalize, WORDS)))
    else:
        made = (f"example-{number}" for number in range(1, STRINGS + 1))
        values = list(metric.values or listed or made)
    told = message(
        "the first of {count} values is the most frequent, the second half as frequent as that, "
        "the third a third, and so on",
        count=len(values),
    )
    return MadeUp(values, zipf_shares(len(values), 1.0), told)


def _made_up_numbers(metric: Metric, numbers: NumberRange) -> MadeUp:
    low, high = float(numbers.low), float(numbers.high)
    log = numbers.scale == "log"
    middle, least, most = (
        low * (high / low) ** part if log else low + part * (high - low)
        for part in (0.4, 0.15, 0.65)
    )
    if log:
        told = message(
            "around {middle:.3g}, on a logarithmic scale; 95% from {low:.3g} to {high:.3g}",
            middle=middle,
            low=least,
            high=most,
        )
        found = lognormal_crowd(middle, math.log(most / least) / 4)
    else:
        told = message(
            "around {middle:.3g}, and 95% from {low:.3g} to {high:.3g}",
            middle=middle,
            low=least,
            high=most,
        )
        found = normal_crowd(middle, (most - least) / 4)
    # Each hundredth of the quantiles stands for those around it.
    some = found.numbers[50::100]
    if numbers.integer:
        some = np.rint(some)
    texts = [metric.normalize(float(each)) for each in some.tolist()]
    return MadeUp(texts, np.full(len(texts), 1 / len(texts)), told)


def fold_tally(store: Store, metric: Metric, tally: Tally, place: int, now: float) -> None:
    """Add a tally to the rows of one combination of segments."""
    (label,) = tally.windows
    key = TallyKey(tally.metric, tally.scheme, label)
    first = place * len(metric.scheme.mechanism.rows)
    addition = addition_of(store.shape(*key[:2]), dict(enumerate(tally.rows, first)))
    store.fold(Commit((new_batch_id(),), {key: addition}), now)


def _reports(
    metric: Metric, values: Sequence[str], counts: NDArray[np.int64], place: int, label: str
) -> Iterator[SealedReport]:
    """Let each device draw its report."""
    scheme = metric.scheme
    first = place * len(scheme.mechanism.rows)
    items = dict(zip(scheme.values, scheme.items, strict=True)) if scheme.values else {}
    for value, count in zip(values, counts.tolist(), strict=True):
        item = items[value] if items else metric.item(value)
        for _ in range(count):
            report = scheme.mechanism.randomize(item)
            columns = pack_columns(scheme.mechanism.rows[report.row], report)
            yield SealedReport(metric.name, scheme.fingerprint, label, first + report.row, columns)
