"""Which texts may be values, and files with a value on each line.

A value is Unicode text in normal form C, of 1 to MAX_VALUE_BYTES bytes of UTF-8. It holds no
control character (category Cc, which includes tabs and line breaks) and no half of a surrogate
pair, and is not only white space; white space at its ends belongs to it. The same rule holds for
values that a device records, values that a registry declares, and strings that an analyst looks
for. `client/vectors/values.json` holds test vectors.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Container, Sequence

from deniable.protocol.coded_message import CodedMessage
from deniable.protocol.errors import ValueListError

MAX_VALUE_BYTES = 1024
"""The longest value, in UTF-8 bytes: room for a web address, and for 256 letters of any script."""

_SURELY = MAX_VALUE_BYTES // 4
"""A text with so many letters is never too long: a letter has at most four bytes."""

_HOPELESS = 2 * MAX_VALUE_BYTES
"""So many letters are too long in any form. To bring them into normal form could take hours: that
takes the square of a run of combining marks."""

_NONE = CodedMessage("no_value", "holds no value; write one on each line")

_TOO_LONG = CodedMessage("too_long", "is longer than {bytes} bytes", bytes=MAX_VALUE_BYTES)

_BROKEN = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters, and halves of surrogate pairs."""


def is_unicode(text: str) -> bool:
    """Whether a string holds no half of a surrogate pair.

    Python's own error holds the string. `raise ... from None` hides that error but keeps it in
    `__context__`, and tools that report errors show it. So an error must be raised after this.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def normal_form(text: str) -> str | None:
    """The text in normal form C; None of a text that is too long for a value in any form."""
    return None if len(text) > _HOPELESS else unicodedata.normalize("NFC", text)


def value_text(text: str) -> str:
    """The normal form of a text that is a value.

    Raises:
        ValueError: the text cannot be a value; the message says why, and does not repeat it.
    """
    value = normal_form(text)
    if value is None:
        raise ValueError(_TOO_LONG)
    broken = _BROKEN.search(value)
    if broken and broken[0] >= "\ud800":
        raise ValueError(CodedMessage("invalid_unicode", "is not valid Unicode"))
    if broken:
        raise ValueError(CodedMessage("control_character", "holds a control character"))
    if not value or value.isspace():
        raise ValueError(CodedMessage("blank", "is blank"))
    if len(value) > _SURELY and len(value.encode()) > MAX_VALUE_BYTES:
        raise ValueError(_TOO_LONG)
    return value


def clean_text(value: object, form: Callable[[str], str]) -> str:
    """The text that an app's value becomes by `form`, which refuses what it cannot take.

    Raises:
        ValueError: it is no text, or cannot be taken. The message does not repeat it.
    """
    if not isinstance(value, str):
        raise ValueError(f"takes a string, not {type(value).__name__}")
    try:
        return form(value)
    except ValueError as error:
        raise ValueError(f"the string {error}; clean it before you record it") from None


def listed_value(value: object, listed: Container[str], other: str | None) -> str:
    """The listed value that an app's value stands for; `other` stands for all that are not listed.

    Raises:
        ValueError: it is no text, or not listed. The message does not repeat it: error messages
            end up in logs.
    """
    if not isinstance(value, str):
        raise ValueError(f"takes a string, not {type(value).__name__}")
    text = normal_form(value)
    if text in listed:
        return str(text)
    if other is not None:
        return other
    raise ValueError(
        'the value is not one of its declared values; add it, or add an "other" that stands for '
        "the rest"
    )


def report_mistakes(key: str, values: Sequence[str], report: Callable[..., None]) -> None:
    """Report each value of a key, in normal form C, that is listed twice, or cannot be one."""
    seen: set[str] = set()
    for value in values:
        if value in seen:
            report(key, f"lists {value!r} twice")
        seen.add(value)
        try:
            value_text(value)
        except ValueError as error:
            report(key, f"lists {value[:20]!r}, which {error}")


def value_texts(texts: Sequence[str], source: str) -> list[str]:
    """The normal forms of a list of texts, in its order; a million take about a second.

    Raises:
        ValueListError: the list is empty, a text cannot be a value, or is in the list twice.
            `source` is the name of the list in the error, and `line` the position, from 1.
    """
    if not texts:
        raise ValueListError(source, None, _NONE)
    values = []
    for number, text in enumerate(texts, 1):
        try:
            values.append(value_text(text))
        except ValueError as error:
            mistake = CodedMessage("no_text", "{mistake}; remove it", mistake=str(error))
            raise ValueListError(source, number, mistake) from None
    lines: dict[str, int] = {}
    for number, value in enumerate(values, 1):
        first = lines.setdefault(value, number)
        if first != number:
            mistake = CodedMessage(
                "repeated", "repeats line {line}; remove one of the two", line=first
            )
            raise ValueListError(source, number, mistake)
    return values


def read_values(path: str | os.PathLike[str]) -> list[str]:
    """The values of a UTF-8 file, as `parse_values` finds them.

    Raises:
        ValueListError: the file cannot be read, or its text cannot be taken.
    """
    source = str(path)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        mistake = CodedMessage("unreadable", "cannot be read: {why}", why=error.strerror)
        raise ValueListError(source, None, mistake) from error
    except ValueError:  # a zero byte
        mistake = CodedMessage("no_file_name", "cannot be read: this is not a file name")
        raise ValueListError(source, None, mistake) from None
    return parse_values(data, source)


def parse_values(data: bytes, source: str) -> list[str]:
    """The values of UTF-8 text, one on each line, in its order.

    A byte order mark before the first line, and the carriage return of a Windows line end, do not
    belong to a value. `source` is what errors call the text.

    Raises:
        ValueListError: it is empty, or holds what cannot be a value, or one twice; the error
            names the line.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        mistake = CodedMessage("not_utf8", "is not UTF-8 text; save the file in that encoding")
        raise ValueListError(source, line, mistake) from None
    text = text.replace("\r\n", "\n").removesuffix("\n")
    if not text:
        raise ValueListError(source, None, _NONE)
    return value_texts(text.split("\n"), source)
