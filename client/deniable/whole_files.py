"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from pathlib import Path


@contextmanager
def written(path: Path, mode: int | None = 0o600, *, replacing: bool = True) -> Iterator[BinaryIO]:
    """A file that gets its name when it is complete and on the disk. A new one gets `mode`, or
    with None what this process's mask lets others do; one that is replaced keeps its mode and its
    owner. A device or a pipe is written to.

    Raises:
        FileExistsError: it is there, and is not to be replaced.
        OSError: it cannot be written.
    """
    import tempfile  # an app that only records places its state without it

    if replacing and path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    target = path.resolve() if replacing else path
    try:
        descriptor, name = tempfile.mkstemp(".part", f".{target.name}.", target.parent)
    except OSError as error:
        error.filename = str(path)  # and not the draft's name
        raise
    draft = target.with_name(os.path.basename(name))
    try:
        with os.fdopen(descriptor, "wb") as file:
            if os.name == "posix":
                _let_read(file, target, mode)
            yield file
            file.flush()
            os.fsync(file.fileno())
        if replacing:
            draft.replace(target)
        else:
            place(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def place(draft: str | Path, target: str | Path) -> None:
    """Give a complete draft the name of its target, which must not be there yet.

    Raises:
        FileExistsError: it is there.
        OSError: the disk does not work.
    """
    try:
        os.link(draft, target)
    except FileExistsError:
        raise
    except OSError:  # the file system has no hard links, as exFAT and some network folders
        with open(target, "xb"):
            pass
        try:
            os.replace(draft, target)
        except OSError:
            # What is empty is only the name that was taken above.
            with suppress(OSError):
                if not os.path.getsize(target):
                    os.unlink(target)
            raise


def _let_read(file: BinaryIO, target: Path, mode: int | None) -> None:
    """Give a draft the mode and the owner of its target: who reads that must still be able to."""
    if target.exists():
        status = target.stat()
        with suppress(PermissionError):
            os.fchown(file.fileno(), status.st_uid, status.st_gid)
        mode = status.st_mode & 0o7777
    elif mode is None:
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o666 & ~mask
    os.fchmod(file.fileno(), mode)
