"""The geometry of a sparkline: it holds every interval, joins what is known, and has few points."""

from __future__ import annotations

import math
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from deniable_estimator.document.plot.lines import MOST_POINTS, SparkPoint, sparkline
from deniable_estimator.document.units import SHARES, NumberUnit

_POINTS = st.lists(
    st.none()
    | st.builds(
        SparkPoint,
        st.integers(1, 10**9),
        st.floats(-1e6, 1e6) | st.just(math.nan),
        st.floats(0, 1e5) | st.just(math.nan),
    ),
    max_size=400,
)


def corners(path):
    numbers = [float(each) for each in re.findall(r"-?[\d.]+", path)]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


@settings(deadline=None, derandomize=True, max_examples=200)
@given(_POINTS, st.sampled_from((SHARES, NumberUnit("s", log=True))))
def test_it_stays_in_its_box(points, unit):
    """Whatever the numbers, line and band lie in the box of 1000 by 24, from left to right, with at
    most as many points as fit; fewer than two known points are no line."""
    drawn = sparkline(points, unit)
    known = [
        each
        for each in points
        if each
        and math.isfinite(each.value)
        and math.isfinite(each.std_error)
        and (not unit.log or each.value > 0)
    ]
    if drawn is None:
        assert len(known) < 2 or len(points) > MOST_POINTS or unit.log
        return
    assert len(known) >= 2
    line, band = corners("".join(drawn.paths)), corners("".join(drawn.bands))
    alone = [each for each in drawn.dots if each.alone]
    assert 2 <= len(line) + len(alone) <= MOST_POINTS
    for x, y in (*line, *band, *((10 * each.at, each.down) for each in alone)):
        assert 0 <= x <= 1000
        assert 0 <= y <= 24
    along = [x for x, _ in line]
    assert along == sorted(along)
