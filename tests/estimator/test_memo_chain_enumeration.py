"""The bounds for many windows with memos, against the exact distributions of small crowds.

A device draws a memo for each value once, and each report from the memo of its value. Here a crowd
of up to four such devices reports in two to four windows, and all reports of each window are
published, unordered.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from deniable.protocol.mechanisms import MECHANISMS, Memoizing
from deniable.protocol.mechanisms.base import ONE
from deniable.protocol.mechanisms.dbitflip import DBitFlip
from deniable.protocol.mechanisms.hashed import MemoizedLocalHashing
from deniable.protocol.mechanisms.memoized_retention import MemoizedRetention
from deniable.protocol.mechanisms.number_range import NumberRange
from deniable.protocol.mechanisms.rappor import BasicRappor, Bloom, Rappor, Rounds
from deniable.protocol.mechanisms.subset_selection import MemoizedSubsetSelection
from deniable_estimator.privacy.composition import Repeated, composed_delta, loss_of
from deniable_estimator.privacy.mechanism_blankets import blanket_of, fresh_round

from .test_memo_covariance import rounds_of
from .test_outsider_enumeration import CASES

_EPSILONS = (0.0, 0.2, 0.5, 0.9, 1.5)
_ROUNDS = Rounds(ONE // 2, ONE // 4, ONE * 3 // 4)

Matrix = np.ndarray


def _chain(mechanism, entries, width):
    """The chances of memos by entry, and of reports by memo."""
    both = [rounds_of(mechanism, each, width) for each in entries]
    return np.array([memo for memo, _ in both]), both[0][1]


_SELECTION = MemoizedSubsetSelection.design(2, 0.4, 1.0)
_THREE = MemoizedSubsetSelection.design(3, 0.5, 0.6, k=1)
_HASHING = MemoizedLocalHashing("a", 1, _SELECTION)
_COHORTS = MemoizedRetention.design("week", 1, ["cohorts"], 0.4, 1.0)
_BASIC = BasicRappor(2, _ROUNDS)
_RAPPOR = Rappor(Bloom("a", 1, 8, 1), _ROUNDS)
_NUMBER = DBitFlip(NumberRange("0", "10"), 4, 1, ONE // 4, ONE // 5)

_CHAINS: dict[str, tuple[Memoizing, tuple[Matrix, Matrix], int, int]] = {
    "memoized": (_SELECTION, _chain(_SELECTION, range(2), 2), 3, 4),
    "memoized, three values": (_THREE, _chain(_THREE, range(3), 3), 2, 4),
    "memoized hashing": (_HASHING, _chain(_HASHING, range(2), 2), 2, 4),
    "who comes back": (_COHORTS, _chain(_COHORTS.channels[0], range(3), 3), 2, 4),
    # Two values whose filters set a bit each; the others say the same of both.
    "basic RAPPOR": (_BASIC, _chain(_BASIC, (1, 2), 2), 3, 2),
    "RAPPOR": (_RAPPOR, _chain(_RAPPOR, (1, 2), 2), 2, 2),
    # A number in another row and one in the cell of the row, of a device that keeps the row.
    "dBitFlip": (_NUMBER, _chain(_NUMBER, (1, 0), 1), 4, 2),
}
"""A mechanism, its two rounds, the devices, and the windows. In cohorts and rows that a device
keeps, the devices are those of its own."""


def test_every_mechanism_with_memos_is_enumerated():
    """A mechanism with memos that ships has a chain here."""
    shipped = {mechanism.name: mechanism for mechanism, _, _ in CASES.values()}
    named = {name for name in MECHANISMS if isinstance(shipped[name], Memoizing)}
    assert {mechanism.name for mechanism, *_ in _CHAINS.values()} == named


def _device(rounds, history):
    """The distribution of all reports of one device, in order, under a history of values."""
    memo, fresh = rounds
    met = sorted(set(history))
    found = {}
    for memos in product(range(memo.shape[1]), repeat=len(met)):
        drawn = math.prod(float(memo[x, m]) for x, m in zip(met, memos, strict=True))
        of = dict(zip(met, memos, strict=True))
        for reports in product(range(fresh.shape[1]), repeat=len(history)):
            chance = drawn * math.prod(
                float(fresh[of[x], u]) for x, u in zip(history, reports, strict=True)
            )
            found[reports] = found.get(reports, 0.0) + chance
    return found


def _crowd(rounds, histories):
    """The distribution of how often each report is made in each window: a number for each window,
    whose digits in base 16 are the counts."""
    counts = {(0,) * len(histories[0]): 1.0}
    for history in histories:
        grown = {}
        device = _device(rounds, history)
        for seen, chance in counts.items():
            for reports, likelihood in device.items():
                key = tuple(n + (1 << 4 * u) for n, u in zip(seen, reports, strict=True))
                grown[key] = grown.get(key, 0.0) + chance * likelihood
        counts = grown
    return counts


def _exact(first, second):
    """The least delta at each epsilon."""
    return [
        sum(
            max(0.0, first.get(key, 0.0) - math.exp(epsilon) * second.get(key, 0.0))
            for key in first.keys() | second.keys()
        )
        for epsilon in _EPSILONS
    ]


def _worst(rounds, count, windows, *, stays):
    """The largest delta at each epsilon, over histories of the device and values of the others."""
    values = range(min(2, rounds[0].shape[0]))
    histories = list(product(values, repeat=windows))
    if stays:
        histories = [each for each in histories if len(set(each)) == 1]
    worst = [0.0] * len(_EPSILONS)
    for others in ([0] * (count - 1), [place % 2 for place in range(count - 1)]):
        rest = [(value,) * windows for value in others]
        found = [_crowd(rounds, [*rest, history]) for history in histories]
        for first, second in product(found, repeat=2):
            if first is not second:
                worst = list(map(max, worst, _exact(first, second)))
    return worst


def _fresh_round(mechanism):
    found = fresh_round(mechanism)
    assert found is not None
    return found


@pytest.mark.parametrize("case", _CHAINS)
def test_values_that_stay_are_covered(case):
    """Of two values that stay, whatever the others have. A known wrong claim fails: that many
    windows reveal no more of such a value than one."""
    mechanism, rounds, count, windows = _CHAINS[case]
    found = _fresh_round(mechanism)
    assert found.apart == pytest.approx(np.abs(rounds[0][0] - rounds[0][1]).sum() / 2)

    def bound(reports, epsilon):
        loss = loss_of(found.report, reports, 1e-12)
        given = math.log1p(math.expm1(epsilon) / found.apart)
        return found.apart * composed_delta([Repeated(loss, windows)], given)

    def claim(reports, epsilon):
        return blanket_of(mechanism).delta(epsilon, reports)

    wrong = 0
    for devices in sorted({1, count}):
        exact = _worst(rounds, devices, windows, stays=True)
        for epsilon, least in zip(_EPSILONS, exact, strict=True):
            assert bound(devices, epsilon) >= least - 1e-12, (devices, epsilon)
            wrong += claim(devices, epsilon) < least - 1e-12
    assert wrong


@pytest.mark.parametrize(
    "case",
    [
        "memoized",
        "memoized hashing",
        # Half a minute: all histories of three values.
        pytest.param("memoized, three values", marks=pytest.mark.campaign),
    ],
)
def test_values_that_change_are_covered(case):
    """Of all histories. A known wrong bound fails: what single reports reveal, composed as if each
    had a memo of its own."""
    mechanism, rounds, count, windows = _CHAINS[case]
    found = _fresh_round(mechanism)
    assert found.any_history
    wrong = 0
    for devices in sorted({1, count}):
        exact = _worst(rounds, devices, windows, stays=False)
        right, single = (
            Repeated(loss_of(each, devices, 1e-12), windows)
            for each in (found.report, blanket_of(mechanism))
        )
        for epsilon, least in zip(_EPSILONS, exact, strict=True):
            assert composed_delta([right], epsilon) >= least - 1e-12, (devices, epsilon)
            wrong += composed_delta([single], epsilon) < least - 1e-12
    assert wrong


@pytest.mark.parametrize("case", ["basic RAPPOR", "RAPPOR", "dBitFlip"])
def test_bitmaps_claim_nothing_for_values_that_change(case):
    """The bound for bitmaps is that for values that stay, and says so."""
    assert not _fresh_round(_CHAINS[case][0]).any_history
