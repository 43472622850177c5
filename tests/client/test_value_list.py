"""Files of values: what is read, and what is refused at which line."""

from __future__ import annotations

from pathlib import Path

import pytest

from deniable import DeniableError
from deniable.errors import ValueListError
from deniable.value_list import MAX_VALUE_BYTES, read_values


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "values.txt"


@pytest.mark.parametrize(
    "data",
    [
        "tea\ncaf\u00e9\nmilk\n".encode(),
        "tea\ncafe\u0301\nmilk".encode(),
        "\ufefftea\r\ncaf\u00e9\r\nmilk\r\n".encode(),
    ],
    ids=["plain", "decomposed, no last newline", "byte order mark and CRLF"],
)
def test_values_are_read_and_normalized(file: Path, data: bytes) -> None:
    """Each line is one value in NFC, whatever its newlines and spelling."""
    file.write_bytes(data)
    assert read_values(file) == ["tea", "caf\u00e9", "milk"]


def test_only_newlines_end_a_value(file: Path) -> None:
    """A Unicode line separator is part of a value."""
    file.write_text("a\u2028b\nc\n", encoding="utf-8")
    assert read_values(file) == ["a\u2028b", "c"]


@pytest.mark.parametrize(
    ("data", "line", "message"),
    [
        (b"", None, "holds no value"),
        (b"\n", None, "holds no value"),
        (b"a\n\nb\n", 2, "is blank"),
        (b"a\nb\n  \n", 3, "is blank"),
        (b"a\n\n", 2, "is blank"),
        ("a\nb\n\u3000\n".encode(), 3, "is blank"),
        (b"a\nb\na\n", 3, "repeats line 1"),
        ("x\ncaf\u00e9\ncafe\u0301\n".encode(), 3, "repeats line 2"),
        (b"a\nb\xff\nc\n", 2, "is not UTF-8"),
        ("a\nb\n".encode("utf-16"), 1, "is not UTF-8"),
        (b"a\nb\tc\n", 2, "control character"),
        (b"a\rb\n", 1, "control character"),
        (b"ok\n" + b"x" * (MAX_VALUE_BYTES + 1), 2, "longer than"),
        (b"ok\n" + ("\u00e9" * (MAX_VALUE_BYTES // 2 + 1)).encode(), 2, "longer than"),
    ],
)
def test_bad_files(file: Path, data: bytes, line: int | None, message: str) -> None:
    """Each mistake is refused with its line and what to do."""
    file.write_bytes(data)
    with pytest.raises(ValueListError, match=message) as caught:
        read_values(file)
    assert caught.value.line == line
    assert isinstance(caught.value, DeniableError)


def test_the_longest_value_passes(file: Path) -> None:
    """The limit itself is allowed."""
    file.write_text("x" * MAX_VALUE_BYTES)
    assert read_values(file) == ["x" * MAX_VALUE_BYTES]


def test_a_file_that_is_not_there(file: Path) -> None:
    """A missing file is named."""
    with pytest.raises(ValueListError, match=r"values\.txt cannot be read: No such file"):
        read_values(file)
