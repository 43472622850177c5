"""What a retention can tell, before it is declared."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from deniable.protocol.mechanisms.memoized_retention import ASKS, MemoizedRetention
from deniable.protocol.types.retention import Retention
from deniable_estimator.document.document import Document, Fact, Note
from deniable_estimator.inputs import Asked
from deniable_estimator.messages import counted, message
from deniable_estimator.planning import words
from deniable_estimator.planning.crowd_limits import USEFUL_RETENTION
from deniable_estimator.planning.inputs import Planned
from deniable_estimator.privacy.words import rounded_up
from deniable_estimator.statistics.expected import BACK, ExpectedRetention


def planned(asked: Asked) -> Planned:
    """The plan of a retention, of `devices` that are active in a window.

    Raises:
        InputError, SchemeError: it cannot be planned.
    """
    crowd, window, new = words.PlannedCrowd(asked), asked["window"], asked["new"]
    asks = tuple(each for each in ASKS if asked["asks"] in {each, "both"})
    made = MemoizedRetention.design(
        window, asked["ages"], asks, asked["epsilon"], asked["lifetime_epsilon"]
    )
    tells = ExpectedRetention.of(made, crowd.reports, new)
    document = Document(
        "retention",
        crowd.subtitle(_asks(made.asks)),
        _verdict(tells),
        (
            *crowd.report_facts(made.epsilon),
            Fact(
                "memo_epsilon",
                message("Memos"),
                made.lifetime_epsilon,
                f"ε {rounded_up(made.lifetime_epsilon, 2)}",
                message("for all reports of one answer, for ever"),
            ),
            *_facts(tells, made, new),
        ),
        snippet=crowd.snippet(
            *("my_metric", 'type = "retention"', f'window = "{window}"'),
            f"asks = {json.dumps(made.asks)}",
            *([f"ages = {made.ages}"] if made.ages else []),
        ),
        about={
            "asks": made.asks,
            "ages": made.ages,
            "window": window,
            **crowd.about,
            "mechanism": made.name,
            "new": new,
            "back": BACK,
            "tells": tells,
        },
    )
    kind = Retention(window, made.ages, asks)
    more = {"window": window, "answer": "at_once", "longitudinal": "memoize"}
    return Planned(document, crowd.metric("my_metric", kind, **more))


def _asks(asks: Sequence[str]) -> str:
    names = {"lifecycle": message("lifecycle"), "cohorts": message("cohorts")}
    first, *rest = (names[each] for each in asks)
    return message("{first} and {second}", first=first, second=rest[0]) if rest else first


def _verdict(tells: ExpectedRetention) -> Note:
    if tells.width > USEFUL_RETENTION:
        told = message("Little to be seen. Ask more devices, or declare a larger epsilon.")
        return Note(told, "alarm")
    width = words.points(tells.width)
    told = message("Changes of more than {points} points are seen.", points=width)
    return Note(told, "good")


def _facts(tells: ExpectedRetention, made: MemoizedRetention, new: float) -> Iterator[Fact]:
    if len(made.asks) > 1:
        yield Fact(
            "reports_of_each",
            message("Each question"),
            tells.reports,
            f"{tells.reports:,.0f}",
            message("reports: each device answers one for ever"),
        )
    if tells.exact is not None and tells.lifecycle is not None:
        yield words.width_fact(
            *("lifecycle", message("Lifecycle"), tells.lifecycle),
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
                back=BACK,
                new=new,
            ),
        )
        yield Fact(
            "average",
            message("Average"),
            tells.average,
            words.within(tells.average) if tells.average < 1 / 2 else message("nothing"),
            counted("over {count} cohort", "over {count} cohorts", made.ages),
        )
