"""One annotation, as data."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fnmatch import fnmatchcase
from typing import Any, Protocol

from deniable_estimator.isolation import isolated


class Days(Protocol):
    """A period of a trend: its label and its days, both included."""

    @property
    def label(self) -> str: ...
    @property
    def first(self) -> date: ...
    @property
    def last(self) -> date: ...


@dataclass(frozen=True, slots=True)
class Annotation:
    """What happened on a day."""

    number: int
    """Its place in the file, from 1."""
    day: date
    """The day (UTC)."""
    time: datetime | None
    """The time (UTC), if the file gives one."""
    text: str
    link: str | None
    metrics: tuple[str, ...]
    """Names or patterns as a shell has them; none means every metric."""

    @property
    def when(self) -> str:
        """Day, or day and time, for people."""
        return f"{self.time:%Y-%m-%d %H:%M} UTC" if self.time else self.day.isoformat()

    @property
    def date(self) -> str:
        """The same for programs (RFC 3339)."""
        return f"{self.time:%Y-%m-%dT%H:%M:%SZ}" if self.time else self.day.isoformat()

    @property
    def hours(self) -> float:
        """How many hours of the day had passed; of a day without a time, half of it."""
        return 12.0 if self.time is None else self.time.hour + self.time.minute / 60

    def concerns(self, metric: str) -> bool:
        """Whether it belongs beside this metric."""
        return not self.metrics or any(fnmatchcase(metric, each) for each in self.metrics)

    def told(self) -> str:
        """One line for people, safe in a terminal."""
        return f"{self.when}: {isolated(self.text)}"

    def to_dict(self) -> dict[str, Any]:
        """The annotation as JSON."""
        return {
            "number": self.number,
            "date": self.date,
            "text": self.text,
            "link": self.link,
            "metrics": list(self.metrics),
        }


def between(
    annotations: Iterable[Annotation],
    first: date | None,
    last: date | None,
    metric: str | None = None,
) -> tuple[Annotation, ...]:
    """Those from the first to the last day, both included, that concern a metric; None is no
    limit."""
    return tuple(
        each
        for each in annotations
        if (first is None or first <= each.day)
        and (last is None or each.day <= last)
        and (metric is None or each.concerns(metric))
    )


def by_period(periods: Sequence[Days], annotations: Iterable[Annotation]) -> dict[str, str]:
    """Label of a period -> what happened in it, in one text."""
    found: dict[str, list[str]] = {}
    starts = [each.first for each in periods]
    for each in annotations:
        place = bisect_right(starts, each.day) - 1
        if place >= 0 and each.day <= periods[place].last:
            link = f" ({each.link})" if each.link else ""
            found.setdefault(periods[place].label, []).append(f"{each.when}: {each.text}{link}")
    return {label: ", ".join(texts) for label, texts in found.items()}
