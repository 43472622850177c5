"""A board as data: charts and paragraphs in their order."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Literal, TypeAlias

from deniable.protocol import windows

ChartView: TypeAlias = Literal["headline", "shares", "trend", "table"]
BoardSize: TypeAlias = Literal["small", "half", "full"]

VIEWS: dict[ChartView, str] = {
    "headline": "the answer in a sentence",
    "shares": "the bars of shares, the histogram of a distribution, or a mean on its scale",
    "trend": "the values over time",
    "table": "the values with their intervals",
}
SIZES: dict[BoardSize, str] = {
    "small": "a third of the width",
    "half": "half of the width",
    "full": "the whole width",
}


@dataclass(frozen=True, slots=True)
class BoardChart:
    """One chart of a metric."""

    metric: str
    view: ChartView = "shares"
    title: str | None = None
    """The metric's description, if not given."""
    days: int | None = None
    """So many days up to the last complete window; None leaves it to the pages."""
    first: date | None = None
    last: date | None = None
    since: str | None = None
    """An annotation or a day, in place of days: the days after it, and what changed."""
    by: windows.Kind | None = None
    values: tuple[str, ...] = ()
    """The values that are shown; none leaves it to the answer."""
    size: BoardSize = "half"


@dataclass(frozen=True, slots=True)
class BoardText:
    """Paragraphs between the charts, under a heading if it has a title."""

    paragraphs: tuple[str, ...]
    title: str | None = None
    size: BoardSize = "full"


BoardItem: TypeAlias = BoardChart | BoardText


@dataclass(frozen=True, slots=True)
class Board:
    """One board."""

    name: str
    """That of its file, without .toml."""
    title: str
    description: str
    items: tuple[BoardItem, ...]

    @property
    def charts(self) -> tuple[BoardChart, ...]:
        """The items that are charts."""
        return tuple(each for each in self.items if isinstance(each, BoardChart))
