"""The choices of a reader on a metric's page, which are all in its address."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from deniable import Metric
from deniable.protocol import windows
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


_OF_SHARES = (
    Input("line", each_once, default=(), many=MOST_LINES),
    choice("order", ("share", "declared"), "share"),
    choice("shares", ("unbiased", "normalized"), "unbiased"),
    choice("lines", ("some", "all"), "some"),
    # By which column the table is sorted; with a minus, the other way round.
    choice("sort", ("value", "-value", "share", "-share", "change", "-change")),
    Input("find", str.strip, default="", high=LONGEST_SEARCH),
)
# What is compared with the time before: the newest complete week, or the days of the page.
_CHANGE = choice("change", ("newest", "range"))
_LIMIT = Input("limit", lambda text: text.strip() or None, default=None)


def period_input(name: str, metric: Metric) -> Input:
    """The period of a trend: one that the windows of the metric add up to."""
    return choice(name, GROUPS[metric.window])


def inputs_of(metric: Metric) -> tuple[Input, ...]:
    """What the view of this metric can be asked."""
    kind = metric.type
    own: tuple[Input, ...] = _OF_SHARES
    if kind.of:
        own = (choice("given", kind.of),)
    elif isinstance(kind, Number):
        own = (_LIMIT,) if "distribution" in kind.ask else ()
    value = Input("value", each_once, default=(), many=MOST_LINES)
    return (*DAYS, period_input("by", metric), value, *own, _CHANGE)


TABLE_LINES = 100
"""How many rows fit into a page of 100 KB; a link lists all."""
ALL_LINES = 10_000
"""For longer lists, only the files contain every value."""


@dataclass(frozen=True, slots=True)
class View:
    """The days, and how their estimate is shown, by the names of an address."""

    days: Days
    by: windows.Kind | None = None
    """How the trend is grouped; None leaves it to the page."""
    value: tuple[str, ...] = ()
    """Whose trends are drawn; none for the leading value's."""
    line: tuple[str, ...] = ()
    """The same by their lines in the reader's own list, so that no address tells what is in it."""
    order: str = "share"
    shares: str = "unbiased"
    lines: str = "some"
    """How much of the table is listed."""
    limit: str | None = None
    """As it was typed in: which share of the numbers lies below it?"""
    given: str | None = None
    """Of a pair: the metric whose values conditional shares are given; None for the first."""
    sort: str | None = None
    """None for the page's own order, with what cannot be told from noise folded away."""
    find: str = ""
    """The table lists the values that contain this text."""
    change: str | None = None
    """What is compared, if the address itself says it."""
    ranged: bool = False
    """Whether the address names the days."""
    own: Sequence[str] | None = None
    """The reader's own list of strings, if these are shown."""

    @property
    def compared(self) -> str:
        """What is compared: days that are chosen themselves, unless the address says something
        else."""
        return self.change or ("range" if self.ranged else "newest")

    @property
    def values(self) -> tuple[str, ...]:
        """The values whose trends are drawn."""
        if self.own is None or not self.line:
            return self.value
        return tuple(self.own[int(each) - 1] for each in self.line)

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
        usual, told = View(self.days), {name: getattr(self, name) for name in _NAMES}
        kept = {name: each for name, each in told.items() if each != getattr(usual, name)}
        if self.own is not None:
            kept.pop("value", None)
        if not self.ranged:
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
        if self.line and own is None:
            raise EstimateError(
                message(
                    "“line” is a line of your list of strings, and none is kept here. Upload it "
                    "again, or remove “line”."
                ),
                "line",
            )
        most = len(own or ())
        if not all(_NUMBER.fullmatch(each) and 1 <= int(each) <= most for each in self.line):
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


_NAMES = tuple(each.name for each in fields(View)[1:-2])
"""All that an address says beside the days, in this order."""


def view_of(asked: Asked, days: Days) -> View:
    """The view of these days that is asked for by the inputs of a view."""
    chosen = {name: asked[name] for name in _NAMES if name in asked}
    return View(days, **chosen, ranged=is_ranged(asked))


def read_view(arguments: Mapping[str, str], metric: Metric, source: DataSource) -> View:
    """The view of an address.

    Raises:
        EstimateError: it asks for days that cannot be shown, or for what there is not.
    """
    asked = read_inputs(inputs_of(metric), arguments)
    return view_of(asked, source.read_days(metric, asked))
