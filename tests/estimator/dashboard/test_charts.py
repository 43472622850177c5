"""The geometry of charts."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable import Scheme
from deniable.protocol.mechanisms import design
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.asking.comparison import compare
from deniable_estimator.dashboard.comparison_page import change_frame
from deniable_estimator.dashboard.recent import change_headline
from deniable_estimator.document.document import Estimate
from deniable_estimator.kinds.kind import Shown
from deniable_estimator.kinds.registry import answer_of
from deniable_estimator.kinds.shares.charts import bar_chart, folded_chart
from deniable_estimator.kinds.shares.words import SharesKind


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


def test_what_is_folded_away_has_the_scale_of_the_rest():
    """Bars below the noise are as long beside the others as their shares are."""
    result = estimated([4700, 1750, 1740, 1760], 10_000)
    standing, noise = folded_chart(result, Shown(rows=0), limit=1, noise_limit=2)
    assert noise is not None
    assert (len(standing.rows), len(noise.rows), noise.more) == (1, 2, 1)
    assert standing.ticks == noise.ticks


def test_a_number_without_any_limit_is_not_known():
    """The card of a metric then says nothing in its place."""
    drawn = Estimate(None, "unknown", drawn=(-math.inf, math.nan, math.inf)).bar()
    assert not drawn.known
    assert Estimate(0.5, "at least 1", drawn=(0.1, 0.5, math.inf)).bar().known


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


def compared(moved, n):
    """Eight values before and after the first of them have moved."""
    before = replace(estimated([1000] * 8, n), windows=("2026-11-13",))
    return compare(before, estimated([1000 + 500 * (place < moved) for place in range(8)], n))


@pytest.mark.parametrize(("moved", "rest"), [(3, "."), (4, "; and 1 more have changed.")])
def test_three_changes_are_named(moved, rest):
    """The first of those that stand out; of more than three it is told how many there are."""
    told = change_headline(compared(moved, 8000))
    assert [f"v{place} is up " in told for place in range(8)] == [True] * 3 + [False] * 5
    assert told.endswith(f"){rest}")


@pytest.mark.parametrize(("moved", "folded"), [(0, 0), (1, 7), (8, 0)])
def test_a_bar_shows_each_change(moved, folded):
    """On one scale, from zero to the change, within its interval; those that changed stand first,
    and where some have, the others are folded away."""
    frame = change_frame(compared(moved, 16_000), 100)
    assert (frame.folded, bool(frame.fold)) == (folded, folded > 0)
    for name, change, *_ in frame.rows:
        low, at, high = change.drawn
        assert 0 <= low < at < high <= 1
        assert (at - frame.columns[1].zero) * change.value > -1e-9, name
    assert [row[0].tag for row in frame.rows] == [""] * moved + ["noise"] * (8 - moved)
