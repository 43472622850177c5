"""The plan of a closed list of values, in words."""

from __future__ import annotations

from collections.abc import Iterator

from deniable.protocol.types import Category
from deniable_estimator.answers.units import SHARES
from deniable_estimator.document.document import Document, Fact, Note
from deniable_estimator.forecasting.detection import LEVEL, POWER
from deniable_estimator.inputs import Asked, InputError
from deniable_estimator.messages import joined, message
from deniable_estimator.planning import words
from deniable_estimator.planning.inputs import SERVED_SIZE
from deniable_estimator.planning.kinds import Planned
from deniable_estimator.planning.plan import Plan, plan
from deniable_estimator.privacy.words import rounded_up


def planned(asked: Asked) -> Planned:
    """The plan of `size` values.

    Raises:
        InputError, SchemeError: it cannot be planned.
    """
    memoize = asked["memoize"]
    if memoize and asked["lifetime_epsilon"] is None:
        told = message("Memoized noise needs a lifetime epsilon: it limits what a memo reveals.")
        raise InputError("lifetime_epsilon", told)
    crowd = words.PlannedCrowd(asked)
    made = plan(**crowd.asked)
    document = Document(
        "values",
        words.subtitle(made, message("{size:,} values", size=made.size)),
        _verdict(made),
        tuple(_facts(made)),
        notes=crowd.notes,
        snippet=words.snippet(
            *("my_metric", asked, crowd, 'type = "category"'),
            f"values = [...]  # {made.size:,} of them",
            *(['longitudinal = "memoize"'] if memoize else []),
        ),
        about={**words.data_of(made), **crowd.about},
    )
    metric = None
    if made.size <= SERVED_SIZE and asked["mechanism"] == "auto":
        kind = Category(tuple(map(str, range(made.size))))
        way = "memoize" if memoize else "fresh"
        metric = words.metric_of(
            "my_metric", kind, asked, longitudinal=way, segments=crowd.segments
        )
    return Planned(made, document, metric)


def _verdict(made: Plan) -> Note:
    if made.detectable_share is None or not made.usable:
        told = message(
            "No usable signal: with so few reports noise hides even large shares. Ask more "
            "devices, or declare a larger epsilon."
        )
        return Note(told, "alarm")
    told = message(
        "Shares of {share} or more are detectable.", share=_percent(made.detectable_share)
    )
    return Note(told, "good")


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"


def _facts(made: Plan) -> Iterator[Fact]:
    yield from words.crowd_facts(made)
    least, share = made.detectable_share, _percent(made.share)
    power = message(
        "with power {power:g}, at level {level:g} over all {size:,} values at once",
        power=POWER,
        level=LEVEL,
        size=made.size,
    )
    yield Fact(
        "detectable_share",
        message("Smallest detectable share"),
        least,
        message("not even a share of 100%") if least is None else _percent(least),
        power,
    )
    yield Fact(
        "devices_to_detect",
        message("To detect {share}", share=share),
        made.devices_to_detect,
        words.devices(made.devices_to_detect),
        power,
    )
    interval = message("in the 95% interval of a share of {share}", share=share)
    width = SHARES.text(made.half_width, made.half_width)
    yield Fact(
        "devices_for_half_width",
        message("For ±{width} points", width=width),
        made.devices_for_half_width,
        words.devices(made.devices_for_half_width),
        interval,
    )
    yield Fact(
        "std_error",
        message("Standard error"),
        made.std_error,
        words.within(made.std_error),
        message("of a share of {share}", share=share),
    )
    yield from words.lifetime_facts(made.lifetime)
    yield from _memory_facts(made, share)
    yield Fact(
        "fakes_gain",
        words.fakes_name(made.fakes),
        made.fakes_gain,
        message("{points} points", points=words.points(made.fakes_gain)),
        message("that they could add to any one value: the smaller epsilon, the more"),
    )
    loss = message("{loss:.2f} times the least possible variance", loss=made.loss)
    yield from words.cost_facts(made, joined((made.reason, loss)))


def _memory_facts(made: Plan, share: str) -> Iterator[Fact]:
    if made.memory is None:
        return
    yield Fact(
        "memory",
        message("Reports of a device"),
        made.memory,
        message("any number"),
        message(
            "all of one value reveal at most ε {memo}; each further one, of whatever history, adds "
            "at most ε {fresh}",
            memo=rounded_up(made.memory.memo_epsilon, 2),
            fresh=rounded_up(made.memory.fresh_epsilon, 2),
        ),
    )
    lasting = made.memory.lasting_std_error
    yield Fact(
        "lasting_std_error",
        message("Over many windows"),
        lasting,
        message("±{error:.2g} points", error=100 * lasting),
        message(
            "the standard error of a share of {share} stays above this, if the same devices report",
            share=share,
        ),
    )
