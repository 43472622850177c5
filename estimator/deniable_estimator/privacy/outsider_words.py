"""What the figures for a reader of sums assume, in words."""

from __future__ import annotations

from collections.abc import Iterator

from deniable_estimator.messages import message
from deniable_estimator.privacy import Bound
from deniable_estimator.privacy.words import rounded_up

__all__ = ["assumed", "figure", "plain_delta", "span_words"]

_SPANS = {
    "window": message("one window"),
    "month": message("a month"),
    "year": message("a year"),
    "lifetime": message("a lifetime"),
}


def figure(bound: Bound) -> str:
    """An epsilon as tables show it, rounded up."""
    epsilon = bound.epsilon
    return rounded_up(epsilon, 4 if epsilon < 0.1 else 3 if epsilon < 100 else 0)


def plain_delta(delta: float) -> str:
    """A delta as people write it: 1e-8."""
    return f"{delta:g}".replace("e-0", "e-")


def span_words(span: str) -> str:
    """A span as a heading."""
    return _SPANS[span]


def assumed(*, segments: bool, remembers: bool, sampled: bool) -> Iterator[str]:
    """What must hold for the figures, one sentence or two each: of sums by segments, with memos, of
    devices that draw by lot when they report."""
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
        "Sums are published when their window takes no more reports, seven days after its end. Two "
        "readings of a window that grows publish their difference too: then n is the number of "
        "reports between the two."
    )
    if segments:
        yield message("n is the number of reports of a segment, not of the whole metric.")
    if sampled:
        yield message(
            "A device draws by lot in which windows it reports (sample_rate). The figures hold "
            "even if the reader knows in which it did."
        )
    yield message(
        "Delta is the probability with which a bound may fail. Even then the device's epsilon "
        "holds."
    )
    if remembers:
        yield message(
            "With memos, reports of a device depend on each other. The figures for several windows "
            "allow values to change at any time; where no such bound is known, they are the "
            "device's own epsilon."
        )
