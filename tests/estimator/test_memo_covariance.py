"""Changes of metrics with memos: what the noise of one device has in common in two windows, and how
often intervals of a change hold it."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from deniable.mechanisms import (
    BasicRappor,
    Bloom,
    DBitFlip,
    MemoizedLocalHashing,
    MemoizedSubsetSelection,
    Memoizing,
    NumberRange,
    Rappor,
    Report,
    Rounds,
    all_names,
)
from deniable.mechanisms.base import ONE

Matrix = NDArray[np.float64]

_ROUNDS = Rounds(ONE // 2, ONE // 4, ONE * 3 // 4)
_STRINGS = ["Bergen", "Oslo", "Bodø", "Molde", "Narvik"]

CASES: dict[str, tuple[Memoizing[Any], list[Any]]] = {
    "randomized response": (MemoizedSubsetSelection.design(2, 1.0, 3.0), [0, 1]),
    "two of five": (MemoizedSubsetSelection.design(5, 1.0, 3.0, k=2), list(range(5))),
    "hashing": (
        MemoizedLocalHashing("a", 3, MemoizedSubsetSelection.design(3, 1.0, 3.0, k=1)),
        _STRINGS,
    ),
    "basic RAPPOR": (BasicRappor(4, _ROUNDS), list(range(4))),
    "RAPPOR": (Rappor(Bloom("a", 3, 4, 2), _ROUNDS), _STRINGS),
    "dBitFlip, one row": (
        DBitFlip(NumberRange("0", "10"), 4, 4, ONE // 4, ONE // 5),
        [-1, 2, 7, 12],
    ),
    "dBitFlip, two rows": (
        DBitFlip(NumberRange("0", "10"), 4, 2, ONE // 4, ONE // 5),
        [-1, 2, 7, 12],
    ),
}


def _flips(true: int, width: int, one: float, zero: float) -> Matrix:
    """The distribution of the bitmaps that come of one whose bits are 1 with these chances."""
    each = [one if true >> place & 1 else zero for place in range(width)]
    return np.array(
        [
            math.prod(p if made >> place & 1 else 1 - p for place, p in enumerate(each))
            for made in range(1 << width)
        ]
    )


def _rounds(mechanism: Memoizing[Any], entry: int, width: int) -> tuple[Matrix, Matrix]:
    """The chances of the memos of an entry, and of the reports of each memo."""
    if isinstance(mechanism, MemoizedLocalHashing):
        return _rounds(mechanism.channel, entry, width)
    if isinstance(mechanism, MemoizedSubsetSelection):
        size, k = mechanism.size, mechanism.k
        p1, q1 = float(mechanism.permanent.p), float(mechanism.permanent.q)
        made = [each for each in range(1 << size) if each.bit_count() == k]
        likely = mechanism.fresh.likelihood
        fresh = [
            [float(likely(Report(0, s.bit_length() - 1 if k == 1 else s), m)) for s in made]
            for m in range(size)
        ]
        return np.array([p1 if m == entry else q1 for m in range(size)]), np.array(fresh)
    if isinstance(mechanism, DBitFlip):
        a, g = float(mechanism.memo_flipped), mechanism.fresh / ONE
        true = 1 << entry if entry < width else 0
        memo = _flips(true, width, 1 - a, a)
        return memo, np.array([_flips(m, width, 1 - g, g) for m in range(1 << width)])
    assert isinstance(mechanism, BasicRappor | Rappor)
    rounds = mechanism.rounds
    turned = rounds.f / (2 * ONE)
    memo = _flips(entry, width, 1 - turned, turned)
    p, q = rounds.p / ONE, rounds.q / ONE
    return memo, np.array([_flips(m, width, q, p) for m in range(1 << width)])


def covariance(mechanism: Memoizing[Any], row: int, x: Any, y: Any) -> Matrix:
    """That of the indicators of all reports of a device in two windows, in which it has the values
    x and y: whatever is read from a report is a weighted sum of these."""
    width = mechanism.rows[row].width
    one, two = mechanism.cell(row, x), mechanism.cell(row, y)
    (memo, fresh), (other, again) = (_rounds(mechanism, each, width) for each in (one, two))
    if one == two:
        joint = fresh.T @ (memo[:, None] * fresh)
    else:
        joint = sum(
            a * b * np.outer(fresh[m], again[n])
            for (m, a), (n, b) in product(enumerate(memo), enumerate(other))
        )
    return np.asarray(joint - np.outer(memo @ fresh, other @ again))


def test_every_mechanism_with_memos_is_here() -> None:
    """A mechanism with memos that ships is enumerated."""
    shipped = {mechanism.name for mechanism, _ in CASES.values()}
    assert shipped == {name for name in all_names() if "memo" in name} | {
        *("basic_rappor", "rappor", "dbitflip")
    }


@pytest.mark.parametrize("case", CASES)
def test_memos_never_make_up_for_each_other(case: str) -> None:
    """Given a device's row, no function of one report has a negative covariance in two windows:
    the same entry has a covariance without negative eigenvalues, and another entry has none. So
    sqrt(sigma1**2 + sigma2**2) holds for cells, sums of cells, means and quantiles alike."""
    mechanism, values = CASES[case]
    same = 0
    for row in range(len(mechanism.rows)):
        for x, y in product(values, repeat=2):
            found = covariance(mechanism, row, x, y)
            assert np.abs(found.sum(axis=0)).max() < 1e-12
            if mechanism.cell(row, x) == mechanism.cell(row, y):
                same += 1
                assert np.allclose(found, found.T)
                least = np.linalg.eigvalsh(found).min()
                assert least > -1e-12
                assert np.trace(found) > 1e-6
            else:
                assert np.abs(found).max() < 1e-12
    assert same >= len(values)


@pytest.mark.parametrize(("cells", "most"), [(16, 0.0), (64, 0.03)])
def test_rows_take_little_from_a_sum_of_cells(cells: int, most: float) -> None:
    """A device of dBitFlip keeps its row. If its number moves to a cell of another row, sums that
    hold both cells are negatively correlated: at epsilon 1 never with 16 cells, which are one row,
    and with 64 by at most 3% of the variance, were all devices to move between the same two."""
    mechanism = DBitFlip.design(NumberRange("0", "1000"), 1.0, 4.0, cells)
    rows, found = len(mechanism.rows), [0.0]
    for below in range(1, cells):
        centred = (np.arange(cells) < below) - below / cells
        noise = float(mechanism.share_variance) * (centred**2).sum()
        for x, y in ((0, 1), (0, below - 1), (below, cells - 1), (cells - 2, cells - 1)):
            if x < y < cells and x % rows != y % rows:
                pull = -centred[x] * centred[y]
                own = noise + (rows - 1) * (centred[x] ** 2 + centred[y] ** 2) / 2
                found.append(-pull / own)
    assert max(found) <= most
    assert most == 0 or max(found) > most / 2
