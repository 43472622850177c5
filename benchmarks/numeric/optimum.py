"""The least worst-case variance of an unbiased mean under epsilon, by linear programming.

Numbers lie on a grid of -1 to 1, scores on a grid of -A to A; the program chooses the probability
of each score for each number. By symmetry only the numbers from 0 on are variables.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

NUMBERS = 33
SCORES = 65


def least_variance(epsilon: float) -> float:
    """n times the worst variance of the best mechanism over the reaches A that are tried."""
    odds = math.exp(epsilon)
    one_bit = (odds + 1) / (odds - 1)
    found = [_with_reach(epsilon, one_bit * factor) for factor in (1, 1.15, 1.3, 1.5, 1.8, 2.2)]
    return min(each for each in found if each is not None)


def _with_reach(epsilon: float, reach: float) -> float | None:
    x = np.linspace(0, 1, NUMBERS // 2 + 1)
    scores = np.linspace(-reach, reach, SCORES)
    # Mirrored scores share the least probability m, and number 0 has mirrored probabilities.
    fold = np.abs(np.arange(SCORES) - SCORES // 2)
    cells = len(x) * SCORES
    size = cells + SCORES // 2 + 2
    equal, right = [], []
    most, limit = [], []
    for i, number in enumerate(x):
        own = i * SCORES + np.arange(SCORES)
        equal += [(own, np.ones(SCORES)), (own, scores)]
        right += [1.0, float(number)]
        for j in range(SCORES):
            least = cells + fold[j]
            most += [
                (np.array([least, own[j]]), np.array([1.0, -1.0])),
                (np.array([own[j], least]), np.array([1.0, -math.exp(epsilon)])),
            ]
            limit += [0.0, 0.0]
        most.append((np.append(own, size - 1), np.append(scores**2, -1.0)))
        limit.append(float(number**2))
    cost = np.zeros(size)
    cost[-1] = 1
    solved = linprog(
        cost,
        A_ub=_matrix(most, size),
        b_ub=limit,
        A_eq=_matrix(equal, size),
        b_eq=right,
        method="highs",
    )
    return float(solved.fun) if solved.status == 0 else None


def _matrix(rows: list[tuple[np.ndarray, np.ndarray]], size: int) -> csr_matrix:
    numbers = np.repeat(np.arange(len(rows)), [len(columns) for columns, _ in rows])
    columns = np.concatenate([columns for columns, _ in rows])
    values = np.concatenate([values for _, values in rows])
    return csr_matrix((values, (numbers, columns)), shape=(len(rows), size))
