"""The systems that are compared, with their published parameters and exact probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from deniable.mechanisms import AUTO, Hashed, Mechanism, design, design_string
from deniable.mechanisms.hadamard_response import HadamardResponse
from deniable.mechanisms.unary_encoding import UnaryEncoding
from deniable_estimator.rappor import Params

__all__ = [
    "CMS",
    "CMS_HASHES",
    "CMS_PLACES",
    "DENIABLE_CATEGORY",
    "DENIABLE_STRING",
    "EMOJI",
    "HCMS",
    "HCMS_HASHES",
    "HCMS_PLACES",
    "RAPPOR",
    "RAPPOR_EPSILON",
    "SYSTEMS",
    "Channel",
    "System",
    "rappor_epsilon",
]

EMOJI = 2600
"""The values of a closed list: as many emoji as Apple's article has in its dictionary."""

CMS_PLACES, CMS_HASHES = 1024, 65_536
HCMS_PLACES, HCMS_HASHES = 32_768, 1024
"""m and k of Apple's article: for emoji, and for domains in Safari."""

RAPPOR = Params(k=128, h=2, m=64, p=Fraction(1, 2), q=Fraction(3, 4), f=Fraction(1, 2))
"""The paper's filters and probabilities."""


@dataclass(frozen=True)
class Channel:
    """What one report of a system is at some epsilon.

    `variance` is n times the variance of the estimated share of a string that nobody has.
    For RAPPOR p and q are those of one bit, and it is the variance that the string's own
    bits allow, h in each cohort; other strings that set some of them add to it.
    """

    p: Fraction
    q: Fraction
    variance: float
    bits: int
    cells: int


@dataclass(frozen=True)
class System:
    """One deployed system."""

    name: str
    parameters: str
    epsilons: tuple[float, ...]
    channel: Callable[[float], Channel]


def rappor_epsilon(params: Params) -> float:
    """What one report reveals at most: the values of two strings differ in 2h bits."""
    p11, p01 = params.p11, params.p01
    return params.h * math.log(p11 * (1 - p01) / (p01 * (1 - p11)))


RAPPOR_EPSILON = rappor_epsilon(RAPPOR)


def _rappor(_: float) -> Channel:
    p, q = RAPPOR.p11, RAPPOR.p01
    return Channel(
        p,
        q,
        float(q * (1 - q) / (RAPPOR.h * (p - q) ** 2)),
        RAPPOR.k + (RAPPOR.m - 1).bit_length(),
        RAPPOR.m * RAPPOR.k,
    )


def _pure(p: Fraction, q: Fraction, bits: int, cells: int) -> Channel:
    return Channel(p, q, float(q * (1 - q) / (p - q) ** 2), bits, cells)


def _hashed(channel: Mechanism[int], places: int, hashes: int, cells: int) -> Channel:
    """A closed channel over hash values, over the draw of the hash functions (see `Hashed`)."""
    (row,) = channel.rows
    bits = row.width if row.columns is None else row.index_bits
    q = channel.p / places + (1 - Fraction(1, places)) * channel.q
    return _pure(channel.p, q, bits + (hashes - 1).bit_length(), cells)


def _cms(epsilon: float) -> Channel:
    channel = UnaryEncoding.symmetric(CMS_PLACES, epsilon)
    return _hashed(channel, CMS_PLACES, CMS_HASHES, CMS_PLACES * CMS_HASHES)


def _hcms(epsilon: float) -> Channel:
    channel = HadamardResponse.design(HCMS_PLACES, epsilon)
    return _hashed(channel, HCMS_PLACES, HCMS_HASHES, HCMS_PLACES * HCMS_HASHES)


def _string(epsilon: float) -> Channel:
    mechanism = design_string(AUTO, "metric", epsilon)
    assert isinstance(mechanism, Hashed)
    cells = sum(row.width for row in mechanism.rows)
    return _hashed(mechanism.channel, mechanism.width, mechanism.hashes, cells)


def _category(epsilon: float) -> Channel:
    mechanism: Mechanism[Any] = design(AUTO, EMOJI, epsilon)
    (row,) = mechanism.rows
    return _pure(mechanism.p, mechanism.q, 8 * row.report_bytes, row.width)


_ALL = (RAPPOR_EPSILON, 2.0, 4.0)


def _category_settings() -> str:
    """Which mechanism `auto` takes at which epsilon."""
    epsilons: dict[str, list[str]] = {}
    for epsilon in _ALL:
        name = design(AUTO, EMOJI, epsilon).name.replace("_", " ")
        epsilons.setdefault(name, []).append(f"{epsilon:.4g}")
    return "; ".join(f"{name} at {', '.join(each)}" for name, each in epsilons.items())


CMS = System("Apple CMS", f"m = {CMS_PLACES:,}, k = {CMS_HASHES:,}", _ALL, _cms)
HCMS = System("Apple HCMS", f"m = {HCMS_PLACES:,}, k = {HCMS_HASHES:,}", _ALL, _hcms)
DENIABLE_STRING = System("deniable, any string", "four hashed projective spaces", _ALL, _string)
DENIABLE_CATEGORY = System(f"deniable, list of {EMOJI:,}", _category_settings(), _ALL, _category)
SYSTEMS = (
    System(
        "RAPPOR",
        "k = 128, h = 2, m = 64, f = 1/2, p = 1/2, q = 3/4",
        (RAPPOR_EPSILON,),
        _rappor,
    ),
    CMS,
    HCMS,
    DENIABLE_STRING,
    DENIABLE_CATEGORY,
)
