"""The contract of a place for files of blocks: a folder (`folder.py`) or a bucket (`bucket.py`)."""

from __future__ import annotations

from abc import ABC, abstractmethod

__all__ = ["MARKER", "Away", "NotThere", "Place", "PlaceTrouble"]

MARKER = "deniable-archive"
"""The file by which a place is known: a random id, in hexadecimal."""


class PlaceTrouble(Exception):
    """Why a file cannot be written, read or deleted, in words without an address or a secret."""


class NotThere(PlaceTrouble):
    """There is no such file."""


class Away(PlaceTrouble):
    """The place does not answer, whatever file is asked for."""


class Place(ABC):
    """Files of blocks by their names. A name is written once, so files never change.

    Every method raises `PlaceTrouble` if the place is away, slow or refuses.
    """

    what: str
    """The place in words, which name the setting."""
    advice: str
    """What to do when it is not that of the store."""

    @abstractmethod
    def write(self, name: str, block: bytes) -> None:
        """Write a file that nobody sees before it is complete and durable."""

    @abstractmethod
    def read(self, name: str) -> bytes:
        """All of a file.

        Raises:
            NotThere: there is none of this name.
        """

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete a file; nothing happens if it is not there."""

    @abstractmethod
    def check_deleting(self) -> None:
        """Return if files can be deleted."""

    @abstractmethod
    def check_writing(self) -> None:
        """Return if files can be written; what it writes to find out is deleted. A folder that is
        not there yet is not made."""

    @abstractmethod
    def names(self) -> list[str]:
        """All blocks, and what a crash has left half written."""

    @abstractmethod
    def make(self, identity: str) -> str:
        """Make the place if it is not there, and mark it unless it is marked. Returns its mark."""

    def mark(self) -> str | None:
        """The id in `MARKER`; None if there is none."""
        try:
            return self.read(MARKER).decode("ascii", "replace").strip()
        except NotThere:
            return None
