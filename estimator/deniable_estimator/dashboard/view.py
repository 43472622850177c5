"""What a reader of a metric's page has chosen, as its address carries it: a link is the view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar, cast, get_args

from deniable import Metric, windows
from deniable_estimator.dashboard.ranges import DayRange, RangeError, read_range
from deniable_estimator.messages import alternatives, message
from deniable_estimator.trend import GROUPS

__all__ = ["Length", "Order", "Shares", "View", "read_view"]

Order = Literal["share", "declared"]
Shares = Literal["unbiased", "normalized"]
Length = Literal["some", "all"]

_T = TypeVar("_T", bound=str)


@dataclass(frozen=True, slots=True)
class View:
    """The days, and how their answers are shown."""

    days: DayRange
    by: windows.Kind | None
    """How the trend is grouped; None leaves it to the page."""
    value: str | None
    """Whose trend is drawn; None for the leading value's."""
    order: Order
    shares: Shares
    lines: Length
    """How much of the table is listed."""

    def query(self, **changes: str | None) -> dict[str, str | None]:
        """The view as an address carries it, with some choices changed, or left away by None."""
        chosen = {
            "by": self.by,
            "value": self.value,
            "order": None if self.order == "share" else self.order,
            "shares": None if self.shares == "unbiased" else self.shares,
            "lines": None if self.lines == "some" else self.lines,
        }
        kept = {name: text for name, text in chosen.items() if text is not None}
        return {**self.days.query, **kept, **changes}


def read_view(arguments: Mapping[str, str], metric: Metric, now: float) -> View:
    """The view that an address asks for.

    Raises:
        RangeError: it asks for days that cannot be shown, or for a choice that there is not.
    """
    by = arguments.get("by") or None
    return View(
        days=read_range(arguments, now, metric.window),
        by=None if by is None else _one_of(by, "by", GROUPS[metric.window]),
        value=arguments.get("value") or None,
        order=cast(Order, _one_of(arguments.get("order", "share"), "order", get_args(Order))),
        shares=cast(
            Shares, _one_of(arguments.get("shares", "unbiased"), "shares", get_args(Shares))
        ),
        lines=cast(Length, _one_of(arguments.get("lines", "some"), "lines", get_args(Length))),
    )


def _one_of(text: str, name: str, choices: tuple[_T, ...]) -> _T:
    for choice in choices:
        if choice == text:
            return choice
    raise RangeError(
        message("“{name}” can be {choices} here.", name=name, choices=alternatives(choices))
    )
