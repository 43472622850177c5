"""Reads a file as UTF-8 text, with an error that says what is wrong with it."""

from __future__ import annotations

import codecs
from pathlib import Path

from deniable_estimator.rappor.errors import RapporFileError

__all__ = ["decode_text", "read_bytes", "read_text"]


def read_bytes(path: Path) -> bytes:
    """The file without a byte order mark.

    Raises:
        RapporFileError: it cannot be read.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = error.strerror or "cannot be read"
        raise RapporFileError(path, None, f"{reason}; check the path") from error
    return data.removeprefix(codecs.BOM_UTF8)


def decode_text(path: Path, data: bytes) -> str:
    """The bytes of that file as text.

    Raises:
        RapporFileError: they are not UTF-8.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise RapporFileError(path, line, "is not UTF-8; save the file in that encoding") from None


def read_text(path: Path) -> str:
    """The file as text.

    Raises:
        RapporFileError: it cannot be read, or is not UTF-8.
    """
    return decode_text(path, read_bytes(path))
