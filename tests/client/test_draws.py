"""Draws: the report that each mechanism makes of a value from given random bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deniable.device.ledger import draw
from deniable.protocol.mechanisms import Memoizing, rebuild
from deniable.protocol.randomness import flips, subset
from deniable.protocol.wire import pack_columns

VECTORS = Path(__file__).parents[2] / "client" / "vectors"


class Bytes:
    """A source of bits that takes bytes of a stream and remembers how many."""

    def __init__(self, stream):
        self.stream, self.used = stream, 0

    def __call__(self, count):
        size = (count + 7) >> 3
        taken = self.stream[self.used : self.used + size]
        assert len(taken) == size
        self.used += size
        return int.from_bytes(taken, "little") >> (8 * size - count)


def report(case, bits):
    """The row and the packed columns of a case."""
    mechanism = rebuild(case["mechanism"], case["parameters"])
    if isinstance(mechanism, Memoizing):
        row, memo = draw(bytes.fromhex(case["key"]), case["scheme"], mechanism, case["item"])
        made = mechanism.report(row, memo, bits)
    else:
        made = mechanism.randomize(case["item"], bits)
    return made.row, pack_columns(mechanism.rows[made.row], made)


def on(bitmap):
    return [place for place in range(bitmap.bit_length()) if bitmap >> place & 1]


def of(positions):
    return sum(1 << position for position in positions)


CASES: dict[str, Any] = json.loads((VECTORS / "draws.json").read_text(encoding="utf-8"))


def each(kind):
    return [pytest.param(case, id=f"{kind}-{number}") for number, case in enumerate(CASES[kind])]


@pytest.mark.parametrize("case", each("subsets"))
def test_a_subset_is_drawn_from_the_published_bytes(case):
    """The published bytes, all of them, give the published set."""
    bits = Bytes(bytes.fromhex(case["bytes"]))
    assert on(subset(case["size"], case["count"], bits)) == case["positions"]
    assert bits.used == len(bits.stream)


@pytest.mark.parametrize("case", each("flips"))
def test_bits_are_flipped_by_the_published_bytes(case):
    """The published bytes, all of them, give the published bits."""
    bits = Bytes(bytes.fromhex(case["bytes"]))
    heads = flips(of(case["ones"]), case["size"], case["if_one"], case["if_zero"], bits)
    assert on(heads) == case["heads"]
    assert bits.used == len(bits.stream)


@pytest.mark.parametrize("case", each("reports"))
def test_a_report_is_drawn_from_the_published_bytes(case):
    """The published bytes, all of them, give the published report, which can occur."""
    bits = Bytes(bytes.fromhex(case["bytes"]))
    assert report(case, bits) == (case["row"], case["columns"])
    assert bits.used == len(bits.stream)


def test_all_mechanisms_have_draws():
    """Each mechanism that has vectors has draws too."""
    known = {
        path.stem
        for path in VECTORS.glob("*.json")
        if "mechanisms" in json.loads(path.read_text(encoding="utf-8"))
    }
    assert {case["mechanism"] for case in CASES["reports"]} == known
