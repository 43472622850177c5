"""The geometry of charts."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable import Scheme
from deniable.protocol.mechanisms import design
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.answers import answer_of
from deniable_estimator.answers.words.base import Shown
from deniable_estimator.answers.words.share_charts import bar_chart, folded_chart
from deniable_estimator.answers.words.shares import SharesKind
from deniable_estimator.asking.comparison import compare
from deniable_estimator.dashboard.changes import change_headline


def estimated(counts, n, values=None):
    """The estimate of a tally with these counts."""
    names = values or tuple(f"v{index}" for index in range(len(counts)))
    scheme = Scheme("category", design("randomized_response", len(counts), 1.0), names)
    row = TallyRow(n, np.array(counts, np.int64))
    return answer_of(Tally("m", scheme.fingerprint, ("2026-11-20",), (row,)), scheme)


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=30))
def test_everything_is_inside_the_plot(counts):
    """No bar, whisker or tick leaves the plot, and zero is a tick."""
    chart = bar_chart(estimated(counts, max(1, sum(counts))))
    for row in chart.rows:
        assert row.at is not None
        assert 0 <= row.low <= row.at <= row.high <= 100
    assert all(0 <= tick.at <= 100 for tick in chart.ticks)
    assert chart.zero in [tick.at for tick in chart.ticks]
    assert 3 <= len(chart.ticks) <= 5


def test_positions_follow_the_shares():
    """The distance from zero is proportional to the share, whatever its sign."""
    result = estimated([900, 300, 290, 10], 1500)
    chart = bar_chart(result)
    shares = sorted(result.share, reverse=True)
    distance = [row.at - chart.zero for row in chart.rows if row.at is not None]
    assert shares[-1] < 0
    assert distance == pytest.approx(
        [share / shares[0] * distance[0] for share in shares], abs=0.05
    )


def test_the_largest_comes_first_and_the_rest_is_counted():
    """A limit keeps the largest values and says how many are left out."""
    chart = bar_chart(estimated([10, 500, 200, 290], 1000), limit=2)
    assert [bar.label for bar in chart.rows] == ["v1", "v3"]
    assert chart.more == 2


def test_what_is_noise_is_a_chart_of_its_own():
    """Every value is in one of two charts, by whether it is detected, and both have one scale."""
    result = estimated([4454, 2048, 1749, 1749], 10_000)
    out, below, hidden = folded_chart(result, limit=40, noise_limit=40)
    assert below is not None
    standing, noise = out.rows, below.rows
    detected = dict(zip(result.values, result.detected, strict=True))
    assert {bar.label for bar in standing} == {value for value in detected if detected[value]}
    assert {bar.label for bar in noise} == {value for value in detected if not detected[value]}
    assert hidden == len(noise)
    assert out.ticks == below.ticks
    assert out.zero == below.zero
    assert out.name != below.name


@given(
    st.lists(st.integers(0, 1000), min_size=3, max_size=30),
    st.integers(1, 40),
    st.sampled_from([None, "share", "-share", "value", "-value"]),
    st.text(alphabet="V0123", max_size=2),
)
def test_the_table_loses_no_value(counts, limit, sort, find):
    """Lines that stand, lines that are folded and those that are counted make all values that
    contain the text, in any case; what is sorted or looked for is not folded."""
    result = estimated(counts, max(1, sum(counts)))
    frame = SharesKind().frames(result, Shown(drawn=False, rows=limit, sort=sort, find=find))[0]
    held = [value for value in result.values if find.lower() in value]
    listed = [row[0].value for row in frame.rows]
    standing, noise = (
        frame.rows[: len(listed) - frame.folded],
        frame.rows[len(listed) - frame.folded :],
    )
    assert len(listed) == len(set(listed)) == min(limit, len(held))
    assert len(listed) + frame.more == len(held)
    assert {*listed} <= {*held}
    assert all(result.values[row[1] - 1] == row[0].value for row in frame.rows)
    if sort in ("value", "-value"):
        assert listed == sorted(held, reverse=sort == "-value")[:limit]
    if sort or find:
        assert (frame.folded, frame.fold) == (0, "")
        return
    assert not any(row[0].tag == "noise" for row in standing) or not frame.fold
    assert all(row[0].tag == "noise" for row in noise)
    hidden = int((~(result.detected | result.impossible)).sum())
    assert not frame.fold or frame.fold.startswith(f"{hidden:,} ")


def test_noise_is_told_apart():
    """A bar is noise exactly where the adjusted p-value does not detect the value."""
    result = estimated([4454, 2048, 1749, 1749], 10_000)
    chart = bar_chart(result)
    detected = dict(zip(result.values, result.detected, strict=True))
    assert {bar.label: not bar.noise for bar in chart.rows} == detected
    assert 0 < sum(bar.noise for bar in chart.rows) < 4


@pytest.mark.parametrize(("moved", "rest"), [(3, "."), (4, "; and 1 more have changed.")])
def test_three_changes_are_named(moved, rest):
    """The first of those that stand out; of more than three it is told how many there are."""
    before = replace(estimated([1000] * 8, 8000), windows=("2026-11-13",))
    after = estimated([1000 + 500 * (place < moved) for place in range(8)], 8000)
    told = change_headline(compare(before, after))
    assert [f"v{place} is up " in told for place in range(8)] == [True] * 3 + [False] * 5
    assert told.endswith(f"){rest}")
