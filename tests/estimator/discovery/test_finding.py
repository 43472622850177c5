"""Which strings are found in a tally of discovery, and what is said of them."""

import tomllib

import numpy as np
import pytest

from deniable import Scheme
from deniable.protocol.mechanisms.prefix_tree import PrefixTree
from deniable_collector.tally import Tally
from deniable_estimator.analyses import analysis_of
from deniable_estimator.analyses.discovery import DecodedRows, FoundHead, _agrees
from deniable_estimator.document.csv_files import harmless
from deniable_estimator.errors import EstimateError
from deniable_estimator.kinds.basis import Part
from deniable_estimator.kinds.discovery.finds import find_strings, shares_of
from deniable_estimator.statistics.participation import Participation
from deniable_estimator.terminal.discover_command import _toml_list

HOSTILE = "=1+\u202e<b>"
"""A formula, a mark that reorders a line, and a tag: 9 bytes."""

CROWD = {
    "search": 30_000,
    "seam": 12_000,
    "a": 20_000,
    "搜索": 15_000,
    "поиск": 9_000,
    HOSTILE: 14_000,
    "longerwords": 9_000,
    "longerwordy": 9_000,
    "": 22_000,
}
"""String -> its devices. The last two words have one head of ten bytes, and one
has ten bytes in all."""

DEVICES = sum(CROWD.values()) + 40_000
HEADS = {"longerwords": 18_000, **{k: v for k, v in CROWD.items() if not k.startswith("longer")}}


@pytest.fixture(scope="session")
def code():
    """Ten bytes at epsilon 4: six rows of 712,980 places."""
    return PrefixTree.design("terms", 4.0, 5)


def draw(mechanism, crowd, seed, window="2026-11-16"):
    """A tally of strings and their devices, drawn from its exact distribution."""
    counts = np.array(list(crowd.values()), np.int64)
    rows = analysis_of(mechanism).sample_rows(list(crowd), counts, np.random.default_rng(seed))
    return Tally("terms", Scheme("discovery", mechanism, ()).fingerprint, (window,), rows)


def part(mechanism, tally):
    """What `find_strings` is given."""
    return Part(tally, Scheme("discovery", mechanism, ()), None, Participation.evenly(tally))


@pytest.fixture(scope="session")
def crowd(code):
    """140,000 devices with the strings of CROWD, and 40,000 whose strings all differ."""
    rare = {f"{number:05d}": 1 for number in range(40_000)}
    return draw(code, {**CROWD, **rare}, seed=1)


@pytest.fixture(scope="session")
def steps():
    """How many of how many rows were searched, each time that it was told."""
    return []


@pytest.fixture(scope="session")
def finds(code, crowd, steps):
    """What is found in the crowd."""
    return find_strings([part(code, crowd)], progress=lambda *step: steps.append(step))


def test_progress_is_told(finds, steps, code):
    """The rows that are done grow to all of them."""
    of = code.levels + 1
    assert {each for _, each in steps} == {of}
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert steps[-1] == (of, of)
    assert len({done for done, _ in steps}) > 2


def test_all_common_strings_are_found(finds):
    """Strings of 5% of 180,000 devices and more are found, in any script, and nothing else (20
    standard errors; one fixed crowd)."""
    assert {each.text for each in finds.finds} == {
        *("search", "seam", "a", "搜索", "поиск", HOSTILE),
        "longerword",
    }
    # Longer ones would be counted in what fills the declared length, even exactly.
    assert {each.text for each in finds.finds if each.cut} == {"longerword", "поиск"}
    assert finds.withheld.low < 22_000 / DEVICES < finds.withheld.high


def test_shares_and_intervals(finds):
    """Each interval at 99.99% covers the truth, and shares fall in order (alpha .001, 7
    intervals)."""
    shares = [each.share for each in finds.finds]
    assert shares == sorted(shares, reverse=True)
    for each in finds.finds:
        true = HEADS.get(each.text, 18_000) / DEVICES
        assert abs(each.share - true) < 3.9 * each.std_error
        assert each.low < each.share < each.high
        assert each.p_value < 1e-9


def test_what_is_explained(finds):
    """The interval of what the list explains covers the truth, and is wider below, as the strings
    were chosen."""
    true = (sum(CROWD.values()) - 22_000) / DEVICES
    share, low, high = finds.explained
    assert low < true < high
    assert share - low > high - share
    assert share == pytest.approx(sum(each.share for each in finds.finds))


def test_nothing_is_found_where_all_strings_differ(code):
    """In a crowd of 30,000 different strings nothing surfaces, and the answer says what would."""
    tally = draw(code, {f"{number:05x}": 1 for number in range(30_000)}, seed=2)
    found = find_strings([part(code, tally)])
    assert found.finds == ()
    assert found.explained == (0.0, 0.0, 0.0)
    assert found.reach is not None
    assert 0 < found.reach.half_text < found.reach.sure_text < found.reach.sure_any < 0.1


def test_a_beginning_that_all_share(code):
    """If every string begins alike, the ghost rule takes the variance at that share, and drops
    none of them."""
    crowd = {f"https{letter}": 10_000 for letter in "abcdefgh"}
    found = find_strings([part(code, draw(code, crowd, seed=3))])
    assert {each.text for each in found.finds} == set(crowd)


def test_rows_that_chose_a_string_do_not_estimate_it(code, crowd):
    """A whole string of 2k or 2k + 1 bytes is estimated from row k + 1 on, one that is cut from
    the last row alone."""
    decoded = DecodedRows(code, crowd)
    for text, cut, rows in (("a", False, 5), ("seam", False, 3), ("longerword", True, 1)):
        counts, reports = decoded.supported(FoundHead(text.encode(), cut)).tolist()
        assert len(counts) == rows
        assert reports == decoded.reports[-rows:]
        row = 6 - rows
        assert counts[0] == decoded.row(row)[code.base(row, text.encode())]


def test_a_heavy_cell_makes_no_ghost(code):
    """A string whose rows contradict each other is not there, however high its sum."""
    assert not _agrees(np.array([(9_000, 200, 210), (20_000, 20_000, 20_000)]), 9_410 / 60_000)
    assert _agrees(np.array([(220, 200, 210), (20_000, 20_000, 20_000)]), 630 / 60_000)
    assert _agrees(np.array([(9_000,), (20_000,)]), 0.45)
    assert _agrees(np.array([(0, 0), (0, 0)]), 0.0)


def test_other_alphabets_exclude_letters():
    """A device with a letter outside of the alphabet holds no string, and the search takes none."""
    code = PrefixTree.design("terms", 4.0, 3, "lowercase")
    tally = draw(code, {"abc": 20_000, "Abc": 20_000, "ab1": 20_000}, seed=4)
    found = find_strings([part(code, tally)])
    assert [each.text for each in found.finds] == ["abc"]
    assert found.withheld.share == pytest.approx(2 / 3, abs=0.05)


def test_a_tally_of_another_scheme_is_refused(code, crowd):
    """A tally must belong to its scheme."""
    other = Scheme("discovery", PrefixTree.design("others", 4.0, 5), ())
    with pytest.raises(EstimateError, match="was made under scheme"):
        Part(crowd, other, None, Participation.evenly(crowd))


def test_devices_that_report_again(code, crowd, finds):
    """If the same devices reported twice, intervals are wider by the choice of devices."""
    twice = Participation({"2026-11-16": crowd.reports / 2, "2026-11-17": crowd.reports / 2})
    found = find_strings([Part(crowd, Scheme("discovery", code, ()), None, twice)])
    for one, other in ((finds.finds[0], found.finds[0]), (finds.explained, found.explained)):
        assert other.high - other.low > one.high - one.low


def test_asked_by_name(code, crowd):
    """Strings that are named are estimated as finds are, those that nobody has around 0."""
    heads = [
        FoundHead(b"search", False),
        FoundHead(b"nobody", False),
        FoundHead(b"too long to be", False),
    ]
    shares = shares_of([part(code, crowd)], heads, 0.95)
    assert shares is not None
    assert shares.values == ("search", "nobody")
    assert shares.low[0] < 30_000 / DEVICES < shares.high[0]
    assert abs(shares.share[1]) < 4 * shares.std_error[1]
    assert shares_of([part(code, crowd)], heads[2:], 0.95) is None


@pytest.mark.parametrize(("seed", "supports"), [(2, True), (8, False)])
def test_one_report_says_little(seed, supports):
    """Whether or not the only report supports the empty string, the interval of the share without
    a string is wide."""
    code = PrefixTree.design("terms", 4.0, 1)
    found = find_strings([part(code, draw(code, {"": 1}, seed))]).withheld
    assert (found.share > 0) is supports
    assert found.high - found.low > 1


def test_no_device_is_explained_twice():
    """A beginning that one scheme cuts at counts the whole strings of a longer scheme: what all
    of them explain holds each device once."""
    codes = [PrefixTree.design("terms", 4.0, levels) for levels in (2, 3)]
    words = {"words": 60_000, "wordy": 60_000, "see": 20_000}
    first, second = (
        part(code, draw(code, words, seed=4 + place, window=f"2026-11-{16 + place}"))
        for place, code in enumerate(codes)
    )
    both = find_strings([first, second])
    assert {each.text for each in both.finds} >= {"word", "words", "wordy"}
    assert both.explained.share == pytest.approx(1, abs=0.05)
    assert both.explained.low <= 1 <= both.explained.high


def test_a_list_to_copy_is_ascii():
    """The values that are proposed for a category are escaped as in TOML, also large letters."""
    told = _toml_list(["search", 'a"\\', "搜索", "\U0001f600"])
    assert told.isascii()
    assert tomllib.loads(told) == {"values": ["search", 'a"\\', "搜索", "\U0001f600"]}


@pytest.mark.parametrize("text", [" =1", "\uff1dcmd()", "\uff0b1", "\uff0d1", "\uff20A1"])
def test_formulas_in_all_widths(text):
    """A spreadsheet that takes wide signs for formulas too is given none."""
    assert harmless(text) == f"'{text}"


@pytest.mark.parametrize("text", ["a;b", ";=cmd()", "a; @b", "x\u037ey"])
def test_no_text_begins_a_cell(text):
    """A spreadsheet that separates cells by semicolons takes a text for one cell: no text begins
    another one, which could hold a formula."""
    assert harmless(text) == text.replace(";", "\\x3b")
    assert ";" not in harmless(text)
