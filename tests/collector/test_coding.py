"""Counters in few bytes: what comes back, and how few they are."""

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from deniable_collector.stores.commits import MAX_CELL, TallyKey
from deniable_collector.stores.sealed import (
    DamagedBlock,
    add,
    add_counters,
    block_of,
    encode,
    reports_in,
)

TALLY = TallyKey("m", "abcdefabcdef", "2026-11-20")


def decode(data, count):
    """The numbers that were encoded."""
    numbers = np.zeros(count, np.int64)
    add(data, numbers)
    return numbers


def counters_in(tally, size, block):
    """The vector in a block."""
    counters = np.zeros(size, np.int64)
    add_counters(tally, counters, block)
    return counters


def entropy(counts):
    """Bytes of the entropy of order 0 of these counts: what no code of single counts goes below."""
    _, often = np.unique(counts, return_counts=True)
    return -float(often @ np.log2(often / len(counts))) / 8


@settings(max_examples=300)
@given(
    arrays(
        np.int64,
        st.integers(0, 300),
        elements=st.one_of(
            st.integers(0, 2), st.integers(0, 300), st.integers(0, MAX_CELL), st.just(MAX_CELL)
        ),
        fill=st.integers(0, 3),
    )
)
def test_numbers_come_back(numbers):
    """Whatever the numbers are, up to the largest counter, they are read back exactly."""
    found = decode(encode(numbers), len(numbers))
    assert found.dtype == np.int64
    assert np.array_equal(found, numbers)
    total = np.arange(len(numbers))
    add(encode(numbers), total)
    assert np.array_equal(total, numbers + np.arange(len(numbers)))


@pytest.mark.parametrize("lowest", [0, 5, MAX_CELL - (1 << 40)])
@pytest.mark.parametrize("most", [1, 2, 977, 1 << 40])
@pytest.mark.parametrize("size", [16_383, 16_384, 16_385, 40_001])
def test_numbers_of_several_slices_come_back(size, most, lowest):
    """Numbers that are written and read a slice at a time are exact at the slices' edges, whatever
    the smallest is."""
    numbers = np.arange(size) ** 3 % (most + 1) + lowest
    assert np.array_equal(decode(encode(numbers), size), numbers)


@settings(max_examples=300)
@given(st.binary(max_size=60), st.integers(0, 40))
def test_other_bytes_are_refused(data, count):
    """Bytes that nobody encoded are numbers of the right count, or a ValueError, nothing else."""
    with contextlib.suppress(ValueError):
        assert len(decode(data, count)) == count


@pytest.mark.parametrize("cells", [16, 256, 4_096, 65_536, 1 << 20])
@pytest.mark.parametrize("reports", [10**3, 10**5, 10**7])
@pytest.mark.parametrize("share", [None, 0.27, 0.5])
def test_a_block_is_near_the_entropy_of_its_counts(cells, reports, share):
    """A block has at most 1.3 times the entropy of its counts and 200 bytes, from one report in
    many cells to ten million in each, whether a report sets one cell (None) or a share of all."""
    draw = np.random.default_rng([cells, reports])
    drawn = (
        draw.poisson(reports / cells, cells)
        if share is None
        else draw.binomial(reports, share, cells)
    )
    counters = np.append(reports, drawn).astype(np.int64)
    block = block_of(TALLY, 1, counters)
    assert np.array_equal(counters_in(TALLY, len(counters), block), counters)
    assert len(block) <= 1.3 * entropy(drawn) + 200


@settings(max_examples=100)
@given(st.data())
def test_a_changed_block_is_refused(data):
    """A block with any byte changed, cut short or prolonged, or of another tally is told in words
    with its metric and window, and never read as counts."""
    counters = np.arange(50)
    block = block_of(TALLY, 3, counters)
    assert reports_in(TALLY, block).tolist() == [0, 1, 2]
    where = data.draw(st.integers(1, len(block) - 1))
    change = data.draw(st.integers(1, 255))
    changed = block[:where] + bytes((block[where] ^ change,)) + block[where + 1 :]
    for wrong in (changed, block[:where], block + b"\0", b"", b"\1"):
        for read in (reports_in, lambda tally, each: counters_in(tally, 50, each)):
            with pytest.raises(DamagedBlock, match="metric m, window 2026-11-20"):
                read(TALLY, wrong)
    with pytest.raises(DamagedBlock, match="window 2026-11-21"):
        counters_in(TALLY._replace(window="2026-11-21"), 50, block)


def test_rows_of_another_size_are_refused():
    """A block for another number of counters is not read as this one."""
    block = block_of(TALLY, 1, np.arange(50))
    for size in (0, 49, 51):
        with pytest.raises(DamagedBlock):
            counters_in(TALLY, size, block)
