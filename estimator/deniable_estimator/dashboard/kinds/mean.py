"""The mean of a number on the pages: where it lies on the scale of its range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deniable_estimator.answers.base import Comparison
from deniable_estimator.answers.mean import Mean
from deniable_estimator.dashboard.kinds.base import Kind
from deniable_estimator.dashboard.kinds.number_charts import scale_chart
from deniable_estimator.dashboard.kinds.numbers import NumberLine, number_lines, worst_case
from deniable_estimator.dashboard.view import View
from deniable_estimator.document.plot.marks import Dots
from deniable_estimator.messages import message, sentence

_MEAN = sentence("The mean is {estimate}; the {level:.0%} interval is {between}.")
_GEOMETRIC = sentence("The geometric mean is {estimate}; the {level:.0%} interval is {between}.")


class MeanKind(Kind[Mean]):
    """The average of a number."""

    template = "kinds/mean.html"

    def headline(self, answer: Mean) -> str:
        text = _line(answer).text
        template = _GEOMETRIC if answer.found.log else _MEAN
        return message(template, estimate=text.estimate, level=answer.level, between=text.between)

    def parts(
        self, answer: Mean, view: View, comparison: Comparison | None = None
    ) -> dict[str, Any]:
        return {
            "chart": self.picture(answer, view, 0),
            "lines": number_lines(answer, comparison),
            "worst": worst_case(answer.unit, answer.budget),
            "log": answer.found.log,
        }

    def picture(self, answer: Mean, view: View, limit: int) -> Dots:
        return scale_chart(answer, name=answer.metric)

    def card(self, answer: Mean) -> Dots:
        return scale_chart(answer, name=answer.metric)

    def over_time(self, answer: Mean, chosen: Sequence[str]) -> list[str]:
        return [answer.leading]


def _line(answer: Mean) -> NumberLine:
    return number_lines(answer)[0]
