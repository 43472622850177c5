"""What a report says: exact ratios, for each mechanism that ships."""

import json
from datetime import date
from pathlib import Path

import pytest

from deniable import Scheme
from deniable.protocol import windows
from deniable.protocol.mechanisms import MECHANISMS, FrequencyOracle, Packing, Report, rebuild
from deniable.protocol.mechanisms.memoized_retention import MemoizedRetention
from deniable.protocol.mechanisms.number_range import Numeric
from deniable.protocol.mechanisms.prefix_tree import PrefixTree
from deniable.protocol.wire import SealedReport, unpack_columns
from deniable_estimator.development.meaning import LISTED_COLUMNS, MOST_VALUES, PROBES, meaning_of

DRAWS = json.loads(
    (Path(__file__).parents[3] / "client" / "vectors" / "draws.json").read_text(encoding="utf-8")
)["reports"]


def kinds():
    """One published report for each mechanism with each of its parameters."""
    found = {(each["mechanism"], str(each["parameters"])): each for each in DRAWS}
    return list(found.values())


def scheme_of(case):
    mechanism = rebuild(case["mechanism"], case["parameters"])
    if isinstance(mechanism, Numeric):
        return Scheme("number", mechanism, ())
    if isinstance(mechanism, PrefixTree):
        return Scheme("discovery", mechanism, ())
    if isinstance(mechanism, MemoizedRetention):
        return Scheme("retention", mechanism, mechanism.texts)
    assert isinstance(mechanism, FrequencyOracle)
    if mechanism.size is None:
        return Scheme("string", mechanism, ())
    return Scheme("category", mechanism, tuple(f"v{place}" for place in range(mechanism.size)))


def test_every_mechanism_is_here():
    """The published reports are of all mechanisms that ship."""
    assert {each["mechanism"] for each in kinds()} == set(MECHANISMS)


@pytest.mark.parametrize("case", kinds(), ids=lambda case: case["mechanism"])
def test_ratios_are_those_of_the_mechanism(case):
    """For each value, number or string that is named, probability and ratio are exactly those of
    the mechanism's likelihoods, and no ratio is above e^epsilon."""
    scheme = scheme_of(case)
    mechanism = scheme.mechanism
    kind = mechanism.window if isinstance(mechanism, MemoizedRetention) else "day"
    window = windows.window_of(kind, date(2026, 11, 20))
    sealed = SealedReport("m", scheme.fingerprint, window, case["row"], case["columns"])
    row = mechanism.rows[sealed.row]
    report = Report(sealed.row, unpack_columns(row, sealed.columns))
    is_open = scheme.needs_candidates or isinstance(mechanism, PrefixTree)
    named = ("Bergen", "Oslo") if is_open else ()
    meaning = meaning_of(scheme, sealed, "en", named)
    number = len(mechanism.rows)
    assert (meaning.row, meaning.rows, meaning.width) == (sealed.row, number, row.width)
    bits = [report.columns]
    if row.packing is not Packing.INDEX:
        bits = [place for place in range(row.width) if report.columns >> place & 1]
    assert meaning.set == len(bits)
    assert meaning.columns == tuple(bits[:LISTED_COLUMNS])
    shown = {value: group for group in meaning.groups for value in group.values}
    assert shown
    least = meaning.groups[-1].probability
    if isinstance(mechanism, MemoizedRetention):
        # Its values are named by what they mean in the window, not by their cells.
        channel = mechanism.channels[report.row]
        chances = [
            channel.likelihood(Report(0, report.columns), place) for place in range(channel.size)
        ]
        told = [each.probability for each in meaning.groups for _ in each.values]
        assert sorted(told) == sorted(chances)
        return
    for value, group in shown.items():
        item = value
        if isinstance(mechanism, Numeric):
            item = mechanism.range.position(float(value))
        elif not is_open:
            item = int(value[1:])
        assert mechanism.likelihood(report, item) == group.probability
        assert group.ratio == group.probability / least
    assert all(1 <= each.ratio <= mechanism.odds for each in meaning.groups)
    total = sum(len(each.values) + each.more for each in meaning.groups)
    if meaning.kind in ("values", "some"):
        assert min(total, MOST_VALUES) == total
        assert total == len(scheme.values) or meaning.kind == "some"
    elif meaning.kind == "strings":
        assert total == PROBES + len(named)


def test_a_long_list_is_looked_at_in_part():
    """Of a list of 6,000 values at most 2,000 are looked at, and the page is told so."""
    mechanism = rebuild("subset_selection", {"size": 6000, "k": 1, "threshold": 1 << 51})
    scheme = Scheme("category", mechanism, tuple(f"v{place}" for place in range(6000)))
    sealed = SealedReport("m", scheme.fingerprint, "2026-11-20", 0, 3)
    meaning = meaning_of(scheme, sealed, "zh-Hans")
    assert meaning.kind == "some"
    assert sum(len(each.values) + each.more for each in meaning.groups) == MOST_VALUES
    assert meaning.columns == (3,)
