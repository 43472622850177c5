"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def written(path: Path, mode: int = 0o600, *, replacing: bool = True) -> Iterator[BinaryIO]:
    """A file that gets its name when it is complete and on the disk. A new one gets `mode`; one
    that is replaced keeps its mode and its owner.

    Raises:
        FileExistsError: it is there, and is not to be replaced.
        OSError: it cannot be written.
    """
    target = path.resolve() if replacing else path
    descriptor, name = tempfile.mkstemp(".part", f".{target.name}.", target.parent)
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if replacing and target.exists():
                status = target.stat()
                # Who reads it must still be able to.
                with suppress(PermissionError):
                    os.fchown(file.fileno(), status.st_uid, status.st_gid)
                mode = status.st_mode & 0o7777
            os.fchmod(file.fileno(), mode)
            yield file
            file.flush()
            os.fsync(file.fileno())
        if replacing:
            draft.replace(target)
        else:
            os.link(draft, target)
    finally:
        draft.unlink(missing_ok=True)
