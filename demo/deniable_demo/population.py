"""The demo's devices: true values that follow real, published distributions. What goes together
is made up, and so is what changes: crashes with the system and a release, the minutes of use with
the plan.

Shares are in percent as published; the rest up to 100% is "other". Of numbers percentiles are
published. Between two of them logarithms are taken to be normally distributed, and beyond the
outermost as between the two next to it.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from deniable.protocol.randomness import KEY_BYTES
from deniable.protocol.types import Value
from deniable.protocol.types.pair import Pair
from deniable_estimator.planning.population import Crowd
from deniable_estimator.statistics.intervals import FloatArray


@dataclass(frozen=True)
class Popularity:
    """One metric's true shares, and their source."""

    metric: str
    source: str
    percent: dict[str, float]
    own: str | None = None
    """What the rest have in place of "other": this, and a number that is different for each."""

    def draw(self, size: int, random: np.random.Generator) -> list[Value]:
        """The values of so many devices."""
        names = list(self.percent)
        weights = np.array(list(self.percent.values())) / 100
        left = 1 - float(weights.sum())
        if left > 1e-9:
            names.append("other")
            weights = np.append(weights, left)
        picked = random.choice(len(names), size, p=weights / weights.sum())
        if self.own is not None:
            rest = len(self.percent)
            return [
                f"{self.own}{place}" if index == rest else names[index]
                for place, index in enumerate(picked.tolist())
            ]
        of = [name == "true" if self.metric == "dark_mode" else name for name in names]
        return [of[index] for index in picked]


@dataclass(frozen=True)
class Percentiles:
    """One metric's true percentiles, and their source."""

    metric: str
    source: str
    at: dict[int, float]
    """Percentile -> the number that so many percent do not exceed, rising."""

    def draw(self, size: int, random: np.random.Generator) -> list[Value]:
        """The numbers of so many devices."""
        numbers: list[Value] = list(self.numbers(random.standard_normal(size)).tolist())
        return numbers

    def numbers(self, drawn: FloatArray) -> FloatArray:
        """The numbers that stand where these standard normal scores do, shape (k,)."""
        normal = NormalDist()
        scores = np.array([normal.inv_cdf(each / 100) for each in self.at])
        logs = np.log(list(self.at.values()))
        piece = np.clip(np.searchsorted(scores, drawn) - 1, 0, len(scores) - 2)
        slope = np.diff(logs) / np.diff(scores)
        numbers: FloatArray = np.exp(logs[piece] + slope[piece] * (drawn - scores[piece]))
        return numbers


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


DISCOVERED = Popularity(
    "site_system",
    "W3Techs, content management systems of websites, May 2022 (as reported by Bureau Both); the "
    "rest have systems of their own",
    {
        "none": 33.1,
        "wordpress": 42.9,
        "shopify": 4.3,
        "wix": 2.3,
        "squarespace": 2.0,
        "joomla": 1.6,
        "drupal": 1.2,
        "blogger": 0.9,
        "bitrix": 0.8,
        "magento": 0.6,
    },
    own="own-",
)


PERCENTILES = (
    Percentiles(
        "shop_images",
        "HTTP Archive, Web Almanac 2019, chapter Ecommerce, figure 9: kilobytes of images on an "
        "ecommerce page, desktop",
        {10: 353, 25: 728, 50: 1_514, 75: 3_104, 90: 6_010},
    ),
)


@dataclass(frozen=True)
class Population:
    """So many devices, each with a true value for every metric."""

    size: int
    values: dict[str, list[Value]]
    """Metric -> the true value of each device."""
    segments: dict[str, list[str]]
    """Segment -> its value on each device."""
    secrets: list[bytes]
    """What the noise that each device keeps follows from."""

    def shares(self, metric: str, where: Mapping[str, str] | None = None) -> dict[str, float]:
        """The true share of each value that any of these devices has, by its text; of the devices
        of one segment, if `where` names one."""
        values = self.values[metric]
        for segment, group in (where or {}).items():
            places = self.segments[segment]
            values = [value for value, of in zip(values, places, strict=True) if of == group]
        counts = Counter(_text(value) for value in values)
        return {value: count / len(values) for value, count in counts.items()}

    def crowd(self, metric: str) -> Crowd:
        """The true numbers of these devices."""
        return Crowd.of(np.array(self.values[metric], np.float64))


def draw(size: int, random: np.random.Generator) -> Population:
    """Devices drawn at random, each metric by itself but for what is made up."""
    published = (*POPULARITIES, *PERCENTILES, DISCOVERED)
    values = {each.metric: each.draw(size, random) for each in published}
    systems, values[CRASHES.metric] = CRASHES.draw(size, random)
    values[USAGE.category], values[USAGE.number] = USAGE.draw(size, random)
    secrets = [random.bytes(KEY_BYTES) for _ in range(size)]
    return Population(size, values, {CRASHES.segment: systems}, secrets)


def memo_key(secret: bytes, metric: str) -> bytes:
    """A device's key of its memos of a metric."""
    return hashlib.blake2b(metric.encode(), key=secret, digest_size=KEY_BYTES).digest()


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


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
