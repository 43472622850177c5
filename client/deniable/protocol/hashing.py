"""Where a string falls in the public hash tables: MurmurHash3 of its NFC form, salted.

    key  = salt, one zero byte, the string in Unicode normal form C; as UTF-8
    h    = MurmurHash3 x64 128 of the key, with seed row // 2
    hash = the lower (row even) or upper (row odd) 64 bits of h

The hash spreads strings evenly, but hides nothing: salts are public, so that an analyst
can look for any candidate. Privacy comes only from the noise.
`client/vectors/hashing.json` holds test vectors.
"""

from __future__ import annotations

import unicodedata

import mmh3

from deniable.protocol.value_list import is_unicode


def hash_key(salt: str, text: str) -> bytes:
    """The bytes that are hashed for a string under a salt.

    Raises:
        ValueError: the string is not valid Unicode: it holds half of a surrogate pair.
    """
    joined = f"{salt}\0{unicodedata.normalize('NFC', text)}"
    if not is_unicode(joined):
        raise ValueError("the string is not valid Unicode: it holds a lone surrogate")
    return joined.encode()


def hash64(salt: str, row: int, text: str) -> int:
    """The hash of a string in one row of its tables, a number in [0, 2**64).

    Raises:
        ValueError: the string is not valid Unicode.
    """
    return _half(hash_key(salt, text), row)


def hash_bytes(salt: str, row: int, key: bytes) -> int:
    """The same of bytes in place of a string."""
    return _half(salt.encode() + b"\0" + key, row)


def _half(key: bytes, row: int) -> int:
    halves: tuple[int, int] = mmh3.hash64(key, row >> 1, signed=False)
    return halves[row & 1]
