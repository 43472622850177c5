"""What a discovery finds, before it is declared: from which share on strings surface.

The shares are those of `statistics.expected`, with the parameters of a metric.
Fakes that pick their tables and messages show (1-q) / (p-q) times their own share of a string, as
of any value (`deniable_estimator.analyses.base`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from deniable.protocol.mechanisms.prefix_tree import TOKEN_BYTES, PrefixTree
from deniable.protocol.types.discovery import Discovery
from deniable_estimator.document.document import Document, Fact, Note
from deniable_estimator.inputs import Asked, InputError
from deniable_estimator.messages import counted, message
from deniable_estimator.planning import words
from deniable_estimator.planning.crowd_limits import NOTHING
from deniable_estimator.planning.inputs import Planned
from deniable_estimator.statistics.expected import Reach, reports_to_find


def planned(asked: Asked) -> Planned:
    """The plan of a discovery of strings of `max_length` bytes.

    Raises:
        InputError, SchemeError: it cannot be planned.
    """
    length = asked["max_length"]
    if length % 2:
        told = message("Write an even number: strings are cut to pairs of bytes.")
        raise InputError("max_length", told)
    crowd = words.PlannedCrowd(asked)
    made = PrefixTree.design(words.SALT, asked["epsilon"], length // TOKEN_BYTES)
    reach = Reach.in_window(made, crowd.reports)
    asks = counted("the first {count:,} byte", "the first {count:,} bytes", length)
    document = Document(
        "discovery",
        crowd.subtitle(asks),
        _verdict(reach),
        (
            *crowd.report_facts(made.epsilon),
            *_reach_facts(reach),
            _needed(math.ceil(reports_to_find(made, asked["share"]) / crowd.rate), asked["share"]),
            *crowd.lifetime_facts(made.epsilon),
            Fact(
                "fakes_to_list",
                message("A false string"),
                reach.fakes,
                counted("{count:,} fake device", "{count:,} fake devices", reach.fakes),
                message("put a string of their own on the list half of the time"),
            ),
            crowd.fakes_fact(
                crowd.fakes * float((1 - made.q) / (made.p - made.q)),
                message("that they could add to any one string"),
            ),
            *words.cost_facts(made, words.symbols(made)),
        ),
        snippet=crowd.snippet("my_metric", 'type = "discovery"', f"max_length = {length}"),
        about={
            "max_length": length,
            **crowd.about,
            "parameters": {key: each for key, each in made.parameters().items() if key != "salt"},
            "tally_cells": words.tally_cells(made),
            "reach": {
                name: None if name != "fakes" and share > 1 else share
                for name, share in reach._asdict().items()
            },
            "share": asked["share"],
            "fakes": crowd.fakes,
            "lifetime": None,
        },
    )
    return Planned(document, crowd.metric("my_metric", Discovery(length)))


def _verdict(reach: Reach) -> Note:
    if reach.half_text > NOTHING:
        told = message("No string will surface. Ask more devices, or declare a larger epsilon.")
        return Note(told, "alarm")
    share = words.percent(reach.sure_text)
    return Note(message("Strings above {share} of the devices will surface.", share=share), "good")


def _surfaces(half: float, sure: float) -> tuple[str, str]:
    if half > 1:
        return message("never found"), ""
    told = message("from {share} of the devices on", share=words.percent(half))
    if sure > 1:
        return told, message("half of them are found")
    return told, message("half of them are found; 95% from {share} on", share=words.percent(sure))


def _reach_facts(reach: Reach) -> Iterator[Fact]:
    for key, name, half, sure in (
        ("common_text", message("Strings like common text"), reach.half_text, reach.sure_text),
        ("random_text", message("Random characters"), reach.half_any, reach.sure_any),
    ):
        yield Fact(key, name, None if half > 1 else half, *_surfaces(half, sure))
    hidden = reach.hidden < 1
    yield Fact(
        "hidden",
        message("Stays hidden"),
        reach.hidden if hidden else 1,
        message("below {share} of the devices", share=words.percent(reach.hidden))
        if hidden
        else message("every string"),
        message("none of 180 such strings was found when that was measured")
        if hidden
        else message("whatever part of the devices has it"),
    )


def _needed(count: int, share: float) -> Fact:
    return words.devices_fact(
        "devices_to_find",
        message("To find a share of {share}", share=words.percent(share)),
        count,
        message("half of the time, if the string looks like common text"),
    )
