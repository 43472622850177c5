"""Hashing: published places of strings, and what normalization makes equal."""

import json
from pathlib import Path

import pytest

from deniable.protocol.hashing import hash64, hash_key

VECTORS = json.loads(
    (Path(__file__).parents[2] / "client" / "vectors" / "hashing.json").read_text()
)


@pytest.mark.parametrize("case", VECTORS["valid"])
def test_vectors(case):
    """Every published string has its key and its hash in each row."""
    assert hash_key(case["salt"], case["text"]).hex() == case["key"]
    hashes = [f"{hash64(case['salt'], row, case['text']):016x}" for row in range(len(case["rows"]))]
    assert hashes == case["rows"]


@pytest.mark.parametrize("text", VECTORS["invalid"])
def test_lone_surrogates_are_refused(text):
    """A string that has no UTF-8 form is refused, and the message does not repeat it."""
    with pytest.raises(ValueError, match="lone surrogate") as caught:
        hash64("city", 0, text)
    assert caught.value.__context__ is None
    assert text not in str(caught.value)
    assert ascii(text)[1:-1] not in str(caught.value)
