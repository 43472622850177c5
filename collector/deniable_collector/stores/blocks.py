"""Sealed blocks: a tally that accepts no more reports, compressed, with a digest.

A block is a byte for the version, a digest, and the counters: u32 rows, u32 length, then the
reports of the rows and all cells, each as `coding.encode` writes them, little-endian. The digest is
BLAKE2b of the tally's name and of what follows it, so that neither a damaged block nor that of
another tally is taken for this one.

A store keeps a block itself, or the name of a file in the folder of `Archive`.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import struct
import tempfile
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from deniable_collector.stores import coding
from deniable_collector.stores.base import StoreError, StoreUnavailable, TallyKey

__all__ = [
    "IN_THE_STORE",
    "UNREADABLE",
    "Archive",
    "DamagedBlock",
    "GoneFile",
    "UnknownFolder",
    "UnreadableFile",
    "add_counters",
    "block_of",
    "counters_in",
    "file_of",
    "files_in",
    "reports_in",
]

_VERSION = 1
_DIGEST = 16
_HEAD = struct.Struct("<II")
_BODY = 1 + _DIGEST

_HERE, _FILE = b"\x00", b"\x01"
"""The first byte of what a store keeps: the block follows, or the name of its file."""

_LONGEST_NAME = 100
"""The most characters of a metric's name in that of a file."""


class DamagedBlock(StoreError):
    """A block or its file is not what was sealed; other windows can still be read."""


class GoneFile(DamagedBlock):
    """The file of a block is not there: the window may just have been opened again."""


class UnreadableFile(StoreUnavailable):
    """The file of a block cannot be read now; other windows may be readable."""


class UnknownFolder(StoreError):
    """A block is in a file, and this process is not told in which folder."""


UNREADABLE = (DamagedBlock, UnreadableFile, UnknownFolder)
"""A window cannot be read, and others can."""


def block_of(tally: TallyKey, rows: int, counters: NDArray[np.int64]) -> bytes:
    """The block of a tally's vector, of which the first `rows` counters are reports.

    What was written is read again before it is returned.

    Raises:
        StoreError: it did not read back as the same counters.
    """
    reports = coding.encode(counters[:rows])
    body = _HEAD.pack(rows, len(reports)) + reports + coding.encode(counters[rows:])
    block = bytes((_VERSION,)) + _digest(tally, body) + body
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
        StoreError: a newer version wrote it.
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
    if block[:1] > bytes((_VERSION,)):
        raise StoreError(
            f"the sealed block of metric {tally.metric}, window {tally.window} was written by a "
            "newer version of deniable: upgrade this one"
        )
    body = block[_BODY:]
    if len(body) < _HEAD.size or block[1:_BODY] != _digest(tally, body):
        raise _damaged(tally)
    rows, length = _HEAD.unpack_from(body)
    return rows, body[_HEAD.size : _HEAD.size + length], body[_HEAD.size + length :]


def _digest(tally: TallyKey, body: bytes) -> bytes:
    found = hashlib.blake2b(digest_size=_DIGEST)
    for part in (*(each.encode() for each in tally), body):
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return found.digest()


def _digest_in(block: bytes) -> str:
    return block[1:_BODY].hex()


def _damaged(tally: TallyKey, what: str = "is damaged") -> DamagedBlock:
    return DamagedBlock(
        f"the sealed block of metric {tally.metric}, window {tally.window} {what}: restore it from "
        "a backup or leave this window out; all others can be read"
    )


def file_of(kept: bytes) -> str:
    """The name of the file of a block, by what a store keeps for it; empty if it has none."""
    # Its last part only: nothing that stands in a store leads out of the folder.
    return Path(kept[1:].decode("utf-8", "replace")).name if kept[:1] == _FILE else ""


def files_in(folder: Path) -> list[str]:
    """The names of all blocks in a folder, and of those that a crash left half written."""
    return sorted(each.name for form in ("*.block", ".*.part") for each in folder.glob(form))


class Archive:
    """Where sealed blocks are: in the store itself, or as files in a folder.

    A file is written, read back and on the disk before the store refers to it, and its name is
    never used twice. So a crash leaves at worst a file that nothing refers to.
    """

    def __init__(self, folder: str = "") -> None:
        self._folder = Path(folder) if folder else None

    def put(self, tally: TallyKey, block: bytes) -> bytes:
        """What the store keeps for a block.

        Raises:
            StoreUnavailable: its file cannot be written.
        """
        if self._folder is None:
            return _HERE + block
        # A file of tallies that was imported may name its metrics in any way.
        metric = quote(tally.metric, safe="")[:_LONGEST_NAME]
        # Its digest, so that the file of another store's window of this name is not taken for it.
        unique = f"{secrets.token_hex(8)}.{_digest_in(block)}"
        name = f"{metric}.{tally.scheme}.{tally.window}.{unique}.block"
        try:
            _write(self._folder / name, block)
            if (self._folder / name).read_bytes() != block:
                raise _damaged(tally, "did not read back from its file")
        except OSError as error:
            raise StoreUnavailable(
                f"the folder of DENIABLE_ARCHIVE takes no blocks ({error.strerror}): the window "
                "stays as it is, with all of its counts"
            ) from error
        return _FILE + name.encode()

    def get(self, tally: TallyKey, kept: bytes) -> bytes:
        """The block for what the store keeps. What is in it is not checked here.

        Raises:
            GoneFile: its file is not there.
            DamagedBlock: its file has another block.
            StoreError: the folder of its file is not known.
            UnreadableFile: its file cannot be read.
        """
        if kept[:1] == _HERE:
            return kept[1:]
        path = self._path(tally, kept)
        try:
            block = path.read_bytes()
        except FileNotFoundError:
            raise GoneFile(
                str(_damaged(tally, "is not in the folder of DENIABLE_ARCHIVE"))
            ) from None
        except OSError as error:
            raise UnreadableFile(
                f"the sealed block of metric {tally.metric}, window {tally.window} cannot be read "
                f"from the folder of DENIABLE_ARCHIVE ({error.strerror})"
            ) from error
        sealed = path.name.split(".")[-2:-1]
        # The first versions wrote names without a digest.
        if sealed and len(sealed[0]) == 2 * _DIGEST and sealed[0] != _digest_in(block):
            raise _damaged(tally, "has another file in its place")
        return block

    def check_forgetting(self, tally: TallyKey, kept: bytes) -> None:
        """Return if the file of a block can be deleted, or there is none.

        Raises:
            StoreError: the folder of its file is not known.
            StoreUnavailable: the folder is away, or lets nobody delete in it.
        """
        if kept[:1] != _FILE:
            return
        folder = self._path(tally, kept).parent
        if not os.access(folder, os.W_OK | os.X_OK):
            why = "lets this process delete no files" if folder.is_dir() else "is not there"
            raise StoreUnavailable(
                f"the folder of DENIABLE_ARCHIVE {why}: the file of metric {tally.metric}, window "
                f"{tally.window} would stay. If its files are gone for ever, make an empty folder"
            )

    def forget(self, tally: TallyKey, kept: bytes) -> None:
        """Delete the file of a block to which the store no longer refers, if it can be deleted."""
        if kept[:1] == _FILE and self._folder is not None:
            with suppress(OSError):
                self._path(tally, kept).unlink()

    def _path(self, tally: TallyKey, kept: bytes) -> Path:
        if self._folder is None:
            raise UnknownFolder(
                f"metric {tally.metric}, window {tally.window} is sealed in a folder of files: "
                "set DENIABLE_ARCHIVE to it"
            )
        return self._folder / file_of(kept)


IN_THE_STORE = Archive()
"""Blocks stay in the store."""


def _write(path: Path, block: bytes) -> None:
    """A file that gets its name when it is complete and on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(".part", ".", path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(block)
            file.flush()
            os.fsync(file.fileno())
        # Readers may be other users, as far as the folder lets them in.
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
