"""A folder of files of blocks, which all collectors and readers of a store can reach."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from deniable_collector.stores.sealed.places import MARKER, NotThere, Place, PlaceTrouble

__all__ = ["Folder"]


class Folder(Place):
    """The files in one folder."""

    what = "the folder of DENIABLE_ARCHIVE"
    advice = (
        "mount it, or correct DENIABLE_ARCHIVE. To use another folder, `deniable store move` brings"
        " the blocks there"
    )

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def write(self, name: str, block: bytes) -> None:
        with _told():
            _write(self._path / name, block)

    def read(self, name: str) -> bytes:
        with _told():
            return (self._path / name).read_bytes()

    def delete(self, name: str) -> None:
        with _told(), suppress(FileNotFoundError):
            (self._path / name).unlink()

    def check_deleting(self) -> None:
        if not os.access(self._path, os.W_OK | os.X_OK):
            there = self._path.is_dir()
            raise PlaceTrouble("lets this process delete no files" if there else "is not there")

    def check_writing(self) -> None:
        with _told():
            if self._path.exists():
                # An open file tells more than rights do: the disk may be full or read-only.
                descriptor, name = tempfile.mkstemp(".part", ".", self._path)
                os.close(descriptor)
                Path(name).unlink()
                return
        above = next(each for each in self._path.absolute().parents if each.exists())
        if not (above.is_dir() and os.access(above, os.W_OK | os.X_OK)):
            raise PlaceTrouble("it is not there, and cannot be made")

    def names(self) -> list[str]:
        with _told():
            forms = ("*.block", ".*.part")
            return sorted(each.name for form in forms for each in self._path.glob(form))

    def make(self, identity: str) -> str:
        with _told():
            self._path.mkdir(parents=True, exist_ok=True)
            # Two processes may do this at the same moment: the first one's id stands.
            _write(self._path / MARKER, f"{identity}\n".encode(), keep=True)
        return self.mark() or ""


@contextmanager
def _told() -> Iterator[None]:
    """Turns errors of the file system into ours."""
    try:
        yield
    except FileNotFoundError as error:
        raise NotThere(error.strerror) from error
    except OSError as error:
        raise PlaceTrouble(error.strerror) from error


def _write(path: Path, content: bytes, *, keep: bool = False) -> None:
    """A file that gets its name when it is complete and on the disk; `keep` leaves one that is
    there."""
    descriptor, name = tempfile.mkstemp(".part", ".", path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # Readers may be other users, as far as the folder lets them in.
        Path(name).chmod(0o644)
        if keep:
            with suppress(FileExistsError):
                path.hardlink_to(name)
            Path(name).unlink()
        else:
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
