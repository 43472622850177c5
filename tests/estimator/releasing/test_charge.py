"""What releases spend together."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable_estimator.releasing.charge import Charge, Kind, total
from deniable_estimator.releasing.noise import of_rho

DAYS = [f"2026-11-{day:02}" for day in range(1, 7)]


def pure(windows: list[str], each: float, limit: int | None = 2, metric: str = "browser") -> Charge:
    """A release with Laplace noise that costs so much in each window."""
    count = len(windows) if limit is None else min(limit, len(windows))
    return Charge(
        metric, tuple(windows), limit, "laplace", count * each, 0.0, each, each**2 / 2 * count
    )


def sums(windows: list[str], epsilon: float, limit: int | None = 2) -> Charge:
    """A release of exact sums."""
    return Charge("browser", tuple(windows), limit, "exact", epsilon, 1e-8)


def test_a_device_pays_only_for_windows_in_which_it_can_report() -> None:
    """Of six daily releases, a device whose lifetime allows two reports pays for two."""
    charges = [pure([day], 0.5, limit=2) for day in DAYS]
    assert total(charges, 1e-6) == pytest.approx(1.0)
    unlimited = [pure([day], 0.5, limit=None) for day in DAYS]
    assert total(unlimited, 1e-6) == pytest.approx(3.0)


def gaussian(windows: list[str], rho: float, limit: int | None) -> Charge:
    """A trend with Gaussian noise of so much rho in each window."""
    count = len(windows) if limit is None else min(limit, len(windows))
    epsilon = of_rho(count * rho, 1e-9)
    return Charge("browser", tuple(windows), limit, "gaussian", epsilon, 1e-9, None, rho)


def test_gaussian_trends_cost_in_the_windows_of_a_device_alone() -> None:
    """Of thirty trends over windows of their own, a device with two reports pays for two windows,
    whichever these are; without a limit it pays for all."""
    pairs = [[f"{number} a", f"{number} b"] for number in range(30)]
    limited = [gaussian(each, 0.01, 2) for each in pairs]
    assert total(limited, 1e-6) == pytest.approx(of_rho(2 * 0.01, 1e-6))
    unlimited = [gaussian(each, 0.01, None) for each in pairs]
    assert total(unlimited, 1e-6) == pytest.approx(of_rho(60 * 0.01, 1e-6))


def test_exact_sums_are_added_to_the_noise_at_what_they_leave_of_delta() -> None:
    """A hundred small releases with noise, and two exact tables, whose deltas are taken first."""
    noise = [pure(DAYS[:1], 0.05)] * 100
    tables = [Charge("browser", tuple(DAYS), None, "exact", 0.1, 2e-7)] * 2
    expected = of_rho(100 * 0.05**2 / 2, 6e-7) + 0.2
    assert total([*noise, *tables], 1e-6) == pytest.approx(expected)


def test_a_delta_that_exact_sums_have_spent_leaves_none_for_noise() -> None:
    """No epsilon can be stated, whatever the noise; a delta that is spent to the last can."""
    spent = Charge("browser", tuple(DAYS), None, "exact", 0.1, 2e-6)
    assert total([spent, pure(DAYS[:1], 0.5)], 1e-6) == math.inf
    assert total([spent, pure(DAYS[:1], 0.5)], 2e-6) == pytest.approx(0.6)


def test_what_noise_separates_is_added_to_every_total() -> None:
    """Whichever composition is the least."""
    for charges in ([pure(DAYS[:1], 0.5)], [pure(DAYS[:1], 0.05)] * 100, [sums(DAYS, 0.1)]):
        more = [*charges[:-1], replace(charges[-1], separated=0.25)]
        assert total(more, 1e-6) == pytest.approx(total(charges, 1e-6) + 0.25)


def test_the_windows_that_cost_the_most_count() -> None:
    """A device that reports once may do so in the window that costs the most, whichever it is."""
    for costs in ((0.1, 0.5), (0.5, 0.1)):
        charges = [pure([day], each, limit=1) for day, each in zip(DAYS, costs, strict=False)]
        assert total(charges, 1e-6) == pytest.approx(0.5)


def test_metrics_add_up() -> None:
    """A device reports to all metrics, so their costs are added."""
    charges = [pure(DAYS[:1], 0.5), pure(DAYS[:1], 0.5, metric="theme")]
    assert total(charges, 1e-6) == pytest.approx(1.0)


def test_many_small_releases_compose_better_than_their_sum() -> None:
    """A hundred releases of epsilon 0.05 cost less than 5 at a delta, and no less than the best
    lower bound of one."""
    found = total([pure(DAYS[:1], 0.05)] * 100, 1e-6)
    assert 0.05 < found < 3.5
    assert found <= of_rho(100 * 0.05**2 / 2, 1e-6) * (1 + 1e-9)


@settings(max_examples=60)
@given(
    releases=st.lists(
        st.tuples(
            st.lists(st.sampled_from(DAYS), min_size=1, max_size=6, unique=True),
            st.sampled_from([0.1, 0.4, 1.0]),
        ),
        min_size=1,
        max_size=5,
    ),
    limit=st.sampled_from([1, 2, 3, None]),
)
def test_the_total_covers_every_device(
    releases: list[tuple[list[str], float]], limit: int | None
) -> None:
    """Wherever a device reports, the plain sum of what its windows cost is at most the basic total;
    the returned total is at most that."""
    charges = [pure(windows, each, limit) for windows, each in releases]
    most = len(DAYS) if limit is None else limit
    worst = max(
        math.fsum(each * sum(day in windows for day in chosen) for windows, each in releases)
        for count in range(1, most + 1)
        for chosen in itertools.combinations(DAYS, count)
    )
    assert total(charges, 1e-9) <= worst * (1 + 1e-9)


@pytest.mark.parametrize("kind", ["exact", "laplace", "gaussian", "exponential"])
def test_a_charge_survives_its_file_form(kind: Kind) -> None:
    """What the ledger keeps is read back as it was."""
    charge = Charge("browser", ("2026-11-01",), 3, kind, 0.5, 1e-8, 0.25, None)
    assert Charge.from_dict(charge.to_dict()) == charge
