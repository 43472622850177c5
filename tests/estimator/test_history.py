"""Windows against the windows before them, and the command that shows them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from scipy import stats

from deniable import Registry, Scheme
from deniable.mechanisms import SubsetSelection
from deniable_collector.stores.base import Store
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.commands import ALARM, NO_DATA
from deniable_estimator.commands import anomalies as command
from deniable_estimator.estimate import estimate
from deniable_estimator.history import LEAST_HISTORY, History, inspect
from deniable_estimator.sampling import sample_tally
from deniable_estimator.trend import Period, Trend, trend

VALUES = ("a", "b", "c", "d", "e")
SCHEME = Scheme("category", SubsetSelection.design(5, 1.0), VALUES)


def history(windows: list[tuple[int, np.ndarray]], rng: np.random.Generator) -> History:
    """Of so many devices with such shares in each window."""
    periods = []
    for number, (devices, shares) in enumerate(windows):
        tally = sample_tally(SCHEME, rng.multinomial(devices, shares / shares.sum()), rng)
        label = f"2026-11-{number + 1:02}"
        periods.append(Period(label, None, None, False, estimate(tally, SCHEME)))  # type: ignore[arg-type]
    return inspect(Trend("browser", "day", 0.95, False, tuple(periods)))


def steady(count: int, rng: np.random.Generator) -> Iterator[tuple[int, np.ndarray]]:
    """Windows whose crowd and shares vary by some percent from day to day."""
    for _ in range(count):
        devices = int(20_000 * np.exp(rng.normal(0, 0.05)))
        yield devices, np.array([5, 4, 3, 2, 1]) * np.exp(rng.normal(0, 0.03, 5))


def test_steady_windows_raise_no_alarm() -> None:
    """Windows that vary from day to day as they always did are called anomalous at most once in
    1,000 histories: 200 of 12 windows each, seed 1, at most a binomial tail of 1e-4; and of
    all jumps by themselves, 5 % are below .05, to a tail of 1e-4 with 2 for their dependence.
    """
    rng = np.random.default_rng(1)
    alarms, p = 0, []
    for _ in range(200):
        found = history(list(steady(12, rng)), rng)
        alarms += bool(found.anomalous)
        p += [each.p_value for each in found.windows[-1].verdict.figures if each.name == "answers"]
        p += [each.p_value for each in found.windows[-1].verdict.figures if each.name == "jump"]
    assert alarms <= stats.binom.isf(1e-4, 200, 0.001)
    assert len(p) == 400
    assert (np.array(p) <= 0.05).sum() <= 2 * stats.binom.isf(1e-4, 400, 0.05)


def test_a_jump_is_noticed_in_its_window() -> None:
    """A share that doubles, and a crowd that does, are noticed where they happen, and named.

    14 steady windows with one jump in the 12th; seed 2; 20 standard errors and more.
    """
    rng = np.random.default_rng(2)
    windows = list(steady(14, rng))
    devices, shares = windows[11]
    windows[11] = (4 * devices, shares * [1, 1, 1, 3, 1])
    found = history(windows, rng)
    (window,) = found.anomalous
    assert window.label == "2026-11-12"
    alarms = {each.name: each for each in window.verdict.alarms()}
    assert alarms["jump"].value == "d"
    assert alarms["jump"].observed > 2 * alarms["jump"].expected
    assert "the share of d is" in alarms["jump"].text
    assert alarms["answers"].expected == pytest.approx(20_000, rel=0.1)


def test_a_short_history_is_no_measure() -> None:
    """Until there are enough windows before it, none is compared, but each has its figures."""
    rng = np.random.default_rng(3)
    found = history(list(steady(LEAST_HISTORY + 1, rng)), rng)
    names = [{figure.name for figure in window.verdict.figures} for window in found.windows]
    assert names[-1] == {"low", "lowest", "jump", "answers"}
    assert all(each == {"low", "lowest"} for each in names[:-1])


@pytest.fixture
def run(registry_file: Path, store_url: str) -> Callable[..., Result]:
    def invoke(*arguments: str) -> Result:
        common = ["--registry", str(registry_file), "--store", store_url]
        return CliRunner().invoke(command, [*arguments, *common], env={"COLUMNS": "160"})

    return invoke


def fill_days(
    registry: Registry, fill: Callable[[Tally, Scheme], None], odd: int | None = None
) -> None:
    """Ten days of 2,000 browsers; on the odd day, as many fakes for one value besides."""
    scheme = registry["browser"].scheme
    rng = np.random.default_rng(4)
    for day in range(1, 11):
        counts = rng.multinomial(2000, [0.5, 0.45, 0.05, 0.0])
        tally = sample_tally(scheme, counts, rng, metric="browser", window=f"2026-11-{day:02}")
        if day == odd:
            (row,) = tally.rows
            fakes = TallyRow(4000, row.cells + np.array([2000, 0, 0, 0]))
            tally = replace(tally, rows=(fakes,))
        fill(tally, scheme)


def test_the_command_shows_honest_windows(
    run: Callable[..., Result], registry: Registry, fill: Callable[[Tally, Scheme], None]
) -> None:
    """Honest windows are listed, nothing is called strange, and the exit code is 0."""
    fill_days(registry, fill)
    result = run("browser")
    assert result.exit_code == 0, result.output
    assert "2026-11-10" in result.output
    assert "Nothing here is unlike honest reports." in result.output


def test_the_command_points_at_the_window(
    run: Callable[..., Result], registry: Registry, fill: Callable[[Tally, Scheme], None]
) -> None:
    """A window full of fakes is named, with what to do, by exit code 4; JSON says the same."""
    fill_days(registry, fill, odd=9)
    result = run("browser")
    assert result.exit_code == ALARM
    (line,) = [line for line in result.output.splitlines() if line.startswith("2026-11-09")]
    assert "the lowest share, -" in line
    assert "Leave such windows out" in result.output
    document = json.loads(run("browser", "--json").output)
    assert [each["window"] for each in document["windows"] if each["anomalous"]] == ["2026-11-09"]
    assert run("browser", "--to", "2026-11-08").exit_code == 0


def test_the_command_without_reports(run: Callable[..., Result]) -> None:
    """Without reports it says so, as the other commands do."""
    assert run("browser").exit_code == NO_DATA


def test_a_trend_of_a_store_is_inspected(
    store: Store, registry: Registry, fill: Callable[[Tally, Scheme], None]
) -> None:
    """Each stored window has its line, with its number of reports."""
    fill_days(registry, fill)
    found = inspect(trend(store, registry, "browser"))
    assert [window.n for window in found.windows] == [2000] * 10
