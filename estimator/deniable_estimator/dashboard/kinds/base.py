"""What a page shows of an answer, where that depends on the answer's kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

from deniable import Metric
from deniable_estimator.answers.base import Answer, Comparison
from deniable_estimator.dashboard.view import View
from deniable_estimator.dashboard.words import period
from deniable_estimator.document.plot.marks import Chart
from deniable_estimator.messages import message

AnyAnswer = TypeVar("AnyAnswer", bound=Answer)


class Kind(ABC, Generic[AnyAnswer]):
    """The pages' view of one kind of answer.

    Attributes:
        template: the partial template that draws it: with `part` "picture" or "numbers" its part
            of a metric's page, of what `parts` gives; with "card" what `card` gives; with "embed"
            what `picture` gives, for a frame.
    """

    template: ClassVar[str]

    @abstractmethod
    def headline(self, answer: AnyAnswer) -> str:
        """The answer in a sentence, over its chart."""

    def unsound(self, answer: AnyAnswer) -> str | None:
        """Why its numbers are not to be relied on, in a sentence; None if they are."""
        return None

    def attention(self, answer: AnyAnswer) -> Sequence[str]:
        """What needs somebody's attention, on the card and on the metric's page."""
        return ()

    def new_leader(self, before: AnyAnswer, newest: AnyAnswer) -> str | None:
        """That another series leads now, in a sentence, if both lead by more than noise."""
        return None

    @abstractmethod
    def parts(
        self, answer: AnyAnswer, view: View, comparison: Comparison | None = None
    ) -> dict[str, Any]:
        """What its template draws on a metric's page, with the changes of a comparison in its
        table. `mistake`, a `RangeError`, says what is wrong with a number that was asked for."""

    @abstractmethod
    def picture(self, answer: AnyAnswer, view: View, limit: int) -> Any:
        """The chart of a picture that leaves the page; `limit` is how many bars it may have."""

    def charts(self, picture: Any) -> Sequence[Chart]:
        """The charts of what `picture` gives, for a file."""
        return (picture,)

    def caption(self, answer: AnyAnswer, view: View) -> str:
        """What a file with its picture is about, in a line."""
        return message(
            "{metric}, {n} reports, {period}; estimates with {level}% intervals",
            metric=answer.metric,
            n=f"{answer.n:,}",
            period=period(answer.windows),
            level=f"{answer.level * 100:g}",
        )

    def footnote(self, answer: AnyAnswer) -> str:
        """What has to be known of the numbers of such a file."""
        return message("Every number is an estimate: each device added its own noise.")

    def said(self, picture: Any) -> str:
        """A sentence over the picture in a file, if there is one."""
        return ""

    @abstractmethod
    def card(self, answer: AnyAnswer) -> Any:
        """The chart of a card of the overview."""

    @abstractmethod
    def over_time(self, answer: AnyAnswer, chosen: Sequence[str]) -> list[str]:
        """The series that can be followed over time, those that are `chosen` among them: the first
        is shown where none is chosen."""

    def asked(self, metric: Metric, shown: Sequence[str]) -> Sequence[str] | None:
        """The candidates of which a trend must be estimated for that; None for those declared."""
        return None
