"""What is said when some windows of a metric look dishonest: which ones, and why."""

from __future__ import annotations

from dataclasses import dataclass

from deniable_estimator.analyses.anomalies import Figure
from deniable_estimator.asking.history import History
from deniable_estimator.kinds.formats import window
from deniable_estimator.messages import listed, message

_NAMED = 3


@dataclass(frozen=True, slots=True)
class Strange:
    """A window that raises an alarm, or all of them together."""

    when: str
    reasons: tuple[Figure, ...]
    label: str | None = None
    """None of all together."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """That the windows of a metric look dishonest."""

    strange: tuple[Strange, ...]
    checks: int
    """How many figures share the level."""
    level: float

    @property
    def labels(self) -> tuple[str, ...]:
        """The windows that are to be left out."""
        return tuple(each.label for each in self.strange if each.label is not None)

    @property
    def which(self) -> str:
        """The windows in a few words."""
        names = [window(each) for each in self.labels] or [self.strange[0].when]
        rest = len(names) - _NAMED
        if rest > 0:
            names[_NAMED:] = [message("{more} more", more=rest)]
        return listed(names)

    @property
    def text(self) -> str:
        """What takes the place of a headline."""
        return message("Anomalous: {which}. Do not rely on these numbers.", which=self.which)


def alarm_in(history: History) -> Alarm | None:
    """The alarm that these windows raise; None if they raise none."""
    strange = [
        Strange(window(each.label), each.verdict.alarms(history.alarm_level), each.label)
        for each in reversed(history.anomalous)
    ]
    if whole := history.whole.alarms(history.alarm_level):
        several = len(history.windows) > 1
        when = message("all windows together") if several else message("this window")
        strange.append(Strange(when, whole))
    return Alarm(tuple(strange), history.checks, history.alarm_level) if strange else None
