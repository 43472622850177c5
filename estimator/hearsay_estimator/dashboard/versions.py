"""What an answer rests on, as a digest: equal digests mean equal answers.

Counters only grow, so the sums over some windows tell whether any of these windows has
changed, as long as the windows are named beside them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from hearsay_estimator.reading import Question

__all__ = ["digest", "digest_of_candidates", "digest_of_question"]

_SIZE = 20


def digest(*parts: object) -> bytes:
    """A digest of plain values, told apart by their `repr`."""
    return _hash(parts).digest()


def digest_of_candidates(candidates: Sequence[str] | None) -> bytes:
    """A digest of the strings that are asked for, in their order."""
    if candidates is None:
        return digest(None)
    content = _hash((len(candidates),))
    # No candidate holds a line break, so lists that differ differ when joined.
    content.update("\n".join(candidates).encode())
    return content.digest()


def digest_of_question(question: Question) -> bytes:
    """A digest of what the tallies hold, and of their schemes."""
    content = _hash(())
    for part in question.parts:
        tally = part.tally
        content.update(_told(tally.metric, part.scheme.fingerprint, tally.windows, part.again))
        for row in tally.rows:
            content.update(_told(row.reports, len(row.cells)))
            content.update(row.cells.tobytes())
    return content.digest()


def _hash(parts: Sequence[object]) -> hashlib.blake2b:
    return hashlib.blake2b(_told(*parts), digest_size=_SIZE)


def _told(*parts: object) -> bytes:
    return repr(parts).encode("utf-8", "surrogatepass")
