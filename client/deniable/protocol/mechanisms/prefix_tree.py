"""Discovery: projective geometry response over prefixes, to find strings that nobody listed.

M + 1 tables are projective spaces of K points each. Table r < M counts which two bytes follow the
first 2 r bytes of a string, and table M counts whole strings. A device draws one table uniformly,
whatever its string is, finds its place there, and reports the place through projective geometry
response with the whole epsilon (`deniable.protocol.mechanisms.projective_geometry`)::

    e**epsilon = that of the channel: the row does not depend on the string
    n_r        = about n / (M + 1) reports in each row
    n_r * Var(share f of a place) = s (1-s) / (p-q)**2,  s = q + f (p-q)

A server extends the prefixes that stand out, level by level, and tests what it finds in the tables
that it has not looked at. This is the prefix tree of Bassily, Nissim, Stemmer and Thakurta
(NeurIPS 2017, TreeHist) with another channel and longer steps.

It is no frequency oracle: table r supports all strings with the same first 2 r + 2 bytes.

Where the pieces of a string fall in the tables, devices and servers share. A string is cut to its
*head*, the bytes that can be found, and the head into *tokens* of two bytes. Row r of the M + 1
rows counts which token follows which prefix of 2 r bytes::

    plain = the first MAX_TEXT characters, in normal form C, up to the first zero character
    head  = the first 2 M bytes of plain in UTF-8; no bytes if one of them is not in the alphabet
    token = byte 2r of the head * 256 + byte 2r + 1; a byte that is missing is 0
    base  = hash of the first 2r bytes of the head in row r, modulo K
    place = (base + token) modulo K; in row M, which counts whole heads, the token is 0

The hash is that of `deniable.protocol.hashing`, over bytes, because a prefix may end inside a
character. Token 0 is the end of the string. All that can follow one prefix lies in the WINDOW
places from its base on, so a server hashes each prefix once to see them all. The head without bytes
stands for every string that has none, holds a byte outside of the alphabet, or is denied.
`client/vectors/discovery.json` holds test vectors.
"""

from __future__ import annotations

import unicodedata
from typing import ClassVar, Self

from deniable.protocol.errors import SchemeError
from deniable.protocol.exact import exp_below
from deniable.protocol.hashing import hash_bytes
from deniable.protocol.mechanisms.base import Channels
from deniable.protocol.mechanisms.limits import SALT, TEXT, check_epsilon
from deniable.protocol.mechanisms.projective_geometry import ProjectiveGeometry
from deniable.protocol.value_list import is_unicode

TOKEN_BYTES = 2
"""Bytes in a token."""

WINDOW = 1 << 8 * TOKEN_BYTES
"""How many tokens there are."""

MAX_TEXT = 1_024
"""How many characters of a string are looked at. To bring a longer one into normal form could take
hours: that takes the square of a run of combining marks."""

_DIGITS = b"0123456789"
_LOWER = b"abcdefghijklmnopqrstuvwxyz"

ALPHABETS: dict[str, bytes] = {
    "bytes": bytes((*range(0x20, 0x7F), *range(0x80, 0xC0), *range(0xC2, 0xF5))),
    "printable": bytes(range(0x20, 0x7F)),
    "identifier": _DIGITS + _LOWER + _LOWER.upper() + b"-._",
    "host": _DIGITS + _LOWER + b"-.",
    "lowercase": _LOWER,
    "hex": _DIGITS + b"abcdef",
}
"""The bytes that a head may have, by the name of the alphabet. `bytes` is all text without control
characters of ASCII; the others are parts of ASCII."""


def plain(text: str) -> str:
    """The part of a string that is looked at, in normal form C.

    Raises:
        ValueError: it is not valid Unicode. The message does not repeat it.
    """
    cut = unicodedata.normalize("NFC", text[:MAX_TEXT]).partition("\0")[0]
    if not is_unicode(cut):
        raise ValueError("is not valid Unicode: it holds a lone surrogate")
    return cut


def head(text: str, levels: int, alphabet: str = "bytes") -> bytes:
    """The first 2 * `levels` bytes of a string; none if one of them is not in the alphabet.

    Raises:
        ValueError: the string is not valid Unicode.
    """
    cut = plain(text).encode()[: TOKEN_BYTES * levels]
    return b"" if cut.translate(None, ALPHABETS[alphabet]) else cut


def token(found: bytes, row: int) -> int:
    """The token that follows the first 2 * `row` bytes of a head, from 0 to 65,535; 0 after its
    last byte, and for ever after it."""
    start = TOKEN_BYTES * row
    piece = found[start : start + TOKEN_BYTES]
    return int.from_bytes(piece.ljust(TOKEN_BYTES, b"\0"), "big")


def base(salt: str, row: int, prefix: bytes, width: int) -> int:
    """The place of token 0 after a prefix, in a row of `width` places.

    `prefix` is the first 2 * `row` bytes of a head, or all of a head that is shorter.
    """
    return hash_bytes(salt, row, prefix) % width


def place(salt: str, row: int, found: bytes, width: int) -> int:
    """The place of a head in a row. In the last row, that of whole heads, the token is 0."""
    return (base(salt, row, found[: TOKEN_BYTES * row], width) + token(found, row)) % width


MAX_DISCOVERY_CELLS = 8_650_000
"""The most cells that a tally of discovery may have: 69 MB of counters. It is a little above
`MAX_CELLS`, so that nine tables at epsilon 2 have the space that was measured."""

MAX_LEVELS = 16
"""The most tokens of a string: 32 bytes."""

_FEW_LEVELS = 8
"""Up to so many levels, tables are of the larger kind."""

_LEAST_POINTS = (700_000, 290_000)
"""Points of a table with few levels, and with more: a window of 65,536 places is a small part."""

_MEASURED = {
    1.0: ((3, 13), (5, 9)),
    2.0: ((7, 8), (13, 6)),
    3.0: ((31, 5), (23, 5)),
    4.0: ((89, 4), (73, 4)),
}
"""(q, t) by epsilon, with few levels and with more: the spaces that were measured."""


class PrefixTree(Channels[str]):
    """Tables for the first `levels` tokens of strings over an alphabet, and one for whole strings.

    Attributes:
        p, q: the chance that a report supports its own place, and any other place of its row.
        width: the points of a table, K.

    Raises:
        SchemeError: levels or an alphabet that there are not, a channel that uses
            a part of its points, or more than MAX_DISCOVERY_CELLS cells in all.
    """

    name: ClassVar[str] = "prefix_tree"
    bounds: ClassVar = {
        "salt": SALT,
        "levels": (1, MAX_LEVELS),
        "alphabet": TEXT,
        "channel": ProjectiveGeometry,
    }

    def __init__(self, salt: str, levels: int, alphabet: str, channel: ProjectiveGeometry) -> None:
        if alphabet not in ALPHABETS:
            known = ", ".join(ALPHABETS)
            raise SchemeError(f"{self.name}: alphabet must be one of {known}, not {alphabet!r}")
        if channel.size != channel.messages:
            raise SchemeError(
                f"{self.name}: size must be {channel.messages}, all points of the space"
            )
        if not 1 <= levels <= MAX_LEVELS or (levels + 1) * channel.messages > MAX_DISCOVERY_CELLS:
            raise SchemeError(
                f"{self.name}: {levels} levels of {channel.messages:,} places are none, above "
                f"{MAX_LEVELS}, or above {MAX_DISCOVERY_CELLS:,} cells in all; take fewer"
            )
        self.salt, self.levels, self.alphabet, self.channel = salt, levels, alphabet, channel
        self.channels = (channel,) * (levels + 1)
        self.width = channel.messages
        self.p, self.q, self.odds = channel.p, channel.q, channel.odds
        self.rows = channel.rows * (levels + 1)

    @classmethod
    def design(cls, salt: str, epsilon: float, levels: int, alphabet: str = "bytes") -> Self:
        """The spaces that were measured for epsilon 1, 2, 3 and 4; for others the space of least
        variance for a rare string, with enough points and MAX_DISCOVERY_CELLS cells in all.
        """
        few = levels <= _FEW_LEVELS
        least, rows = _LEAST_POINTS[not few], (_FEW_LEVELS if few else MAX_LEVELS) + 1
        # Exact: a float that is near to one of these epsilons is another epsilon.
        measured = _MEASURED.get(check_epsilon(epsilon))
        if measured is not None:
            order, dimension = measured[not few]
            channel = ProjectiveGeometry.calibrated(None, order, dimension, exp_below(epsilon))
        else:
            channel = ProjectiveGeometry.best(epsilon, least, MAX_DISCOVERY_CELLS // rows)
        return cls(salt, levels, alphabet, channel)

    def base(self, row: int, prefix: bytes) -> int:
        """The place of token 0 after a prefix; see `base`."""
        return base(self.salt, row, prefix, self.width)

    def place(self, row: int, text: str) -> int:
        """Which point of the channel a string stands for in a row.

        Raises:
            ValueError: the string is not valid Unicode.
        """
        return place(self.salt, row, head(text, self.levels, self.alphabet), self.width)
