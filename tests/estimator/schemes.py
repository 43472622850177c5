"""Schemes of mechanisms that count a list, for tests of what is calculated for many at once."""

from deniable import Scheme
from deniable.protocol.mechanisms.hadamard_response import HadamardResponse
from deniable.protocol.mechanisms.memoized_subset_selection import MemoizedSubsetSelection
from deniable.protocol.mechanisms.projective_geometry import ProjectiveGeometry
from deniable.protocol.mechanisms.rappor import BasicRappor
from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable.protocol.mechanisms.unary_encoding import UnaryEncoding

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
