"""Who comes back: whether a device is new, stays or returns, and how long ago it was new.

The app records no value. It says that it was used (`deniable.Client.active`), and the device looks
back: to its first window, and to the one before. The first use in a window is reported at once,
because a device that does not come back would report nothing later.

A device looks at every window in which the app was used, whether it takes part or not. So neither
`sample_rate` nor `one_in` changes what is reported, only how many devices report it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Self

from deniable.protocol import windows
from deniable.protocol.checks import Check, some_of, whole
from deniable.protocol.coded_message import CodedMessage
from deniable.protocol.frozen import frozen
from deniable.protocol.mechanisms import Mechanism
from deniable.protocol.mechanisms.memoized_retention import (
    ASKS,
    LIFECYCLE,
    MAX_AGES,
    OLDER,
    Asked,
    MemoizedRetention,
    cells_of,
)
from deniable.protocol.types.base import MetricType, Table, Value

DEFAULT_AGES = 12

_MEMOS: Mapping[Asked, int] = {"lifecycle": len(LIFECYCLE), "cohorts": 2}
"""How many memos a device may have: its cohort, and later "older"."""


@frozen
class Retention(MetricType):
    """A question about earlier windows of the same device.

    Attributes:
        window: the kind of the windows.
        ages: how many windows back cohorts are told apart; 0 if they are not asked for.
        asks: "lifecycle", "cohorts", or both in this order.
    """

    name = "retention"
    keys: ClassVar[Mapping[str, Check]] = {"ages": whole(1, MAX_AGES), "asks": some_of(ASKS)}
    foreign: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("values", "values_file", "other"), "it has no values to list"),
        "aggregate": "the first use in a window is the one that counts",
        "answer": "the first use in a window is reported at once: a device that does not come back "
        "would report nothing later",
        "segments": "a device that changes its segment would look as if it had gone",
    }
    presets: ClassVar[Mapping[str, Any]] = {
        "window": "week",
        "answer": "at_once",
        "longitudinal": "memoize",
    }
    misfits: ClassVar[Mapping[str, str]] = {
        "fresh": "a device answers with what hardly ever changes: without memos, the average of "
        "its reports would tell. Remove it"
    }
    aggregates = ("first",)
    looks_back = True
    suitable = MemoizedRetention
    with_memos = (MemoizedRetention.name,)
    explanation = CodedMessage(
        "looks_back",
        "subset selection of a memo tells what the device remembers of earlier windows",
    )

    window: windows.Kind
    ages: int
    asks: tuple[Asked, ...]

    @cached_property
    def values(self) -> tuple[str, ...]:  # type: ignore[override]
        """The texts of all cells, those of the lifecycle before those of the cohorts."""
        return tuple(text for each in self.asks for text in cells_of(each, self.ages))

    @property
    def domain(self) -> str:
        return " + ".join(str(len(cells_of(each, self.ages))) for each in self.asks)

    @classmethod
    def read(cls, table: Table) -> Self | None:
        settings = table.settings
        if "window" not in settings:  # it is wrong
            return None
        named = settings.get("asks", ASKS)
        asks = tuple(each for each in ASKS if each in named)
        if "ages" in settings and "cohorts" not in asks:
            table.report("ages", 'is of cohorts, which are not asked for: add "cohorts" to asks')
            return None
        ages = settings.get("ages", DEFAULT_AGES) if "cohorts" in asks else 0
        return cls(settings["window"], ages, asks)

    @classmethod
    def told_by(cls, mechanism: Mechanism[Any]) -> Mapping[str, Any]:
        assert isinstance(mechanism, MemoizedRetention)
        ages = {"ages": mechanism.ages} if "cohorts" in mechanism.asks else {}
        return {"window": mechanism.window, "asks": list(mechanism.asks), **ages}

    def normalize(self, value: Value) -> str:
        raise ValueError("takes no values")

    def look_back(self, window: str, first: str, before: bool) -> str | None:
        number = windows.number(window)
        # The metric may have had windows of another kind when the device was new.
        began = windows.number(windows.window_of(self.window, windows.first_day(first)))
        return None if number < began else f"{number} {began} {before:d}"

    def item(self, text: str, mechanism: Mechanism[Any]) -> int:
        assert isinstance(mechanism, MemoizedRetention)
        try:
            number, first, before = map(int, text.split())
        except ValueError:  # recorded while the metric was of another type
            raise KeyError(text) from None
        return mechanism.item(number, first, bool(before))

    def _design(
        self, mechanism: str, metric: str, epsilon: float, memo_epsilon: float | None
    ) -> Mechanism[Any]:
        assert memo_epsilon is not None  # there is none without memory
        return MemoizedRetention.design(self.window, self.ages, self.asks, epsilon, memo_epsilon)

    def life(self, memo_epsilon: float) -> str:
        memos = ", or ".join(
            f"{count} for {each} (epsilon {count * memo_epsilon:g} together)"
            for each, count in _MEMOS.items()
            if each in self.asks
        )
        draws = "draws once which question it answers, and " if len(self.asks) > 1 else ""
        told = f"a device {draws}has at most these memos in its life: {memos}. "
        if "cohorts" in self.asks:
            told += (
                "When they change is not hidden: whoever links the reports of a device for long "
                f'sees it become "{OLDER}", {self.ages + 1} windows after its first. '
            )
        return told + "An app that is installed again is a new device, with other memos"

    def combines(self, before: MetricType) -> str:
        if isinstance(before, Retention) and before.window == self.window:
            return "combine the questions that both schemes ask"
        return "cannot combine them: ask for days before or after the change"
