"""Which cells of a tally support a value, by the definition of each frequency oracle: for tests of
what adds them up in another way."""

from functools import lru_cache

import numpy as np

from deniable.protocol.mechanisms.compatible import HadamardResponse
from deniable.protocol.mechanisms.hashed import Hashed
from deniable.protocol.mechanisms.projective_geometry import ProjectiveGeometry
from deniable.protocol.mechanisms.rappor import OneTimeRappor, Rappor
from deniable.protocol.wire import positions


def support(mechanism, item):
    """The row and the column of each cell, in rising order: by default the value's own column."""
    if isinstance(mechanism, Hashed):
        rows = range(mechanism.hashes)
        places = [support(mechanism.channel, mechanism.place(row, item)) for row in rows]
        return [(row, column) for row in rows for _, column in places[row]]
    if isinstance(mechanism, Rappor | OneTimeRappor):
        bloom = mechanism.bloom
        rows = range(bloom.cohorts)
        return [(row, bit) for row in rows for bit in positions(bloom.filter(row, item))]
    if isinstance(mechanism, ProjectiveGeometry):
        points = _points(mechanism)
        return [
            (0, int(each)) for each in np.flatnonzero(points @ points[item] % mechanism.order == 0)
        ]
    if isinstance(mechanism, HadamardResponse):
        own = mechanism.order - 1 - item
        columns = range(mechanism.order)
        return [(0, column) for column in columns if not (column & own).bit_count() % 2]
    return [(0, item)]


@lru_cache(maxsize=4)
def _points(space):
    """The vectors of all points of a space."""
    return np.array([space.coordinates(index) for index in range(space.messages)])
