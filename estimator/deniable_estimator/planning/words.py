"""What plans of several kinds say, and the crowd and the segment that they are for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from typing import Any

from deniable import Metric
from deniable.protocol.mechanisms import Mechanism
from deniable.protocol.segments import Segment
from deniable.protocol.types.base import MetricType
from deniable_estimator.analyses.base import FAKES
from deniable_estimator.document.document import Fact, Note
from deniable_estimator.document.units import SHARES
from deniable_estimator.inputs import Asked, InputError
from deniable_estimator.messages import counted, joined, message
from deniable_estimator.privacy.words import rounded_up

SALT = "plan"
"""For mechanisms that hash with the name of their metric; no figure depends on it."""

PLANNED = (Segment("my_segment", ("smallest", "other")),)
"""What stands for the segments of the metric, of which only one part is known."""

_A_YEAR = 365


def mechanism_words(name: str) -> str:
    """A mechanism's name in words; the catalogue has that of every one there is."""
    return message(name.replace("_", " "))


def points(share: float) -> str:
    """A share in points, with as many digits as it needs."""
    return SHARES.text(share, share)


def percent(share: float) -> str:
    """A share in percent, to three digits."""
    return f"{100 * share:.3g}%"


def within(share: float) -> str:
    """A half width of a share, in points."""
    return message("±{points} points", points=points(share))


def width_fact(key: str, name: str, share: float, help_: str) -> Fact:
    """A half width of a share."""
    return Fact(key, name, share, within(share), help_)


def devices_fact(key: str, name: str, count: int | None, help_: str) -> Fact:
    """How many devices something takes; None is no number that there can be."""
    if count is None:
        return Fact(key, name, None, message("no number of devices"), help_)
    return Fact(key, name, count, counted("{count:,} device", "{count:,} devices", count), help_)


def symbols(mechanism: Mechanism[Any]) -> str:
    """Its parameters that are symbols, which are the same in all languages: the rest follows from
    what is asked."""
    found = mechanism.parameters().items()
    return ", ".join(f"{name} = {value}" for name, value in found if len(name) == 1)


def check_lifetime(asked: Asked) -> None:
    """Refuse a lifetime that is not enough for one report.

    Raises:
        InputError: it is not.
    """
    lifetime = asked["lifetime_epsilon"]
    if lifetime is not None and lifetime < asked["epsilon"]:
        raise InputError(
            "lifetime_epsilon",
            message(
                "All reports of a lifetime reveal at least what one report does: let the "
                "lifetime's epsilon be the larger one."
            ),
        )


class PlannedCrowd:
    """The devices that a plan is for: all, or those of a segment.

    Raises:
        InputError: they may not report as is asked.
    """

    def __init__(self, asked: Asked) -> None:
        check_lifetime(asked)
        self.asked = asked
        self.all: int = asked["devices"]
        self.share: float | None = asked.get("segment_share")
        self.devices = self.all if self.share is None else max(1, round(self.share * self.all))
        self.rate: float = asked["sample_rate"]
        self.reports = self.devices * self.rate
        """In one window, on average."""
        self.fakes: float = asked.get("fakes", FAKES)
        """The fraction of all reports that is assumed to be fake."""
        self.segments = PLANNED if self.share is not None and self.share < 1 else ()

    @property
    def notes(self) -> tuple[Note, ...]:
        """What the figures are of."""
        if self.share is None:
            return ()
        told = message(
            "For a segment with {share:.4g} of {devices:,} devices. Every figure is of the segment "
            "alone: where it says how many devices are needed, all segments together need "
            "{times:,.4g} times as many.",
            share=self.share,
            devices=self.all,
            times=1 / self.share,
        )
        return (Note(told),)

    @property
    def about(self) -> dict[str, Any]:
        """The crowd as data: with `devices` those of the segment, if one is planned."""
        found = {
            "declared_epsilon": self.asked["epsilon"],
            "devices": self.devices,
            "sample_rate": self.rate,
        }
        if self.share is not None:
            found |= {"segment_share": self.share, "all_devices": self.all}
        return found

    def lifetime_facts(self, epsilon: float) -> Iterator[Fact]:
        """How many reports the budget of a device allows if a report has this epsilon, and how many
        windows they last on average, where something limits it."""
        if (lifetime := self.asked["lifetime_epsilon"]) is None:
            return
        reports = Fraction(lifetime) // Fraction(epsilon)
        windows = reports / self.rate
        lasts: str = counted(
            "then it falls silent, after about {count:,} window",
            "then it falls silent, after about {count:,} windows",
            round(windows),
        )
        if reports >= 1 and windows < _A_YEAR:
            turns = math.ceil(_A_YEAR / reports)
            lasts = joined((lasts, message("one_in = {turns} makes them last 365", turns=turns)))
        found = {"lifetime_epsilon": lifetime, "reports": reports, "windows": windows}
        yield Fact("lifetime", message("Reports of a device"), found, f"{reports:,}", lasts)

    def subtitle(self, what: str) -> str:
        """The crowd, what it is asked and the epsilon of a report."""
        return message(
            "{devices:,} devices, {what}, ε {epsilon:g}, one window",
            devices=self.devices,
            what=what,
            epsilon=self.asked["epsilon"],
        )

    def report_facts(self, epsilon: float) -> Iterator[Fact]:
        """The reports of a window, and what one of them may reveal."""
        yield Fact(
            "reports",
            message("Reports in a window"),
            self.reports,
            f"{self.reports:,.0f}",
            counted(
                "from {count:,} device, on average",
                "from {count:,} devices, on average",
                self.devices,
            ),
        )
        yield Fact(
            "epsilon",
            message("Epsilon"),
            epsilon,
            rounded_up(epsilon, 3),
            message("of a report, at most; declared {declared:g}", declared=self.asked["epsilon"]),
        )

    def fakes_fact(self, gain: float, help_: str, key: str = "fakes_gain") -> Fact:
        """How much of a share fakes could add."""
        return Fact(
            key, self.fakes_name, gain, message("{points} points", points=points(gain)), help_
        )

    @property
    def fakes_name(self) -> str:
        """So many fake devices."""
        return message("{fakes:.3g}% fake devices", fakes=100 * self.fakes)

    def metric(self, name: str, kind: MetricType, **more: Any) -> Metric | None:
        """The metric that would be declared; None if it has no lifetime, which a registry needs."""
        if self.asked["lifetime_epsilon"] is None:
            return None
        return Metric(
            name=name,
            type=kind,
            description="",
            owner="",
            expires=date.max,
            epsilon=self.asked["epsilon"],
            lifetime_epsilon=self.asked["lifetime_epsilon"],
            segments=self.segments,
            **{"sample_rate": self.rate, **more},
        )

    def snippet(self, name: str, *lines: str) -> str:
        """The metric as a registry declares it; a lifetime that nobody asked for is left to fill
        in."""
        lifetime = self.asked["lifetime_epsilon"]
        above, below = [], []
        for each in self.segments:
            told = f"# the smallest: {self.share:.4g} of the devices"
            above = [f"[segments.{each.name}]", told, "values = [...]", ""]
            below = [f'segments = ["{each.name}"]']
        return "\n".join(
            (
                *above,
                f"[metrics.{name}]",
                *lines,
                f"epsilon = {float(self.asked['epsilon'])!r}",
                f"lifetime_epsilon = {'...' if lifetime is None else repr(float(lifetime))}",
                f"sample_rate = {float(self.rate)!r}",
                f"devices = {self.all}",
                *below,
            )
        )


def cost_facts(mechanism: Mechanism[Any], *reasons: str) -> Iterator[Fact]:
    """The mechanism with the reasons for it, and what its reports and tallies take."""
    yield Fact(
        "mechanism",
        message("Mechanism"),
        mechanism.name,
        mechanism_words(mechanism.name),
        joined(filter(None, reasons)),
    )
    size = max(row.report_bytes for row in mechanism.rows)
    yield Fact(
        "report_bytes",
        message("Cost"),
        size,
        counted("{count:,} byte", "{count:,} bytes", size),
        message("a report; {cells:,} counters a window", cells=tally_cells(mechanism)),
    )


def tally_cells(mechanism: Mechanism[Any]) -> int:
    """The counters of a tally."""
    return sum(row.width for row in mechanism.rows)
