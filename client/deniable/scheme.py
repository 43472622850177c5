"""A scheme: a metric's mechanism with all its parameters, over its domain.

Its fingerprint travels in every report and names the tally, so that reports made
under different parameters are never mixed. `client/vectors/scheme.json` holds test
vectors for other implementations.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from deniable.errors import SchemeError
from deniable.mechanisms import Mechanism, rebuild

__all__ = ["FINGERPRINT_LENGTH", "Scheme"]

FINGERPRINT_LENGTH = 12
"""Hex digits of a fingerprint. A metric has a handful of schemes in its life, and the
name stands beside it, so 48 bits leave collisions to one in 10**13."""


@dataclass(frozen=True)
class Scheme:
    """The metric's type, its mechanism, and its list of values.

    `values` are the domain in the order of the tally's items; None where the domain is
    open and candidates come at query time. A mechanism over strings serves a closed domain
    too, by the texts of its values.
    """

    type: str
    mechanism: Mechanism[Any]
    values: tuple[str, ...] | None

    @property
    def items(self) -> Sequence[int] | Sequence[str]:
        """What the mechanism randomizes in place of each value, in the order of the values.

        Raises:
            SchemeError: the domain is open.
        """
        if self.values is None:
            raise SchemeError("the scheme's domain is open: it has no list of items")
        return self.values if self.mechanism.size is None else range(len(self.values))

    @cached_property
    def fingerprint(self) -> str:
        """The first 12 hex digits of SHA-256 over `canonical()`."""
        return hashlib.sha256(self.canonical()).hexdigest()[:FINGERPRINT_LENGTH]

    def canonical(self) -> bytes:
        """The definition as UTF-8 JSON with sorted keys and no spaces."""
        return json.dumps(
            self.definition(), ensure_ascii=False, sort_keys=True, separators=(",", ":")
        ).encode()

    def definition(self) -> dict[str, Any]:
        """All that another program needs to read this scheme's tallies."""
        return {
            "type": self.type,
            "mechanism": self.mechanism.name,
            "parameters": self.mechanism.parameters(),
            "values": None if self.values is None else list(self.values),
        }

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
        mechanism = rebuild(name, parameters)
        _check_values(values, mechanism.size)
        return cls(kind, mechanism, None if values is None else tuple(values))


def _check_values(values: Sequence[str] | None, size: int | None) -> None:
    if values is not None and size is not None and len(values) != size:
        raise SchemeError(f"the scheme names {len(values)} values for a mechanism over {size}")
