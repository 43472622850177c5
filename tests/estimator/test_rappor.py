"""`deniable estimate rappor`: google/rappor's files, what is wrong with one, and the answers."""

import csv
import io
import json
from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner

from deniable.tools.command_line import find
from deniable_estimator.rappor import Params, read_map

PARAMS = "k,h,m,p,q,f\n4,2,3,0.5,0.75,0.5\n"
COUNTS = "10,1,2,3,4\n0,0,0,0,0\n7,7,0,7,0\n"
MAP = "apple,1,2,5,5,12,9\nbanana,4,3,8,6,9,10\n"


def run(*arguments):
    return CliRunner().invoke(find("estimate", "rappor"), [str(argument) for argument in arguments])


def decode(folder, params, counts, lines, *more):
    """Decode files with these contents."""
    options = []
    for name, text in (("params", params), ("counts", counts), ("map", lines)):
        path = folder / f"{name}.csv"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        options += [f"--{name}", path]
    return run("decode", *options, *more)


def hashed(folder, params, candidates):
    """The map of these candidates."""
    (folder / "params.csv").write_text(params)
    (folder / "candidates.txt").write_text(candidates)
    return run("hash", "--params", folder / "params.csv", "--candidates", folder / "candidates.txt")


def test_the_map_equals_the_published_one(tmp_path):
    """The three strings of google/rappor's own test hash to the positions it expects."""
    result = hashed(tmp_path, "k,h,m,p,q,f\n16,2,4,.5,.75,.5\n", " apple\n\nbanana \r\ncarrot")
    assert list(csv.reader(io.StringIO(result.stdout))) == [
        ["apple", "5", "1", "26", "26", "38", "34", "63", "62"],
        ["banana", "12", "14", "28", "24", "37", "34", "62", "49"],
        ["carrot", "4", "12", "25", "21", "48", "38", "61", "54"],
    ]


@pytest.mark.parametrize(("k", "h", "refused"), [(256, 16, 0), (257, 16, 1), (256, 17, 1)])
def test_hashing_has_its_limits(tmp_path, k, h, refused):
    """More than 16 hashes or 256 bits cannot come out of one MD5 digest, byte by byte."""
    result = hashed(tmp_path, f"k,h,m,p,q,f\n{k},{h},1,.5,.75,.5\n", "apple")
    assert result.exit_code == refused
    assert ("hash the strings yourself" in result.stderr) is bool(refused)


def test_probabilities_follow_the_paper():
    """p11 and p01 of the published setting are .6875 and .5625."""
    params = Params(k=4, h=2, m=3, p=Fraction(1, 2), q=Fraction(3, 4), f=Fraction(1, 2))
    assert (params.p11, params.p01) == (Fraction(11, 16), Fraction(9, 16))


MISTAKES: dict[str, list[tuple[str | bytes, int | None, str]]] = {
    "params": [
        ("", 1, "header must be k,h,m,p,q,f"),
        ("k,h,m,p,q,f\n", 1, "one line of values"),
        ("k,h,m,p,q,f\n4,2,3,.5,.75,.5\n4,2,3,.5,.75,.5\n", 3, "one line of values"),
        ("k,h,m,p,q,f\n4,2,3,.5,.75\n", 2, "6 values"),
        ("k,h,m,p,q,f\n1,2,3,.5,.75,.5\n", 2, "k must be a whole number, 2 or more"),
        ("k,h,m,p,q,f\n4,2,-3,.5,.75,.5\n", 2, "m must be"),
        ("k,h,m,p,q,f\n4,2,3,1.5,.75,.5\n", 2, "p must be a number from 0 to 1, not '1.5'"),
        ("k,h,m,p,q,f\n4,2,3,.5,nan,.5\n", 2, "q must be"),
        ("k,h,m,p,q,f\n4,2,3,.5,.5,.5\n", 2, "p equals q"),
        ("k,h,m,p,q,f\n4,2,3,.5,.75,1\n", 2, "f is 1"),
        ("k,h,m,p,q,f\n4096,2,4097,.5,.75,.5\n", 2, "m * k must be at most"),
    ],
    "counts": [
        ("10,1,2,3,4\n0,0,0,0,0\n", None, "has 2 cohorts; params.csv says m = 3"),
        (COUNTS + "1,0,0,0,0\n", 4, "params.csv says m = 3 cohorts, no more"),
        ("10,1,2,3\n" + COUNTS, 1, "has 4 columns"),
        ("10,1,2,3,11\n" + COUNTS, 1, "bit 4 (column 5) was set 11 times in 10 reports"),
        ("10,1,-2,3,4\n" + COUNTS, 1, "column 3 must be a count"),
        ("n,b1,b2,b3,b4\n" + COUNTS, 1, "there is no header"),
        (f"{10**15},1,2,3,4\n" + COUNTS, 1, "column 1 must be a count"),
        (b"10,1,2,3,4\n\xff\n", 2, "is not UTF-8"),
    ],
    "map": [
        ("\n\n", None, "holds no candidate"),
        (MAP + "cherry,1,2,5,5,12\n", 3, "has 6 columns; there must be h * m + 1 = 7"),
        (MAP + "ch,erry,1,2,5,5,12,9\n", 3, "holds a comma needs quotes"),
        (MAP + "cherry,0,2,5,5,12,9\n", 3, "column 2 must be a position of cohort 0, from 1 to 4"),
        (MAP + "cherry,1,2,5,5,12,13\n", 3, "cohort 2, from 9 to 12, not 13"),
        (MAP + "cherry,1,x,5,5,12,9\n", 3, "column 3 must be a position, 1 or more, not 'x'"),
        (MAP + "apple,1,2,5,5,12,9\n", 3, "repeats 'apple' of line 1; remove one"),
        (MAP + '"cherry,1,2,5,5,12,9\n', 4, "is not CSV"),
        (MAP.encode() + b"\xff,1,2,5,5,12,9\n", 3, "is not UTF-8"),
    ],
}


@pytest.mark.parametrize(
    ("file", "text", "line", "message"),
    [(file, *each) for file, some in MISTAKES.items() for each in some],
)
def test_mistakes_are_named(tmp_path, file, text, line, message):
    """Each mistake in a file, or against params.csv, is one error with file, line and what is
    wrong."""
    result = decode(
        tmp_path, *{"params": PARAMS, "counts": COUNTS, "map": MAP, file: text}.values()
    )
    assert result.exit_code == 1
    where = f"{tmp_path / file}.csv" if line is None else f"{tmp_path / file}.csv, line {line}:"
    assert result.stderr.startswith(f"Error: {where} ")
    assert message in result.stderr


@pytest.mark.parametrize(
    ("text", "candidates"),
    [
        ("\ufeff" + MAP, ["apple", "banana"]),
        (MAP.replace("apple", '"ap,""p""le"'), ['ap,"p"le', "banana"]),
        (MAP.replace("apple", ""), ["", "banana"]),
        (MAP.replace(",2,", ", 2 ,"), ["apple", "banana"]),
        (MAP.replace("apple", "line\u2028break"), ["line\u2028break", "banana"]),
    ],
)
def test_a_map_is_read_in_every_dress(tmp_path, text, candidates):
    """Byte order mark, line ends, quotes, spaces: the same cells come out.

    Positions may stand in any order within a cohort; a bit that stands twice is one cell.
    """
    path = tmp_path / "map.csv"
    path.write_bytes(text.encode())
    params = Params(k=4, h=2, m=3, p=Fraction(0), q=Fraction(1), f=Fraction(0))
    names, design, _ = read_map(path, params)
    assert names == candidates
    assert design.cells.tolist() == [[0, 1, 4, 12, 11, 8], [3, 2, 7, 5, 8, 9]]


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
def test_basic_rappor_is_recognized(tmp_path, text, direct):
    """A map is direct if bit i belongs to candidate i in every cohort, or all bits are taken."""
    path = tmp_path / "map.csv"
    path.write_text(text)
    params = Params(k=4, h=1, m=2, p=Fraction(0), q=Fraction(1), f=Fraction(0))
    assert read_map(path, params)[2] is direct


def test_no_reports_at_all_is_an_answer(tmp_path):
    """Empty counts give unknown shares, a note, and exit 3; the table says it too."""
    files = "k,h,m,p,q,f\n4,1,2,.25,.75,0\n", "0,0,0,0,0\n" * 2, "a,1,6\nb,2,5\n"
    for more in (["--json"], []):
        result = decode(tmp_path, *files, *more)
        assert result.exit_code == 3
        assert "nothing can be estimated yet" in result.stderr
    answer = json.loads(decode(tmp_path, *files, "--json").stdout)
    assert answer["n"] == answer["explained_share"] == 0
    assert [row["share"] for row in answer["candidates"]] == [None, None]


def test_one_crowded_cohort_is_warned_of(tmp_path):
    """More hashed candidates than bits in a single cohort come with a warning."""
    rng = np.random.default_rng(1)
    pairs = rng.integers(0, 8, (9, 2)) + 1
    lines = [f"s{at},{a},{b}\n" for at, (a, b) in enumerate(pairs)]
    files = "k,h,m,p,q,f\n8,2,1,.25,.75,0\n", "800" + ",300" * 8 + "\n"
    assert "one cohort cannot" in decode(tmp_path, *files, "".join(lines), "--json").stderr
    assert "one cohort cannot" not in decode(tmp_path, *files, "".join(lines[:8]), "--json").stderr
