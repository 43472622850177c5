"""What plans of several kinds say, and the crowd and the segment that they are for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import date
from typing import Any

from deniable import Metric
from deniable.protocol.segments import Segment
from deniable.protocol.types.base import MetricType
from deniable_estimator.answers.units import SHARES
from deniable_estimator.document.document import Fact, Note
from deniable_estimator.inputs import Asked, InputError
from deniable_estimator.messages import counted, joined, message
from deniable_estimator.planning.plan import Lifetime, PlannedSegment
from deniable_estimator.privacy.words import rounded_up

PLANNED = (Segment("my_segment", ("smallest", "other")),)
"""What stands for the segments of the metric, of which only one part is known."""


def mechanism_words(name: str) -> str:
    """A mechanism's name in words; the catalogue has that of every one there is."""
    return message(name.replace("_", " "))


def points(share: float) -> str:
    """A share in points, with as many digits as it needs."""
    return SHARES.text(share, share)


def within(share: float) -> str:
    """A half width of a share, in points."""
    return message("±{points} points", points=points(share))


def devices(count: int | None) -> str:
    """So many devices; None is no number that there can be."""
    if count is None:
        return message("no number of devices")
    return counted("{count:,} device", "{count:,} devices", count)


def fakes_name(share: float) -> str:
    """So many fake devices."""
    return message("{fakes:.3g}% fake devices", fakes=100 * share)


def data_of(made: Any) -> dict[str, Any]:
    """What a plan has calculated, by its fields' names."""
    return {each.name: getattr(made, each.name) for each in fields(made)}


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
        self.all: int = asked["devices"]
        share = asked["segment_share"]
        self.segment = None if share is None else PlannedSegment(share, self.all)
        self.devices = self.all if self.segment is None else self.segment.devices
        self.asked = {name: value for name, value in asked.items() if name != "segment_share"}
        """What is asked of these devices."""
        self.asked["devices"] = self.devices
        parted = self.segment is not None and share < 1
        self.segments = PLANNED if parted else ()
        name = PLANNED[0].name
        self.above = (
            [
                f"[segments.{name}]",
                f"# the smallest: {share:.4g} of the devices",
                "values = [...]",
                "",
            ]
            if parted
            else []
        )
        """The lines of a registry before the metric that has segments."""
        self.within = [f'segments = ["{name}"]'] if parted else []
        """Those in it."""

    @property
    def notes(self) -> tuple[Note, ...]:
        """What the figures are of."""
        return () if self.segment is None else (Note(self.segment.words),)

    @property
    def about(self) -> dict[str, float]:
        """The segment as data."""
        return {} if self.segment is None else self.segment.to_dict()


def subtitle(made: Any, what: str) -> str:
    """The crowd, what it is asked and the epsilon of a report."""
    return message(
        "{devices:,} devices, {what}, ε {epsilon:g}, one window",
        devices=made.devices,
        what=what,
        epsilon=made.declared_epsilon,
    )


def crowd_facts(made: Any) -> Iterator[Fact]:
    """The reports of a window, and what one of them may reveal."""
    yield Fact(
        "reports",
        message("Reports in a window"),
        made.reports,
        f"{made.reports:,.0f}",
        counted(
            "from {count:,} device, on average", "from {count:,} devices, on average", made.devices
        ),
    )
    yield Fact(
        "epsilon",
        message("Epsilon"),
        made.epsilon,
        rounded_up(made.epsilon, 3),
        message("of a report, at most; declared {declared:g}", declared=made.declared_epsilon),
    )


def cost_facts(made: Any, reason: str) -> Iterator[Fact]:
    """The mechanism, and what its reports and tallies take."""
    # Symbols alone, which are the same in all languages: the rest follows from what is asked.
    parameters = ", ".join(
        f"{name} = {value}"
        for name, value in getattr(made, "parameters", {}).items()
        if len(name) == 1
    )
    yield Fact(
        "mechanism",
        message("Mechanism"),
        made.mechanism,
        mechanism_words(made.mechanism),
        joined(each for each in (reason, parameters) if each),
    )
    yield Fact(
        "report_bytes",
        message("Cost"),
        made.report_bytes,
        counted("{count:,} byte", "{count:,} bytes", made.report_bytes),
        message("a report; {cells:,} counters a window", cells=made.tally_cells),
    )


def lifetime_facts(lifetime: Lifetime | None) -> Iterator[Fact]:
    """How long the budget of a device lasts, if it does not report for ever."""
    if lifetime is None:
        return
    lasts: str = counted(
        "then it falls silent, after about {count:,} window",
        "then it falls silent, after about {count:,} windows",
        round(lifetime.windows),
    )
    turns = lifetime.turns
    if turns is not None:
        lasts = joined((lasts, message("one_in = {turns} makes them last 365", turns=turns)))
    yield Fact("lifetime", message("Reports of a device"), lifetime, f"{lifetime.reports:,}", lasts)


def metric_of(name: str, kind: MetricType, asked: Asked, **more: Any) -> Metric | None:
    """The metric that a plan would declare; None if it has no lifetime, which a registry needs."""
    if asked["lifetime_epsilon"] is None:
        return None
    return Metric(
        name=name,
        type=kind,
        description="",
        owner="",
        expires=date.max,
        epsilon=asked["epsilon"],
        lifetime_epsilon=asked["lifetime_epsilon"],
        **{"sample_rate": asked["sample_rate"], **more},
    )


def snippet(name: str, asked: Asked, crowd: PlannedCrowd | None, *lines: str) -> str:
    """The metric as a registry declares it; a lifetime that nobody asked for is left to fill in."""
    lifetime = asked["lifetime_epsilon"]
    keys: Mapping[str, str] = {
        "epsilon": repr(float(asked["epsilon"])),
        "lifetime_epsilon": "..." if lifetime is None else repr(float(lifetime)),
        "sample_rate": repr(float(asked["sample_rate"])),
        "devices": str(asked["devices"]),
    }
    return "\n".join(
        (
            *(crowd.above if crowd else ()),
            f"[metrics.{name}]",
            *lines,
            *(f"{key} = {value}" for key, value in keys.items()),
            *(crowd.within if crowd else ()),
        )
    )
