"""The prior: what it counts, its file, and the command that makes it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import deniable_estimator.terminal.prior as command
from deniable_estimator.analyses.discovery.prior import (
    FORMAT,
    MAX_PRIOR,
    START,
    Prior,
    counted_pairs,
    read_prior,
    shipped_prior,
)
from deniable_estimator.errors import EstimateError


def test_pairs_are_counted() -> None:
    """Each byte counts after the one before it, the start and the end as well, and a string by
    the square root of its frequency."""
    counts = counted_pairs([("ab", 4.0), ("b", 1.0)])
    assert counts.sum() == pytest.approx(1_000_000)
    unit = counts[START, ord("b")]
    assert counts[START, ord("a")] == pytest.approx(2 * unit)
    assert counts[ord("a"), ord("b")] == pytest.approx(2 * unit)
    assert counts[ord("b"), 0] == pytest.approx(3 * unit)
    assert np.count_nonzero(counts) == 4
    assert not counted_pairs([]).any()


def test_strings_are_in_normal_form() -> None:
    """A string counts as devices write it: in normal form C."""
    assert (counted_pairs([("e\u0301", 1.0)]) == counted_pairs([("é", 1.0)])).all()


@given(st.lists(st.tuples(st.text(max_size=5).map(lambda t: t.encode("utf-8", "ignore").decode()),
                          st.floats(1e-9, 1e9)), min_size=1, max_size=5))  # fmt: skip
def test_no_byte_is_impossible(texts: list[tuple[str, float]]) -> None:
    """Whatever was counted, each byte that text holds has a chance of .05 / 200 at least after
    any other, and each row is about a distribution."""
    logs = Prior(counted_pairs(texts), "", "").logs
    shown = logs[1:, 32:127]
    assert np.isfinite(logs).all()
    assert shown.min() > np.log(0.05 / 200) - 1e-9
    sums = np.exp(np.delete(logs, [*range(1, 32), 127], axis=1)[1:]).sum(axis=1)
    assert (sums < 1.05).all()


def test_the_shipped_prior() -> None:
    """It knows letters of many scripts, and tells its sources and their licences."""
    shipped = shipped_prior()
    logs = shipped.logs
    assert logs[ord("t"), ord("h")] > logs[ord("t"), ord("q")] + 3
    assert logs[0xD0, 0xB0] > logs[0xD0, ord("a")] + 3
    assert "wordfreq" in shipped.source
    assert "ShareAlike 4.0" in shipped.licence
    assert "SUBTLEX" in shipped.licence


def test_its_file(tmp_path: Path) -> None:
    """A prior that is written and read again is the same, but for counts rounded up."""
    made = Prior(counted_pairs([("word", 0.5), ("слово", 0.2)]), "two words", "none")
    path = tmp_path / "prior.json"
    path.write_text(made.to_json())
    again = read_prior(path)
    assert (again.source, again.licence) == ("two words", "none")
    assert (again.counts == np.ceil(made.counts)).all()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "its format is not"),
        ('{"format": "x"}', "its format is not"),
        ({"source": 1}, "source and licence must be texts"),
        ({"follows": []}, "follows must be an object"),
        ({"follows": {"a": {}}}, "must be a byte or start"),
        ({"follows": {"256": {}}}, "must be a byte or start"),
        ({"follows": {"1": []}}, "must be a byte or start"),
        ({"follows": {"1": {"2": -1}}}, "whole number beside a byte"),
        ({"follows": {"1": {"2": 1.5}}}, "whole number beside a byte"),
        ({"follows": {"1": {"2": 1e400}}}, "whole number beside a byte"),
        ({"follows": {"1": {"²": 1}}}, "whole number beside a byte"),
        ({"follows": {}}, "it counts nothing"),
        ("x" * (MAX_PRIOR + 1), "larger than"),
    ],
)
def test_broken_files(tmp_path: Path, text: str | dict[str, object], told: str) -> None:
    """A file that is no prior is refused with what is wrong."""
    if isinstance(text, dict):
        text = json.dumps({"format": FORMAT, "source": "", "licence": "", **text})
    path = tmp_path / "prior.json"
    path.write_text(text)
    with pytest.raises(EstimateError, match=told):
        read_prior(path)


def test_a_missing_file(tmp_path: Path) -> None:
    """A file that is not there is told as such."""
    with pytest.raises(EstimateError, match="No such file"):
        read_prior(tmp_path / "none.json")


def test_the_command(tmp_path: Path) -> None:
    """`deniable prior` counts lists, with frequencies and without, and tells its sources."""
    one, two, out = tmp_path / "one.tsv", tmp_path / "two.txt", tmp_path / "prior.json"
    one.write_text("ab\t4\nb\t1\n", encoding="utf-8")
    two.write_text("\ufeffслово\r\nещё\r\n", encoding="utf-8")
    result = CliRunner().invoke(
        command.prior,
        [str(one), str(two), "--out", str(out), "--source", "mine", "--licence", "CC0"],
    )
    assert result.exit_code == 0, result.output
    made = read_prior(out)
    expected = counted_pairs([("ab", 4.0), ("b", 1.0)]) + counted_pairs(
        [("слово", 1.0), ("ещё", 1.0)]
    )
    assert (made.counts == np.ceil(expected)).all()
    shown = CliRunner().invoke(command.prior, [])
    assert shown.exit_code == 0
    assert "wordfreq" in shown.output


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "holds no string"),
        (b"\n\n", "holds no string"),
        (b"word\tmany\n", "line 1: after the tab"),
        (b"word\t1\nword\t-1\n", "line 2: after the tab"),
        (b"word\tnan\n", "line 1: after the tab"),
        (b"word\tinf\n", "line 1: after the tab"),
        (b"\xff\xfe", "not UTF-8"),
        (None, "cannot be read"),
    ],
)
def test_broken_lists(tmp_path: Path, content: bytes | None, told: str) -> None:
    """A list that cannot be understood is refused with its line, and nothing is written."""
    path, out = tmp_path / "list.tsv", tmp_path / "prior.json"
    if content is not None:
        path.write_bytes(content)
    arguments = [str(path), "--out", str(out), "--source", "mine", "--licence", "CC0"]
    result = CliRunner().invoke(command.prior, arguments)
    assert result.exit_code == 1
    assert told in result.output
    assert not out.exists()


def test_a_list_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list has a largest size."""
    monkeypatch.setattr(command, "MAX_LIST", 3)
    path = tmp_path / "list.tsv"
    path.write_text("word\n")
    arguments = [str(path), "--out", str(tmp_path / "p"), "--source", "x", "--licence", "x"]
    result = CliRunner().invoke(command.prior, arguments)
    assert "larger than 3 bytes" in result.output


@pytest.mark.parametrize("arguments", [["list"], ["list", "--out", "x"], ["--out", "x"]])
def test_a_prior_without_its_source(arguments: list[str]) -> None:
    """A prior is told with its source and licence, so both must be given."""
    assert CliRunner().invoke(command.prior, arguments).exit_code == 2


def test_a_list_is_not_overwritten(tmp_path: Path) -> None:
    """A prior is not written over one of the lists that it is made from."""
    words = tmp_path / "words.txt"
    words.write_text("weather\n")
    arguments = ["--out", str(words), "--source", "ours", "--licence", "CC0"]
    done = CliRunner().invoke(command.prior, [str(words), *arguments])
    assert done.exit_code == 2
    assert "is one of the lists" in done.output
    assert words.read_text() == "weather\n"


def test_only_a_prior_is_replaced(tmp_path: Path) -> None:
    """A new prior replaces an older one and says so. Any other file stays as it is."""
    words, out, other = (tmp_path / name for name in ("words.txt", "prior.json", "metrics.toml"))
    words.write_text("weather\n")
    other.write_text("schema = 1\n")
    options = ["--source", "ours", "--licence", "CC0"]
    for told in ("into", "in place of the prior that was there"):
        done = CliRunner().invoke(command.prior, [str(words), "--out", str(out), *options])
        assert done.exit_code == 0, done.output
        assert told in done.output
    done = CliRunner().invoke(command.prior, [str(words), "--out", str(other), *options])
    assert done.exit_code == 1
    assert "exists and is no prior: name another file" in done.output
    assert other.read_text() == "schema = 1\n"
    done = CliRunner().invoke(command.prior, [str(words), "--out", str(tmp_path), *options])
    assert done.exit_code == 2
