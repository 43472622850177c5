"""Hashing and encoding as google/rappor's clients do it."""

from __future__ import annotations

import io
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest
from scipy import stats

from deniable_estimator.errors import EstimateError
from deniable_estimator.rappor.encoding import (
    Reading,
    count,
    encode,
    read_values,
    write_reports,
)
from deniable_estimator.rappor.errors import RapporFileError
from deniable_estimator.rappor.hashing import bloom_bits, read_candidates, write_map
from deniable_estimator.rappor.params import Params

HALF = Fraction(1, 2)


def params(k: int = 16, h: int = 2, m: int = 4, **probabilities: Fraction) -> Params:
    chosen = {"p": HALF, "q": Fraction(3, 4), "f": HALF, **probabilities}
    return Params(k=k, h=h, m=m, **chosen)


def test_the_map_equals_the_published_one() -> None:
    """The three strings of google/rappor's own test hash to the positions it expects."""
    out = io.StringIO()
    write_map(params(), ["apple", "banana", "carrot"], out)
    assert out.getvalue() == (
        "apple,5,1,26,26,38,34,63,62\r\n"
        "banana,12,14,28,24,37,34,62,49\r\n"
        "carrot,4,12,25,21,48,38,61,54\r\n"
    )


def test_strings_are_hashed_as_utf8_and_quoted_as_csv() -> None:
    """The MD5 of four zero bytes and the UTF-8 of the string names the bits of cohort 0."""
    out = io.StringIO()
    write_map(params(m=1), ["é,x"], out)
    first, second = bloom_bits("é,x", 0, params())
    assert out.getvalue() == f'"é,x",{first + 1},{second + 1}\r\n'
    assert bloom_bits("é", 0, params()) != bloom_bits("e\u0301", 0, params())


@pytest.mark.parametrize("wrong", [params(k=257), params(h=17)])
def test_hashing_has_its_limits(wrong: Params) -> None:
    """More than 16 hashes or 256 bits cannot come out of one MD5 digest, byte by byte."""
    with pytest.raises(EstimateError, match="hash the strings yourself"):
        write_map(wrong, ["apple"], io.StringIO())
    with pytest.raises(EstimateError, match="hash the strings yourself"):
        list(encode(wrong, [Reading("c1", 0, "apple")]))


def test_candidates_are_read_line_by_line(tmp_path: Path) -> None:
    """White space around a string and blank lines do not count."""
    path = tmp_path / "candidates.txt"
    path.write_text(" apple\n\nbanana \r\n")
    assert read_candidates(path) == ["apple", "banana"]


def test_candidate_mistakes_are_named(tmp_path: Path) -> None:
    """A repeated candidate is named with both lines, and an empty file says so."""
    path = tmp_path / "candidates.txt"
    path.write_text("apple\nbanana\napple\n")
    with pytest.raises(RapporFileError, match="line 3: repeats 'apple' of line 1"):
        read_candidates(path)
    path.write_text("\n")
    with pytest.raises(RapporFileError, match="holds no candidate"):
        read_candidates(path)


def test_values_are_read_in_both_forms(tmp_path: Path) -> None:
    """A line is a client of its own; the CSV form names client and cohort."""
    path = tmp_path / "values.txt"
    path.write_text("apple\n\nclient\n")
    assert read_values(path, params()) == [
        Reading("c1", None, "apple"),
        Reading("c2", None, "client"),
    ]
    path.write_text('client,cohort,value\nu1,3,apple\nu1,3,"a,b"\n')
    assert read_values(path, params()) == [Reading("u1", 3, "apple"), Reading("u1", 3, "a,b")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no value"),
        ("client,cohort,value\n", "holds no value"),
        ("client,cohort,value\nu1,4,apple\n", "line 2: the cohort must be from 0 to 3, not '4'"),
        ("client,cohort,value\nu1,-1,apple\n", "the cohort must be"),
        ("client,cohort,value\nu1,apple\n", "must hold client,cohort,value, not 2 columns"),
    ],
)
def test_value_mistakes_are_named(tmp_path: Path, text: str, message: str) -> None:
    """Each mistake in a file of values is one error that says what is wrong."""
    path = tmp_path / "values.csv"
    path.write_text(text)
    with pytest.raises(RapporFileError, match=message):
        read_values(path, params())


def test_a_client_keeps_its_permanent_response() -> None:
    """The same client and value have one permanent response; another value has its own."""
    readings = [Reading("u1", 2, "apple")] * 20 + [Reading("u1", 2, "banana")] * 20
    reports = list(encode(params(k=128), readings))
    assert len({report.permanent for report in reports[:20]}) == 1
    assert len({report.permanent for report in reports}) == 2
    assert len({report.instantaneous for report in reports}) == 40


def test_without_noise_a_report_is_the_filter() -> None:
    """p = 0, q = 1, f = 0 leave nothing to chance, and the counts are those of the filters."""
    silent = params(p=Fraction(0), q=Fraction(1), f=Fraction(0))
    reports = list(encode(silent, [Reading("u1", 1, "apple"), Reading("u2", 1, "banana")]))
    assert all(report.instantaneous == report.bloom for report in reports)
    counts = count(silent, reports)
    # In cohort 1: apple has both hashes in bit 9, banana has bits 11 and 7.
    assert counts.bits[1].tolist() == [int(bit in (7, 9, 11)) for bit in range(16)]
    assert counts.reports.tolist() == [0, 2, 0, 0]


def test_reports_are_written_with_the_highest_bit_first() -> None:
    """The header and the digits are those that google/rappor sums up."""
    silent = params(p=Fraction(0), q=Fraction(1), f=Fraction(0))
    out = io.StringIO()
    write_reports(silent, encode(silent, [Reading("u1", 1, "banana")]), out)
    bits = "0000100010000000"
    assert out.getvalue() == f"client,cohort,bloom,prr,irr\r\nu1,1,{bits},{bits},{bits}\r\n"


def test_reports_have_the_probabilities_of_the_paper() -> None:
    """Bits of the filter are reported with p11, others with p01, cohorts drawn evenly.

    System randomness, 4,000 reports: two exact binomial tests and one chi-square test at
    alpha = 1e-6 each; three comparisons.
    """
    chosen = params(k=32, f=Fraction(1, 4), p=Fraction(3, 10), q=Fraction(4, 5))
    reports = list(encode(chosen, [Reading(f"c{at}", None, "apple") for at in range(4_000)]))
    ones = sum((report.instantaneous & report.bloom).bit_count() for report in reports)
    sets = sum(report.bloom.bit_count() for report in reports)
    zeros = sum((report.instantaneous & ~report.bloom).bit_count() for report in reports)
    assert stats.binomtest(ones, sets, float(chosen.p11)).pvalue > 1e-6
    rest = 4_000 * chosen.k - sets
    assert stats.binomtest(zeros, rest, float(chosen.p01)).pvalue > 1e-6
    cohorts = Counter(report.cohort for report in reports)
    assert stats.chisquare([cohorts[at] for at in range(chosen.m)]).pvalue > 1e-6
