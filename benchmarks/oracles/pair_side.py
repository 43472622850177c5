"""The peers' side of `benchmarks/pairs.py`: runs inside the peers' own environment.

Reads JSON requests from standard input, one on each line: the joint table, epsilon, how many
devices and a seed. multi-freq-ldpy splits epsilon over the two values of each device. Answers with
how often each pair of messages was sent, and with the margins that it estimates.
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

import numpy as np
from multi_freq_ldpy.mdim_freq_est import SPL_solution as spl
from numba import njit


@njit  # the library's clients draw with numba's own generator
def seed_numba(seed: int) -> None:
    np.random.seed(seed)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    table, epsilon = np.array(request["table"]), request["epsilon"]
    seed_numba(request["seed"])
    np.random.seed(request["seed"])
    random.seed(request["seed"])
    rows, columns = table.shape
    cells = np.repeat(
        np.arange(table.size),
        np.random.default_rng(request["seed"]).multinomial(request["n"], table.ravel()),
    )
    sizes = [rows, columns]
    messages = [
        spl.SPL_GRR_Client(tuple(map(int, divmod(cell, columns))), sizes, 2, epsilon)
        for cell in cells.tolist()
    ]
    sent = np.zeros(table.shape, np.int64)
    np.add.at(sent, tuple(np.array(messages).T), 1)
    margins = spl.SPL_GRR_Aggregator_MI(messages, sizes, 2, epsilon)
    return {"sent": sent.tolist(), "margins": [np.asarray(each).tolist() for each in margins]}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
