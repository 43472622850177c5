"""Our composition beside Google's dp-accounting, and the defects of dp-accounting that we know.

The pinned version is installed without what it depends on: it asks for attrs below 24, and works
with the one that other packages need.
"""

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import rdp
from dp_accounting.pld import (
    pld_pmf,
    privacy_loss_distribution,
)

from deniable_estimator.privacy.blanket import favouring
from deniable_estimator.privacy.composition import (
    Repeated,
    composed_delta,
    least_epsilon,
    loss_of,
    renyi,
)

_BINARY = favouring(1 / 2, math.e, 1.0)
_HUNDRED = favouring(27 / 100, math.e, 1.0, 27 * 26 / (100 * 99))
_WEAK = favouring(27 / 100, math.exp(0.5), 0.5, 27 * 26 / (100 * 99))
_TOLERANCE = 0.01
"""Ours may be above theirs by so much, and below by a tenth of it: both are upper bounds that
replace a profile by chords."""


def _theirs(blanket, reports, beyond):
    """The pair of distributions of one window for dp-accounting, from the same bound, at 100 points
    up to where delta is `beyond`."""
    top = least_epsilon(lambda each: blanket.delta(each, reports), beyond, blanket.epsilon)
    step = top / 100
    points = np.arange(102)
    above = [blanket.delta(float(each * step), reports) for each in points]
    # Below 0 the profile follows from that above: the two devices can be exchanged.
    below = [
        1 - math.exp(-each * step) + math.exp(-each * step) * above[each]
        for each in points[:0:-1].tolist()
    ]
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots(
        step, np.arange(-101, 102), np.concatenate([below, above])
    )
    return privacy_loss_distribution.PrivacyLossDistribution(pmf)


@pytest.mark.parametrize(
    ("blanket", "reports", "windows", "delta"),
    [
        (_BINARY, 1_000, 12, 1e-8),
        (_HUNDRED, 10_000, 365, 1e-8),
        (_HUNDRED, 100_000, 52, 1e-8),
        (_WEAK, 100_000, 31, 1e-10),
        pytest.param(_BINARY, 1_000_000, 366, 1e-6, marks=pytest.mark.campaign),
    ],
)
def test_windows_compose_as_in_dp_accounting(blanket, reports, windows, delta):
    """The epsilon of many windows is theirs, within the stated tolerance."""
    beyond = 1e-3 * delta / windows
    loss = loss_of(blanket, reports, beyond)
    parts = [Repeated(loss, windows)]
    most = windows * blanket.epsilon
    ours = least_epsilon(lambda each: composed_delta(parts, each), delta, most)
    found = _theirs(blanket, reports, beyond)
    theirs = found.self_compose(windows).get_epsilon_for_delta(delta)
    assert (1 - _TOLERANCE / 10) * theirs <= ours <= (1 + _TOLERANCE) * theirs


def test_renyi_composition_of_a_pure_epsilon_is_as_in_dp_accounting():
    """Binary randomized response is the worst case of its epsilon, so ours is theirs, but for the
    orders that are tried."""
    event = dp_accounting.RandomizedResponseDpEvent(2 / (math.exp(0.1) + 1), 2)
    accountant = rdp.RdpAccountant(
        neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE
    )
    accountant.compose(event, 100)
    theirs = accountant.get_epsilon(1e-6)
    ours = renyi([Repeated(loss_of(favouring(1 / 2, math.exp(0.1), 0.1), 1, 1e-12), 100)], 1e-6)
    assert 0.98 * theirs <= ours <= 1.02 * theirs
