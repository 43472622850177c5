"""What makes a kind of answer: how it is made of tallies, and its words and charts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from deniable import Metric
from deniable_estimator.analyses.base import Analysis
from deniable_estimator.document.document import Document, Frame, Note, Picture
from deniable_estimator.document.plot.marks import Chart
from deniable_estimator.kinds import formats
from deniable_estimator.kinds.base import Answer, Comparison
from deniable_estimator.kinds.basis import Part
from deniable_estimator.statistics.significance import Adjustment

OFFERED = 6
"""How many series are offered to be seen over time."""

AnyAnswer = TypeVar("AnyAnswer", bound=Answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """How an answer is shown, as far as a reader chooses it."""

    drawn: bool = True
    """Whether there are charts; if not, tables say what they would show."""
    rows: int
    """The most rows of a table."""
    comparison: Comparison | None = None
    """Whose changes stand in the table."""
    limits: Sequence[float] = ()
    """Of a number: below which the share is told."""
    given: str | None = None
    """Of a pair: the metric whose values conditional shares are given; None for the first."""
    normalized: bool = False
    declared_order: bool = False
    sort: str | None = None
    """The column by which shares are sorted; with a minus, the other way round."""
    find: str = ""
    """Of shares: the text that values must contain."""
    truth: Any = None
    """What is known of a simulated crowd: of shares and of a pair an array of them, of a number a
    `Crowd`, and of a retention its series by name."""


class Card(NamedTuple):
    """What stands of an answer on a card of the overview, below its leading number."""

    chart: Chart | None = None
    said: str = ""
    """A sentence in place of number and chart."""
    name: str = ""
    """What the leading number is called there, if not as elsewhere."""
    blank: bool = False
    """Whether there is nothing to show yet."""


class Kind(ABC, Generic[AnyAnswer]):
    """One kind of answer. The class says what it is made of:

    Attributes:
        answer: its class.
        types: the types of metrics that it answers, whatever their mechanism.
        analysis: what the analyses of the mechanisms that it answers have in common; None if a
            type decides.
        estimate: makes the answer of one tally, unless `make` makes those of many together.
        combine: makes one answer of several alike with reports, each of another scheme.
        series_of: the series that the answers of a metric of a type have; its values if not said.
    """

    answer: ClassVar[type[Answer]]
    types: ClassVar[frozenset[str]] = frozenset()
    analysis: ClassVar[type[Analysis[Any]] | None] = None
    estimate: Callable[[Part, float, Adjustment], AnyAnswer]
    combine: Callable[[Sequence[Any]], AnyAnswer]
    series_of: Callable[[Any], tuple[str, ...]] = attrgetter("values")

    def answers(self, metric_type: str, analysis: Analysis[Any]) -> bool:
        """Whether it answers metrics of this type, whose mechanism has this analysis."""
        alike = self.analysis is not None and isinstance(analysis, self.analysis)
        return metric_type in self.types or alike

    def make(self, parts: Sequence[Part], level: float, adjust: Adjustment) -> Sequence[AnyAnswer]:
        """The answer of each of these tallies, all of one scheme.

        Raises:
            EstimateError: a tally cannot be estimated.
        """
        return [self.estimate(part, level, adjust) for part in parts]

    @abstractmethod
    def headline(self, answer: AnyAnswer) -> str:
        """The answer in a sentence, over its chart."""

    def unsound(self, answer: AnyAnswer) -> str | None:
        """Why its numbers are not to be relied on, in a sentence; None if they are."""
        return None

    def unknown(self, answer: AnyAnswer) -> bool:
        """Whether none of the numbers that it is about can be told from noise."""
        return False

    def attention(self, answer: AnyAnswer) -> Sequence[str]:
        """What needs somebody's attention, on the card and on the metric's page."""
        quiet = answer.n and not self.unsound(answer) and self.unknown(answer)
        return (formats.NOTHING_STANDS_OUT,) if quiet else ()

    def new_leader(self, before: AnyAnswer, newest: AnyAnswer) -> str | None:
        """That another series leads now, in a sentence, if both lead by more than noise."""
        return None

    def document(self, answer: AnyAnswer, shown: Shown) -> Document:
        """The answer as it is told; without reports nothing but that."""
        if not answer.n:
            notes = tuple(formats.warned(answer.warnings))
            return Document(answer.kind, formats.heading(answer), Note(""), notes=notes)
        verdict, wrong = self.headline(answer), self.unsound(answer)
        notes = (*formats.warned(answer.notes), *formats.alarms(answer))
        if wrong and wrong != verdict:
            notes = (Note(wrong, "alarm"), *notes)
        return Document(
            answer.kind,
            formats.heading(answer),
            Note(verdict, "alarm" if wrong == verdict else "strong"),
            frames=self.frames(answer, shown),
            notes=notes,
            reading=(*self.reading(answer), *map(formats.noted, answer.footnotes)),
        )

    @abstractmethod
    def frames(self, answer: AnyAnswer, shown: Shown) -> tuple[Frame, ...]:
        """Its tables and charts, the table of all numbers first."""

    @abstractmethod
    def reading(self, answer: AnyAnswer) -> tuple[str, ...]:
        """How its numbers are to be read, and what fakes could do to them at most."""

    @abstractmethod
    def pictures(self, answer: AnyAnswer, shown: Shown, limit: int) -> tuple[Picture, ...]:
        """The charts of a frame or a board; `limit` is how many bars one may have."""

    def charts(self, answer: AnyAnswer, shown: Shown, limit: int) -> Sequence[Chart]:
        """Those of a file; the first says what the file shows."""
        return [each.chart for each in self.pictures(answer, shown, limit)]

    def caption(self, answer: AnyAnswer, shown: Shown) -> str:
        """What a file with its picture is about, in a line."""
        return formats.caption(answer)

    def footnote(self, answer: AnyAnswer) -> str:
        """What has to be known of the numbers of such a file."""
        return formats.ESTIMATES

    def said(self, answer: AnyAnswer, shown: Shown) -> str:
        """A sentence over the picture in a file, if there is one."""
        return ""

    def card(self, answer: AnyAnswer) -> Card:
        """What stands on a card of the overview."""
        return Card()

    def over_time(self, answer: AnyAnswer, chosen: Sequence[str]) -> list[str]:
        """The series that are offered to be seen over time, those that are `chosen` among them: the
        first, which is the leading one, is shown where none is chosen."""
        names, first = answer.series.names, answer.leading
        offered = [first, *(name for name in names if name != first)][:OFFERED]
        return [*offered, *(each for each in chosen if each in names and each not in offered)]

    def asked(self, metric: Metric, shown: Sequence[str]) -> Sequence[str] | None:
        """The candidates of which a trend must be estimated for that; None for those declared."""
        return None
