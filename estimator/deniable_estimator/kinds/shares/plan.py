"""What a closed list of values can detect, why, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from deniable.protocol.mechanisms import AUTO, FrequencyOracle, Memoizing, design
from deniable.protocol.mechanisms.choice import choose, loss
from deniable.protocol.types.texts import Category
from deniable_estimator.analyses import analysis_of, oracle_analysis
from deniable_estimator.document.document import Document, Fact, Note
from deniable_estimator.document.units import SHARES
from deniable_estimator.inputs import Asked, InputError
from deniable_estimator.messages import message
from deniable_estimator.planning import words
from deniable_estimator.planning.inputs import SERVED_SIZE, Planned
from deniable_estimator.privacy.words import rounded_up
from deniable_estimator.statistics import detection


def planned(asked: Asked) -> Planned:
    """The plan of `size` values; `share` is 1/size if not given.

    A mechanism for strings is planned for a list of `size` candidates. The smallest detectable
    share is at family-wise level 0.05 with power 0.8; for strings that are decoded by cohorts it is
    somewhat too small (see `statistics.detection`).

    Raises:
        InputError, SchemeError: it cannot be planned.
    """
    size, memoize = asked["size"], asked["memoize"]
    if memoize and asked["lifetime_epsilon"] is None:
        told = message("Memoized noise needs a lifetime epsilon: it limits what a memo reveals.")
        raise InputError("lifetime_epsilon", told)
    crowd = words.PlannedCrowd(asked)
    chosen, reason = _designed(asked)
    share = asked["share"] or 1 / size
    detectable = detection.detectable_share(chosen, size, crowd.reports)
    is_usable = detection.usable(chosen, size, crowd.reports)
    lossy = loss(chosen, size, asked["epsilon"])
    facts = (
        *crowd.report_facts(chosen.epsilon),
        *_detection_facts(chosen, crowd, share, detectable),
        *(
            _memory_facts(chosen, crowd, share)
            if isinstance(chosen, Memoizing)
            else crowd.lifetime_facts(chosen.epsilon)
        ),
        crowd.fakes_fact(
            crowd.fakes * float(oracle_analysis(chosen).pull().most),
            message("that they could add to any one value: the smaller epsilon, the more"),
        ),
        *words.cost_facts(
            chosen,
            reason,
            message("{loss:.2f} times the least possible variance", loss=lossy),
            words.symbols(chosen),
        ),
    )
    document = Document(
        "values",
        crowd.subtitle(message("{size:,} values", size=size)),
        _verdict(detectable if is_usable else None),
        facts,
        notes=crowd.notes,
        snippet=crowd.snippet(
            *("my_metric", 'type = "category"', f"values = [...]  # {size:,} of them"),
            *(['longitudinal = "memoize"'] if memoize else []),
        ),
        about={
            "size": size,
            **crowd.about,
            "parameters": chosen.parameters(),
            "p": float(chosen.p),
            "q": float(chosen.q),
            "reason": reason,
            "loss": lossy,
            "tally_cells": words.tally_cells(chosen),
            "share": share,
            "usable": is_usable,
            "half_width": asked["half_width"],
            "fakes": crowd.fakes,
            "lifetime": None,
            "memory": None,
        },
    )
    metric = None
    if size <= SERVED_SIZE and asked["mechanism"] == AUTO:
        kind = Category(tuple(map(str, range(size))))
        metric = crowd.metric("my_metric", kind, longitudinal="memoize" if memoize else "fresh")
    return Planned(document, metric)


def _designed(asked: Asked) -> tuple[FrequencyOracle[Any], str]:
    """The mechanism, and why it is this one."""
    name, size, epsilon = asked["mechanism"], asked["size"], asked["epsilon"]
    memo = asked["lifetime_epsilon"] if asked["memoize"] else None
    why = choose(size, epsilon, memo, salt=words.SALT)[1] if name == AUTO else "named by you"
    return design(name, size, epsilon, memo, salt=words.SALT), why


def lasting_error(mechanism: Memoizing[Any], share: float, devices: int) -> float:
    """The standard error of a share that remains over any number of windows, when the fresh noise
    has averaged out and the same devices report: sqrt(V1 / devices), with V1 from
    `deniable_estimator.analyses.base`."""
    p1, q1 = (float(each) for each in analysis_of(mechanism).memo_channel())
    rate = q1 + share * (p1 - q1)
    return math.sqrt(rate * (1 - rate) / devices) / (p1 - q1)


def _verdict(detectable: float | None) -> Note:
    if detectable is None:
        told = message(
            "No usable signal: with so few reports noise hides even large shares. Ask more "
            "devices, or declare a larger epsilon."
        )
        return Note(told, "alarm")
    told = message("Shares of {share} or more are detectable.", share=words.percent(detectable))
    return Note(told, "good")


def _detection_facts(
    chosen: FrequencyOracle[Any], crowd: words.PlannedCrowd, share: float, least: float | None
) -> Iterator[Fact]:
    size, half_width, told = crowd.asked["size"], crowd.asked["half_width"], words.percent(share)
    power = message(
        "with power {power:g}, at level {level:g} over all {size:,} values at once",
        power=detection.POWER,
        level=detection.LEVEL,
        size=size,
    )
    yield Fact(
        "detectable_share",
        message("Smallest detectable share"),
        least,
        message("not even a share of 100%") if least is None else words.percent(least),
        power,
    )
    needed = math.ceil(detection.reports_to_detect(chosen, size, share) / crowd.rate)
    name = message("To detect {share}", share=told)
    yield words.devices_fact("devices_to_detect", name, needed, power)
    needed = math.ceil(detection.reports_for_half_width(chosen, share, half_width) / crowd.rate)
    yield words.devices_fact(
        "devices_for_half_width",
        message("For ±{width} points", width=SHARES.text(half_width, half_width)),
        needed,
        message("in the 95% interval of a share of {share}", share=told),
    )
    error = detection.std_error(chosen, share, crowd.reports)
    told = message("of a share of {share}", share=told)
    yield words.width_fact("std_error", message("Standard error"), error, told)


def _memory_facts(
    chosen: Memoizing[Any], crowd: words.PlannedCrowd, share: float
) -> Iterator[Fact]:
    """What reports by memos reveal, exactly and rounded up, and their accuracy over time."""
    lasting = lasting_error(chosen, share, crowd.devices)
    yield Fact(
        "memory",
        message("Reports of a device"),
        {
            "lifetime_epsilon": crowd.asked["lifetime_epsilon"],
            "memo_epsilon": chosen.lifetime_epsilon,
            "fresh_epsilon": chosen.fresh_epsilon,
            "lasting_std_error": lasting,
        },
        message("any number"),
        message(
            "all of one value reveal at most ε {memo}; each further one, of whatever history, adds "
            "at most ε {fresh}",
            memo=rounded_up(chosen.lifetime_epsilon, 2),
            fresh=rounded_up(chosen.fresh_epsilon, 2),
        ),
    )
    yield Fact(
        "lasting_std_error",
        message("Over many windows"),
        lasting,
        message("±{error:.2g} points", error=100 * lasting),
        message(
            "the standard error of a share of {share} stays above this, if the same devices report",
            share=words.percent(share),
        ),
    )
