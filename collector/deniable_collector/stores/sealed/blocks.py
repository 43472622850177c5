"""Sealed blocks: a tally that accepts no more reports, compressed, with a digest.

A block is a digest and the counters: u32 rows, u32 length, then the
reports of the rows and all cells, each as `coding.encode` writes them, little-endian. The digest is
BLAKE2b of the tally's name and of what follows it, so that neither a damaged block nor that of
another tally is taken for this one.
"""

from __future__ import annotations

import hashlib
import struct

import numpy as np
from numpy.typing import NDArray

from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.errors import StoreError
from deniable_collector.stores.sealed import coding

_DIGEST_BYTES = 16
_HEAD = struct.Struct("<II")


class DamagedBlock(StoreError):
    """A block is not what was sealed; other windows can still be read. `tally` names its window."""

    def __init__(self, message: str, tally: TallyKey) -> None:
        self.tally = tally
        super().__init__(message)


def block_of(tally: TallyKey, rows: int, counters: NDArray[np.int64]) -> bytes:
    """The block of a tally's vector, of which the first `rows` counters are reports.

    What was written is read again before it is returned.

    Raises:
        StoreError: it did not read back as the same counters.
    """
    reports = coding.encode(counters[:rows])
    body = _HEAD.pack(rows, len(reports)) + reports + coding.encode(counters[rows:])
    block = _digest(tally, body) + body
    if not np.array_equal(counters_in(tally, len(counters), block), counters):
        raise StoreError(
            f"metric {tally.metric}, window {tally.window} was not sealed: its block does not read "
            "back as the same counts. Its counts are whole; please report this"
        )
    return block


def counters_in(tally: TallyKey, size: int, block: bytes) -> NDArray[np.int64]:
    """The vector of shape (size,) in a block.

    Raises:
        DamagedBlock: it is damaged, or of another tally.
    """
    counters = np.zeros(size, np.int64)
    add_counters(tally, counters, block)
    return counters


def add_counters(tally: TallyKey, total: NDArray[np.int64], block: bytes) -> None:
    """Add the counters in a block to a vector of the tally's size.

    Raises:
        DamagedBlock: as `counters_in` does.
    """
    rows, reports, cells = _parts(tally, block)
    try:
        if rows > len(total):
            raise ValueError("more rows than counters")
        coding.add(reports, total[:rows])
        coding.add(cells, total[rows:])
    except ValueError:
        raise _damaged(tally) from None


def reports_in(tally: TallyKey, block: bytes) -> NDArray[np.int64]:
    """The reports of each row in a block, without reading its cells.

    Raises:
        DamagedBlock: as `counters_in` does.
    """
    rows, reports, _ = _parts(tally, block)
    try:
        return coding.decode(reports, rows)
    except ValueError:
        raise _damaged(tally) from None


def _parts(tally: TallyKey, block: bytes) -> tuple[int, bytes, bytes]:
    digest, body = block[:_DIGEST_BYTES], block[_DIGEST_BYTES:]
    if len(body) < _HEAD.size or digest != _digest(tally, body):
        raise _damaged(tally)
    rows, length = _HEAD.unpack_from(body)
    return rows, body[_HEAD.size : _HEAD.size + length], body[_HEAD.size + length :]


def _digest(tally: TallyKey, body: bytes) -> bytes:
    found = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in (*(each.encode() for each in tally), body):
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return found.digest()


def _damaged(tally: TallyKey) -> DamagedBlock:
    """The error for a block that is not what was sealed."""
    return DamagedBlock(
        f"the sealed block of metric {tally.metric}, window {tally.window} is damaged: restore it "
        "from a backup or leave this window out; all others can be read",
        tally,
    )
