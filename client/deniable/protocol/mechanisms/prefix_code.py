"""Where the pieces of a string fall in the tables of discovery: what devices and servers share.

A string is cut to its *head*, the bytes that can be found, and the head into *tokens* of two bytes.
Row r of the M + 1 rows counts which token follows which prefix of 2 r bytes::

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

from deniable.protocol.hashing import hash_bytes, is_unicode

TOKEN_BYTES = 2
"""Bytes in a token."""

WINDOW = 1 << 8 * TOKEN_BYTES
"""How many tokens there are."""

END = 0
"""The token after the last byte of a string, and for ever after it."""

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
    """The token that follows the first 2 * `row` bytes of a head, from 0 to 65,535."""
    start = TOKEN_BYTES * row
    piece = found[start : start + TOKEN_BYTES]
    return int.from_bytes(piece.ljust(TOKEN_BYTES, b"\0"), "big")


def base(salt: str, row: int, prefix: bytes, width: int) -> int:
    """The place of token 0 after a prefix, in a row of `width` places.

    `prefix` is the first 2 * `row` bytes of a head, or all of a head that is shorter.
    """
    return hash_bytes(salt, row, prefix) % width


def place(salt: str, row: int, levels: int, found: bytes, width: int) -> int:
    """The place of a head in one of the `levels` + 1 rows."""
    after = token(found, row) if row < levels else END
    return (base(salt, row, found[: TOKEN_BYTES * row], width) + after) % width
