"""google/rappor's files: what is read, and the error for each thing that can be wrong."""

from __future__ import annotations

import io
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable_estimator.analyses.cohorts.decoder import Decoding
from deniable_estimator.rappor.counts_file import BitCounts, read_counts, write_counts
from deniable_estimator.rappor.decoding import Decoded
from deniable_estimator.rappor.errors import RapporFileError
from deniable_estimator.rappor.map_file import read_map
from deniable_estimator.rappor.params import Params, read_params

PARAMS = Params(k=4, h=2, m=3, p=Fraction(1, 2), q=Fraction(3, 4), f=Fraction(1, 2))
MAP = "apple,1,2,5,5,12,9\nbanana,4,3,8,6,9,10\n"
COUNTS = "10,1,2,3,4\n0,0,0,0,0\n7,7,0,7,0\n"


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def cells(*positions: int) -> list[int]:
    return [position - 1 for position in positions]


def test_params_are_read(tmp_path: Path) -> None:
    """Both the plain form and the one that R writes, with quotes, give exact numbers."""
    for text in ("k,h,m,p,q,f\n4,2,3,0.5,0.75,0.5\n", '"k","h","m","p","q","f"\n4,2,3,.5,.75,.5'):
        assert read_params(written(tmp_path, "params.csv", text)) == PARAMS


def test_probabilities_follow_the_paper() -> None:
    """p11 and p01 of the published setting are .6875 and .5625."""
    assert PARAMS.p11 == Fraction(11, 16)
    assert PARAMS.p01 == Fraction(9, 16)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "header must be k,h,m,p,q,f"),
        ("k,h,m,p,q\n4,2,3,.5,.75\n", 1, "header must be"),
        ("h,k,m,p,q,f\n4,2,3,.5,.75,.5\n", 1, "header must be"),
        ("k,h,m,p,q,f\n", 1, "one line of values"),
        ("k,h,m,p,q,f\n4,2,3,.5,.75,.5\n4,2,3,.5,.75,.5\n", 3, "one line of values"),
        ("k,h,m,p,q,f\n4,2,3,.5,.75\n", 2, "6 values"),
        ("k,h,m,p,q,f\n1,2,3,.5,.75,.5\n", 2, "k must be a whole number, 2 or more"),
        ("k,h,m,p,q,f\n4,0,3,.5,.75,.5\n", 2, "h must be"),
        ("k,h,m,p,q,f\n4,2,-3,.5,.75,.5\n", 2, "m must be"),
        ("k,h,m,p,q,f\n4.5,2,3,.5,.75,.5\n", 2, "k must be"),
        ("k,h,m,p,q,f\n4,2,3,1.5,.75,.5\n", 2, "p must be a number from 0 to 1, not '1.5'"),
        ("k,h,m,p,q,f\n4,2,3,.5,-.1,.5\n", 2, "q must be"),
        ("k,h,m,p,q,f\n4,2,3,.5,nan,.5\n", 2, "q must be"),
        ("k,h,m,p,q,f\n4,2,3,1/0,.75,.5\n", 2, "p must be"),
        ("k,h,m,p,q,f\n4,2,3,.5,.75,x\n", 2, "f must be"),
        ("k,h,m,p,q,f\n4,2,3,.5,.5,.5\n", 2, "p equals q"),
        ("k,h,m,p,q,f\n4,2,3,.5,.75,1\n", 2, "f is 1"),
        ("k,h,m,p,q,f\n65536,2,65536,.5,.75,.5\n", 2, "m \\* k must be at most"),
    ],
)
def test_params_mistakes_are_named(tmp_path: Path, text: str, line: int, message: str) -> None:
    """Each mistake in params.csv is one error with file, line and what is wrong."""
    path = written(tmp_path, "params.csv", text)
    with pytest.raises(RapporFileError, match=message) as caught:
        read_params(path)
    assert (caught.value.path, caught.value.line) == (path, line)
    assert str(caught.value).startswith(f"{path}, line {line}: ")


def test_counts_are_read_and_written(tmp_path: Path) -> None:
    """Counts come back as they were written; empty lines and cohorts are no mistake."""
    counts = read_counts(written(tmp_path, "counts.csv", "\n" + COUNTS), PARAMS)
    assert counts.reports.tolist() == [10, 0, 7]
    assert counts.bits.tolist() == [[1, 2, 3, 4], [0, 0, 0, 0], [7, 0, 7, 0]]
    out = io.StringIO()
    write_counts(counts, out)
    again = read_counts(written(tmp_path, "again.csv", out.getvalue()), PARAMS)
    np.testing.assert_array_equal(again.bits, counts.bits)
    assert isinstance(again, BitCounts)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("10,1,2,3,4\n0,0,0,0,0\n", None, "has 2 cohorts; params.csv says m = 3"),
        (COUNTS + "1,0,0,0,0\n", 4, "params.csv says m = 3 cohorts, no more"),
        ("10,1,2,3\n" + COUNTS, 1, "has 4 columns; with k = 4"),
        ("10,1,2,3,4,5\n" + COUNTS, 1, "has 6 columns"),
        ("10,1,2,3,11\n" + COUNTS, 1, "bit 4 \\(column 5\\) was set 11 times in 10 reports"),
        ("10,1,-2,3,4\n" + COUNTS, 1, "column 3 must be a count"),
        ("10,1,2.5,3,4\n" + COUNTS, 1, "column 3 must be a count"),
        ("10,1,,3,4\n" + COUNTS, 1, "column 3 must be a count"),
        ("n,b1,b2,b3,b4\n" + COUNTS, 1, "counts.csv has no header"),
        (f"{10**30},1,2,3,4\n" + COUNTS, 1, "column 1 must be a count"),
        (b"10,1,2,3,4\n\xff\n", 2, "is not UTF-8"),
        ("", None, "has 0 cohorts"),
    ],
)
def test_counts_mistakes_are_named(
    tmp_path: Path, text: str | bytes, line: int | None, message: str
) -> None:
    """Each mistake in counts.csv, or against params.csv, is one error with its line."""
    path = written(tmp_path, "counts.csv", text)
    with pytest.raises(RapporFileError, match=message) as caught:
        read_counts(path, PARAMS)
    assert caught.value.line == line


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    """A path that leads nowhere is named, with advice."""
    with pytest.raises(RapporFileError, match="No such file or directory; check the path"):
        read_counts(tmp_path / "counts.csv", PARAMS)


def test_a_map_is_read(tmp_path: Path) -> None:
    """Positions may stand in any order within a cohort; a bit that stands twice is one cell."""
    found = read_map(written(tmp_path, "map.csv", MAP), PARAMS)
    assert found.candidates == ["apple", "banana"]
    assert found.design.cells.tolist() == [[0, 1, 4, 12, 11, 8], cells(4, 3, 8, 6, 9, 10)]
    assert not found.direct


@pytest.mark.parametrize(
    ("text", "candidates"),
    [
        ("\ufeff" + MAP, ["apple", "banana"]),
        (MAP.replace("\n", "\r\n"), ["apple", "banana"]),
        (MAP.replace("apple", '"apple"'), ["apple", "banana"]),
        (MAP.replace("apple", '"ap,""p""le"'), ['ap,"p"le', "banana"]),
        (MAP.replace("apple", 'q"q'), ['q"q', "banana"]),
        (MAP.replace("apple", '"ap\nple"'), ["ap\nple", "banana"]),
        (MAP.replace("apple", ""), ["", "banana"]),
        (MAP.replace("apple", "Äpfel, rot".replace(", ", " ")), ["Äpfel rot", "banana"]),
        (MAP.replace(",2,", ", 2 ,"), ["apple", "banana"]),
        ("\n" + MAP + "\n", ["apple", "banana"]),
        (MAP.replace("apple", "line\u2028break"), ["line\u2028break", "banana"]),
    ],
)
def test_a_map_is_read_in_every_dress(tmp_path: Path, text: str, candidates: list[str]) -> None:
    """Byte order mark, line ends, quotes, spaces and any letters: the same positions come out."""
    found = read_map(written(tmp_path, "map.csv", text), PARAMS)
    assert found.candidates == candidates
    assert found.design.cells.tolist() == [[0, 1, 4, 12, 11, 8], cells(4, 3, 8, 6, 9, 10)]


def test_a_map_of_many_lines_is_read(tmp_path: Path) -> None:
    """A file of several blocks gives every position, as the line by line reading does."""
    rng = np.random.default_rng(1)
    params = Params(k=100, h=2, m=50, p=Fraction(0), q=Fraction(1), f=Fraction(0))
    positions = rng.integers(1, 101, (1_500, 50, 2)) + np.arange(50)[:, None] * 100
    lines = [f"s{at},{','.join(map(str, row.ravel()))}" for at, row in enumerate(positions)]
    plain = read_map(written(tmp_path, "map.csv", "\n".join(lines)), params)
    lines[0] = lines[0].replace(",", " ,", 2)
    slow = read_map(written(tmp_path, "slow.csv", "\n".join(lines)), params)
    np.testing.assert_array_equal(plain.design.cells, slow.design.cells)
    once = positions[:, :, 0] != positions[:, :, 1]
    second = plain.design.cells.reshape(1_500, 50, 2)[:, :, 1]
    np.testing.assert_array_equal(second[once] + 1, positions[:, :, 1][once])


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", None, "holds no candidate"),
        ("\n\n", None, "holds no candidate"),
        (MAP + "cherry,1,2,5,5,12\n", 3, "has 6 columns; with h \\* m = 6"),
        (MAP + "cherry,1,2,5,5,12,9,9\n", 3, "has 8 columns"),
        (MAP + "ch,erry,1,2,5,5,12,9\n", 3, "holds a comma needs quotes"),
        (MAP + "cherry,0,2,5,5,12,9\n", 3, "column 2 must be a position of cohort 0, from 1 to 4"),
        (MAP + "cherry,1,2,5,5,12,13\n", 3, "column 7 must be .* cohort 2, from 9 to 12, not 13"),
        (MAP + "cherry,1,5,2,5,12,9\n", 3, "column 3 must be a position of cohort 0"),
        (MAP + "cherry,1,2,4,5,12,9\n", 3, "column 4 must be a position of cohort 1"),
        (MAP + "cherry,1,x,5,5,12,9\n", 3, "column 3 must be a position, 1 or more, not 'x'"),
        (MAP + "cherry,1,-2,5,5,12,9\n", 3, "column 3 must be a position"),
        (MAP + "cherry,1,2.0,5,5,12,9\n", 3, "column 3 must be a position"),
        (MAP + "cherry,1,,5,5,12,9\n", 3, "column 3 must be a position"),
        (MAP + "cherry,1,2,5,5,12,99999999999\n", 3, "column 7 must be a position"),
        (MAP + "apple,1,2,5,5,12,9\n", 3, "repeats 'apple' of line 1; remove one"),
        (MAP + '"cherry,1,2,5,5,12,9\n', 3, "is not CSV"),
        (MAP.encode() + b"\xff,1,2,5,5,12,9\n", 3, "is not UTF-8"),
    ],
)
def test_map_mistakes_are_named(
    tmp_path: Path, text: str | bytes, line: int | None, message: str
) -> None:
    """Each mistake in map.csv, or against params.csv, is one error with its line."""
    path = written(tmp_path, "map.csv", text)
    with pytest.raises(RapporFileError, match=message) as caught:
        read_map(path, PARAMS)
    assert caught.value.line == line


def test_a_wrong_position_far_down_is_named(tmp_path: Path) -> None:
    """In a file of many lines, the first wrong position is named with its line and its value."""
    params = Params(k=4, h=2, m=50, p=Fraction(0), q=Fraction(1), f=Fraction(0))
    right = [f"{cohort * 4 + 1},{cohort * 4 + 4}" for cohort in range(50)]
    lines = [f"s{at},{','.join(right)}" for at in range(1_500)]
    for line in (1_101, 1_400):
        lines[line - 1] = lines[line - 1].replace(",197,200", ",197,196")
    message = "line 1101: column 101 must be a position of cohort 49, from 197 to 200, not 196"
    with pytest.raises(RapporFileError, match=message):
        read_map(written(tmp_path, "map.csv", "\n".join(lines)), params)


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.text(max_size=4), *[st.floats() | st.floats(-1e-3, 1e-3)] * 3, st.booleans())
    )
)
def test_json_is_as_the_json_module_writes_it(
    rows: list[tuple[str, float, float, float, bool]],
) -> None:
    """Whatever the strings and numbers, the line equals that of `json.dumps`."""
    names, shares, errors, values, found = zip(*rows, strict=True) if rows else [()] * 5
    share, error, p_value = (np.array(each, float) for each in (shares, errors, values))
    with np.errstate(all="ignore"):
        decoding = Decoding(
            *(7, 0.95, share, error, p_value, np.array(found, bool)),
            *(np.arange(len(rows)), 0.25, 0.1),
        )
        decoded = Decoded(list(names), decoding, crowded=False)
        out = io.StringIO()
        decoded.write_json(out)
        keys = ("string", "share", "std_error", "low", "high", "p_value", "detected")
        candidates = [dict(zip(keys, row, strict=True)) for row in decoded.rows()]
    whole = {"n": 7, "explained_share": 0.25, "candidates": candidates}
    assert out.getvalue() == json.dumps(whole, ensure_ascii=False, allow_nan=False) + "\n"


@pytest.mark.parametrize(
    ("text", "direct"),
    [
        ("a,1,5\nb,2,6\nc,3,7\n", True),
        ("a,2,6\nb,1,5\nc,4,8\nd,3,7\n", True),
        ("a,2,6\nb,1,5\nc,4,8\n", False),
        ("a,1,5\nb,2,7\n", False),
        ("a,1,5\n", False),
    ],
)
def test_basic_rappor_is_recognized(tmp_path: Path, text: str, direct: bool) -> None:
    """A map is direct if bit i belongs to candidate i in every cohort, or all bits are taken."""
    params = Params(k=4, h=1, m=2, p=Fraction(0), q=Fraction(1), f=Fraction(0))
    assert read_map(written(tmp_path, "map.csv", text), params).direct is direct
