"""The choices of a reader on a metric's page, which are all in its address."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar, cast, get_args

from deniable import Metric, windows
from deniable_estimator.dashboard.ranges import DayRange, RangeError, read_range
from deniable_estimator.messages import alternatives, message
from deniable_estimator.questions.trend import GROUPS

__all__ = ["NAMES", "OF_NUMBERS", "OF_PAIRS", "Length", "Order", "Shares", "View", "read_view"]

Order = Literal["share", "declared"]
Shares = Literal["unbiased", "normalized"]
Length = Literal["some", "all"]

NAMES = ("from", "to", "without", "by", "value", "line", "order", "shares", "lines")
"""The parameters of a view."""

OF_NUMBERS = ("from", "to", "without", "by", "value")
"""Those of a view of numbers; of a distribution also `limit`."""

OF_PAIRS = (*OF_NUMBERS, "given")
"""Those of a view of a pair."""

_T = TypeVar("_T", bound=str)


@dataclass(frozen=True, slots=True)
class View:
    """The days, and how their estimate is shown."""

    days: DayRange
    by: windows.Kind | None
    """How the trend is grouped; None leaves it to the page."""
    value: str | None
    """Whose trend is drawn; None for the leading value's."""
    line: str | None
    """The same by its line in the reader's own list, so that no address tells what is in it."""
    order: Order
    shares: Shares
    lines: Length
    """How much of the table is listed."""
    own: Sequence[str] | None = None
    """The reader's own list of strings, if these are shown."""
    limit: str | None = None
    """As it was typed in: which share of the numbers lies below it?"""
    given: str | None = None
    """Of a pair: the metric whose values conditional shares are given; None for the first."""

    def query(self, **changes: str | None) -> dict[str, str | None]:
        """The view as an address carries it, with some choices changed, or left away by None."""
        chosen = {
            "by": self.by,
            "value": self.value if self.own is None else None,
            "line": self.line,
            "order": None if self.order == "share" else self.order,
            "shares": None if self.shares == "unbiased" else self.shares,
            "lines": None if self.lines == "some" else self.lines,
            "limit": self.limit,
            "given": self.given,
        }
        kept = {name: text for name, text in chosen.items() if text is not None}
        return {**self.days.query, **kept, **changes}

    def choosing(self, value: str) -> dict[str, str | None]:
        """The view with the trend of a value, as an address carries it."""
        if self.own is None:
            return self.query(value=value)
        return self.query(line=str(self.own.index(value) + 1))

    def of_list(self, own: Sequence[str] | None) -> View:
        """The view of the reader's own list, or of what is listed without one.

        Raises:
            RangeError: it asks for a line that is not in the list.
        """
        if self.line is None:
            return replace(self, own=own)
        if own is None:
            raise RangeError(
                message(
                    "“line” is a line of your list of strings, and none is kept here. Upload it "
                    "again, or remove “line”."
                ),
                "line",
            )
        places = {str(place): value for place, value in enumerate(own, 1)}
        if self.line not in places:
            raise RangeError(
                message(
                    "“line” can be a whole number from 1 to {most}, as your list has so many "
                    "strings.",
                    most=len(own),
                ),
                "line",
            )
        return replace(self, own=own, value=places[self.line])

    def check_value(self, values: Collection[str]) -> None:
        """Refuse to draw the trend of a value that is not estimated.

        Raises:
            RangeError: it is none of these values.
        """
        if self.value is not None and self.value not in values:
            raise RangeError(
                message(
                    "“value” is {value}, which is not one of the values that are estimated here.",
                    value=self.value,
                ),
                "value",
            )


def read_view(arguments: Mapping[str, str], metric: Metric, now: float) -> View:
    """The view of an address.

    Raises:
        RangeError: it asks for days that cannot be shown, or for a choice that there is not.
    """
    by = arguments.get("by") or None
    given = arguments.get("given")
    return View(
        days=read_range(arguments, now, metric.window),
        by=None if by is None else _one_of(by, "by", GROUPS[metric.window]),
        value=arguments.get("value") or None,
        line=arguments.get("line") or None,
        order=cast(Order, _one_of(arguments.get("order", "share"), "order", get_args(Order))),
        shares=cast(
            Shares, _one_of(arguments.get("shares", "unbiased"), "shares", get_args(Shares))
        ),
        lines=cast(Length, _one_of(arguments.get("lines", "some"), "lines", get_args(Length))),
        limit=arguments.get("limit", "").strip() or None,
        given=_one_of(given, "given", metric.type.of) if given else None,
    )


def _one_of(text: str, name: str, choices: tuple[_T, ...]) -> _T:
    for choice in choices:
        if choice == text:
            return choice
    raise RangeError(
        message("“{name}” can be {choices} here.", name=name, choices=alternatives(choices)), name
    )
