"""The rows of a tally that belong to some combinations of segments, as a tally without segments.

Devices of different segments add to different rows with the same noise, so the sum over
combinations is the tally that the same reports would have made without segments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from deniable import Scheme
from deniable_collector.tally import Tally, TallyRow

__all__ = ["places_of", "sliced"]


def places_of(scheme: Scheme, where: Mapping[str, str]) -> tuple[int, ...]:
    """The numbers of the combinations with these values; none if the scheme has no such segment
    or value. Without values, all."""
    return tuple(
        place
        for place, labels in enumerate(scheme.combinations)
        if all(labels.get(name) == value for name, value in where.items())
    )


def sliced(tally: Tally, scheme: Scheme, places: Sequence[int]) -> Tally:
    """The sum of the rows of these combinations: one row for each row of the mechanism."""
    count = len(scheme.mechanism.rows)
    if len(tally.rows) == count and tuple(places) == (0,):
        return tally
    rows = []
    for number, row in enumerate(scheme.mechanism.rows):
        found = [tally.rows[place * count + number] for place in places]
        cells = np.zeros(row.width, np.int64)
        for each in found:
            cells += each.cells
        rows.append(TallyRow(sum(each.reports for each in found), cells))
    return replace(tally, rows=tuple(rows))
