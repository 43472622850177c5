"""A file of values, one on each line: a category's long list, or an analyst's candidates."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

from deniable.errors import ValueListError

__all__ = ["MAX_VALUE_BYTES", "parse_values", "read_values"]

MAX_VALUE_BYTES = 256
"""The longest value, in UTF-8 bytes."""

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
_LONG = re.compile(rf"[^\n]{{{MAX_VALUE_BYTES // 4 + 1},}}")


def read_values(path: str | Path) -> list[str]:
    """The values of a UTF-8 file, as `parse_values` finds them.

    Raises:
        ValueListError: the file cannot be read, or its text cannot be taken.
    """
    source = str(path)
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ValueListError(source, None, f"cannot be read: {error.strerror}") from error
    except ValueError:  # a zero byte
        raise ValueListError(source, None, "cannot be read: that is no name of a file") from None
    return parse_values(data, source)


def parse_values(data: bytes, source: str) -> list[str]:
    """The values of UTF-8 text, one on each line, in its order, each normalized to NFC.

    No step runs once for each line, so a million lines take about a second. `source` is
    what errors call the text.

    Raises:
        ValueListError: it is empty, or holds a blank, repeated, overlong or unprintable
            value; the error names the line.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = "is not UTF-8 text; save the file in that encoding"
        raise ValueListError(source, line, message) from None
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n")).removesuffix("\n")
    if not text:
        raise ValueListError(source, None, "holds no value; write one on each line")
    if found := _CONTROL.search(text):
        raise ValueListError(source, _line(text, found.start()), "holds a control character")
    for found in _LONG.finditer(text):
        if len(found[0].encode()) > MAX_VALUE_BYTES:
            message = f"is longer than {MAX_VALUE_BYTES} bytes"
            raise ValueListError(source, _line(text, found.start()), message)
    values = text.split("\n")
    distinct = set(values)
    if not distinct.isdisjoint({"", " "}) or any(map(str.isspace, distinct)):
        blank = next(number for number, value in enumerate(values, 1) if not value.strip())
        raise ValueListError(source, blank, "is blank; remove it")
    if len(distinct) < len(values):
        raise _repeated(source, values)
    return values


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _repeated(source: str, values: list[str]) -> ValueListError:
    seen: dict[str, int] = {}
    for number, value in enumerate(values, 1):
        first = seen.setdefault(value, number)
        if first != number:
            return ValueListError(source, number, f"repeats line {first}; remove one of the two")
    raise AssertionError("no value is repeated")
