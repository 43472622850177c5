"""Counting in bulk, against counting one by one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable_collector.batches import sums
from deniable_collector.batches.sums import count_bitmaps, count_indices


@settings(deadline=None)
@given(st.lists(st.integers(0, 99), max_size=60), st.sampled_from([100, 10_000, 1 << 33]))
def test_indices(indices, size):
    """Each index is counted as often as it occurs, in a small table and in a large one."""
    touched, counts = count_indices(np.array(indices, np.int64), size)
    assert dict(zip(touched.tolist(), counts.tolist(), strict=True)) == Counter(indices)
    assert touched.tolist() == sorted(set(indices))


@pytest.mark.parametrize("size", [20_000, 8_042_221, 1 << 33])
@pytest.mark.parametrize("distinct", [1, 2, 500, 8_000, 9_980, 10_000])
@pytest.mark.parametrize("kind", [np.uint16, np.uint32, np.int64])
def test_repeated_indices(size: int, distinct: int, kind: type[np.integer]) -> None:
    """However many indices of a batch occur again, also in a table where few are expected to, each
    is counted as often as it occurs, and the batch itself stays as it was."""
    draw = np.random.default_rng([size, distinct])
    few = draw.choice(20_000, distinct, replace=False)
    indices = draw.permutation(np.concatenate((few, draw.choice(few, 10_000 - distinct))))
    indices = indices.astype(kind)
    given = indices.copy()
    touched, counts = count_indices(indices, size)
    expected, numbers = np.unique(given, return_counts=True)
    assert (touched == expected).all()
    assert (counts == numbers).all()
    assert touched.dtype == counts.dtype == np.int64
    assert (indices == given).all()


@pytest.mark.parametrize("width", [1, 7, 8, 9, 64, 70, 128, 1000])
@pytest.mark.parametrize("few", [1, 1 << 13])
@pytest.mark.parametrize("block", [1 << 10, 1 << 22])
@pytest.mark.parametrize("number", [0, 1, 8, 9, 26, 27, 28, 500, 4_099])
def test_bitmaps(monkeypatch, width, few, block, number):
    """Carry-save addition counts each column as adding bits does, whatever the shape."""
    monkeypatch.setattr(sums, "_FEW_BYTES", few)
    monkeypatch.setattr(sums, "_BLOCK_BYTES", block)
    draw = np.random.default_rng([width, number])
    bits = draw.random((number, width)) < draw.random(width)
    bitmaps = np.packbits(bits, axis=1, bitorder="little")
    assert count_bitmaps(bitmaps, width).tolist() == bits.sum(axis=0).tolist()
