"""CPU time of each system's parts, all in this project's own code on the same machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from deniable import Scheme
from deniable.mechanisms import (
    AUTO,
    CountMeanSketch,
    HadamardCountMeanSketch,
    HadamardResponse,
    Mechanism,
    Packing,
    Report,
    Row,
    UnaryEncoding,
    design,
    design_string,
)
from deniable.randomness import PRECISION, below, flips, system_bits
from deniable_collector.batches.folding import RowPlace, increments
from deniable_collector.stores.commits import TallyKey, TallyRowKey
from deniable_estimator.analyses.cohorts.decoder import decode
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.answers.shares import estimate
from deniable_estimator.rappor import bloom_bits
from deployed.simulation import CANDIDATES, DEVICES, candidates, rappor_table
from deployed.systems import (
    CMS,
    CMS_HASHES,
    CMS_PLACES,
    DENIABLE_CATEGORY,
    DENIABLE_STRING,
    EMOJI,
    HCMS,
    HCMS_HASHES,
    HCMS_PLACES,
    RAPPOR,
    System,
)
from oracles.timing import cpu_seconds

__all__ = ["REPORTS", "Times", "times"]

REPORTS = 2000
ASKED, HASHES = 20_000, 64
"""Candidates and rows with which a sketch's estimates are timed, in proportion."""


class Times(NamedTuple):
    """CPU time: to randomize a report, to fold one (JSON decoded), to estimate the candidates."""

    device_us: float
    fold_us: float
    estimate_seconds: float


def times(system: System) -> Times:
    """Measured at the last of the system's epsilons."""
    epsilon = system.epsilons[-1]
    if system is DENIABLE_CATEGORY:
        return _category(epsilon)
    if system is DENIABLE_STRING:
        return _deniable(epsilon)
    if system in (CMS, HCMS):
        return _sketch(system, epsilon)
    return _rappor()


def _category(epsilon: float) -> Times:
    mechanism = design(AUTO, EMOJI, epsilon)
    scheme = Scheme("category", mechanism, tuple(map(str, range(EMOJI))))
    rng = np.random.default_rng(1)
    tally = sample_tally(scheme, rng.multinomial(DEVICES, np.full(EMOJI, 1 / EMOJI)), rng)
    items = [index % EMOJI for index in range(REPORTS)]
    return Times(*_device_and_fold(mechanism, items), cpu_seconds(lambda: estimate(tally, scheme)))


def _deniable(epsilon: float) -> Times:
    mechanism = design_string(AUTO, "metric", epsilon)
    scheme = Scheme("string", mechanism, ())
    asked = candidates()
    rng = np.random.default_rng(2)
    tally = sample_tally(scheme, np.full(100, DEVICES // 100), rng, values=asked[:100])
    return Times(
        *_device_and_fold(mechanism, asked[:REPORTS]),
        cpu_seconds(lambda: estimate(tally, scheme, asked), rounds=3),
    )


def _sketch(system: System, epsilon: float) -> Times:
    """Fewer rows than published: only the estimate depends on them, in proportion."""
    mechanism: Mechanism[str]
    if system is CMS:
        mechanism = CountMeanSketch("metric", HASHES, UnaryEncoding.symmetric(CMS_PLACES, epsilon))
        published = CMS_HASHES
    else:
        channel = HadamardResponse.design(HCMS_PLACES, epsilon)
        mechanism = HadamardCountMeanSketch("metric", HASHES, channel)
        published = HCMS_HASHES
    scheme = Scheme("string", mechanism, ())
    asked = candidates()[:ASKED]
    rng = np.random.default_rng(3)
    tally = sample_tally(scheme, np.full(100, DEVICES // 100), rng, values=asked[:100])
    none = cpu_seconds(lambda: estimate(tally, scheme, asked[:1]), rounds=3)
    some = cpu_seconds(lambda: estimate(tally, scheme, asked), rounds=3)
    rows = published / HASHES
    return Times(
        *_device_and_fold(mechanism, candidates()[:REPORTS]),
        # Transforms of the rows once, look-ups for each candidate.
        rows * (none + (some - none) * CANDIDATES / ASKED),
    )


def _device_and_fold(mechanism: Mechanism[Any], items: Sequence[Any]) -> tuple[float, float]:
    reports = [mechanism.randomize(item) for item in items]
    return _each(lambda: [mechanism.randomize(item) for item in items]), _fold(
        mechanism.rows, reports
    )


def _fold(rows: Sequence[Row], reports: Sequence[Report]) -> float:
    key = TallyKey("metric", "0" * 12, "2026-11-21")
    places = [RowPlace(TallyRowKey(key, number), row) for number, row in enumerate(rows)]
    accepted = [(places[report.row], report.columns) for report in reports]
    return _each(lambda: increments(accepted))


def _each(call: Callable[[], object]) -> float:
    return cpu_seconds(call) / REPORTS * 1e6


def _rappor_report(value: str) -> Report:
    """The report of a new client of google/rappor, with exact probabilities."""
    cohort = below(RAPPOR.m, system_bits)
    bloom = sum(1 << bit for bit in set(bloom_bits(value, cohort, RAPPOR)))
    half = round(RAPPOR.f / 2 * (1 << PRECISION))
    permanent = flips(bloom, RAPPOR.k, (1 << PRECISION) - half, half, system_bits)
    q, p = (round(each * (1 << PRECISION)) for each in (RAPPOR.q, RAPPOR.p))
    return Report(cohort, flips(permanent, RAPPOR.k, q, p, system_bits))


def _rappor() -> Times:
    values = [f"{index}.example" for index in range(REPORTS)]
    sent = [_rappor_report(value) for value in values]
    rows = (Row(RAPPOR.k, Packing.BITMAP, None),) * RAPPOR.m
    counts, reports, positions = rappor_table(np.random.default_rng(4))
    p01, p11 = float(RAPPOR.p01), float(RAPPOR.p11)
    return Times(
        _each(lambda: [_rappor_report(value) for value in values]),
        _fold(rows, sent),
        cpu_seconds(
            lambda: decode(counts, reports, positions, p01, p11, background=RAPPOR.density),
            rounds=3,
        ),
    )
