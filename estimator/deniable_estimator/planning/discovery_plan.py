"""What a discovery finds, before it is declared: from which share on strings surface.

The shares are those of `forecasting.discovery_forecast`, with the parameters of a metric.
Fakes that pick their tables and messages show (1-q) / (p-q) times their own share of a string, as
of any value (`deniable_estimator.analyses.poisoning`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from deniable.protocol.mechanisms import PrefixTree
from deniable.protocol.mechanisms.limits import check_epsilon
from deniable.protocol.mechanisms.prefix_code import TOKEN_BYTES
from deniable_estimator.analyses.base import FAKES
from deniable_estimator.forecasting.discovery_forecast import Reach, reports_to_find
from deniable_estimator.planning.plan import Lifetime

_SALT = "planned"
"""Figures do not depend on the salt, which is a metric's name."""


@dataclass(frozen=True)
class DiscoveryPlan:
    """What a discovery finds in one window. Shares are fractions of 1."""

    max_length: int
    declared_epsilon: float
    devices: int
    sample_rate: float
    reports: float
    """Devices that report in one window, on average."""
    mechanism: str
    parameters: dict[str, Any]
    epsilon: float
    """Exact, from the probabilities in force, rounded up."""
    report_bytes: int
    tally_cells: int
    reach: Reach
    """From which share on strings surface; above 1 if none does."""
    share: float
    """The share that `devices_to_find` is for."""
    devices_to_find: int
    """So many devices find half of the strings with that share, if they look like common text."""
    fakes: float
    fakes_gain: float
    """The most that such fakes add to the share of any string."""
    lifetime: Lifetime | None


def plan_discovery(
    max_length: int,
    epsilon: float,
    devices: int,
    *,
    share: float = 0.01,
    sample_rate: float = 1.0,
    lifetime_epsilon: float | None = None,
    fakes: float = FAKES,
) -> DiscoveryPlan:
    """The plan of a discovery of strings of so many bytes, an even number.

    Raises:
        SchemeError: no mechanism can be designed for this epsilon.
    """
    made = PrefixTree.design(_SALT, check_epsilon(epsilon), max_length // TOKEN_BYTES)
    reports = devices * sample_rate
    lifetime = Lifetime.of(lifetime_epsilon, made.epsilon, sample_rate)
    parameters = {key: value for key, value in made.parameters().items() if key != "salt"}
    return DiscoveryPlan(
        max_length=max_length,
        declared_epsilon=epsilon,
        devices=devices,
        sample_rate=sample_rate,
        reports=reports,
        mechanism=made.name,
        parameters=parameters,
        epsilon=made.epsilon,
        report_bytes=made.rows[0].report_bytes,
        tally_cells=sum(row.width for row in made.rows),
        reach=Reach.in_window(made, reports),
        share=share,
        devices_to_find=math.ceil(reports_to_find(made, share) / sample_rate),
        fakes=fakes,
        fakes_gain=fakes * float((1 - made.q) / (made.p - made.q)),
        lifetime=lifetime,
    )
