"""The wire format: vectors, round trips, and what is refused."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable import WireError
from deniable.protocol.mechanisms import Packing, Report, Row
from deniable.protocol.wire import (
    LATEST,
    SealedReport,
    check_batch_id,
    encode_batch,
    new_batch_id,
    pack_columns,
    unpack_columns,
)

VECTORS = json.loads((Path(__file__).parents[2] / "client" / "vectors" / "wire.json").read_text())


def row_of(case):
    row = case["row"]
    return Row(row["width"], Packing(row["packing"]), row["columns"])


@pytest.mark.parametrize("case", VECTORS["columns"]["valid"], ids=lambda case: case["why"])
def test_column_vectors(case):
    """Published columns pack and unpack as published."""
    row = row_of(case)
    columns = case["set"][0] if row.packing is Packing.INDEX else sum(1 << c for c in case["set"])
    assert pack_columns(row, Report(0, columns)) == case["packed"]
    assert unpack_columns(row, case["packed"]) == columns


@pytest.mark.parametrize("case", VECTORS["columns"]["invalid"], ids=lambda case: case["why"])
def test_invalid_column_vectors(case):
    """Columns that no device of ours could have sent are refused with their reason."""
    with pytest.raises(WireError) as caught:
        unpack_columns(row_of(case), case["packed"])
    assert caught.value.reason == "bad_columns"


@pytest.mark.parametrize("case", VECTORS["batches"], ids=lambda case: case["why"])
def test_batch_vectors(case):
    """A batch is these bytes, exactly."""
    reports = [SealedReport(**each) for each in case["answers"]]
    assert encode_batch(case["batch"], reports).decode() == case["body"]


@st.composite
def rows_and_columns(draw):
    width = draw(st.integers(1, 300))
    packing = draw(st.sampled_from(Packing))
    if packing is Packing.INDEX:
        return Row(width, packing), draw(st.integers(0, width - 1))
    chosen = draw(st.sets(st.integers(0, width - 1), min_size=1))
    fixed = packing is Packing.LIST or draw(st.booleans())
    row = Row(width, packing, len(chosen) if fixed else None)
    return row, sum(1 << column for column in chosen)


@given(rows_and_columns())
def test_round_trip(case):
    """What is packed and sent as JSON is what is unpacked, for every packing."""
    row, columns = case
    packed = json.loads(json.dumps(pack_columns(row, Report(0, columns))))
    assert unpack_columns(row, packed) == columns


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(rows_and_columns(), json_values)
def test_anything_else_is_refused_or_well_formed(case, packed):
    """Whatever JSON stands for the columns, it is a valid report or a WireError."""
    row, _ = case
    try:
        columns = unpack_columns(row, packed)
    except WireError:
        return
    if row.packing is Packing.INDEX:
        assert 0 <= columns < row.width
    else:
        assert columns >> row.width == 0
        assert row.columns in (None, columns.bit_count())


@pytest.mark.parametrize(
    "text", ["", "abc", "G" * 32, "A" * 32, "0" * 33, 7, None, "0" * 31 + "\n"]
)
def test_bad_batch_ids(text):
    """Anything but 32 lower-case hex digits is no batch id."""
    with pytest.raises(WireError) as caught:
        check_batch_id(text)
    assert caught.value.reason == "bad_batch_id"


def test_ids_and_times_are_those_of_the_protocol():
    """An id is 128 bits of the source as 32 digits, and reports are taken for six days."""
    counts = []

    def bits(count):
        counts.append(count)
        return 0xABC

    assert new_batch_id(bits) == "abc".rjust(32, "0")
    assert counts == [128]
    first, second = new_batch_id(), new_batch_id()
    assert check_batch_id(first) == first != second
    assert LATEST == 6 * 24 * 60 * 60
