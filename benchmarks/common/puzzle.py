"""Apple's sequence fragment puzzle, by its marginals.

Each device draws one position of its string, padded to a length, and reports the fragment there
with a hash of 8 bits of the whole string through a sketch. The server takes the likeliest fragments
of each position, joins those with the same hash, and keeps what has that hash as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import mmh3
import numpy as np
from numpy.typing import NDArray

PAD = "_"
LETTERS = "abcdefghijklmnopqrstuvwxyz" + PAD
HASHES = 256
LENGTH = 2


class Fragments(NamedTuple):
    """Strings as fragments."""

    places: NDArray[np.int64]
    """The number of each fragment with the hash of its string, shape (strings, positions)."""
    positions: int


def _hash(text: str) -> int:
    found: int = mmh3.hash(text, 7, signed=False)
    return found % HASHES


def fragments_of(texts: Sequence[str], length: int) -> Fragments:
    """The fragments of strings of LETTERS without PAD, at most `length` of them."""
    positions = length // LENGTH
    number = {letter: place for place, letter in enumerate(LETTERS)}
    places = np.zeros((len(texts), positions), np.int64)
    for row, text in enumerate(texts):
        padded = text.ljust(length, PAD)
        for position in range(positions):
            one, two = padded[LENGTH * position : LENGTH * (position + 1)]
            pair = number[one] * len(LETTERS) + number[two]
            places[row, position] = pair * HASHES + _hash(text)
    return Fragments(places, positions)


def puzzle(
    fragments: Fragments,
    counts: NDArray[np.int64],
    rates: tuple[float, float],
    best: int,
    rng: np.random.Generator,
) -> list[str]:
    """The strings that the `best` fragments of each position make.

    `rates` is how often a report supports its fragment, and another one.
    """
    size, (p, q) = len(LETTERS) ** LENGTH * HASHES, rates
    left = np.array(counts)
    chosen: list[dict[int, list[str]]] = []
    for position in range(fragments.positions):
        here = rng.binomial(left, 1 / (fragments.positions - position))
        left -= here
        held = np.bincount(fragments.places[:, position], here, size).astype(np.int64)
        support = rng.binomial(held, p) + rng.binomial(int(here.sum()) - held, q)
        by_hash: dict[int, list[str]] = {}
        for place in np.argsort(-support)[:best].tolist():
            pair, key = divmod(place, HASHES)
            text = LETTERS[pair // len(LETTERS)] + LETTERS[pair % len(LETTERS)]
            by_hash.setdefault(key, []).append(text)
        chosen.append(by_hash)
    found = []
    for key in set.intersection(*(set(each) for each in chosen)):
        for parts in product(*(each[key] for each in chosen)):
            text = "".join(parts).rstrip(PAD)
            if text and PAD not in text and _hash(text) == key:
                found.append(text)
    return found
