"""Schemes of mechanisms that count a list, for tests of what is calculated for many at once."""

from deniable import Scheme
from deniable.protocol.mechanisms import (
    BasicRappor,
    HadamardResponse,
    MemoizedSubsetSelection,
    ProjectiveGeometry,
    SubsetSelection,
    UnaryEncoding,
)

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
