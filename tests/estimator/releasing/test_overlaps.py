"""What releases spend together, and what a reader of several sums can subtract."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable_collector.tally import Tally
from deniable_estimator.analyses import analysis_of
from deniable_estimator.releasing.charge import Charge, cells, total
from deniable_estimator.releasing.noise import of_rho
from deniable_estimator.releasing.words import epsilon_text

from .conftest import document


def of(**windows):
    """A sum with so many reports in each window."""
    return {f"browser scheme {label}": {"0": count} for label, count in windows.items()}


WHOLE = {"browser scheme a": {"0": 3000, "1": 5}}
SEGMENT = {"browser scheme a": {"0": 3000}}


@pytest.mark.parametrize(
    ("earlier", "new", "expected"),
    [
        pytest.param([of(a=2000)], of(b=3000, c=1000), [4000], id="other windows"),
        pytest.param([of(a=2000, b=2000)], of(a=2000, b=2000, c=3), [3, 4000], id="a longer range"),
        pytest.param([of(a=2000)], of(a=2007), [7, 2000], id="a window that has grown"),
        pytest.param([WHOLE], SEGMENT, [5, 3000], id="a segment"),
        # No two of these three differ by few reports.
        pytest.param(
            [of(a=3000, b=4), of(a=3000, c=2000)], of(c=2000), [4, 2000, 3000], id="three sums"
        ),
    ],
)
def test_what_is_left_when_sums_are_subtracted(earlier, new, expected):
    """Sums differ by the reports that are in one of them alone."""
    assert sorted(cell.reports for cell in cells(earlier, [new])) == expected


@given(
    st.lists(
        st.dictionaries(st.sampled_from("abcd"), st.integers(1, 5), min_size=1),
        min_size=1,
        max_size=4,
    )
)
def test_every_sum_is_made_of_whole_cells(sums):
    """Whatever the sums, the number of reports of the new one is that of some of the cells."""
    found = [cell.reports for cell in cells([of(**each) for each in sums[:-1]], [of(**sums[-1])])]
    reached = {0}
    for each in found:
        reached |= {each + one for one in reached}
    assert min(found) > 0
    assert sum(sums[-1].values()) in reached


@pytest.fixture
def small(filled, registry, fill):
    """Three reports of one more day."""
    scheme = registry["browser"].scheme
    rows = analysis_of(scheme.mechanism).sample_rows(
        np.array([0]), np.array([3]), np.random.default_rng(3)
    )
    fill(Tally("browser", scheme.fingerprint, ("2026-01-10",), tuple(rows)), scheme)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("first", ["browser --to 2026-01-09", "browser"])
def test_a_release_is_refused_if_its_difference_to_another_holds_few(run, first):
    """Whichever range comes first, the other one is refused in words, and costs nothing."""
    second = "browser" if "--to" in first else "browser --to 2026-01-09"
    document(run(f"{first} --out -"))
    for form in ("--out -", "--plan"):
        refused = run(f"{second} {form}")
        assert refused.exit_code == 1
        assert "the sum of 3 reports" in refused.output
        assert "--epsilon" in refused.output
    assert len(document(run("list --json"))["releases"]) == 1
    document(run(f"{second} --epsilon 0.5 --out -"))


def test_a_part_of_what_was_released_costs_what_both_reveal(run):
    """Two days of five, after all five: the new charge is that of the smaller cells together, which
    is more than the two days reveal by themselves; the same sums again cost no more than that."""
    document(run("browser --out -"))
    found = document(run("browser --to 2026-01-06 --out -"))
    listed = document(run("list --json"))["releases"]
    own = found["manifest"]["epsilon"]
    assert listed[0]["epsilon"] > 1.5 * own
    assert "sums" not in listed[0]


def test_noise_divides_a_cell_and_the_largest_part_hides_a_report():
    """Of windows a, b and c that an exact sum holds, a noisy sum of a leaves b and c together; one
    of all of them divides nothing, and of an earlier state of a window it divides off what came
    later. How many reports a cell has does not depend on noise."""
    whole = of(a=2000, b=3000, c=500)

    def hiding(*noisy):
        (cell,) = cells([], [whole], noisy)
        return cell.reports, cell.hiding

    assert hiding() == (5500, 5500)
    assert hiding(of(a=2000)) == (5500, 3500)
    assert hiding(whole) == (5500, 5500)
    assert hiding(of(a=2000), of(b=3000)) == (5500, 3000)
    assert hiding(of(a=1900, b=3000, c=500)) == (5500, 5400)
    assert hiding(of(d=9000)) == (5500, 5500)


def test_only_exact_sums_near_a_noisy_one_count():
    """Those that share reports with it, and those that share reports with these; not itself."""
    exact = [of(a=2000, b=2000), of(b=2000), of(z=5000)]
    near = [of(a=2000)]
    assert sorted(cell.reports for cell in cells(exact, near, near, exact=False)) == [2000, 2000]
    assert cells(exact, [of(y=5000)], exact=False) == []


def _binomial(n, q):
    """The distribution of how many of n reports are in one column with probability q."""
    return np.array([math.comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(n + 1)])


def _epsilon(one, other, delta):
    """The least epsilon at delta for this pair of distributions, in both directions."""

    def fits(epsilon):
        both = ((one, other), (other, one))
        return all(float(np.maximum(0, p - math.exp(epsilon) * q).sum()) <= delta for p, q in both)

    low, high = 0.0, 10.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize(("apart", "noised"), [(0, 40), (5, 35), (20, 20), (35, 5)])
@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_an_exact_sum_and_a_noisy_part_of_it_reveal_no_more_than_is_charged(
    apart, noised, epsilon, inside
):
    """Enumerated: the sum of randomized responses of epsilon 1, and the sum of some of them with
    discrete Laplace noise. A device that is among these (`inside`) or not is told apart with at
    most what the largest part reveals alone, plus the epsilon of the noise. Both sums together
    reveal more than the exact one: to count that alone would be wrong."""
    delta, truth = 1e-4, math.e / (1 + math.e)
    reach = math.ceil(25 / epsilon)
    scale = math.exp(-epsilon)
    noise = (1 - scale) / (1 + scale) * scale ** np.abs(np.arange(-reach, reach + 1))

    def law(yes):
        """The joint distribution of the exact and the noisy sum."""
        rest, part = _binomial(apart, 1 - truth), _binomial(noised, 1 - truth)
        own = [1 - yes, yes]
        rest, part = (rest, np.convolve(part, own)) if inside else (np.convolve(rest, own), part)
        found = np.zeros((len(rest) + len(part) - 1, len(part) + 2 * reach))
        for count, mass in enumerate(part):
            found[count : count + len(rest), count : count + len(noise)] += mass * np.outer(
                rest, noise
            )
        return found

    def alone(n):
        each = [np.convolve(_binomial(n, 1 - truth), [1 - p, p]) for p in (truth, 1 - truth)]
        return _epsilon(each[0], each[1], delta)

    one, other = law(truth), law(1 - truth)
    found = _epsilon(one, other, delta)
    assert found <= alone(max(apart, noised)) + epsilon + 1e-9
    assert found >= alone(apart + noised) - 1e-9
    if (apart, epsilon) == (20, 0.5):
        assert found > alone(apart + noised) + 1e-3


def test_noise_on_a_part_of_what_is_out_costs_what_it_separates(run):
    """After the exact table of five days, noise on two of them lets readers of both hide a device
    among three days alone: the charge says so, and the total has it. Noise on all five days
    separates nothing."""
    document(run("browser --out -"))
    planned = run("browser --epsilon 0.5 --to 2026-01-06 --plan").stdout
    document(run("browser --epsilon 0.5 --to 2026-01-06 --out -"))
    listed = document(run("list --json"))
    noisy, exact = listed["releases"]
    assert noisy["separated"] > 0.1 * exact["epsilon"]
    expected = exact["epsilon"] + noisy["epsilon"] + noisy["separated"]
    assert listed["total"]["epsilon"] == pytest.approx(expected)
    assert (
        f"With this release, 2 releases together reveal epsilon {epsilon_text(expected)} "
        in planned
    )
    document(run("browser --epsilon 0.25 --out -"))
    newest = document(run("list --json"))["releases"][0]
    assert newest["separated"] == 0.0


DAYS = [f"2026-11-{day:02}" for day in range(1, 7)]


def pure(windows, each, limit=2, metric="browser"):
    """A release with Laplace noise that costs so much in each window."""
    count = len(windows) if limit is None else min(limit, len(windows))
    return Charge(
        metric, tuple(windows), limit, "laplace", count * each, 0.0, each, each**2 / 2 * count
    )


def sums(windows, epsilon, limit=2):
    """A release of exact sums."""
    return Charge("browser", tuple(windows), limit, "exact", epsilon, 1e-8)


def test_a_device_pays_only_for_windows_in_which_it_can_report():
    """Of six daily releases, a device whose lifetime allows two reports pays for two."""
    charges = [pure([day], 0.5, limit=2) for day in DAYS]
    assert total(charges, 1e-6) == pytest.approx(1.0)
    unlimited = [pure([day], 0.5, limit=None) for day in DAYS]
    assert total(unlimited, 1e-6) == pytest.approx(3.0)


def gaussian(windows, rho, limit):
    """A trend with Gaussian noise of so much rho in each window."""
    count = len(windows) if limit is None else min(limit, len(windows))
    epsilon = of_rho(count * rho, 1e-9)
    return Charge("browser", tuple(windows), limit, "gaussian", epsilon, 1e-9, None, rho)


def test_gaussian_trends_cost_in_the_windows_of_a_device_alone():
    """Of thirty trends over windows of their own, a device with two reports pays for two windows,
    whichever these are; without a limit it pays for all."""
    pairs = [[f"{number} a", f"{number} b"] for number in range(30)]
    limited = [gaussian(each, 0.01, 2) for each in pairs]
    assert total(limited, 1e-6) == pytest.approx(of_rho(2 * 0.01, 1e-6))
    unlimited = [gaussian(each, 0.01, None) for each in pairs]
    assert total(unlimited, 1e-6) == pytest.approx(of_rho(60 * 0.01, 1e-6))


def test_exact_sums_are_added_to_the_noise_at_what_they_leave_of_delta():
    """A hundred small releases with noise, and two exact tables, whose deltas are taken first."""
    noise = [pure(DAYS[:1], 0.05)] * 100
    tables = [Charge("browser", tuple(DAYS), None, "exact", 0.1, 2e-7)] * 2
    expected = of_rho(100 * 0.05**2 / 2, 6e-7) + 0.2
    assert total([*noise, *tables], 1e-6) == pytest.approx(expected)


def test_a_delta_that_exact_sums_have_spent_leaves_none_for_noise():
    """No epsilon can be stated, whatever the noise; a delta that is spent to the last can."""
    spent = Charge("browser", tuple(DAYS), None, "exact", 0.1, 2e-6)
    assert total([spent, pure(DAYS[:1], 0.5)], 1e-6) == math.inf
    assert total([spent, pure(DAYS[:1], 0.5)], 2e-6) == pytest.approx(0.6)


def test_what_noise_separates_is_added_to_every_total():
    """Whichever composition is the least."""
    for charges in ([pure(DAYS[:1], 0.5)], [pure(DAYS[:1], 0.05)] * 100, [sums(DAYS, 0.1)]):
        more = [*charges[:-1], replace(charges[-1], separated=0.25)]
        assert total(more, 1e-6) == pytest.approx(total(charges, 1e-6) + 0.25)


def test_the_windows_that_cost_the_most_count():
    """A device that reports once may do so in the window that costs the most, whichever it is."""
    for costs in ((0.1, 0.5), (0.5, 0.1)):
        charges = [pure([day], each, limit=1) for day, each in zip(DAYS, costs, strict=False)]
        assert total(charges, 1e-6) == pytest.approx(0.5)


def test_metrics_add_up():
    """A device reports to all metrics, so their costs are added."""
    charges = [pure(DAYS[:1], 0.5), pure(DAYS[:1], 0.5, metric="theme")]
    assert total(charges, 1e-6) == pytest.approx(1.0)


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
def test_the_total_covers_every_device(releases, limit):
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
