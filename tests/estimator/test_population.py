"""Simulated populations: Zipf shares and files of weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from deniable.errors import ValueListError
from deniable_estimator.planning.population import read_shares, zipf_shares

VALUES = ("a", "b, c", "d")


def test_zipf() -> None:
    """Shares fall as a power of the rank and sum to one; exponent 0 is even."""
    assert zipf_shares(3, 1.0) == pytest.approx([6 / 11, 3 / 11, 2 / 11])
    assert zipf_shares(4, 0.0) == pytest.approx([0.25] * 4)


def test_shares_file(tmp_path: Path) -> None:
    """Weights are scaled, quoted values read, and values that are not named have none."""
    file = tmp_path / "shares.csv"
    file.write_text('"b, c",3\n\na,1\n')
    assert read_shares(file, VALUES) == pytest.approx([0.25, 0.75, 0])
    file.write_text("cafe\u0301,3\na,1\n", encoding="utf-8")
    assert read_shares(file, ("a", "caf\u00e9")) == pytest.approx([0.25, 0.75])


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"a,1\nx,2\n", 2, "does not declare"),
        (b"a,1\na,2\n", 2, "a second time"),
        (b"a,1\nd\n", 2, "value,weight"),
        (b"a,much\n", 1, "value,weight"),
        (b"a,-1\n", 1, "at least 0"),
        (b"a,nan\n", 1, "at least 0"),
        (b"a,0\n", None, "no value a weight"),
        (b"", None, "no value a weight"),
        (b"\xff\xfe", None, "UTF-8"),
    ],
)
def test_mistakes_in_the_file(
    content: bytes, line: int | None, message: str, tmp_path: Path
) -> None:
    """Every mistake is refused with its line and what to write instead."""
    file = tmp_path / "shares.csv"
    file.write_bytes(content)
    with pytest.raises(ValueListError, match=message) as caught:
        read_shares(file, VALUES)
    assert caught.value.line == line


def test_no_file(tmp_path: Path) -> None:
    """A file that is not there is refused with the reason."""
    with pytest.raises(ValueListError, match="cannot be read"):
        read_shares(tmp_path / "none.csv", VALUES)
