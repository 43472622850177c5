"""What every result rests on, whether it is an answer or a list of finds: reports, windows, the
level of its intervals, whether the reports look honest, and the warnings that a statistician would
give."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any, ClassVar, Self

from deniable import Scheme
from deniable.protocol import windows
from deniable.protocol.mechanisms.prefix_tree import PrefixTree
from deniable_collector.tally import Tally
from deniable_estimator.analyses.anomalies import ALARM_LEVEL, Verdict
from deniable_estimator.document.csv_files import Filed, Table
from deniable_estimator.errors import EstimateError
from deniable_estimator.messages import Message, listed, message
from deniable_estimator.statistics.detection import USABLE_SHARE
from deniable_estimator.statistics.participation import Participation

BASIS_COLUMNS = ("n", "devices", "first", "last")
"""What each line of an answer's CSV says at its end: what the answer rests on, and its days."""


@dataclass(frozen=True, eq=False)
class Basis:
    """The data that an answer is based on."""

    metric: str
    schemes: tuple[str, ...]
    """Fingerprints."""
    windows: tuple[str, ...]
    n: int
    """Number of reports. In one window, each is from another device."""
    participation: Participation = field(repr=False)
    """How often the same device may have reported."""
    epsilon: float
    """The epsilon of one of these reports at most, exact and rounded up."""

    @property
    def devices(self) -> float:
        """The least number of devices that can have reported; the intervals use this number."""
        return self.participation.devices

    @property
    def span(self) -> tuple[date, date] | None:
        """The first and the last day (UTC) of the windows; None if there are none."""
        if not self.windows:
            return None
        first = min(map(windows.start, self.windows))
        last = max(map(windows.end, self.windows)) - 1
        return datetime.fromtimestamp(first, UTC).date(), datetime.fromtimestamp(last, UTC).date()

    @classmethod
    def merged(cls, parts: Sequence[Basis]) -> Basis:
        """That of the answers of several schemes of one metric together."""
        return Basis(
            metric=parts[0].metric,
            schemes=tuple(dict.fromkeys(name for each in parts for name in each.schemes)),
            windows=tuple(sorted({window for each in parts for window in each.windows})),
            n=sum(each.n for each in parts),
            participation=Participation.merged([each.participation for each in parts]),
            epsilon=max(each.epsilon for each in parts),
        )


@dataclass(frozen=True, eq=False)
class Part:
    """The tally of one scheme, and what to estimate from it."""

    tally: Tally
    scheme: Scheme
    candidates: Sequence[str] | None
    """They follow the rule of `deniable.protocol.value_list`; answers have them in normal form."""
    participation: Participation
    unit: str | None = None
    """That of a number."""

    def __post_init__(self) -> None:
        """Refuse a tally of another scheme.

        Raises:
            EstimateError: it is one.
        """
        tally, scheme = self.tally, self.scheme
        if tally.scheme != scheme.fingerprint:
            raise EstimateError(
                f"the tally was made under scheme {tally.scheme}, not {scheme.fingerprint}: "
                "estimate it with its own scheme"
            )
        widths = [row.cells.shape for row in tally.rows]
        if widths != [(row.width,) for row in scheme.mechanism.rows]:
            raise EstimateError(
                message(
                    "the tally of {metric} has rows of other widths than scheme {scheme}: read it "
                    "again from the store",
                    metric=tally.metric,
                    scheme=scheme.fingerprint,
                )
            )

    @property
    def unnamed(self) -> bool:
        """Whether nothing names the strings to estimate: a string metric without a list, or a
        discovery, which finds them (`deniable_estimator.asking.discoveries`)."""
        scheme = self.scheme
        open_list = scheme.needs_candidates and self.candidates is None
        return open_list or isinstance(scheme.mechanism, PrefixTree)

    @property
    def repeats(self) -> float:
        """How many reports each device sent, as it were: that of its participation."""
        return self.participation.repeats

    @property
    def basis(self) -> Basis:
        """What an answer from it rests on."""
        return Basis(
            self.tally.metric,
            (self.scheme.fingerprint,),
            self.tally.windows,
            self.tally.reports,
            self.participation,
            self.scheme.mechanism.epsilon,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Result(Basis, Filed):
    """What was calculated from it.

    Attributes:
        kind: what JSON calls results of this class.
    """

    kind: ClassVar[str]

    level: float
    """The level of each interval."""
    verdict: Verdict
    """Whether the tallies look like the sums of honest reports."""
    warnings: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()
    """The windows among them that had not ended when it was read: see `marked`."""
    unreadable: tuple[str, ...] = ()
    """The windows that were asked for and could not be read: see `lacking`."""
    alarm_level: float = ALARM_LEVEL
    """The probability that a result with only honest devices is called anomalous."""

    def marked(self, now: float | None = None) -> Self:
        """The same result, which says which of its windows have not ended at a POSIX time, the
        clock's if not given."""
        labels = unfinished(self.windows, time.time() if now is None else now)
        if not (labels and self.n):
            return self
        return replace(self, unfinished=labels, warnings=(unfinished_note(labels), *self.warnings))

    def lacking(self, unreadable: Sequence[str]) -> Self:
        """The same result, which says that these windows cannot be read and are not in it."""
        if not unreadable:
            return self
        warnings = (unreadable_note(unreadable), *self.warnings)
        return replace(self, unreadable=tuple(unreadable), warnings=warnings)

    @property
    def anomalous(self) -> bool:
        """Whether honest devices cannot explain the reports."""
        return bool(self.verdict.alarms(self.alarm_level))

    def head(self) -> dict[str, Any]:
        """What JSON says first of every result: `metric`, `kind`, `schemes`, `windows`,
        `unfinished`, `unreadable` (the windows that could not be read, if there are any), `n`,
        `devices`, `epsilon`, `level`, `warnings`, and `anomalies` as `Verdict.to_dict` has them."""
        return {
            "metric": self.metric,
            "kind": self.kind,
            "schemes": list(self.schemes),
            "windows": list(self.windows),
            "unfinished": list(self.unfinished),
            **({"unreadable": list(self.unreadable)} if self.unreadable else {}),
            "n": self.n,
            "devices": round(self.devices),
            "epsilon": self.epsilon,
            "level": self.level,
            "warnings": list(self.warnings),
            "anomalies": self.verdict.to_dict(self.alarm_level),
        }

    @abstractmethod
    def numbers(self) -> dict[str, Any]:
        """What is particular to its kind, for JSON."""

    @abstractmethod
    def own_table(self) -> Table:
        """What is particular to its kind, for files: the header, and the lines."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON: what its kind says after the `head`; what cannot be said is null."""
        return {**self.head(), **self.numbers()}

    def csv_table(self) -> Table:
        return self.based(self.own_table())

    def based(self, table: Table) -> Table:
        """A table of it with the columns of the basis."""
        header, lines = table
        basis = self.n, round(self.devices), *(self.span or (None, None))
        return (*header, *BASIS_COLUMNS), ((*each, *basis) for each in lines)


def unfinished(labels: Iterable[str], now: float) -> tuple[str, ...]:
    """The windows that have not ended at a POSIX time. They hold reports of metrics that are
    answered at once, and of devices whose clock runs ahead."""
    return tuple(label for label in labels if windows.end(label) > now)


def unfinished_note(labels: Sequence[str]) -> str:
    """The warning that these windows have not ended."""
    return message(
        "unfinished: {windows}; more reports will come, and the devices that report first need "
        "not be like the others",
        windows=listed(labels),
    )


def unreadable_note(labels: Sequence[str]) -> Message:
    """The warning that these windows cannot be read."""
    return message(
        "not counted, because they cannot be read: {windows}; `deniable store info` says why and "
        "what to do",
        windows=listed(labels),
    )


_FEW = 30
"""Fewer reports than this say nothing about the population."""

_ROUGH = 0.5
"""The skewness with about four supporting reports by chance; above it, intervals and p-values are
inexact."""


def caveats(
    basis: Basis, smallest: float = 0.0, skewness: float = 0.0, *, complete: bool = True
) -> tuple[str, ...]:
    """What to bear in mind about an estimate; empty if nothing.

    Of shares, `smallest` is the one that noise alone can look like, and `skewness` that of the
    noise.
    """
    warnings = list(few_notes(basis.n))
    if not basis.n:
        return tuple(warnings)
    if smallest > USABLE_SHARE:
        warnings.append(
            message(
                "no usable signal: noise alone can look like a share of {share:.0%}, so wait for "
                "more reports",
                share=min(smallest, 9.99),
            )
        )
    if skewness > _ROUGH:
        warnings.append(
            message(
                "so few reports support any value by chance that intervals and p-values are rough"
            )
        )
    return (*warnings, *footnotes(basis, complete=complete))


def footnotes(basis: Basis, *, complete: bool = True) -> tuple[str, ...]:
    """The caveats that hold however many reports there are: they say what the numbers mean."""
    told = []
    if basis.n and len(basis.windows) > 1:
        told.append(
            message(
                "rests on {n:,} reports from {windows} windows, in which the same devices may have "
                "reported again: the intervals are for all devices, and count these reports as "
                "{devices:,.0f} devices",
                n=basis.n,
                windows=len(basis.windows),
                devices=basis.devices,
            )
        )
    if basis.n and not complete:
        told.append(
            message(
                "only some of the possible values are asked for: their shares need not sum to one"
            )
        )
    return tuple(told)


def few_notes(n: int) -> tuple[str, ...]:
    """That there are no reports, or too few."""
    if not n:
        return (message("no reports in these days"),)
    if n >= _FEW:
        return ()
    return (message("too few reports (only {n}) to draw conclusions about all devices", n=n),)


def vars_of(basis: Basis) -> dict[str, Any]:
    """The fields of a basis, for an answer on it."""
    return {name: getattr(basis, name) for name in Basis.__dataclass_fields__}
