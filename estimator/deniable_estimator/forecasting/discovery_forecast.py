"""Which strings a discovery finds in a crowd, and how many fakes make one appear.

The unit of all figures is the standard error of a share of 0 in one of the M + 1 tables, of which
each gets 1 / (M + 1) of n reports::

    s = sqrt(q(1 - q)(M + 1) / n) / (p - q)

Measured by simulation at epsilon 2 and 4, with a million reports, M = 8, and 12 to 18 strings of 9
to 11 letters a cell: a string that looks like common text is found in half of the crowds from 3.5 s
on and in 95% from 5 s on; one of random characters from 5 s and 6.7 s on. Shorter strings surface
sooner. Of strings up to 2 s none of 180 was found, at each epsilon: with 95% confidence that is at
most 1.7% of them.

These are statements about crowds. They are no guarantee for a device: that is the epsilon of its
report, which holds whatever is found. A fake that picks its table and its message moves the share
of its string like (1-q) / (p-q) honest devices.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple, Self

from deniable.protocol.coded_message import CodedMessage
from deniable.protocol.mechanisms.prefix_tree import PrefixTree
from deniable.protocol.metric import Metric
from deniable.protocol.windows import IN_A
from deniable_estimator.forecasting.detection import LARGE_SHARE, WORTHWHILE_SHARE, taking_part

_ERRORS = {"hidden": 2.0, "half_text": 3.5, "sure_text": 5.0, "half_any": 5.0, "sure_any": 6.7}
"""The shares of a reach, in standard errors."""

NOTHING = 0.5
"""If a string needs a larger share to surface, nothing will."""

USUAL_LENGTH = 16
"""Above so many bytes, lint warns: longer strings are seldom found whole."""


class Reach(NamedTuple):
    """Shares of the devices from which on strings surface; above 1 if none does."""

    hidden: float
    """None of so rare strings was found in the measurements: 0 of 180, or at most 1.7%."""
    half_text: float
    """In half of the crowds, if the string looks like common text."""
    sure_text: float
    """In 95% of the crowds."""
    half_any: float
    """In half of the crowds, if its characters are random."""
    sure_any: float
    """In 95% of the crowds."""
    fakes: int
    """So many fake devices make a string of theirs appear in half of the crowds."""

    @classmethod
    def in_window(cls, mechanism: PrefixTree, reports: float) -> Self:
        """That of one window with so many reports, above 0."""
        p, q = float(mechanism.p), float(mechanism.q)
        error = math.sqrt(q * (1 - q) * (mechanism.levels + 1) / reports) / (p - q)
        shares = {name: errors * error for name, errors in _ERRORS.items()}
        return cls(**shares, fakes=math.ceil(shares["half_text"] * reports * (p - q) / (1 - q)))


def reports_to_find(mechanism: PrefixTree, share: float) -> int:
    """With how many reports half of the strings with such a share surface, if they look like
    text."""
    return math.ceil(Reach.in_window(mechanism, 1.0).half_text ** 2 / share**2)


def discovery_forecast(
    metric: Metric, mechanism: PrefixTree, reports: float
) -> CodedMessage | None:
    """What so many reports cannot find; None if they find strings of 1% in half of the windows."""
    reach = Reach.in_window(mechanism, reports)
    if reach.half_text <= WORTHWHILE_SHARE:
        return None
    facts = {
        "blind": reach.half_text > LARGE_SHARE,
        "devices": metric.devices,
        "rate": taking_part(metric),
        "needed": math.ceil(reports_to_find(mechanism, WORTHWHILE_SHARE) / metric.rate),
    }
    if reach.half_text > NOTHING:
        return CodedMessage(
            "nothing_surfaces",
            "no string surfaces with {devices:,} devices at {rate}: one of 1% of "
            "the devices takes {needed:,} devices, or a larger epsilon or rate",
            **facts,
        )
    return CodedMessage(
        "few_surface",
        "with {devices:,} devices at {rate} hardly a string surfaces {when} that "
        "less than {share:.1%} of the devices have: one of 1% takes {needed:,} devices, or a "
        "larger epsilon or rate",
        share=reach.half_text,
        when=IN_A[metric.window],
        **facts,
    )


def discovery_remarks(metric: Metric) -> Iterator[tuple[CodedMessage, Literal["warning", "note"]]]:
    """What lint says of a discovery beside the forecast, each with its severity."""
    mechanism = metric.scheme.mechanism
    if not isinstance(mechanism, PrefixTree):
        return
    length = 2 * mechanism.levels
    if length > USUAL_LENGTH:
        told = CodedMessage(
            "long_strings",
            "max_length is {length}: {tables} tables share the reports, so that less is found, and "
            "of strings beyond {usual} bytes seldom the whole. Discover the first {usual} bytes, "
            "put what tells strings apart there, and follow whole strings in a string metric",
            length=length,
            tables=mechanism.levels + 1,
            usual=USUAL_LENGTH,
        )
        yield told, "warning"
    if metric.devices is None:
        return
    reach = Reach.in_window(mechanism, metric.devices * metric.rate)
    if reach.half_text > WORTHWHILE_SHARE:
        return
    told = CodedMessage(
        "surfacing",
        "with {devices:,} devices at {rate} strings above {sure:.2%} of the devices "
        "will surface {when}, and those of {half:.2%} in half of the cases; of random characters "
        "from {any:.2%} on. {fakes:,} fake devices can put a string of theirs on the list",
        devices=metric.devices,
        rate=taking_part(metric),
        sure=reach.sure_text,
        half=reach.half_text,
        any=reach.sure_any,
        when=IN_A[metric.window],
        fakes=reach.fakes,
    )
    yield told, "note"
