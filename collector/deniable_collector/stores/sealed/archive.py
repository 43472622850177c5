"""Where sealed blocks are: in the store itself, in a folder of files, or in a bucket of objects.

A store keeps a block itself, or the name of its file. A file is written, read back and durable
before the store refers to it, and its name is never used twice. So a crash leaves at worst a file
that nothing refers to, and two collectors that seal the same window write two files.

A folder or bucket is marked at its first use: it has a file `MARKER` with a random id, which the
store remembers. A folder that is not mounted has no such file, and is refused.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import PurePosixPath
from typing import Protocol
from urllib.parse import quote

from deniable_collector.stores.base import Store
from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.errors import StoreError, StoreUnavailable
from deniable_collector.stores.sealed.blocks import (
    DIGEST_BYTES,
    GoneFile,
    UnknownFolder,
    UnreadableFile,
    damaged,
    digest_in,
)
from deniable_collector.stores.sealed.folder import Folder
from deniable_collector.stores.sealed.places import MARKER, Away, NotThere, Place, PlaceTrouble

__all__ = ["IN_THE_STORE", "Archive", "file_of", "in_the_store", "place_of"]

_HERE, _FILE = b"\x00", b"\x01"
"""The first byte of what a store keeps: the block follows, or the name of its file."""

_LONGEST_NAME = 100
"""The most characters of a metric's name in that of a file."""

_BUCKET = "s3://"

_AWAY_SECONDS = 5.0
"""For so long nobody waits for a place again that did not answer."""


class _Memory(Protocol):
    """What a store remembers of its archive."""

    def archive_id(self) -> str | None: ...

    def keep_archive_id(self, identity: str) -> str: ...

    def block_files(self) -> frozenset[str]: ...


def place_of(address: str) -> Place | None:
    """The folder or bucket that an address names; None for an empty one.

    Raises:
        StoreError: it names neither, or the library for buckets is not installed.
    """
    if not address:
        return None
    if address.startswith(_BUCKET):
        # boto3 takes half a second to import, and most stores do not need it.
        from deniable_collector.stores.sealed.bucket import Bucket

        return Bucket(address)
    if "://" in address:
        raise StoreError(
            "DENIABLE_ARCHIVE must be a folder or s3://bucket/prefix, and names neither: a server "
            "that speaks S3 is named by AWS_ENDPOINT_URL"
        )
    return Folder(address)


def file_of(kept: bytes) -> str:
    """The name of the file of a block, by what a store keeps for it; empty if it has none."""
    # Its last part only: nothing that stands in a store leads out of the folder.
    return PurePosixPath(kept[1:].decode("utf-8", "replace")).name if kept[:1] == _FILE else ""


def in_the_store(block: bytes) -> bytes:
    """What a store keeps for a block that it has itself."""
    return _HERE + block


class Archive:
    """Puts sealed blocks where `address` says, and finds them: a folder, s3://bucket/prefix, or
    the store itself if it is empty.

    `memory` is the store; without it, nothing is marked.

    Raises:
        StoreError: as `place_of` does.
    """

    def __init__(self, address: str = "", memory: _Memory | None = None) -> None:
        self.address = address
        self._memory = memory
        self.place = place_of(address)
        self._away = "", 0.0

    def of(self, store: Store) -> Archive:
        """The same of a store, which remembers the mark."""
        return Archive(self.address, store)

    def put(self, tally: TallyKey, block: bytes) -> bytes:
        """What the store keeps for a block.

        Raises:
            StoreUnavailable: its file cannot be written, or the place is not that of this store.
        """
        if self.place is None:
            return in_the_store(block)
        # A file of tallies that was imported may name its metrics in any way.
        metric = quote(tally.metric, safe="")[:_LONGEST_NAME]
        # Its digest, so that the file of another store's window of this name is not taken for it.
        unique = f"{secrets.token_hex(8)}.{digest_in(block)}"
        name = f"{metric}.{tally.scheme}.{tally.window}.{unique}.block"
        try:
            self._check()
            self.place.write(name, block)
            if self.place.read(name) != block:
                raise damaged(tally, "did not read back from its file")
        except PlaceTrouble as error:
            raise StoreUnavailable(
                f"{self.place.what} takes no blocks ({error}): the window stays as it is, with all "
                "of its counts"
            ) from error
        return _FILE + name.encode()

    def copy(self, name: str, block: bytes) -> None:
        """Write a block of another place under its name.

        Raises:
            StoreUnavailable: it cannot be written, or does not read back.
        """
        assert self.place is not None
        try:
            self.place.write(name, block)
            whole = self.place.read(name) == block
        except PlaceTrouble as error:
            raise StoreUnavailable(f"{self.place.what} takes no blocks ({error})") from error
        if not whole:
            raise StoreUnavailable(f"a block did not read back from {self.place.what}")

    def get(self, tally: TallyKey, kept: bytes) -> bytes:
        """The block for what the store keeps. What is in it is not checked here.

        Raises:
            GoneFile: its file is not there.
            DamagedBlock: its file has another block.
            UnknownFolder: the folder or bucket of its file is not known.
            UnreadableFile: its file cannot be read, or the place is not that of this store.
        """
        if kept[:1] == _HERE:
            return kept[1:]
        place, name = self._place_of(tally), file_of(kept)
        try:
            with self._waiting():
                block = place.read(name)
        except NotThere:
            if (why := self._strange()) is not None:
                raise UnreadableFile(f"{_of(tally)} cannot be read: {why}", tally=tally) from None
            raise GoneFile(str(damaged(tally, f"is not in {place.what}")), tally) from None
        except PlaceTrouble as error:
            raise UnreadableFile(
                f"{_of(tally)} cannot be read from {place.what} ({error})", tally=tally
            ) from error
        sealed = name.split(".")[-2:-1]
        # The first versions wrote names without a digest.
        if sealed and len(sealed[0]) == 2 * DIGEST_BYTES and sealed[0] != digest_in(block):
            raise damaged(tally, "has another file in its place")
        return block

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """For calls of the place that come one after the other: a year of windows would wait a
        minute for each."""
        why, until = self._away
        if time.monotonic() < until:
            raise Away(why)
        try:
            yield
        except Away as error:
            self._away = str(error), time.monotonic() + _AWAY_SECONDS
            raise

    def check_forgetting(self, tally: TallyKey, kept: bytes) -> None:
        """Return if the file of a block can be deleted, or there is none.

        Raises:
            StoreError: the place of its file is not known.
            StoreUnavailable: the place is away or not that of this store, or lets nobody delete.
        """
        if kept[:1] != _FILE:
            return
        place = self._place_of(tally)
        try:
            with self._waiting():
                place.check_deleting()
        except PlaceTrouble as error:
            raise StoreUnavailable(
                f"{place.what} {error}: the file of metric {tally.metric}, window {tally.window} "
                "would stay. If its files are gone for ever, run `deniable store move` to a new "
                "place first"
            ) from error
        if (why := self._strange()) is not None:
            raise StoreUnavailable(why)

    def forget(self, tally: TallyKey, kept: bytes) -> None:
        """Delete the file of a block to which the store no longer refers, if it can be deleted."""
        if kept[:1] == _FILE and self.place is not None:
            with suppress(PlaceTrouble):
                self.place.delete(file_of(kept))

    def _check(self) -> None:
        """Return if the place is that of this store. At the store's first use of a place, mark it.

        Raises:
            PlaceTrouble: it cannot be reached.
            StoreUnavailable: it is not.
        """
        assert self.place is not None
        if self._memory is None:
            return
        known, there = self._memory.archive_id(), self.place.mark()
        why = self._unlike(known, there)
        if known is None and why is None:
            there = there or self.place.make(secrets.token_hex(16))
            known = self._memory.keep_archive_id(there)
            why = self._unlike(known, there)
        if why is not None:
            raise StoreUnavailable(why)

    def trouble(self) -> str | None:
        """Why no block could be written now, and what to do; None if one could be, or if blocks
        stay in the store. It marks no place, and deletes what it writes.

        Raises:
            StoreError: the store itself cannot be read.
        """
        if self.place is None:
            return None
        known = None if self._memory is None else self._memory.archive_id()
        try:
            why = self._unlike(known, self.place.mark())
            if why is None:
                self.place.check_writing()
        except PlaceTrouble as error:
            return self._words(f"cannot be used ({error})")
        return why

    def take(self, place: Place) -> None:
        """Mark a place for this store's blocks, to which they can be copied.

        Raises:
            StoreUnavailable: it belongs to other stores, or cannot be written.
        """
        assert self._memory is not None
        try:
            there = place.make(self._memory.archive_id() or secrets.token_hex(16))
        except PlaceTrouble as error:
            raise StoreUnavailable(f"{place.what} cannot be used ({error})") from error
        if self._memory.keep_archive_id(there) != there:
            raise StoreUnavailable(
                f"{place.what} has the blocks of other stores: name another folder, or another "
                "prefix in the bucket"
            )

    def _strange(self) -> str | None:
        """Why the place is not that of this store; None if it is, or if nobody can tell."""
        if self.place is None or self._memory is None:
            return None
        known = self._memory.archive_id()
        try:
            return None if known is None else self._unlike(known, self.place.mark())
        except PlaceTrouble as error:
            return f"{self.place.what} cannot be used ({error})"

    def _unlike(self, known: str | None, there: str | None) -> str | None:
        """Why a place with this mark is not that of this store; None if it is, or can become it."""
        assert self.place is not None
        if known is None:
            # Stores of earlier versions have files, and no mark.
            used = frozenset[str]() if self._memory is None else self._memory.block_files()
            strange = used and not used.intersection(self.place.names())
            return self._words("has none of the blocks of this store") if strange else None
        if there is None:
            return self._words(f"has no file {MARKER}, so it is not the one of this store")
        return None if there == known else self._words("has the blocks of other stores")

    def _words(self, why: str) -> str:
        assert self.place is not None
        return f"{self.place.what} {why}: {self.place.advice}"

    def _place_of(self, tally: TallyKey) -> Place:
        if self.place is None:
            raise UnknownFolder(
                f"metric {tally.metric}, window {tally.window} is sealed in a folder of files or "
                "in a bucket: set DENIABLE_ARCHIVE to it",
                tally,
            )
        return self.place


def _of(tally: TallyKey) -> str:
    return f"the sealed block of metric {tally.metric}, window {tally.window}"


IN_THE_STORE = Archive()
"""Blocks stay in the store."""
