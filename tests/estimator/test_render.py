"""What a terminal shows of estimates and plans."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console, RenderableType

from deniable import Scheme
from deniable_collector.tally import Tally, empty_tally
from deniable_estimator.answers.shares import estimate
from deniable_estimator.planning.plan import plan
from deniable_estimator.terminal.plan_views import plan_view
from deniable_estimator.terminal.tables import MOST_ROWS, estimate_view, picture


def _shown(view: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=100, color_system=None)
    console.print(view)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("low", "share", "high", "expected"),
    [
        (0.25, 0.5, 0.75, "█████▒▒▒▒▒┃▒▒▒▒     "),
        (-0.1, 0.0, 0.1, "┃▒                  "),
        (-0.3, -0.2, -0.1, "┃                   "),
        (0.9, 1.0, 1.0, "██████████████████▒┃"),
    ],
)
def test_picture(low: float, share: float, high: float, expected: str) -> None:
    """The bar is solid up to the lower end, shaded to the upper, marked at the share, 20 wide."""
    assert picture(low, share, high, 1.0).plain == expected


def test_table_has_every_value_and_its_interval(
    make_scheme: Callable[..., Scheme], make_tally: Callable[..., Tally]
) -> None:
    """Values stand largest first with share and interval in percent, and warnings below."""
    scheme = make_scheme(3, 2.0, values=["tea", "[red]coffee", "a\x1b[2Jb"])
    answer = estimate(make_tally(scheme, 1000, [200, 700, 100]), scheme)
    text = _shown(estimate_view(answer))
    assert text.index("[red]coffee") < text.index("tea")
    assert f"{answer.low[1] * 100:.2f} .. {answer.high[1] * 100:.2f}" in text
    assert "1,000 devices  ·  2026-11-16" in text
    assert "\x1b" not in text
    assert "Dim: not distinguishable" in text


def test_truth_stands_beside(
    make_scheme: Callable[..., Scheme], make_tally: Callable[..., Tally]
) -> None:
    """A simulation's truth is a column of its own."""
    scheme = make_scheme(2, 2.0)
    answer = estimate(make_tally(scheme, 1000, [600, 400]), scheme)
    text = _shown(estimate_view(answer, truth=answer.share * 0 + 0.4321))
    assert text.count("43.21") == 2


def test_long_lists_are_cut(
    make_scheme: Callable[..., Scheme], make_tally: Callable[..., Tally]
) -> None:
    """A table stops at its most rows and says how many it left out."""
    scheme = make_scheme(MOST_ROWS + 5, 1.0, k=1)
    answer = estimate(make_tally(scheme, 45, [1] * 45), scheme)
    assert "and 5 more values" in _shown(estimate_view(answer))


def test_ghosts_stand_last(
    make_scheme: Callable[..., Scheme], make_tally: Callable[..., Tally]
) -> None:
    """A ghost does not push real values down, however large it looks."""
    scheme = make_scheme(3, 2.0, values=["tea", "boo", "milk"])
    answer = estimate(make_tally(scheme, 1000, [200, 700, 100]), scheme)
    text = _shown(estimate_view(replace(answer, ghosts=np.array([False, True, False]))))
    assert text.index("tea") < text.index("milk") < text.index("boo")


def test_windows_are_counted(
    make_scheme: Callable[..., Scheme], make_tally: Callable[..., Tally]
) -> None:
    """Several windows are shown as a range, with reports instead of devices."""
    scheme = make_scheme(2, 2.0)
    tally = make_tally(scheme, 1000, [600, 400], ["2026-11-15", "2026-11-16"])
    text = _shown(estimate_view(estimate(tally, scheme)))
    assert "1,000 reports  ·  2 windows, 2026-11-15 to 2026-11-16" in text


def test_no_reports(make_scheme: Callable[..., Scheme]) -> None:
    """Without reports there is a heading and the warning, and no table."""
    scheme = make_scheme(2, 2.0)
    tally = empty_tally("browser", scheme.fingerprint, (), scheme.mechanism.rows)
    text = _shown(estimate_view(estimate(tally, scheme)))
    assert "no reports" in text
    assert "interval" not in text


def test_plan_in_words() -> None:
    """A plan shows its figures and verdict; a hopeless one says no usable signal."""
    good = _shown(plan_view(plan(100, 1.0, 100_000)))
    assert "a share of 2.49%" in good
    assert "Usable" in good
    bad = _shown(plan_view(plan(100, 1.0, 100, sample_rate=0.1, lifetime_epsilon=8.0)))
    assert "No usable signal" in bad
    assert "not even a share of 100%" in bad
    assert "10 a window, out of 100 devices" in bad
    assert "reports 8 times, over about 80 windows" in bad
