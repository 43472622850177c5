"""Files that a command edits: by one command at a time, and replaced in one step."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from deniable import DeniableError


class FileEditError(DeniableError):
    """The file was not changed; the message says why."""


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Wait until no other command changes a file in the folder of this one. A symbolic link stays
    a link: the folder is that of the file that it names, and is made if only it is missing.

    Raises:
        FileEditError: the file or its folder cannot be written.
    """
    # The lock is the folder's, because replacing a file takes a lock of the file itself away.
    try:
        path.resolve().parent.mkdir(mode=0o700, exist_ok=True)
        handle = os.open(path.resolve().parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)
    except OSError as error:
        raise FileEditError(
            f"{path} cannot be written ({error.strerror}): its folder must exist, and this user "
            "must be able to write to the folder, because the file is replaced in one step"
        ) from None


def replace_file(path: Path, text: str, mode: int) -> None:
    """Write the file anew. Its mode and owner stay; a new file gets `mode`."""
    target = path.resolve()
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    new = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if target.exists():
                status = target.stat()
                # The dashboard's user must still be able to read it.
                with suppress(PermissionError):
                    os.fchown(file.fileno(), status.st_uid, status.st_gid)
                mode = status.st_mode & 0o7777
            os.fchmod(file.fileno(), mode)
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        new.replace(target)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
