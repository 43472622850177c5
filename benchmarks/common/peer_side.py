"""The peers' side of the comparison: runs inside the peers' own environment.

Reads JSON requests from standard input, one on each line, and answers each with a line of
JSON: a peer's frequency oracle randomizes, aggregates and estimates for as many
repetitions as fit into a number of seconds. Nothing of ours is imported here. Times are
CPU time.
"""

from __future__ import annotations

import contextlib
import json
import math
import random
import sys
import time
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

# pure-ldp imports statsmodels for its RAPPOR server alone, which is not asked for here.
sys.modules["statsmodels"] = types.ModuleType("statsmodels")
sys.modules["statsmodels.api"] = types.ModuleType("statsmodels.api")
warnings.simplefilter("ignore")

ASKED = 1000
"""Values whose estimates are compared where the domain is larger: a uniform sample."""

FAST_HASHES = 500
"""Hash functions of pure-ldp's fast local hashing."""


class Oracle(NamedTuple):
    """One peer's oracle: how a device randomizes, and how a server estimates shares."""

    randomize: Callable[[int], Any]
    estimate: Callable[[Sequence[Any], Sequence[int]], tuple[np.ndarray, float]]
    """(reports, values asked for) -> (shares, seconds to estimate after aggregating)."""


def pure_ldp(name: str, size: int, epsilon: float) -> Oracle:
    import pure_ldp.frequency_oracles as oracles

    def same(index: int) -> int:
        return index

    if name == "OUE":
        client = oracles.UEClient(epsilon, size, use_oue=True, index_mapper=same)
        server = oracles.UEServer(epsilon, size, use_oue=True, index_mapper=same)
    elif name == "GRR":
        client = oracles.DEClient(epsilon, size, index_mapper=same)
        server = oracles.DEServer(epsilon, size, index_mapper=same)
    elif name == "OLH":
        client = oracles.LHClient(epsilon, size, use_olh=True, index_mapper=same)
        server = oracles.LHServer(epsilon, size, use_olh=True, index_mapper=same)
    elif name == "FLH":
        client = oracles.FastLHClient(epsilon, size, FAST_HASHES, use_olh=True, index_mapper=same)
        server = oracles.FastLHServer(epsilon, size, FAST_HASHES, use_olh=True, index_mapper=same)
    elif name == "HR":
        server = oracles.HadamardResponseServer(epsilon, size, index_mapper=same)
        client = oracles.HadamardResponseClient(
            epsilon, size, server.get_hash_funcs(), index_mapper=same
        )
    else:
        raise ValueError(f"pure-ldp has no oracle {name}")

    def estimate(reports: Sequence[Any], asked: Sequence[int]) -> tuple[np.ndarray, float]:
        server.reset()
        if name == "FLH":
            server.hash_counts[:] = 0  # its reset forgets them
        server.aggregate_all(reports)
        begin = time.process_time()
        shares = server.estimate_all(list(asked), suppress_warnings=True) / len(reports)
        return shares, time.process_time() - begin

    return Oracle(client.privatise, estimate)


def multi_freq(name: str, size: int, epsilon: float) -> Oracle:
    from multi_freq_ldpy.pure_frequency_oracles import GRR, LH, SS, UE

    clients = {
        "GRR": lambda item: GRR.GRR_Client(item, size, epsilon),
        "SS": lambda item: SS.SS_Client(item, size, epsilon),
        "OUE": lambda item: UE.UE_Client(item, size, epsilon, True),
        "OLH": lambda item: LH.LH_Client(item, size, epsilon, True),
    }
    servers = {
        "GRR": lambda reports: GRR.GRR_Aggregator_MI(reports, size, epsilon),
        "SS": lambda reports: SS.SS_Aggregator_MI(reports, size, epsilon),
        "OUE": lambda reports: UE.UE_Aggregator_MI(reports, epsilon, True),
        "OLH": lambda reports: LH.LH_Aggregator_MI(reports, size, epsilon, True),
    }

    def estimate(reports: Sequence[Any], asked: Sequence[int]) -> tuple[np.ndarray, float]:
        # It aggregates and estimates in one call, all values at once.
        begin = time.process_time()
        shares = np.asarray(servers[name](reports))
        return shares[np.asarray(asked)], time.process_time() - begin

    return Oracle(clients[name], estimate)


LIBRARIES = {"pure-ldp": pure_ldp, "multi-freq-ldpy": multi_freq}


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Repeat randomize, aggregate and estimate until the seconds are used up."""
    size, reports = request["size"], request["reports"]
    rng = np.random.default_rng(request["seed"])
    # Both libraries draw from these two; neither can be handed a generator.
    np.random.seed(request["seed"])
    random.seed(request["seed"])
    oracle = LIBRARIES[request["library"]](request["oracle"], size, request["epsilon"])
    oracle.randomize(0)  # compiles, where the library does
    weights = np.arange(1, size + 1, dtype=float) ** -request["zipf"]
    shares = weights / weights.sum()
    totals: list[float] = []
    device, answer = [], []
    begin = time.process_time()
    while not totals or (
        len(totals) < request["repetitions"]
        and (time.process_time() - begin) * (1 + 1 / len(totals)) < request["seconds"]
    ):
        items = rng.choice(size, reports, p=shares)
        truth = np.bincount(items, minlength=size) / reports
        chosen = np.arange(size) if size <= ASKED else rng.choice(size, ASKED, replace=False)
        started = time.process_time()
        sent = [oracle.randomize(item) for item in items.tolist()]
        device.append(time.process_time() - started)
        estimate, answering = oracle.estimate(sent, chosen.tolist())
        answer.append(answering)
        totals.append(float(np.square(estimate - truth[chosen]).mean()) * size)
    spread = float(np.std(totals, ddof=1)) if len(totals) > 1 else math.nan
    return {
        "reports": reports,
        "repetitions": len(totals),
        "total_squared_error": float(np.mean(totals)),
        "monte_carlo_error": spread / math.sqrt(len(totals)) if len(totals) > 1 else None,
        "device_us": min(device) / reports * 1e6,
        "estimate_seconds": min(answer),
    }


def main() -> None:
    answers = sys.stdout
    for line in sys.stdin:
        # Some of them print while they work.
        with contextlib.redirect_stdout(sys.stderr):
            answer = run(json.loads(line))
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
