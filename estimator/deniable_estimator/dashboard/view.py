"""The choices of a reader on a metric's page, which are all in its address."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from werkzeug.datastructures import MultiDict

from deniable import Metric
from deniable.protocol import windows
from deniable.protocol.types.number import Number
from deniable_estimator.asking.query import Days
from deniable_estimator.asking.trend import GROUPS
from deniable_estimator.dashboard.ranges import RangeError, one_of, read_range, searched
from deniable_estimator.document.plot.marks import MOST_LINES
from deniable_estimator.kinds.base import Comparison
from deniable_estimator.kinds.kind import Shown
from deniable_estimator.messages import message

Order = Literal["share", "declared"]
Shares = Literal["unbiased", "normalized"]
Length = Literal["some", "all"]
Sort = Literal["value", "-value", "share", "-share", "change", "-change"]
"""By which column the table is sorted; with a minus, the other way round."""
Compared = Literal["newest", "range"]
"""What is compared with the time before: the newest complete week, or the days of the page."""

_OF_SHARES = ("line", "order", "shares", "lines", "sort", "find", "change")


def names_of(metric: Metric) -> tuple[str, ...]:
    """The parameters of a view of this metric."""
    own: tuple[str, ...] = ("change", "given") if metric.type.of else _OF_SHARES
    if isinstance(metric.type, Number):
        own = ("change", "limit") if "distribution" in metric.type.ask else ("change",)
    return ("since", "from", "to", "without", "by", "value", *own)


TABLE_LINES = 100
"""How many rows fit into a page of 100 KB; a link lists all."""
ALL_LINES = 10_000
"""For longer lists, only the files contain every value."""


@dataclass(frozen=True, slots=True)
class View:
    """The days, and how their estimate is shown."""

    days: Days
    by: windows.Kind | None = None
    """How the trend is grouped; None leaves it to the page."""
    values: tuple[str, ...] = ()
    """Whose trends are drawn; none for the leading value's."""
    own_lines: tuple[str, ...] = ()
    """The same by their lines in the reader's own list, so that no address tells what is in it."""
    order: Order = "share"
    shares: Shares = "unbiased"
    lines: Length = "some"
    """How much of the table is listed."""
    own: Sequence[str] | None = None
    """The reader's own list of strings, if these are shown."""
    limit: str | None = None
    """As it was typed in: which share of the numbers lies below it?"""
    given: str | None = None
    """Of a pair: the metric whose values conditional shares are given; None for the first."""
    sort: Sort | None = None
    """None for the page's own order, with what cannot be told from noise folded away."""
    find: str = ""
    """The table lists the values that contain this text."""
    compared: Compared = "newest"
    compares: bool = False
    """Whether the address itself says what is compared."""

    def shown(self, comparison: Comparison | None = None, limits: Sequence[float] = ()) -> Shown:
        """How the answer is shown."""
        return Shown(
            rows=ALL_LINES if self.lines == "all" else TABLE_LINES,
            comparison=comparison,
            limits=limits,
            given=self.given,
            normalized=self.shares == "normalized",
            declared_order=self.order == "declared",
            sort=self.sort,
            find=self.find,
        )

    def query(self, **changes: str | Sequence[str] | None) -> dict[str, str | Sequence[str] | None]:
        """The view as an address carries it, with some choices changed, or left away by None."""
        plain = View(self.days)
        told: dict[str, str | Sequence[str] | None] = {
            "by": self.by,
            "value": list(self.values) if self.own is None else None,
            "line": list(self.own_lines),
            "order": self.order,
            "shares": self.shares,
            "lines": self.lines,
            "limit": self.limit,
            "given": self.given,
            "sort": self.sort,
            "find": self.find,
        }
        kept = {
            name: each for name, each in told.items() if each and each != getattr(plain, name, None)
        }
        # Days that are chosen are compared themselves, unless the address says something else.
        if self.compares or self.compared == "newest":
            kept["change"] = self.compared
        days = self.days.query
        if not changes.keys().isdisjoint(("since", "from", "to")):
            days = {name: text for name, text in days.items() if name == "without"}
        return {**days, **kept, **changes}

    def fields(self, **changes: str | Sequence[str] | None) -> Iterator[tuple[str, str]]:
        """The same as the hidden fields of a form."""
        for name, each in self.query(**changes).items():
            if isinstance(each, str):
                yield name, each
            else:
                yield from ((name, text) for text in each or ())

    def choosing(self, values: Sequence[str]) -> dict[str, str | Sequence[str] | None]:
        """The view with the trends of these values, as an address carries it."""
        if self.own is None:
            return self.query(value=list(values) or None)
        return self.query(line=[str(self.own.index(value) + 1) for value in values] or None)

    def of_list(self, own: Sequence[str] | None) -> View:
        """The view of the reader's own list, or of what is listed without one.

        Raises:
            RangeError: it asks for a line that is not in the list.
        """
        if not self.own_lines:
            return replace(self, own=own)
        if own is None:
            raise RangeError(
                message(
                    "“line” is a line of your list of strings, and none is kept here. Upload it "
                    "again, or remove “line”."
                ),
                "line",
            )
        numbers = [
            int(each) if each.isascii() and each.isdecimal() and len(each) < 10 else 0
            for each in self.own_lines
        ]
        if not all(1 <= each <= len(own) for each in numbers):
            raise RangeError(
                message(
                    "“line” can be a whole number from 1 to {most}, as your list has so many "
                    "strings.",
                    most=len(own),
                ),
                "line",
            )
        return replace(self, own=own, values=tuple(own[each - 1] for each in numbers))

    def check_values(self, values: Collection[str]) -> None:
        """Refuse to draw the trend of a value that is not estimated.

        Raises:
            RangeError: one is none of these values.
        """
        for value in self.values:
            if value not in values:
                raise RangeError(
                    message(
                        "“value” is {value}, which is not one of the values that are estimated "
                        "here.",
                        value=value,
                    ),
                    "value",
                )


def read_view(arguments: Mapping[str, str], metric: Metric, now: float) -> View:
    """The view of an address.

    Raises:
        RangeError: it asks for days that cannot be shown, or for a choice that there is not.
    """
    choices: dict[str, tuple[str, ...]] = {
        "by": GROUPS[metric.window],
        "order": get_args(Order),
        "shares": get_args(Shares),
        "lines": get_args(Length),
        "given": metric.type.of,
        "sort": get_args(Sort),
    }
    chosen: dict[str, Any] = {
        name: one_of(text, name, known)
        for name, known in choices.items()
        if (text := arguments.get(name))
    }
    ranged = any(arguments.get(name) for name in ("since", "from", "to"))
    compared = arguments.get("change") or ("range" if ranged else "newest")
    return View(
        days=read_range(arguments, now, metric.window, metric),
        **chosen,
        values=_several(arguments, "value"),
        own_lines=_several(arguments, "line"),
        limit=arguments.get("limit", "").strip() or None,
        find=searched(arguments, "find"),
        compares=bool(arguments.get("change")),
        compared=one_of(compared, "change", get_args(Compared)),
    )


def _several(arguments: Mapping[str, str], name: str) -> tuple[str, ...]:
    """What an address says under a name, each once.

    Raises:
        RangeError: it says more than can be drawn.
    """
    texts = arguments.getlist(name) if isinstance(arguments, MultiDict) else []
    found = tuple(dict.fromkeys(each for each in texts or [arguments.get(name, "")] if each))
    if len(found) > MOST_LINES:
        raise RangeError(
            message(
                "“{name}” is given {count} times. A trend shows {most} values at most: remove "
                "some.",
                name=name,
                count=len(found),
                most=MOST_LINES,
            ),
            name,
        )
    return found
