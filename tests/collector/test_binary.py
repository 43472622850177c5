"""Binary batches: the vectors, every kind of row, and what is refused, against the JSON route."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable import WireError
from deniable.mechanisms import Packing, Report, Row
from deniable_collector.batches import binary
from deniable_collector.batches.binary import Layout, decode, encode, sum_records
from deniable_collector.batches.folding import merged

VECTORS = json.loads((Path(__file__).parents[2] / "client" / "vectors" / "binary.json").read_text())


def rows_of(case):
    return [Row(each["width"], Packing(each["packing"]), each["columns"]) for each in case["rows"]]


def increments_of(summed):
    return merged([summed.increments], summed.blocks)


def sums_of(summed):
    """row -> (reports, column -> count), of the columns that are added to."""
    sums = {}
    for row, each in increments_of(summed).items():
        pairs = zip(map(int, each.columns), map(int, each.counts), strict=True)
        sums[row] = each.reports, {column: count for column, count in pairs if count}
    return sums


def as_columns(row, columns):
    return columns[0] if row.packing is Packing.INDEX else sum(1 << each for each in columns)


@pytest.mark.parametrize("case", VECTORS["valid"], ids=lambda case: case["why"])
def test_valid_vectors(case):
    """A batch is these bytes, exactly, and they are read as what was written."""
    rows = rows_of(case)
    reports = [Report(row, as_columns(rows[row], columns)) for row, columns in case["reports"]]
    names = [case[name] for name in ("batch", "metric", "scheme", "window")]
    assert encode(*names, rows, reports).hex() == case["body"]
    batch = decode(bytes.fromhex(case["body"]))
    assert [batch.id, batch.metric, batch.scheme, batch.window] == names
    summed = sum_records(batch, Layout(rows))
    assert not len(summed.bad_rows)
    assert not len(summed.bad_columns)
    truth = {}
    for row, columns in case["reports"]:
        number, counts = truth.get(row, (0, Counter()))
        counts.update(columns)
        truth[row] = number + 1, counts
    assert sums_of(summed) == truth


@pytest.mark.parametrize("case", VECTORS["malformed"], ids=lambda case: case["why"])
def test_malformed_vectors(case):
    """A body that is no binary batch, or not one for these rows, is refused as a whole."""
    with pytest.raises(WireError) as caught:
        sum_records(decode(bytes.fromhex(case["body"])), Layout(rows_of(case)))
    assert caught.value.reason == "malformed_batch"


@pytest.mark.parametrize("case", VECTORS["rejected"], ids=lambda case: case["why"])
def test_rejected_vectors(case):
    """Records that no device could have sent are left out, each by its index, and no others."""
    summed = sum_records(decode(bytes.fromhex(case["body"])), Layout(rows_of(case)))
    assert summed.bad_rows.tolist() == case["bad_row"]
    assert summed.bad_columns.tolist() == case["bad_columns"]
    rejected = len(case["bad_row"]) + len(case["bad_columns"])
    accepted = sum(each.reports for each in increments_of(summed).values())
    assert accepted == case["count"] - rejected


@st.composite
def layouts(draw):
    """Some rows, alike or not, and reports of them."""
    rows = []
    for _ in range(draw(st.integers(1, 5))):
        width = draw(st.sampled_from([1, 2, 8, 13, 64, 70, 300, 70_000]))
        packing = draw(st.sampled_from(Packing))
        if packing is Packing.BITMAP and width > 300:
            width = 128
        some = 1 if packing is Packing.INDEX else draw(st.integers(1, min(4, width)))
        if packing is Packing.BITMAP and draw(st.booleans()):
            some = None
        rows.append(Row(width, packing, some))
    reports = []
    for _ in range(draw(st.integers(0, 12))):
        number = draw(st.integers(0, len(rows) - 1))
        row = rows[number]
        least, most = (0, 6) if row.columns is None else (row.columns, row.columns)
        columns = draw(st.sets(st.integers(0, row.width - 1), min_size=least, max_size=most))
        reports.append((number, sorted(columns)))
    return rows, reports


@pytest.mark.parametrize("packing", Packing)
@pytest.mark.parametrize("number", [1, 3])
def test_no_records(packing, number):
    """A batch without records is a batch."""
    rows = [Row(8, packing, 1)] * number
    summed = sum_records(decode(encode("0" * 32, "m", "s", "2026-11-20", rows, [])), Layout(rows))
    assert increments_of(summed) == {}
    assert len(summed.bad_rows) == len(summed.bad_columns) == 0


@settings(deadline=None)
@given(layouts())
def test_what_is_encoded_is_counted(layout):
    """Every kind of row, and rows of several kinds, are summed as their reports say."""
    rows, reports = layout
    body = encode(
        *("0" * 32, "m", "s", "2026-11-20", rows),
        [Report(row, as_columns(rows[row], columns)) for row, columns in reports],
    )
    summed = sum_records(decode(body), Layout(rows))
    assert len(summed.bad_rows) + len(summed.bad_columns) == 0
    truth = {
        number: (
            sum(row == number for row, _ in reports),
            Counter(column for row, columns in reports if row == number for column in columns),
        )
        for number in {row for row, _ in reports}
    }
    assert sums_of(summed) == truth


@settings(deadline=None)
@given(layouts(), st.data())
def test_no_bytes_escape(layout, data):
    """A batch with some of its bytes changed is summed or refused; each record once, or named
    as bad once; nothing else is raised."""
    rows, reports = layout
    body = bytearray(
        encode(
            *("0" * 32, "m", "s", "2026-11-20", rows),
            [Report(row, as_columns(rows[row], columns)) for row, columns in reports],
        )
    )
    for _ in range(data.draw(st.integers(1, 6))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    with suppress(WireError):
        batch = decode(bytes(body))
        summed = sum_records(batch, Layout(rows))
        accepted = sum(each.reports for each in increments_of(summed).values())
        bad = np.concatenate((summed.bad_rows, summed.bad_columns))
        assert len(np.unique(bad)) == len(bad)
        assert accepted + len(bad) == len(batch.records)
        for row, each in increments_of(summed).items():
            assert 0 <= row < len(rows)
            assert max(each.columns, default=0) < rows[row].width


@pytest.mark.parametrize("skew", [1, 20])
def test_rows_of_many_and_few(skew):
    """Cohorts are summed apart from each other, whether they are alike in size or not."""
    rows = [Row(70, Packing.BITMAP, None)] * 30
    draw = np.random.default_rng(skew)
    named = (30 * draw.random(400) ** skew).astype(int).tolist()
    reports = [(row, np.flatnonzero(draw.random(70) < 0.3).tolist()) for row in named]
    body = encode(
        *("0" * 32, "m", "s", "2026-11-20", rows),
        [Report(row, as_columns(rows[row], columns)) for row, columns in reports],
    )
    truth = {
        number: (
            named.count(number),
            Counter(column for row, columns in reports if row == number for column in columns),
        )
        for number in set(named)
    }
    assert sums_of(sum_records(decode(body), Layout(rows))) == truth


@pytest.mark.parametrize(
    ("numbers", "size"),
    [(1, 1), (2, 1), (256, 1), (257, 2), (65_536, 2), (65_537, 3), (1 << 24, 3), (1 << 23, 3)],
)
def test_numbers_take_no_more_bytes_than_they_need(numbers, size):
    """A number below `numbers` has so many bytes, in a list of columns as by itself."""
    assert binary._bytes_for(numbers) == size
    row = Row(numbers, Packing.LIST, 1)
    assert binary._column_bytes(row) == size
    assert binary._pack(row, 1 << (numbers - 1)) == (numbers - 1).to_bytes(size, "little")
