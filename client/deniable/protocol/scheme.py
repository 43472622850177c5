"""A scheme: a metric's mechanism with all its parameters, over its domain.

Its fingerprint travels in every report and names the tally, so that reports made
under different parameters are never mixed. `client/vectors/scheme.json` holds test
vectors for other implementations.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from deniable.protocol.errors import SchemeError
from deniable.protocol.frozen import frozen
from deniable.protocol.mechanisms import MAX_CELLS, FrequencyOracle, Mechanism, Row, rebuild
from deniable.protocol.segments import Segment, check_segments, combinations, labels, segments_of
from deniable.protocol.types import TYPES

if TYPE_CHECKING:
    from hashlib import sha256
else:
    # `hashlib` loads OpenSSL, which takes 2 ms: too much for a tool that records one value and
    # exits. The interpreter's own module gives the same digest.
    try:
        from _sha2 import sha256
    except ImportError:
        try:
            from _sha256 import sha256  # Python 3.11
        except ImportError:
            from hashlib import sha256

FINGERPRINT_LENGTH = 12
"""Hex digits of a fingerprint. A metric has a handful of schemes in its life, and the
name stands beside it, so 48 bits leave collisions to one in 10**13."""


@frozen
class Scheme:
    """The metric's type, its mechanism, its list of values, and the segments it is counted by.

    `type` is the name of the metric's type. `values` are the domain in the order of the tally's
    items; empty where there is no list of it. A mechanism over strings serves a closed domain
    too, by the texts of its values. With segments, the tally has the rows of the mechanism once
    for each combination of their values (`deniable.protocol.segments`).

    Raises:
        SchemeError: the values are not those of the mechanism, or the segments give the tally too
            many combinations or cells.
    """

    type: str
    mechanism: Mechanism[Any]
    values: tuple[str, ...]
    segments: tuple[Segment, ...] = ()

    def __post_init__(self) -> None:
        mechanism, values = self.mechanism, self.values
        if mechanism.texts not in (None, values):
            raise SchemeError(f"the scheme's values are not those of its {mechanism.name}")
        size = mechanism.size if isinstance(mechanism, FrequencyOracle) else None
        if values and size is not None and len(values) != size:
            raise SchemeError(f"the scheme names {len(values)} values for a mechanism over {size}")
        count = check_segments(self.segments)
        if count > 1 and (cells := sum(row.width for row in self.rows)) > MAX_CELLS:
            raise SchemeError.of(
                "segment_cells",
                "{count} combinations of segments give a tally of {cells:,} cells, above the limit "
                "of {most:,}: use fewer segments, or fewer values",
                count=count,
                cells=cells,
                most=MAX_CELLS,
            )

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The rows of the tally: those of the mechanism, for each combination of segments."""
        return self.mechanism.rows * combinations(self.segments)

    @property
    def combinations(self) -> list[dict[str, str]]:
        """The combinations of segments in the order of the rows; one without a name if there
        are no segments."""
        return labels(self.segments)

    @property
    def needs_candidates(self) -> bool:
        """Whether the values are any strings, and are named when it is estimated."""
        return TYPES[self.type].needs_candidates

    @property
    def oracle(self) -> FrequencyOracle[Any]:
        """The mechanism, whose reports support values.

        Raises:
            SchemeError: it is none of that kind.
        """
        if not isinstance(self.mechanism, FrequencyOracle):
            raise SchemeError(f"{self.mechanism.name} has no shares of values")
        return self.mechanism

    @property
    def items(self) -> Sequence[int] | Sequence[str]:
        """What the mechanism randomizes in place of each value, in the order of the values.

        Raises:
            SchemeError: the domain is open.
        """
        if not self.values:
            raise SchemeError("the scheme's domain is open: it has no list of items")
        return self.values if self.oracle.size is None else range(len(self.values))

    @cached_property
    def fingerprint(self) -> str:
        """The first 12 hex digits of SHA-256 over `canonical()`."""
        return sha256(self.canonical()).hexdigest()[:FINGERPRINT_LENGTH]

    def canonical(self) -> bytes:
        """The definition as UTF-8 JSON with sorted keys and no spaces."""
        return json.dumps(
            self.definition(), ensure_ascii=False, sort_keys=True, separators=(",", ":")
        ).encode()

    def definition(self) -> dict[str, Any]:
        """All that another program needs to read this scheme's tallies."""
        told = {
            "type": self.type,
            "mechanism": self.mechanism.name,
            "parameters": self.mechanism.parameters(),
            "values": list(self.values) or None,
        }
        segments = [{"name": each.name, "values": list(each.values)} for each in self.segments]
        return {**told, "segments": segments} if segments else told

    @classmethod
    def from_definition(cls, definition: Mapping[str, Any]) -> Self:
        """The scheme that `definition()` describes.

        Raises:
            SchemeError: the definition is incomplete or describes no mechanism we know.
        """
        try:
            kind, name = definition["type"], definition["mechanism"]
            parameters, values = definition["parameters"], definition["values"]
        except KeyError as error:
            raise SchemeError(f"the scheme's definition lacks {error}") from None
        if not isinstance(kind, str) or kind not in TYPES:
            raise SchemeError(f"this version of deniable knows no type {kind!r}: upgrade it")
        mechanism = rebuild(name, parameters)
        if not TYPES[kind].suits(mechanism):
            raise SchemeError(f"a {kind} is not reported through {name}")
        segments = segments_of(definition.get("segments", []))
        return cls(kind, mechanism, tuple(values or ()), segments)
