"""Schemes of mechanisms that count a list, and all reports that a mechanism has."""

from itertools import combinations

from deniable import Scheme
from deniable.protocol.mechanisms import Packing, Report
from deniable.protocol.mechanisms.compatible import HadamardResponse, UnaryEncoding
from deniable.protocol.mechanisms.projective_geometry import ProjectiveGeometry
from deniable.protocol.mechanisms.rappor import BasicRappor
from deniable.protocol.mechanisms.subset_selection import MemoizedSubsetSelection, SubsetSelection

SIZE = 12
VALUES = tuple(f"value {each}" for each in range(SIZE))
SCHEMES = [
    Scheme("category", mechanism, VALUES)
    for mechanism in (
        SubsetSelection.design(SIZE, 1.0),
        SubsetSelection.design(SIZE, 6.0),
        SubsetSelection.design(SIZE, 9.0),
        UnaryEncoding.optimized(SIZE, 1.0),
        ProjectiveGeometry.design(SIZE, 1.5),
        HadamardResponse.design(SIZE, 1.0),
        MemoizedSubsetSelection.design(SIZE, 1.0, 4.0),
        BasicRappor.design(SIZE, 1.0, 4.0),
    )
]


def every_report(mechanism):
    """All reports that a device can send, each with the columns that it sets."""
    for number, row in enumerate(mechanism.rows):
        if row.packing is Packing.INDEX:
            yield from ((Report(number, column), {column}) for column in range(row.width))
            continue
        for size in range(row.width + 1) if row.columns is None else [row.columns]:
            for columns in combinations(range(row.width), size):
                yield Report(number, sum(1 << each for each in columns)), set(columns)
