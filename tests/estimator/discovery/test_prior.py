"""The prior, and which pairs of bytes may follow a prefix."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import example, given
from hypothesis import strategies as st

from deniable.protocol.mechanisms.prefix_tree import ALPHABETS
from deniable_estimator.analyses.discovery.make_prior import main
from deniable_estimator.analyses.discovery.prior import (
    BETWEEN,
    DEAD,
    ENDED,
    FORMAT,
    MAX_PRIOR,
    START,
    Prior,
    counted_pairs,
    read_prior,
    steps,
)
from deniable_estimator.errors import EstimateError


def test_pairs_are_counted():
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


def test_strings_are_in_normal_form():
    """A string counts as devices write it: in normal form C."""
    assert (counted_pairs([("e\u0301", 1.0)]) == counted_pairs([("é", 1.0)])).all()


@given(st.lists(st.tuples(st.text(max_size=5).map(lambda t: t.encode("utf-8", "ignore").decode()),
                          st.floats(1e-9, 1e9)), min_size=1, max_size=5))  # fmt: skip
def test_no_byte_is_impossible(texts):
    """Whatever was counted, each byte that text holds has a chance of .05 / 200 at least after
    any other, and each row is about a distribution."""
    logs = Prior(counted_pairs(texts), "", "").logs
    shown = logs[1:, 32:127]
    assert np.isfinite(logs).all()
    assert shown.min() > np.log(0.05 / 200) - 1e-9
    sums = np.exp(np.delete(logs, [*range(1, 32), 127], axis=1)[1:]).sum(axis=1)
    assert (sums < 1.05).all()


def test_a_pair_has_its_share_and_a_little_of_every_byte():
    """Of one string "ab": b after a has 0.98 and 0.02 of the third that b has of all, times 0.95
    and a 200th of 0.05; z has that last part alone."""
    logs = Prior(counted_pairs([("ab", 3.0)]), "", "").logs
    after = np.exp(logs[ord("a")])
    assert after[ord("b")] == pytest.approx(0.95 * (0.98 + 0.02 / 3) + 0.05 / 200)
    assert after[0] == pytest.approx(0.95 * 0.02 / 3 + 0.05 / 200)
    assert after[ord("z")] == pytest.approx(0.05 / 200)


def test_its_file(tmp_path):
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
def test_broken_files(tmp_path, text, told):
    """A file that is no prior is refused with what is wrong."""
    if isinstance(text, dict):
        text = json.dumps({"format": FORMAT, "source": "", "licence": "", **text})
    path = tmp_path / "prior.json"
    path.write_text(text)
    with pytest.raises(EstimateError, match=told):
        read_prior(path)


def state(data, alphabet):
    """The state after bytes, two at a time."""
    now, allowed = BETWEEN, steps(alphabet)
    for at in range(0, len(data), 2):
        now = int(allowed[now, int.from_bytes(data[at : at + 2].ljust(2, b"\0"), "big")])
        if now == DEAD:
            break
    return now


def is_beginning(data):
    """Whether some UTF-8 text begins with these bytes, by Python's decoder."""
    if is_text(data):
        return True
    return any(
        is_text(data + rest)
        for rest in (b"\x80", b"\xa0", b"\x80\x80", b"\xa0\x80", b"\x90\x80\x80", b"\x80\x80\x80")
    )


def is_text(data):
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


pieces = st.one_of(st.text(max_size=3).map(lambda text: text.encode("utf-8", "ignore")),
                   st.binary(max_size=4))  # fmt: skip


@given(st.lists(pieces, max_size=3).map(b"".join))
@example(b"\xed\xa0")
@example(b"\xf4\x90")
@example(b"\xe0\x80")
@example(b"\xf0\x8f")
@example(b"\xc0\x80")
def test_all_utf8_and_nothing_else(data):
    """Bytes lead on if and only if UTF-8 text without control characters of ASCII begins so."""
    data = data.replace(b"\0", b"")
    data = data[: len(data) // 2 * 2]
    allowed = is_beginning(data) and not set(data) - set(ALPHABETS["bytes"])
    assert (state(data, "bytes") != DEAD) == allowed


@given(st.text(min_size=1, max_size=9))
def test_a_whole_string_ends(text):
    """Text that fits the alphabet leads to the end, and stays there."""
    data = text.encode("utf-8", "ignore")
    if set(data) - set(ALPHABETS["bytes"]):
        return
    padded = data + b"\0" * (2 + len(data) % 2)
    assert state(padded, "bytes") == ENDED
    assert state(padded + b"\0\0", "bytes") == ENDED
    assert state(padded + b"a\0", "bytes") == DEAD


@pytest.mark.parametrize("alphabet", sorted(set(ALPHABETS) - {"bytes"}))
def test_named_alphabets(alphabet):
    """A named alphabet takes pairs of its letters, and no others."""
    letters = set(ALPHABETS[alphabet])
    for one in range(1, 256):
        assert (state(bytes([one, one]), alphabet) == BETWEEN) == (one in letters)
        assert (state(bytes([one, 0]), alphabet) == ENDED) == (one in letters)


def test_the_script(tmp_path):
    """It counts lists, with frequencies and without, into a new file."""
    one, two, out = tmp_path / "one.tsv", tmp_path / "two.txt", tmp_path / "prior.json"
    one.write_text("ab\t4\nb\t1\n", encoding="utf-8")
    two.write_text("\ufeffслово\r\n\r\nещё\r\n", encoding="utf-8")
    arguments = [str(one), str(two), "--out", str(out), "--source", "mine", "--licence", "CC0"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    made = read_prior(out)
    expected = counted_pairs([("ab", 4.0), ("b", 1.0)]) + counted_pairs(
        [("слово", 1.0), ("ещё", 1.0)]
    )
    assert (made.counts == np.ceil(expected)).all()
    assert CliRunner().invoke(main, arguments).exit_code != 0, "it replaced a file"


def test_a_file_that_is_not_there(tmp_path):
    """The message has the system's reason."""
    with pytest.raises(EstimateError, match="it cannot be read: No such file"):
        read_prior(tmp_path / "away.json")
