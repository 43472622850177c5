"""What text looks like: which bytes may follow a prefix (`steps`), and how likely each byte is
after the byte before it (`Prior`).

The decoder asks a prior which continuations of a prefix are plausible. A prior is made from public
lists alone (make_prior.py), never from the tally that it decodes: the reports would confirm
themselves. It is used on the server only, so it may be replaced after the reports were collected.

With C[a, b] how often byte b followed byte a, row 256 for the start of a string and column 0 for
its end, c the sum of all rows of C, and 200 a round number of bytes that text can hold::

    B[a] = .98 C[a] / sum(C[a]) + .02 c / sum(c)
    L[a, b] = log(.95 B[a, b] + .05 / 200)

So no byte is impossible. A string of a list counts as the square root of its frequency: rare words
say as much about spelling as common ones.

Which two bytes may follow a prefix is said by UTF-8 (RFC 3629, section 4) and the letters of an
alphabet. A prefix may end inside a letter, so it leaves a state: which bytes the letter still
lacks. A letter that is cut by the declared length is allowed; it ends in whatever state it is.
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.mechanisms.prefix_tree import ALPHABETS, WINDOW
from deniable_estimator.errors import EstimateError
from deniable_estimator.messages import message
from deniable_estimator.statistics.intervals import FloatArray

FORMAT = "deniable byte pairs 1"

START = 256
"""The row of the start of a string."""

MAX_PRIOR = 4 << 20
"""The largest file of a prior, in bytes; the shipped one has less than a tenth of that."""

SHIPPED = Path(__file__).with_name("prior.json")

_SCALE = 1_000_000
"""What the counts of one list add up to."""

_MOST_COUNT = 1 << 40
_LONGEST = 200
"""Bytes of a string that count."""
_SMOOTHING, _UNIFORM, _BYTES = 0.02, 0.05, 200
_NUMBERS = {str(byte): byte for byte in range(256)}
"""The key of each byte."""
_CONTROL = -6.0
"""What a control character loses, which the alphabets exclude anyway."""


@dataclass(frozen=True, eq=False)
class Prior:
    """How often each byte followed each other one in public text."""

    counts: FloatArray
    """Shape (257, 256): row 256 is the start of a string, column 0 its end."""
    source: str
    """What it was made from."""
    licence: str
    """Under which licence the lists are."""

    @property
    def logs(self) -> FloatArray:
        """L[a, b], the logarithm of the probability of byte b after byte a, shape (257, 256)."""
        total = self.counts.sum(axis=0)
        every = total / total.sum()
        each = np.maximum(self.counts.sum(axis=1, keepdims=True), 1e-12)
        smooth = self.counts / each * (1 - _SMOOTHING) + _SMOOTHING * every
        smooth /= smooth.sum(axis=1, keepdims=True)
        logs: FloatArray = np.log((1 - _UNIFORM) * smooth + _UNIFORM / _BYTES)
        logs[:, 1:32] += _CONTROL
        logs[:, 127] += _CONTROL
        logs[0] = -50.0
        logs[0, 0] = 0.0  # nothing follows the end
        return logs

    def to_json(self) -> str:
        """The file of it: a line for each byte, with the bytes that follow it and their counts."""
        rows = []
        for byte, row in enumerate(self.counts):
            pairs = {str(at): math.ceil(row[at]) for at in np.flatnonzero(row).tolist()}
            if pairs:
                name = "start" if byte == START else str(byte)
                rows.append(f"  {json.dumps(name)}: {json.dumps(pairs, separators=(',', ':'))}")
        head = {"format": FORMAT, "source": self.source, "licence": self.licence}
        lines = [f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}," for k, v in head.items()]
        return "\n".join(["{", *lines, '"follows": {', ",\n".join(rows), "}}", ""])


def counted_pairs(texts: Iterable[tuple[str, float]]) -> FloatArray:
    """The pairs of bytes of strings with their frequencies, shape (257, 256), which add up to
    1,000,000; zeros without strings. Only the first 200 bytes of a string count.

    Raises:
        ValueError: a string is not valid Unicode.
    """
    counts = np.zeros((START + 1) * 256)
    places: list[int] = []
    sizes: list[int] = []
    weights: list[float] = []
    for text, frequency in texts:
        data = unicodedata.normalize("NFC", text).encode()[:_LONGEST]
        before = START
        for byte in data:
            places.append(before * 256 + byte)
            before = byte
        places.append(before * 256)
        sizes.append(len(data) + 1)
        weights.append(math.sqrt(frequency))
    if places:
        counts += np.bincount(places, np.repeat(weights, sizes), len(counts))
        counts *= _SCALE / counts.sum()
    return counts.reshape(START + 1, 256)


@lru_cache(maxsize=1)
def shipped_prior() -> Prior:
    """The one that comes with deniable; its file tells the lists and their licences."""
    return read_prior(SHIPPED)


def read_prior(path: Path) -> Prior:
    """The prior of a file that make_prior.py has written.

    Raises:
        EstimateError: it cannot be read, or is no such file.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_PRIOR + 1)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise _broken(path, message("it cannot be read: {why}", why=why)) from None
    if len(content) > MAX_PRIOR:
        raise _broken(path, message("it is larger than {most:,} bytes", most=MAX_PRIOR))
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise _broken(path, message("it is not JSON")) from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise _broken(path, message("its format is not {format}", format=FORMAT))
    source, licence = found.get("source"), found.get("licence")
    if not (isinstance(source, str) and isinstance(licence, str)):
        raise _broken(path, message("source and licence must be texts"))
    return Prior(_counts(path, found.get("follows")), source, licence)


def _counts(path: Path, follows: Any) -> FloatArray:
    counts = np.zeros((START + 1, 256))
    if not isinstance(follows, dict):
        raise _broken(path, message("follows must be an object"))
    for name, row in follows.items():
        before = START if name == "start" else _NUMBERS.get(name)
        if before is None or not isinstance(row, dict):
            raise _broken(path, message("each key of follows must be a byte or start"))
        for key, count in row.items():
            byte = _NUMBERS.get(key)
            if byte is None or type(count) is not int or not 0 <= count <= _MOST_COUNT:
                raise _broken(path, message("each count must be a whole number beside a byte"))
            counts[before, byte] = count
    if not counts.any():
        raise _broken(path, message("it counts nothing"))
    return counts


def _broken(path: Path, why: str) -> EstimateError:
    return EstimateError(
        message(
            "{path} is no prior: {why}. Make one with "
            "`python -m deniable_estimator.analyses.discovery.make_prior`",
            path=str(path),
            why=why,
        )
    )


DEAD = -1
"""No text goes on like this."""
BETWEEN = 0
"""Between two letters."""
ENDED = 1
"""The string is over."""

# One, two or three more continuation bytes; and the next one limited, after E0, ED, F0 and F4,
# so that no letter is written longer than need be, is half of a surrogate pair, or is too large.
_ONE, _TWO, _THREE, _E0, _ED, _F0, _F4 = range(2, 9)
_STATES = 9


@lru_cache(maxsize=8)
def steps(alphabet: str) -> NDArray[np.int8]:
    """The state after a token in a state, shape (9, 65,536); DEAD where none is allowed.

    `alphabet` is a name out of `prefix_tree.ALPHABETS`.
    """
    singles = [each for each in ALPHABETS[alphabet] if each < 0x80]
    others = max(ALPHABETS[alphabet]) >= 0x80
    one = np.full((_STATES, 256), DEAD, np.int8)
    one[BETWEEN, singles] = BETWEEN
    one[BETWEEN, 0] = one[ENDED, 0] = ENDED
    if others:
        one[BETWEEN, 0xC2:0xE0] = _ONE
        one[BETWEEN, 0xE0:0xF0] = _TWO
        one[BETWEEN, 0xE0], one[BETWEEN, 0xED] = _E0, _ED
        one[BETWEEN, 0xF0:0xF5] = _THREE
        one[BETWEEN, 0xF0], one[BETWEEN, 0xF4] = _F0, _F4
    one[_ONE, 0x80:0xC0] = BETWEEN
    one[_TWO, 0x80:0xC0] = _ONE
    one[_THREE, 0x80:0xC0] = _TWO
    one[_E0, 0xA0:0xC0] = _ONE
    one[_ED, 0x80:0xA0] = _ONE
    one[_F0, 0x90:0xC0] = _TWO
    one[_F4, 0x80:0x90] = _TWO
    two = np.where(one[:, :, None] == DEAD, np.int8(DEAD), one[one])
    found: NDArray[np.int8] = two.reshape(_STATES, WINDOW)
    found.flags.writeable = False
    return found
