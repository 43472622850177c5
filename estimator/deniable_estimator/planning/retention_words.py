"""The plan of a retention, in words."""

from __future__ import annotations

import json
from collections.abc import Iterator

from deniable.protocol.mechanisms.memoized_retention import ASKS
from deniable.protocol.types.retention import Retention
from deniable_estimator.document.document import Document, Fact, Note
from deniable_estimator.forecasting.retention_forecast import USEFUL
from deniable_estimator.inputs import Asked
from deniable_estimator.messages import counted, message
from deniable_estimator.planning import words
from deniable_estimator.planning.kinds import Planned
from deniable_estimator.planning.retention_plan import RetentionPlan, plan_retention
from deniable_estimator.privacy.words import rounded_up


def planned(asked: Asked) -> Planned:
    """The plan of a retention.

    Raises:
        InputError, SchemeError: it cannot be planned.
    """
    words.check_lifetime(asked)
    asks = tuple(each for each in ASKS if asked["asks"] in {each, "both"})
    rest = {name: value for name, value in asked.items() if name not in ("asks", "fakes")}
    made = plan_retention(**rest, asks=asks)
    document = Document(
        "retention",
        words.subtitle(made, _asks(made)),
        _verdict(made),
        tuple(_facts(made)),
        snippet=words.snippet(
            *("my_metric", asked, None, 'type = "retention"', f'window = "{made.window}"'),
            f"asks = {json.dumps(made.asks)}",
            *([f"ages = {made.ages}"] if made.ages else []),
        ),
        about=words.data_of(made),
    )
    metric = words.metric_of(
        *("my_metric", Retention(asked["window"], made.ages, asks), asked),
        window=asked["window"],
        answer="at_once",
        longitudinal="memoize",
    )
    return Planned(made, document, metric)


def _asks(made: RetentionPlan) -> str:
    names = {"lifecycle": message("lifecycle"), "cohorts": message("cohorts")}
    first, *rest = (names[each] for each in made.asks)
    return message("{first} and {second}", first=first, second=rest[0]) if rest else first


def _verdict(made: RetentionPlan) -> Note:
    width = made.tells.lifecycle if made.tells.average is None else made.tells.average
    if width is None or width > USEFUL:
        told = message("Little to be seen. Ask more devices, or declare a larger epsilon.")
        return Note(told, "alarm")
    told = message("Changes of more than {points} points are seen.", points=words.points(width))
    return Note(told, "good")


def _facts(made: RetentionPlan) -> Iterator[Fact]:
    tells = made.tells
    yield from words.crowd_facts(made)
    yield Fact(
        "memo_epsilon",
        message("Memos"),
        made.memo_epsilon,
        f"ε {rounded_up(made.memo_epsilon, 2)}",
        message("for all reports of one answer, for ever"),
    )
    if len(made.asks) > 1:
        yield Fact(
            "reports_of_each",
            message("Each question"),
            tells.reports,
            f"{tells.reports:,.0f}",
            message("reports: each device answers one for ever"),
        )
    if tells.exact is not None and tells.lifecycle is not None:
        yield Fact(
            "lifecycle",
            message("Lifecycle"),
            tells.lifecycle,
            words.within(tells.lifecycle),
            message(
                "for all devices like them; ±{exact} points from an exact count of these devices "
                "at most (95%)",
                exact=words.points(tells.exact),
            ),
        )
    if tells.cohort is not None and tells.average is not None:
        yield Fact(
            "cohort",
            message("One cohort"),
            tells.cohort,
            words.within(tells.cohort) if tells.cohort < 1 / 2 else message("nothing"),
            message(
                "of a retention of {back:.0%}, if {new:.0%} of the devices are new in each window",
                back=made.back,
                new=made.new,
            ),
        )
        yield Fact(
            "average",
            message("Average"),
            tells.average,
            words.within(tells.average) if tells.average < 1 / 2 else message("nothing"),
            counted("over {count} cohort", "over {count} cohorts", made.ages),
        )
