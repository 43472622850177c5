"""Segments: how often the interval of a difference holds it, how many finds are false, how long the
page takes.

    python benchmarks/segments.py            coverage and false discoveries, about a minute
    python benchmarks/segments.py --page     32 segments x 1,000 values x 90 days, about a minute

Coverage: supporting reports are binomial, so a table of chances is summed exactly over pairs of
counts where there are few of them, and drawn otherwise. Beside Newcombe's interval, which the
product has, stands Wald's, which most tools have.
"""

from __future__ import annotations

import argparse
import math
import resource
import tempfile
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from statistics import NormalDist

import numpy as np

from deniable import Registry
from deniable.mechanisms import SubsetSelection
from deniable_collector.stores import open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_estimator.statistics.homogeneity import benjamini_hochberg, homogeneity
from deniable_estimator.statistics.intervals import (
    Noise,
    debias,
    interval_of_difference,
    score_interval,
)

RUNS = 20_000
LAYOUTS = [
    (20, 1.0, (2_000, 500, 100, 50)),
    (100, 1.0, (2_000, 500, 100, 50)),
    (20, 4.0, (1_000, 300, 30)),
    (100, 4.0, (2_000, 500, 100, 50)),
    (100, 4.0, (20_000, 500, 100, 50)),
    (100, 4.0, (100,) * 20),
    (1_000, 4.0, (50_000, *(3_000,) * 31)),
    (1_000, 1.0, (1_000,) * 32),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", action="store_true")
    if parser.parse_args().page:
        page()
    else:
        coverage()
        discoveries()


def coverage() -> None:
    """Coverage of the interval of the difference of two shares."""
    print("| epsilon | reports | shares | Newcombe 10 | Wald |\n| --- | --- | --- | --- | --- |")
    rng = np.random.default_rng(1)
    z = NormalDist().inv_cdf(0.975)
    for epsilon in (1.0, 2.0, 4.0):
        mechanism = SubsetSelection.design(20, epsilon)
        p, q = mechanism.p, mechanism.q
        for sizes in (
            (10, 10),
            (30, 300),
            (100, 100),
            (100, 1_000),
            (1_000, 1_000),
            (10**5, 10**4),
        ):
            for shares in ((0.05, 0.05), (0.3, 0.2)):
                ends = []
                spread = np.zeros(RUNS)
                for n, share in zip(sizes, shares, strict=True):
                    rate = float(q) + share * float(p - q)
                    counts = rng.binomial(n, rate, RUNS)
                    noise = Noise.of(p, q, n, RUNS)
                    found = debias(counts, n, p, q)
                    ends.append((found, *score_interval(found, noise, 0.95)))
                    r = counts / n
                    spread += r * (1 - r) / n / float(p - q) ** 2
                low, high = interval_of_difference(*ends)
                difference = shares[1] - shares[0]
                held = np.mean((low <= difference) & (difference <= high))
                wald = np.abs(ends[1][0] - ends[0][0] - difference) <= z * np.sqrt(spread)
                reports = " and ".join(f"{n:,}" for n in sizes)
                told = f"{100 * shares[0]:g}% and {100 * shares[1]:g}%"
                print(f"| {epsilon:g} | {reports} | {told} | {held:.3f} | {wald.mean():.3f} |")


def discoveries() -> None:
    """False discoveries among segments x values at nominal 5%."""
    print(
        "\n| values | epsilon | reports of the segments | all alike: lists with a find | a tenth "
        "differ: false of the finds | found |\n| --- | --- | --- | --- | --- | --- |"
    )
    for size, epsilon, sizes in LAYOUTS:
        mechanism = SubsetSelection.design(size, epsilon)
        p, q = float(mechanism.p), float(mechanism.q)
        rng = np.random.default_rng(2)
        weights = 1 / np.arange(1, size + 1)
        rate = q + weights / weights.sum() * (p - q)
        n = np.array(sizes)
        noises = [Noise.of(mechanism.p, mechanism.q, int(each), size) for each in sizes]
        runs = 1_000 if size * len(sizes) < 5_000 else 300
        lists, false, found = 0, [], 0
        real = np.arange(size) % 10 == 0
        for differ in (False, True):
            rates = np.tile(rate, (len(sizes), 1))
            if differ:
                rates[0, real] = q + np.minimum(2 * weights[real] / weights.sum(), 1) * (p - q)
            for _ in range(runs):
                counts = rng.binomial(n[:, None], rates)
                share = (counts / n[:, None] - q) / (p - q)
                finds = benjamini_hochberg(homogeneity(share, noises)) <= 0.05
                if not differ:
                    lists += bool(finds.any())
                else:
                    false.append((finds & ~real).sum() / max(1, finds.sum()))
                    found += int((finds & real).sum())
        error = np.std(false) / math.sqrt(runs)
        told = ", ".join(f"{each:,}" for each in sizes[:4]) + (", ..." if len(sizes) > 4 else "")
        print(
            f"| {size:,} | {epsilon:g} | {told} ({len(sizes)}) | {lists / runs:.3f} | "
            f"{np.mean(false):.3f} ({error:.3f}) | {found / runs:.1f} of {real.sum()} |"
        )


def page() -> None:
    """CPU and size of the page of 32 segments, beside that of the metric's own page."""
    from deniable_estimator.dashboard import create_app
    from deniable_estimator.dashboard.settings import DashboardSettings

    segments = ", ".join(f'"s{number}"' for number in range(32))
    values = ", ".join(f'"value {number}"' for number in range(1_000))
    registry = Registry.parse(f"""
schema = 1
app = "benchmark"
[segments.group]
values = [{segments}]
[metrics.page]
type = "category"
description = "The page."
owner = "benchmark"
expires = 2030-06-30
epsilon = 4.0
lifetime_epsilon = 400.0
segments = ["group"]
values = [{values}]
""")
    metric = registry["page"]
    oracle = metric.scheme.oracle
    rng = np.random.default_rng(3)
    weights = 1 / np.arange(1, 1_001)
    rates = float(oracle.q) + weights / weights.sum() * float(oracle.p - oracle.q)
    token = "benchmark-token-benchmark-token"
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"sqlite:///{Path(folder) / 'store.db'}")
        store.publish({"page": [metric.scheme]})
        for day in range(90):
            label = (date(2026, 8, 1) + timedelta(day)).isoformat()
            increments = {}
            for place in range(32):
                # Each count by itself: the speed does not depend on how they hang together.
                cells = rng.binomial(3_000, rates)
                columns = np.flatnonzero(cells)
                key = TallyRowKey(TallyKey("page", metric.scheme.fingerprint, label), place)
                increments[key] = Increment(1_000, 3_000, columns, cells[columns])
            store.fold(Commit((f"{day:032x}",), increments), 0.0)
        now = datetime(2026, 10, 30, 12, tzinfo=UTC).timestamp()
        app = create_app(
            DashboardSettings(dashboard_token=token),
            store=store,
            registry=registry,
            clock=lambda: now,
        )
        client = app.test_client()
        client.environ_base["HTTP_ACCEPT"] = "text/html"
        client.post("/login", data={"token": token})
        client.get("/login")
        days = "from=2026-08-01&to=2026-10-29"
        print("| page | CPU, s | again | clock, s | KB |\n| --- | --- | --- | --- | --- |")
        for path in (f"/metric/page/segments?{days}", f"/metric/page?{days}"):
            figures = []
            for _ in range(2):
                began, clock = _cpu(), time.perf_counter()
                answer = client.get(path)
                assert answer.status_code == 200, answer.status_code
                figures.append((_cpu() - began, time.perf_counter() - clock))
            (first, wait), (again, _) = figures
            name, size = path.partition("?")[0], len(answer.data) / 1_000
            print(f"| {name} | {first:.2f} | {again:.3f} | {wait:.2f} | {size:.0f} |")
        store.close()


def _cpu() -> float:
    own, children = (
        resource.getrusage(each) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


if __name__ == "__main__":
    main()
