"""Values as text: one rule for devices, registries and candidates, and files of values."""

import json
from pathlib import Path

import pytest
from tests.registries import declared

from deniable import DeniableError, MetricError, Registry, RegistryError
from deniable.protocol.errors import ValueListError
from deniable.protocol.value_list import (
    MAX_VALUE_BYTES,
    parse_values,
    read_values,
    value_text,
    value_texts,
)

VECTORS = json.loads((Path(__file__).parents[2] / "client" / "vectors" / "values.json").read_text())
REASONS = {
    "blank": "is blank",
    "long": f"is longer than {MAX_VALUE_BYTES} bytes",
    "control": "holds a control character",
    "surrogate": "is not valid Unicode",
}
SITE = Registry.parse(declared(site={"type": "string"}))["site"]


def drink(text):
    """A metric with this value and another."""
    values = {"type": "category", "values": [text, "something else"]}
    return Registry.parse(declared(drink=values).replace("\x7f", "\\u007F"))["drink"]


@pytest.mark.parametrize("case", VECTORS["valid"], ids=lambda case: ascii(case["text"])[:20])
def test_what_may_be_a_value_may_be_one_everywhere(case):
    """A device records it, a registry declares it and a list names it, all as the same text."""
    text, value = case["text"], case["value"]
    assert value_text(text) == value
    assert SITE.normalize(text) == value
    assert parse_values(f"first\n{text}\n".encode(), "list") == ["first", value]
    assert drink(text).values == (value, "something else")
    assert drink(text).normalize(text) == value


@pytest.mark.parametrize("case", VECTORS["invalid"], ids=lambda case: ascii(case["text"])[:20])
def test_what_is_no_value_is_none_anywhere(case):
    """It is refused with its reason, and what a device says does not repeat it."""
    text, reason = case["text"], REASONS[case["reason"]]
    with pytest.raises(ValueError, match=reason):
        value_text(text)
    with pytest.raises(MetricError, match=f"the string {reason}; clean it") as caught:
        SITE.normalize(text)
    if text.strip():
        assert text not in str(caught.value)
        assert ascii(text)[1:-1] not in str(caught.value)
    with pytest.raises(ValueListError, match=f"line 2: {reason}"):
        value_texts(["first", text], "list")
    if case["reason"] != "surrogate":
        with pytest.raises(RegistryError, match=reason):
            drink(text)


@pytest.fixture
def file(tmp_path):
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
def test_values_are_read_and_normalized(file, data):
    """Each line is one value in NFC, whatever its newlines and spelling."""
    file.write_bytes(data)
    assert read_values(file) == ["tea", "caf\u00e9", "milk"]


def test_only_newlines_end_a_value(file):
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
        (b"a\n\xed\xa0\x80\n", 2, "is not UTF-8"),
        (b"ok\n" + b"x" * (MAX_VALUE_BYTES + 1), 2, "longer than"),
        (b"ok\n" + ("\u00e9" * (MAX_VALUE_BYTES // 2 + 1)).encode(), 2, "longer than"),
    ],
)
def test_bad_files(file, data, line, message):
    """Each mistake is refused with its line and what to do."""
    file.write_bytes(data)
    with pytest.raises(ValueListError, match=message) as caught:
        read_values(file)
    assert caught.value.line == line
    assert isinstance(caught.value, DeniableError)


def test_the_longest_value_passes(file):
    """The limit itself is allowed."""
    file.write_text("x" * MAX_VALUE_BYTES)
    assert read_values(file) == ["x" * MAX_VALUE_BYTES]
    # A letter has at most four bytes.
    widest = "\U0001f600" * (MAX_VALUE_BYTES // 4)
    assert value_texts([widest], "list") == [widest]
    for refused in (value_text, lambda text: value_texts([text], "list")):
        with pytest.raises((ValueError, ValueListError), match="longer than"):
            refused(f"{widest}\U0001f600")
    # In normal form, that is: nothing shrinks more than these three letters, to two bytes.
    assert value_text("U\u0308\u0304" * (MAX_VALUE_BYTES // 2)) == "\u01d5" * (MAX_VALUE_BYTES // 2)


def test_a_hopeless_text_is_refused_at_once():
    """A text whose normal form would take minutes to find (combining marks out of order, which
    are sorted one by one) is refused by its length, alone and in a list."""
    marks = "a" + "\u0301\u0316" * 200_000
    with pytest.raises(ValueError, match="longer than 1024 bytes"):
        value_text(marks)
    with pytest.raises(ValueListError, match="line 2: is longer than 1024 bytes; remove it"):
        parse_values(f"a\n{marks}".encode(), "The list")


def test_a_file_that_is_not_there(file):
    """A missing file is named."""
    with pytest.raises(ValueListError, match=r"values\.txt cannot be read: No such file"):
        read_values(file)


def test_a_list_is_checked_like_a_file():
    """Texts that are given as a list are normalized and refused like those of a file, by place."""
    assert value_texts(["tea", "cafe\u0301"], "list") == ["tea", "caf\u00e9"]
    with pytest.raises(ValueListError, match="list, line 3: repeats line 1"):
        value_texts(["caf\u00e9", "tea", "cafe\u0301"], "list")
    with pytest.raises(ValueListError, match="list, line 1: holds a control character"):
        value_texts(["tea\nmilk", "tea"], "list")
