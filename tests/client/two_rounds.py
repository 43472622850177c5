"""How often a memo is drawn, and what is reported of it, from the parameters alone."""

import itertools
import math
from fractions import Fraction

from deniable.protocol.randomness import PRECISION

ONE = 1 << PRECISION


def flip_chances(bitmap, size, chance):
    """How often each bitmap comes of flipping every bit with this chance."""
    return {
        other: chance ** (other ^ bitmap).bit_count()
        * (1 - chance) ** (size - (other ^ bitmap).bit_count())
        for other in range(1 << size)
    }


def memo_chances(mechanism, cell):
    """How often a cell is remembered as each memo, from the parameters alone."""
    parameters = mechanism.parameters()
    if "f" in parameters:
        size = parameters.get("k", parameters.get("size"))
        return flip_chances(cell, size, Fraction(parameters["f"], 2 * ONE))
    if "bits" in parameters:
        # The cell behind the last bit is that of all values of other rows.
        size = parameters["bits"]
        own = 1 << cell if cell < size else 0
        return flip_chances(own, size, Fraction(parameters["memo"], ONE))
    truth, size = Fraction(parameters["memo"], ONE), parameters["size"]
    return {memo: truth if memo == cell else (1 - truth) / (size - 1) for memo in range(size)}


def report_chances(mechanism, memo):
    """How often a memo is reported as each bitmap of columns, from the parameters alone."""
    parameters = mechanism.parameters()
    if "f" in parameters:
        size = parameters.get("k", parameters.get("size"))
        p, q = Fraction(parameters["p"], ONE), Fraction(parameters["q"], ONE)
        chances = {}
        for columns in range(1 << size):
            each = Fraction(1)
            for place in range(size):
                heads = q if memo >> place & 1 else p
                each *= heads if columns >> place & 1 else 1 - heads
            chances[columns] = each
        return chances
    if "bits" in parameters:
        return flip_chances(memo, parameters["bits"], Fraction(parameters["fresh"], ONE))
    size, k, truth = parameters["size"], parameters["k"], Fraction(parameters["fresh"], ONE)
    chances = {}
    for chosen in itertools.combinations(range(size), k):
        columns = chosen[0] if k == 1 else sum(1 << each for each in chosen)
        held = memo in chosen
        ways = math.comb(size - 1, k - held)
        chances[columns] = (truth if held else 1 - truth) / ways
    return chances


def worst_ratio(distributions):
    """The largest ratio of two of them anywhere."""
    return max(
        max(each[outcome] for each in distributions) / min(each[outcome] for each in distributions)
        for outcome in distributions[0]
    )
