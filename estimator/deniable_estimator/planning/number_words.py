"""The plan of a number, in words."""

from __future__ import annotations

from collections.abc import Iterator

from deniable import SchemeError
from deniable.protocol.mechanisms.number_range import number_text
from deniable_estimator.answers.units import SHARES, NumberUnit
from deniable_estimator.document.document import Column, Document, Fact, Frame, Note, WordedValue
from deniable_estimator.inputs import Asked, InputError
from deniable_estimator.messages import counted, message
from deniable_estimator.planning import words
from deniable_estimator.planning.kinds import Planned
from deniable_estimator.planning.numbers import (
    NumberPlan,
    QuantilePlan,
    number_type,
    plan_number,
)


def planned(asked: Asked) -> Planned:
    """The plan of a number between `low` and `high`.

    Raises:
        InputError, SchemeError: it cannot be planned.
    """
    check_range(asked)
    crowd = words.PlannedCrowd(asked)
    try:
        made = plan_number(**crowd.asked)
    except SchemeError as error:
        raise InputError("low", str(error)) from error
    quantiles = (_quantiles(made),) if made.quantiles else ()
    document = Document(
        "number",
        words.subtitle(made, _range(made)),
        _verdict(made),
        tuple(_facts(made)),
        quantiles,
        notes=(*crowd.notes, *_too_few(made)),
        snippet=words.snippet("my_metric", asked, crowd, *_lines(made)),
        about={**words.data_of(made), **crowd.about},
    )
    kind = number_type(
        *(made.low, made.high, made.ask), scale=made.scale, integer=made.integer, unit=made.unit
    )
    metric = words.metric_of("my_metric", kind, asked, segments=crowd.segments)
    return Planned(made, document, metric)


def check_range(asked: Asked) -> None:
    """Refuse a range that is none.

    Raises:
        InputError: it is none.
    """
    if asked["high"] <= asked["low"]:
        raise InputError("high", message("Let high be above low."))
    if asked["scale"] == "log" and asked["low"] <= 0:
        raise InputError("low", message("A logarithmic scale begins above 0."))


def _range(made: NumberPlan) -> str:
    low, high = (number_text(float(each)) for each in (made.low, made.high))
    whole = message(", whole numbers") if made.integer else ""
    ends = f"{low} – {high} {made.unit or ''}".rstrip()
    if made.scale == "log":
        return message("{ends} on a logarithmic scale{whole}", ends=ends, whole=whole)
    return message("{ends}{whole}", ends=ends, whole=whole)


def _verdict(made: NumberPlan) -> Note:
    if not made.usable:
        told = message(
            "No usable signal: with so few reports noise hides even the middle of the range. Ask "
            "more devices, or declare a larger epsilon."
        )
        return Note(told, "alarm")
    kept = [f"p{100 * each.p:g}" for each in made.quantiles if each.promised]
    if kept:
        return Note(message("Useful intervals for {names}.", names=", ".join(kept)), "good")
    if made.quantiles:
        told = message("No quantile has a useful interval: they need more devices.")
        return Note(told, "warn")
    width = _width(made, made.mean.half_width)
    return Note(message("The mean is known to ±{width}.", width=width), "good")


def _too_few(made: NumberPlan) -> Iterator[Note]:
    for each in made.quantiles:
        if not each.promised:
            told = counted(
                "p{percent:g} has no useful interval below {count:,} device.",
                "p{percent:g} has no useful interval below {count:,} devices.",
                each.devices_to_promise,
                percent=100 * each.p,
            )
            yield Note(told, "warn")


def _width(made: NumberPlan, width: float) -> str:
    """A width in the unit, or as a part of a geometric mean."""
    unit = SHARES if made.scale == "log" else NumberUnit(made.unit)
    return unit.full(width, width)


def _facts(made: NumberPlan) -> Iterator[Fact]:
    mean = made.mean
    yield from words.crowd_facts(made)
    error = _width(made, mean.std_error)
    yield Fact(
        "mean",
        message("Geometric mean") if made.scale == "log" else message("Mean"),
        mean,
        f"±{_width(made, mean.half_width)}",
        message(
            "half of its 95% interval, if numbers lie evenly in the range; its standard error is "
            "{error}",
            error=error,
        ),
    )
    needed = message("in the 95% interval of the mean")
    if mean.devices is None:
        needed = message(
            "the width of the cells alone leaves ±{width}", width=_width(made, mean.rounding)
        )
    yield Fact(
        "devices_for_half_width",
        message("For ±{width}", width=_width(made, mean.desired)),
        mean.devices,
        words.devices(mean.devices),
        needed,
    )
    if made.share_half_width is not None:
        yield Fact(
            "share_half_width",
            message("Share below a limit"),
            made.share_half_width,
            words.within(made.share_half_width),
            message("half of its 95% interval, on average over the range"),
        )
    yield from words.lifetime_facts(made.lifetime)
    yield Fact(
        "fakes_gain",
        words.fakes_name(made.fakes),
        mean.fakes_gain,
        _width(made, mean.fakes_gain),
        message(
            "that they could add to a mean in the middle of the range: the smaller epsilon, the "
            "more"
        ),
    )
    if made.fakes_share is not None:
        yield Fact(
            "fakes_share",
            words.fakes_name(made.fakes),
            made.fakes_share,
            message("{points} points", points=words.points(made.fakes_share)),
            message("that they could add to the share below a limit"),
        )
    yield from words.cost_facts(made, made.reason)


def _quantiles(made: NumberPlan) -> Frame:
    return Frame(
        "quantiles",
        message("Quantiles"),
        (
            Column("p", message("Quantile"), "number"),
            Column("reach", message("95% interval, in quantiles of the truth")),
            Column("low", "", data_only=True),
            Column("high", "", data_only=True),
            Column("devices_for_limits", message("Devices for both limits"), "count"),
            Column("devices_to_promise", message("Devices for a useful interval"), "count"),
            Column("promised", "", data_only=True),
        ),
        tuple(
            (
                WordedValue(each.p, f"p{100 * each.p:g}"),
                _reach(each),
                *(each.low, each.high, each.devices_for_limits, each.devices_to_promise),
                each.promised,
            )
            for each in made.quantiles
        ),
    )


def _reach(each: QuantilePlan) -> str:
    low, high = (None if end is None else f"p{100 * end:.3g}" for end in (each.low, each.high))
    if low and high:
        return message("{low} to {high}", low=low, high=high)
    if low:
        return message("from {low} on, no upper limit", low=low)
    return message("up to {high}, no lower limit", high=high) if high else message("no limit")


def _lines(made: NumberPlan) -> Iterator[str]:
    unit = made.unit and made.unit.replace("\\", "\\\\").replace('"', '\\"')
    yield 'type = "number"'
    yield f"low = {number_text(float(made.low))}"
    yield f"high = {number_text(float(made.high))}"
    if unit:
        yield f'unit = "{unit}"'
    if made.scale == "log":
        yield 'scale = "log"'
    if made.integer:
        yield "integer = true"
    yield 'ask = ["mean", "distribution"]' if made.ask == "both" else f'ask = "{made.ask}"'
