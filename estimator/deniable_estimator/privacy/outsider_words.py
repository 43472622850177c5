"""What the figures for a reader of sums assume, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deniable_estimator.messages import message

if TYPE_CHECKING:
    from deniable_estimator.privacy.outsider import Outsider

__all__ = ["assumed", "span_words"]

_SPANS = {
    "window": message("one window"),
    "month": message("a month"),
    "year": message("a year"),
    "lifetime": message("a lifetime"),
}


def span_words(span: str) -> str:
    """A span as a heading."""
    return _SPANS[span]


def assumed(outsider: Outsider) -> Iterator[str]:
    """What must hold for the figures, one sentence or two each."""
    yield message(
        "The reader sees nothing but sums, and may know the values of all other devices. Whoever "
        "also knows the other reports, or sent them, subtracts them and learns what the device's "
        "own report reveals. If c of the devices work together, count c reports fewer."
    )
    yield message(
        "The collector's operator sees single reports as they come in. Against the operator stands "
        "the device's epsilon alone, unless a relay that others run stands between."
    )
    yield message(
        "Sums are published when their window is closed, once each. Two readings of an open window "
        "publish their difference too: then n is the number of reports between the two."
    )
    if outsider.segments:
        yield message("n is the number of reports of a segment, not of the whole metric.")
    yield message(
        "Delta is the probability with which a bound may fail. Even then the device's epsilon "
        "holds."
    )
    if outsider.remembers:
        yield message(
            "With memos, reports of a device depend on each other. The figures for several windows "
            "allow values to change at any time; where no such bound is known, they are the "
            "device's own epsilon."
        )
