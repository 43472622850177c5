"""What is made up about the demo's devices, so that something goes together with something else,
and something changes: crashes with the system and a release, the minutes of use with the plan."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from deniable.protocol.types import Value
from deniable.protocol.types.pair import Pair


@dataclass(frozen=True)
class Crashes:
    """A boolean that is true more often in some segments than in others."""

    metric: str
    segment: str
    percent: Mapping[str, tuple[float, float]]
    """Value of the segment -> the percentage of devices with it, and how many percent of those
    crash on the newest day."""
    before: Mapping[str, float]
    """Value of the segment -> how many percent of them crashed before RELEASED, if not as many."""
    source: str = "made up: on some systems the app crashes more often"

    def draw(self, size: int, random: np.random.Generator) -> tuple[list[str], list[Value]]:
        """The segment and the value of so many devices."""
        names = list(self.percent)
        devices, crashing = np.array(list(self.percent.values())).T / 100
        picked = random.choice(len(names), size, p=devices / devices.sum())
        crashed: list[Value] = (random.random(size) < crashing[picked]).tolist()
        return [names[index] for index in picked], crashed


@dataclass(frozen=True)
class Usage:
    """A category and a number that depends on it."""

    metric: str
    """The pair of both."""
    category: str
    number: str
    typical: Mapping[str, tuple[float, float]]
    """Value of the category -> the percentage of devices with it, and the median of their
    numbers."""
    sigma: float
    """The standard deviation of the logarithms of those numbers."""
    most: float
    source: str = "made up: whoever pays uses the app longer"

    def draw(self, size: int, random: np.random.Generator) -> tuple[list[Value], list[Value]]:
        """The category and the number of so many devices."""
        names = list(self.typical)
        devices, medians = np.array(list(self.typical.values())).T
        picked = random.choice(len(names), size, p=devices / devices.sum())
        numbers = medians[picked] * np.exp(self.sigma * random.standard_normal(size))
        return [names[index] for index in picked], np.minimum(numbers, self.most).tolist()


RELEASED = "Release 4.2"
"""The release that breaks one system."""

ANNOTATIONS = {45: "Release 4.1", 22: RELEASED, 9: "Mail to all readers"}
"""So many days ago -> what happened. All days after it, but for today, are complete."""

CRASHES = Crashes(
    *("crashed", "system"),
    {"windows": (64, 4), "macos": (26, 2), "linux": (10, 25)},
    before={"linux": 4},
)


@dataclass(frozen=True)
class Drift:
    """Some devices change their value, one after the other."""

    metric: str
    before: str
    after: str
    percent: float
    """Percent of all devices that do, over all weeks."""


@dataclass(frozen=True)
class Growth:
    """Numbers above the median grow away from it."""

    metric: str
    before: float
    """How far their logarithms were from the median's at first, in parts of what they are now."""


@dataclass(frozen=True)
class Leaving:
    """After a release fewer new devices come back in the week after their first."""

    metric: str
    release: str
    before: float
    """The part that came back until then."""
    after: float
    stays: float
    """The part of all other active devices that is active in the next week."""
    source: str = "made up: since a release an account is asked for at the first start"


LEAVING = Leaving("coming_back", "Release 4.1", before=0.52, after=0.4, stays=0.8)
DRIFT = Drift("browser", "chrome", "edge", 8.0)
GROWTH = Growth("shop_images", 0.3)

USAGE = Usage(
    *("plan_and_minutes", "plan", "minutes"),
    {"free": (70, 12), "pro": (22, 40), "team": (8, 90)},
    sigma=1.0,
    most=1440,
)


def conditional_shares(
    pair: Pair, first: Iterable[Value], second: Iterable[Value]
) -> dict[str, float]:
    """Of the devices with each value of the first metric, a category, the true share of each bin of
    the second, a number; under the names of the answer's series."""
    one, two = pair.parts
    cells = Counter(
        (one.values.index(str(a)), bisect_right(two.edges, float(b)))
        for a, b in zip(first, second, strict=True)
    )
    rows = Counter(place for place, _ in cells.elements())
    return {
        f"{two.metric}={column} given {one.metric}={row}": cells[i, j] / rows[i]
        for i, row in enumerate(one.values)
        for j, column in enumerate(two.values)
        if rows[i]
    }
