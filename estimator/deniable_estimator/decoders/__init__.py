"""From a tally to support counts: one fast decoder for each mechanism, by name.

A mechanism that is not in the table is still decoded, cell by cell through
`FrequencyOracle.support`. To add a decoder, write it in a file of its own and name it here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deniable import Scheme
from deniable.errors import ValueListError
from deniable.mechanisms import (
    BasicRappor,
    CohortLocalHashing,
    CountMeanSketch,
    FrequencyOracle,
    HadamardCountMeanSketch,
    HadamardResponse,
    HashedProjectiveGeometry,
    MemoizedLocalHashing,
    MemoizedSubsetSelection,
    ProjectiveGeometry,
    SubsetSelection,
    UnaryEncoding,
)
from deniable.value_list import value_texts
from deniable_collector.tally import Tally
from deniable_estimator.decoders import hadamard_response, hashed, projective_geometry
from deniable_estimator.decoders.support import Decoder, Items, Support
from deniable_estimator.errors import EstimateError
from deniable_estimator.messages import message

__all__ = ["DECODERS", "asked_values", "support_counts", "supported"]


def support_counts(
    tally: Tally, scheme: Scheme, candidates: Sequence[str] | None = None
) -> Support:
    """How many of the tally's reports support each candidate.

    Raises:
        EstimateError: as `asked_values`.
    """
    return supported(tally, scheme.oracle, asked_values(tally, scheme, candidates)[1])


def supported(tally: Tally, mechanism: FrequencyOracle[Any], items: Items) -> Support:
    """How many of the tally's reports support each item, as `asked_values` gives them."""
    decode: Decoder = DECODERS.get(mechanism.name, _cell_by_cell)
    return decode(tally, mechanism, items)


def asked_values(
    tally: Tally, scheme: Scheme, candidates: Sequence[str] | None = None
) -> tuple[tuple[str, ...], Items]:
    """The candidates as values, and what the mechanism randomizes in place of each.

    Without candidates, those of the scheme's closed domain, in its order. Candidates are brought
    into normal form C, as devices do it.

    Raises:
        EstimateError: the tally does not belong to the scheme; a candidate cannot be a value
            (`deniable.value_list`), is listed twice or is not in the domain; or the metric is
            a string and there are no candidates.
    """
    _check_tally(tally, scheme)
    if candidates is not None:
        return _named(scheme, candidates)
    if scheme.needs_candidates:
        raise EstimateError(
            message("this metric's domain is open: give the candidates to look for")
        )
    return scheme.values, _array(scheme.items)


def _check_tally(tally: Tally, scheme: Scheme) -> None:
    if tally.scheme != scheme.fingerprint:
        raise EstimateError(
            f"the tally was made under scheme {tally.scheme}, not {scheme.fingerprint}: "
            "estimate it with its own scheme"
        )
    widths = [row.cells.shape for row in tally.rows]
    if widths != [(row.width,) for row in scheme.mechanism.rows]:
        raise EstimateError(
            message(
                "the tally of {metric} has rows of other widths than scheme {scheme}: read it "
                "again from the store",
                metric=tally.metric,
                scheme=scheme.fingerprint,
            )
        )


def _named(scheme: Scheme, candidates: Sequence[str]) -> tuple[tuple[str, ...], Items]:
    try:
        values = tuple(value_texts(candidates, "the list of candidates"))
    except ValueListError as error:
        raise EstimateError(str(error)) from None
    if scheme.needs_candidates:
        return values, values
    index = dict(zip(scheme.values, scheme.items, strict=True))
    try:
        return values, _array([index[value] for value in values])
    except KeyError as error:
        raise EstimateError(
            message(
                "{value} is not one of the metric's declared values, so no report can speak of "
                "it: leave it out",
                value=str(error),
            )
        ) from None


def _array(items: Sequence[Any]) -> Items:
    """Indices as an array, to gather with; strings as they are."""
    return items if isinstance(items[0], str) else np.array(items, np.int64)


def _own_cell(tally: Tally, mechanism: FrequencyOracle[Any], items: Items) -> Support:
    """Each value is supported by its own column of the only row."""
    return Support(tally.rows[0].cells[items], tally.reports)


def _cell_by_cell(tally: Tally, mechanism: FrequencyOracle[Any], items: Items) -> Support:
    rows = [row.cells for row in tally.rows]
    counts = np.array(
        [sum(int(rows[row][column]) for row, column in mechanism.support(item)) for item in items]
    )
    return Support(counts, tally.reports)


DECODERS: dict[str, Decoder] = {
    SubsetSelection.name: _own_cell,
    UnaryEncoding.name: _own_cell,
    MemoizedSubsetSelection.name: _own_cell,
    BasicRappor.name: _own_cell,
    ProjectiveGeometry.name: projective_geometry.decode,
    HadamardResponse.name: hadamard_response.decode,
    HashedProjectiveGeometry.name: hashed.decode_few_rows,
    CohortLocalHashing.name: hashed.decode,
    MemoizedLocalHashing.name: hashed.decode,
    CountMeanSketch.name: hashed.decode,
    HadamardCountMeanSketch.name: hashed.decode,
}
"""mechanism -> decoder."""
