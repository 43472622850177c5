"""The choices of a reader on a metric's page, which are all in its address."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from deniable import Metric
from deniable.protocol.types.number import Number
from deniable_estimator.asking.query import Days
from deniable_estimator.asking.trend import GROUPS
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.ranges import is_ranged
from deniable_estimator.document.plot.marks import MOST_LINES
from deniable_estimator.errors import EstimateError
from deniable_estimator.inputs import (
    DAYS,
    LONGEST_SEARCH,
    Asked,
    Input,
    choice,
    each_once,
    read_inputs,
)
from deniable_estimator.kinds.base import Comparison
from deniable_estimator.kinds.kind import Shown
from deniable_estimator.messages import message

_NUMBER = re.compile("[0-9]{1,9}")


# Whose trends are drawn; none for the leading value's.
_VALUE = Input("value", each_once, default=(), many=MOST_LINES)
_OF_SHARES = (
    # The same by their lines in the reader's own list, so that no address tells what is in it.
    Input("line", each_once, default=(), many=MOST_LINES),
    choice("order", ("share", "declared"), "share"),
    choice("shares", ("unbiased", "normalized"), "unbiased"),
    # How much of the table is listed.
    choice("lines", ("some", "all"), "some"),
    # By which column the table is sorted; with a minus, the other way round. None for the page's
    # own order, with what cannot be told from noise folded away.
    choice("sort", ("value", "-value", "share", "-share", "change", "-change")),
    # The table lists the values that contain this text.
    Input("find", str.strip, default="", high=LONGEST_SEARCH),
)
# Which share of the numbers lies below it? It is kept as it was typed in.
_LIMIT = Input("limit", lambda text: text.strip() or None, default=None)
# What is compared with the time before: the newest complete week, or the days of the page.
_CHANGE = choice("change", ("newest", "range"))
_USUAL = {
    "by": None,
    **{each.name: each.default for each in (_VALUE, *_OF_SHARES, _LIMIT)},
    **dict.fromkeys(("given", "change")),
}
"""What is shown where an address does not say it."""


def period_input(name: str, metric: Metric) -> Input:
    """The period of a trend: one that the windows of the metric add up to."""
    return choice(name, GROUPS[metric.window])


def inputs_of(metric: Metric) -> tuple[Input, ...]:
    """What the view of this metric can be asked."""
    kind = metric.type
    own: tuple[Input, ...] = _OF_SHARES
    if kind.of:
        # The metric whose values conditional shares are given; None for the first.
        own = (choice("given", kind.of),)
    elif isinstance(kind, Number):
        own = (_LIMIT,) if "distribution" in kind.ask else ()
    return (*DAYS, period_input("by", metric), _VALUE, *own, _CHANGE)


TABLE_LINES = 100
"""How many rows fit into a page of 100 KB; a link lists all."""
ALL_LINES = 10_000
"""For longer lists, only the files contain every value."""


@dataclass(frozen=True, slots=True)
class View:
    """The days, and how their estimate is shown."""

    days: Days
    asked: Asked
    """All that an address can say, by its names, as it says it or as usual. How a trend is grouped
    is left to the page if it is None."""
    own: Sequence[str] | None = None
    """The reader's own list of strings, if these are shown."""

    @property
    def compared(self) -> str:
        """What is compared: days that are chosen themselves, unless the address says something
        else."""
        return self.asked["change"] or ("range" if is_ranged(self.asked) else "newest")

    @property
    def values(self) -> tuple[str, ...]:
        """The values whose trends are drawn."""
        if self.own is None or not self.asked["line"]:
            values: tuple[str, ...] = self.asked["value"]
            return values
        return tuple(self.own[int(each) - 1] for each in self.asked["line"])

    def shown(self, comparison: Comparison | None = None, limits: Sequence[float] = ()) -> Shown:
        """How the answer is shown."""
        asked = self.asked
        return Shown(
            rows=ALL_LINES if asked["lines"] == "all" else TABLE_LINES,
            comparison=comparison,
            limits=limits,
            given=asked["given"],
            normalized=asked["shares"] == "normalized",
            declared_order=asked["order"] == "declared",
            sort=asked["sort"],
            find=asked["find"],
        )

    def query(self, **changes: str | Sequence[str] | None) -> dict[str, str | Sequence[str] | None]:
        """The view as an address carries it, with some choices changed, or left away by None."""
        kept = {
            name: self.asked[name] for name, usual in _USUAL.items() if self.asked[name] != usual
        }
        if self.own is not None:
            kept.pop("value", None)
        if not is_ranged(self.asked):
            # The address names the days from now on.
            kept["change"] = self.compared
        days = self.days.query
        if is_ranged(changes):
            days = {name: text for name, text in days.items() if name == "without"}
        return {**days, **kept, **changes}

    def fields(self, **changes: str | Sequence[str] | None) -> Iterator[tuple[str, str]]:
        """The same as the hidden fields of a form."""
        for name, each in self.query(**changes).items():
            texts = [each] if isinstance(each, str) else each or ()
            yield from ((name, text) for text in texts)

    def choosing(self, values: Sequence[str]) -> dict[str, str | Sequence[str] | None]:
        """The view with the trends of these values, as an address carries it."""
        if self.own is None:
            return self.query(value=list(values) or None)
        return self.query(line=[str(self.own.index(value) + 1) for value in values] or None)

    def of_list(self, own: Sequence[str] | None) -> View:
        """The view of the reader's own list, or of what is listed without one.

        Raises:
            EstimateError: it asks for a line that is not in the list.
        """
        lines = self.asked["line"]
        if lines and own is None:
            raise EstimateError(
                message(
                    "“line” is a line of your list of strings, and none is kept here. Upload it "
                    "again, or remove “line”."
                ),
                "line",
            )
        most = len(own or ())
        if not all(_NUMBER.fullmatch(each) and 1 <= int(each) <= most for each in lines):
            raise EstimateError(
                message(
                    "“line” can be a whole number from 1 to {most}, as your list has so many "
                    "strings.",
                    most=most,
                ),
                "line",
            )
        return replace(self, own=own)

    def check_values(self, values: Collection[str]) -> None:
        """Refuse to draw the trend of a value that is not estimated.

        Raises:
            EstimateError: one is none of these values.
        """
        for value in self.values:
            if value not in values:
                raise EstimateError(
                    message(
                        "“value” is {value}, which is not one of the values that are estimated "
                        "here.",
                        value=value,
                    ),
                    "value",
                )


def view_of(asked: Asked, days: Days) -> View:
    """The view of these days that is asked for by the inputs of a view."""
    return View(days, {**_USUAL, **asked})


def read_view(arguments: Mapping[str, str], metric: Metric, source: DataSource) -> View:
    """The view of an address.

    Raises:
        EstimateError: it asks for days that cannot be shown, or for what there is not.
    """
    asked = read_inputs(inputs_of(metric), arguments)
    return view_of(asked, source.read_days(metric, asked))
