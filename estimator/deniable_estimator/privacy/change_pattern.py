"""How clearly memoized reports reveal that a value changes: a computed example.

Compare two histories of T reports: one value all the time, and two values alternating. The first
uses one memo, the second two. Consider the event that all odd reports look like one value and
all even ones like the other. Its probability under each history is known exactly, and the
logarithm of their quotient is a lower bound for the epsilon between the histories. It grows with
T without end. So "the number of memos times the epsilon of one", which is often stated for such
systems, bounds what is revealed about values given the times of change, but not about the times.
"""

from __future__ import annotations

from deniable_estimator.analyses.base import MemoryAnalysis

__all__ = ["reports_that_show"]

_MOST_REPORTS = 1 << 16


def reports_that_show(memory: MemoryAnalysis, epsilon: float) -> int | None:
    """The smallest even number of alternating reports that reveal more than `epsilon`.

    None if not even 65,536 do.
    """
    high = 1
    while memory.alternation_loss(2 * high) <= epsilon:
        high *= 2
        if 2 * high > _MOST_REPORTS:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if memory.alternation_loss(2 * middle) > epsilon:
            high = middle
        else:
            low = middle
    return 2 * high
