"""What it costs: a report on the device and on the wire, the fold, a million estimates."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from deniable.mechanisms import AUTO, Packing, design, design_string
from deniable_collector.batches.sums import count_indices
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.planning.population import zipf_shares
from oracles.accuracy import ZIPF, Answers, category
from oracles.peers import LIBRARIES, Request
from oracles.tables import Cell, Goal, Result, number
from oracles.timing import cpu_seconds, microseconds_each

__all__ = ["answers_at_once", "devices", "folds", "speed_requests", "wire"]

DEVICE_GOALS = {1024: 50.0, 10**6: 16.0}
WIRE_GOALS = {1024: 256, 10**6: 4}
FOLD_GOAL = 3.0
BATCH = 10_000
ESTIMATE_SECONDS, ESTIMATE_MEGABYTES = 1.0, 600
PROCESSES = 3
_TIMED: dict[int, dict[str, tuple[str, ...]]] = {
    # size: {library: oracles that are timed}
    1024: {"pure-ldp": ("OUE", "OLH", "HR"), "multi-freq-ldpy": ("OUE", "SS", "OLH")},
    10**6: {"pure-ldp": ("HR",), "multi-freq-ldpy": ("GRR",)},
}


def speed_requests(epsilons: Iterable[float], seconds: float) -> Iterator[Request]:
    """What the peers are asked for `devices` and `answers_at_once`."""
    for epsilon in epsilons:
        for size, libraries in _TIMED.items():
            for library, oracles in libraries.items():
                for oracle in oracles:
                    yield Request(library, oracle, size, epsilon, 300, 5, seconds, 3, ZIPF)


def devices(epsilons: Iterable[float], answers: Answers, quick: bool) -> Result:
    """CPU microseconds to randomize one value."""
    rows: list[dict[str, Cell]] = []
    epsilons = tuple(epsilons)
    for size, goal in DEVICE_GOALS.items():
        for epsilon in epsilons:
            mechanism = design(AUTO, size, epsilon)
            micros = microseconds_each(mechanism.randomize, size, 300 if quick else 2000)
            row: dict[str, Cell] = {
                "values": size,
                "epsilon": epsilon,
                "mechanism": mechanism.name,
                "deniable, μs": micros,
                "goal": Goal(f"≤ {goal:g}", micros <= goal),
            }
            for library in LIBRARIES:
                timed: dict[str, float] = {}
                for request, answer in answers.items():
                    asked = (request.library, request.size, request.epsilon)
                    if asked == (library, size, epsilon):
                        best = min(answer["device_us"], timed.get(request.oracle, math.inf))
                        timed[request.oracle] = best
                row[f"{library}, μs"] = ", ".join(
                    f"{oracle} {number(timed[oracle])}"
                    for oracle in sorted(timed, key=timed.__getitem__)
                )
            rows.append(row)
    return Result(
        "device",
        "One report on the device (CPU μs, smallest of 7 rounds)",
        rows,
        "deniable is pure Python over the operating system's randomness, exact to the last bit; "
        "the peers compare\nfloats from a seeded generator, multi-freq-ldpy in compiled code.",
    )


def wire(epsilons: Iterable[float]) -> Result:
    """Bytes of one report's row and columns, before any text encoding."""
    rows: list[dict[str, Cell]] = []
    for size, goal in WIRE_GOALS.items():
        mechanisms = [design(AUTO, size, epsilon) for epsilon in epsilons]
        longest = max(row.report_bytes for each in mechanisms for row in each.rows)
        rows.append(
            {
                "values": f"{size:,}",
                "mechanism": ", ".join(sorted({each.name for each in mechanisms})),
                "bytes": longest,
                "goal": Goal(f"≤ {goal}", longest <= goal),
                "cells of the tally": max(sum(r.width for r in each.rows) for each in mechanisms),
            }
        )
    tables = [design_string(AUTO, "metric", epsilon) for epsilon in epsilons]
    bits = max(each.rows[0].index_bits + (len(each.rows) - 1).bit_length() for each in tables)
    longest = (bits + 7) // 8
    rows.append(
        {
            "values": "any string",
            "mechanism": tables[0].name,
            "bytes": longest,
            "goal": Goal("≤ 4", longest <= 4),
            "cells of the tally": max(sum(row.width for row in each.rows) for each in tables),
        }
    )
    return Result("wire", "One report on the wire, largest over the epsilons", rows)


def folds() -> Result:
    """Nanoseconds per one-column report to turn batches of fixed-width records into sums."""
    rng = np.random.default_rng(20261124)
    rows: list[dict[str, Cell]] = []
    for size, epsilon in ((10, 2.0), (10**5, 2.0), (10**6, 2.0), (10**6, 4.0)):
        mechanism = design("randomized_response" if size == 10 else AUTO, size, epsilon)
        (row,) = mechanism.rows
        assert row.packing is Packing.INDEX
        # Many batches, so that none finds the cells of its reports in the cache.
        batches = [rng.integers(0, row.width, BATCH).astype("<u4").tobytes() for _ in range(100)]
        cells = np.zeros(row.width, np.int64)

        def fold(batches: list[bytes] = batches, width: int = row.width) -> None:
            for records in batches:
                count_indices(np.frombuffer(records, "<u4"), width)

        def add(batches: list[bytes] = batches, cells: Any = cells) -> None:
            for records in batches:
                np.add.at(cells, np.frombuffer(records, "<u4").astype(np.intp), 1)

        def count(batches: list[bytes] = batches, width: int = row.width) -> None:
            for records in batches:
                np.flatnonzero(np.bincount(np.frombuffer(records, "<u4"), minlength=width))

        ours, baseline = (
            cpu_seconds(call, 25) / len(batches) / BATCH * 1e9 for call in (fold, add)
        )
        # A whole table for each batch: a few batches tell enough.
        few = batches[:5]
        dense = cpu_seconds(lambda few=few, count=count: count(few), 5) / len(few) / BATCH * 1e9
        rows.append(
            {
                "values": size,
                "cells": row.width,
                "deniable, ns": ours,
                "goal": Goal(f"≤ {FOLD_GOAL:g}", ours <= FOLD_GOAL),
                "add.at, ns": baseline,
                "bincount, ns": dense,
            }
        )
    return Result(
        "fold",
        f"Fold one-column reports, batches of {BATCH:,} records of 4 bytes (CPU ns per report)",
        rows,
        "deniable's sums are distinct cells with their counts, which a store adds; bincount finds "
        "the same in a\ntable of its own, and add.at adds to one that is there.",
    )


def answers_at_once(epsilons: Iterable[float], answers: Answers) -> Result:
    """All of a million values, in a fresh process: CPU seconds, and its largest memory."""
    size, n = 10**6, 10**6
    rng = np.random.default_rng(20261125)
    rows: list[dict[str, Cell]] = []
    for epsilon in epsilons:
        scheme = category(size, epsilon)
        counts = rng.multinomial(n, zipf_shares(size, ZIPF))
        tally = sample_tally(scheme, counts, rng)
        with tempfile.TemporaryDirectory() as folder:
            cells = Path(folder) / "cells.npy"
            np.save(cells, tally.rows[0].cells)
            call = [sys.executable, "-m", "oracles.fresh", str(size), repr(epsilon), cells, str(n)]
            place = Path(__file__).parents[1]
            answered = [
                json.loads(subprocess.run(call, check=True, capture_output=True, cwd=place).stdout)
                for _ in range(PROCESSES)
            ]
        fresh = min(answered, key=lambda each: float(each["seconds"]))
        peer = [
            answer["estimate_seconds"]
            for request, answer in answers.items()
            if (request.oracle, request.size, request.epsilon) == ("HR", size, epsilon)
        ]
        rows.append(
            {
                "epsilon": epsilon,
                "mechanism": scheme.mechanism.name,
                "cells": len(tally.rows[0].cells),
                "seconds": fresh["seconds"],
                "goal ": Goal(f"≤ {ESTIMATE_SECONDS:g}", fresh["seconds"] <= ESTIMATE_SECONDS),
                "MB": fresh["peak_megabytes"],
                "goal": Goal(
                    f"≤ {ESTIMATE_MEGABYTES}", fresh["peak_megabytes"] <= ESTIMATE_MEGABYTES
                ),
                "again, seconds": fresh["again_seconds"],
                "MB before": fresh["megabytes_before"],
                "pure-ldp HR, seconds": min(peer) if peer else None,
            }
        )
    return Result(
        "estimate",
        "Estimate all of 1,000,000 values: shares, errors, intervals, p-values, normalization",
        rows,
        "The fastest of three fresh processes that have the tally, the scheme and its values; "
        "`before` is what\nthat takes. pure-ldp estimates shares only, and is given 1,000 of them.",
    )
