"""How well the lean of a coin will be known."""

from __future__ import annotations

import math

from deniable_estimator.document.document import Document, Fact, Note
from deniable_estimator.inputs import Asked
from deniable_estimator.planning.inputs import Planned


def planned(asked: Asked) -> Planned:
    """Its standard error by randomized response (Warner, JASA 1965)."""
    heads = math.exp(asked["epsilon"])
    error = (heads + 1) / (heads - 1) / math.sqrt(asked["devices"])
    verdict = Note(f"A lean of {3 * error:.3f} is seen.", "good")
    facts = (Fact("std_error", "Standard error", error, f"{error:.4f}"),)
    return Planned(Document("coin", "A coin", verdict, facts))
