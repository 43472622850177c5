"""What published sums reveal: figures, composition, and what is assumed."""

import itertools
import math

import pytest
from tests.registries import declared

from deniable import Registry
from deniable_estimator.privacy.blanket import bits, crowd_epsilon, favouring
from deniable_estimator.privacy.composition import (
    Repeated,
    advanced,
    composed_delta,
    least_epsilon,
    loss_of,
    renyi,
)
from deniable_estimator.privacy.outsider import (
    MOST_DELTA,
    SMALLEST_DELTA,
    _sharing,
    outsider_of,
)

_MEMOS = {"epsilon": 1.0, "lifetime_epsilon": 4.0, "longitudinal": "memoize"}
_METRICS = {
    "theme": {"type": "category", "values": ["dark", "light", "system"], "epsilon": 1.0},
    "editor": {"type": "category", "values": ["vim", "emacs"], "window": "week", **_MEMOS},
    "plugin": {"type": "string", "mechanism": "rappor", **_MEMOS},
    "startup": {"type": "number", "low": 0, "high": 10, "ask": "distribution", "window": "month"},
}
_METRICS["startup"]["lifetime_epsilon"] = 20.0


def _registry(*names, **more):
    """These metrics, or all; the theme has more keys."""
    some = {name: _METRICS[name] for name in names or _METRICS}
    return Registry.parse(declared(**some | {"theme": _METRICS["theme"] | more}))


def _pairs(epsilon, size, k):
    both = k * (k - 1) / (size * (size - 1))
    return favouring(k / size, math.exp(epsilon), epsilon, both)


_BINARY = _pairs(1.0, 2, 1)
_HUNDRED = _pairs(1.0, 100, 27)


@pytest.mark.parametrize(
    ("blanket", "reports", "delta", "expected"),
    [
        (_BINARY, 10**3, 1e-8, 0.189),
        (_BINARY, 10**6, 1e-8, 0.0050),
        (_HUNDRED, 10**3, 1e-8, 0.132),
        (_HUNDRED, 10**7, 1e-8, 0.00103),
        (_pairs(4.0, 2, 1), 10**3, 1e-8, 2.86),
        (bits(0.6875, 0.5625, 2, 1.0743), 10**3, 1e-8, 0.105),
    ],
)
def test_figures_agree_with_an_independent_evaluation(blanket, reports, delta, expected):
    """Epsilons that another program computed, to the digits that it gives."""
    assert crowd_epsilon(blanket, reports, delta) == pytest.approx(expected, rel=0.02)


def test_tiny_deltas_have_figures():
    """Rounding errors do not drown a delta of 1e-30, even in a crowd of ten million."""
    found = [crowd_epsilon(_BINARY, 10**7, delta) for delta in (1e-8, 1e-20, 1e-30)]
    assert found == sorted(found)
    assert found[-1] < 0.01


def test_composition_is_below_all_others():
    """The losses, added up, are the tightest way here, and all ways hold the same claim."""
    loss = loss_of(_HUNDRED, 10**4, 1e-14)
    parts = [Repeated(loss, 100)]
    tight = least_epsilon(lambda each: composed_delta(parts, each), 1e-8, 100.0)
    each = least_epsilon(loss.delta, 1e-8 / 100, 1.0)
    half = least_epsilon(loss.delta, 1e-8 / 200, 1.0)
    assert tight < renyi(parts, 1e-8) < advanced([(half, 100)], 5e-9) < 100 * each


def test_number_that_shares_a_row_is_rarely_smaller():
    """The exact binomial probability of a smaller one is below the stated chance."""
    from scipy import stats

    for reports, rows, chance in ((10**4, 64, 1e-9), (10**6, 256, 1e-12), (5000, 8, 1e-6)):
        least = _sharing(reports, rows, chance)
        # The device itself is one of them.
        assert stats.binom.cdf(least - 2, reports - 1, 1 / rows) <= chance
        assert least > reports / rows / 2


def test_rows_without_company_have_no_bound():
    """With fewer reports than rows, a device may be alone in its own."""
    assert _sharing(100, 256, 1e-9) == 0
    assert _sharing(1, 256, 1e-9) == 0


@pytest.mark.parametrize("name", ["theme", "editor", "plugin", "startup"])
@pytest.mark.parametrize("reports", [1, 1000, 100_000])
def test_published_sums_never_reveal_more_than_the_device(name, reports):
    """The device's epsilon caps every figure, and spans grow."""
    registry = _registry()
    found = outsider_of(registry, registry[name], reports)
    last = 0.0
    for span in found.spans.values():
        figures = (span.epsilon, span.basic, span.advanced, span.renyi)
        assert all(0 < each.epsilon <= span.device.epsilon for each in figures)
        assert span.epsilon.epsilon <= min(each.epsilon for each in figures)
        assert span.epsilon.epsilon >= last * 0.999
        last = span.epsilon.epsilon


@pytest.mark.parametrize("delta", [SMALLEST_DELTA, MOST_DELTA])
def test_a_delta_at_its_limit_is_taken(delta):
    """Both limits are among the deltas that there may be."""
    registry = _registry()
    assert outsider_of(registry, registry["theme"], 1000, delta).delta == delta


@pytest.mark.parametrize("blanket", [_BINARY, _HUNDRED, bits(0.75, 0.25, 1, math.log(9))])
def test_bound_never_rises_with_the_reports(blanket):
    """So a crowd beyond the largest that is computed has the figure of that one."""
    for epsilon in (0.0, 0.01, 0.05):
        deltas = [blanket.delta(epsilon, 4**power) for power in range(12)]
        deltas += [blanket.delta(epsilon, count) for count in (10**7, 10**7 + 1, 10**12)]
        assert all(later <= before * 1.01 + 1e-15 for before, later in itertools.pairwise(deltas))
        assert deltas[-1] == deltas[-3]
        assert blanket.delta(epsilon + 0.1, 1000) <= blanket.delta(epsilon, 1000)
    assert blanket.delta(blanket.epsilon * (1 + 1e-9), 10) < 1e-9


def test_coin_lowers_no_figure():
    """A metric of which devices report in some windows only has the figures of one that they report
    in all, up to its lifetime, and says that they hold for a reader who knows the windows."""
    always = _registry()
    seldom = _registry(sample_rate=0.02)
    found = [outsider_of(each, each["theme"], 10_000) for each in (always, seldom)]
    assert found[0].spans == found[1].spans
    told = ["even if the reader knows in which" in " ".join(each.assumed) for each in found]
    assert told == [False, True]


def test_two_metrics_compose_to_the_exact_profile():
    """Of two randomized responses with different epsilons, whose losses lie on two grids."""
    losses = [loss_of(favouring(1 / 2, math.exp(each), each), 1, 1e-12) for each in (1.0, 0.3)]
    chances = [math.exp(each) / (1 + math.exp(each)) for each in (1.0, 0.3)]
    exact = 0.0
    for one, other in itertools.product((False, True), repeat=2):
        p, q = (
            math.prod(c if right else 1 - c for c, right in zip(chances, rights, strict=True))
            for rights in ((one, other), (not one, not other))
        )
        exact += max(0.0, p - math.exp(0.5) * q)
    found = composed_delta([Repeated(each, 1) for each in losses], 0.5)
    assert exact <= found <= exact * 1.001
    # T reports never exceed T times epsilon.
    parts = [Repeated(losses[0], 5)]
    assert least_epsilon(lambda each: composed_delta(parts, each), 1e-9, 5.0) <= 5.0
