"""Hashing: published places of strings, and what normalization makes equal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from deniable.hashing import hash64, hash_key

VECTORS = json.loads(
    (Path(__file__).parents[2] / "client" / "vectors" / "hashing.json").read_text()
)


@pytest.mark.parametrize("case", VECTORS["valid"])
def test_vectors(case: dict[str, Any]) -> None:
    """Every published string has its key and its hash in each row."""
    assert hash_key(case["salt"], case["text"]).hex() == case["key"]
    hashes = [f"{hash64(case['salt'], row, case['text']):016x}" for row in range(len(case["rows"]))]
    assert hashes == case["rows"]


@pytest.mark.parametrize("text", VECTORS["invalid"])
def test_lone_surrogates_are_refused(text: str) -> None:
    """A string that has no UTF-8 form is refused, and the message does not repeat it."""
    with pytest.raises(ValueError, match="lone surrogate") as caught:
        hash64("city", 0, text)
    assert caught.value.__context__ is None
    assert text not in str(caught.value)
    assert ascii(text)[1:-1] not in str(caught.value)


def test_composed_and_decomposed_strings_are_one() -> None:
    """The same text in another normal form has the same hash."""
    assert hash64("city", 3, "A\u030alesund") == hash64("city", 3, "\u00c5lesund")


def test_salt_and_text_do_not_run_together() -> None:
    """Moving a letter from the text to the salt changes the hash."""
    assert hash64("ab", 0, "c") != hash64("a", 0, "bc")


def test_rows_and_salts_are_independent() -> None:
    """Places of 4,000 strings in two rows, or under two salts, are even and unrelated.

    Chi-square over a 16 x 16 table for each of three pairs, alpha = 1e-6; deterministic.
    """
    texts = [f"string {number}" for number in range(4000)]
    for one, other in [(("a", 0), ("a", 1)), (("a", 1), ("a", 2)), (("a", 0), ("b", 0))]:
        table = [0] * 256
        for text in texts:
            table[hash64(*one, text) % 16 * 16 + hash64(*other, text) % 16] += 1
        assert 1e-6 < stats.chisquare(table).pvalue < 1 - 1e-6
