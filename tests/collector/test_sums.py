"""Counting in bulk, against counting one by one."""

from __future__ import annotations

import numpy as np
import pytest

from deniable_collector.batches import folding
from deniable_collector.batches.folding import count_bitmaps


@pytest.mark.parametrize("width", [1, 7, 8, 9, 64, 70, 128, 1000])
@pytest.mark.parametrize("few", [1, 1 << 13])
@pytest.mark.parametrize("block", [1 << 10, 1 << 22])
@pytest.mark.parametrize("number", [0, 1, 8, 9, 26, 27, 28, 500, 4_099])
def test_bitmaps(monkeypatch, width, few, block, number):
    """Carry-save addition counts each column as adding bits does, whatever the shape."""
    monkeypatch.setattr(folding, "_FEW_BYTES", few)
    monkeypatch.setattr(folding, "_ADDED_BYTES", block)
    draw = np.random.default_rng([width, number])
    bits = draw.random((number, width)) < draw.random(width)
    bitmaps = np.packbits(bits, axis=1, bitorder="little")
    assert count_bitmaps(bitmaps, width).tolist() == bits.sum(axis=0).tolist()
