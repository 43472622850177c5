"""The demo's devices: true values that follow real, published distributions.

Shares are in percent as published; the rest up to 100 % is "other".
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from deniable.types import Value

__all__ = ["POPULARITIES", "Popularity", "Population", "draw"]


@dataclass(frozen=True)
class Popularity:
    """One metric's true shares, and their source."""

    metric: str
    source: str
    percent: dict[str, float]


POPULARITIES = (
    Popularity(
        "browser",
        "StatCounter Global Stats, desktop browsers worldwide, December 2022 "
        "(as reported by Neowin, 2 January 2023)",
        {"chrome": 66.16, "edge": 10.99, "safari": 8.98, "firefox": 7.22, "opera": 3.29},
    ),
    Popularity(
        "dark_mode",
        "measured among the visitors of benedikt.io over two weeks, published 6 November 2019",
        {"true": 21.0, "false": 79.0},
    ),
    Popularity(
        "language",
        "W3Techs, content languages of websites, March 2022 (as compared by the Observatory of "
        "Linguistic and Cultural Diversity on the Internet, March 2022)",
        {
            "english": 62.9,
            "russian": 6.1,
            "turkish": 3.7,
            "spanish": 3.6,
            "persian": 3.2,
            "french": 2.7,
            "german": 2.6,
            "japanese": 2.1,
            "vietnamese": 1.7,
            "chinese": 1.4,
            "arabic": 1.2,
            "italian": 1.1,
            "dutch": 1.0,
            "polish": 0.8,
            "indonesian": 0.7,
            "portuguese": 0.7,
            "ukrainian": 0.5,
            "thai": 0.5,
            "korean": 0.5,
            "hebrew": 0.5,
        },
    ),
)


@dataclass(frozen=True)
class Population:
    """So many devices, each with a true value for every metric."""

    size: int
    values: dict[str, list[Value]]
    """Metric -> the true value of each device."""

    def shares(self, metric: str) -> dict[str, float]:
        """The true share of each value that any of these devices has, by its text."""
        counts = Counter(_text(value) for value in self.values[metric])
        return {value: count / self.size for value, count in counts.items()}


def draw(size: int) -> Population:
    """Devices drawn at random, each metric by itself."""
    random = np.random.default_rng()
    values: dict[str, list[Value]] = {}
    for each in POPULARITIES:
        names = list(each.percent)
        weights = np.array(list(each.percent.values())) / 100
        left = 1 - float(weights.sum())
        if left > 1e-9:
            names.append("other")
            weights = np.append(weights, left)
        picked = random.choice(len(names), size, p=weights / weights.sum())
        of = [name == "true" if each.metric == "dark_mode" else name for name in names]
        values[each.metric] = [of[index] for index in picked]
    return Population(size, values)


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
