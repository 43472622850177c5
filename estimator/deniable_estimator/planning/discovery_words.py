"""The plan of a discovery, in words."""

from __future__ import annotations

from collections.abc import Iterator

from deniable.protocol.types.discovery import Discovery
from deniable_estimator.document.document import Document, Fact, Note
from deniable_estimator.inputs import Asked, InputError
from deniable_estimator.messages import counted, message
from deniable_estimator.planning import words
from deniable_estimator.planning.discovery_plan import DiscoveryPlan, plan_discovery
from deniable_estimator.planning.kinds import Planned

_HOPELESS = 0.5
"""If half of the strings take a larger share, there is nothing to find."""


def planned(asked: Asked) -> Planned:
    """The plan of a discovery of strings of `max_length` bytes.

    Raises:
        InputError, SchemeError: it cannot be planned.
    """
    length = asked["max_length"]
    if length % 2:
        told = message("Write an even number: strings are cut to pairs of bytes.")
        raise InputError("max_length", told)
    words.check_lifetime(asked)
    made = plan_discovery(**asked)
    reach = {
        name: None if name != "fakes" and share > 1 else share
        for name, share in made.reach._asdict().items()
    }
    asks = counted("the first {count:,} byte", "the first {count:,} bytes", length)
    document = Document(
        "discovery",
        words.subtitle(made, asks),
        _verdict(made),
        tuple(_facts(made)),
        snippet=words.snippet(
            *("my_metric", asked, None, 'type = "discovery"', f"max_length = {length}")
        ),
        about={**words.data_of(made), "reach": reach},
    )
    return Planned(made, document, words.metric_of("my_metric", Discovery(length), asked))


def _verdict(made: DiscoveryPlan) -> Note:
    if made.reach.half_text > _HOPELESS:
        told = message("No string will surface. Ask more devices, or declare a larger epsilon.")
        return Note(told, "alarm")
    share = _share(made.reach.sure_text)
    return Note(message("Strings above {share} of the devices will surface.", share=share), "good")


def _share(share: float) -> str:
    return f"{100 * share:.3g}%"


def _surfaces(half: float, sure: float) -> tuple[str, str]:
    if half > 1:
        return message("never found"), ""
    told = message("from {share} of the devices on", share=_share(half))
    if sure > 1:
        return told, message("half of them are found")
    return told, message("half of them are found; 95% from {share} on", share=_share(sure))


def _facts(made: DiscoveryPlan) -> Iterator[Fact]:
    reach = made.reach
    yield from words.crowd_facts(made)
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
        message("below {share} of the devices", share=_share(reach.hidden))
        if hidden
        else message("every string"),
        message("none of 180 such strings was found when that was measured")
        if hidden
        else message("whatever part of the devices has it"),
    )
    yield Fact(
        "devices_to_find",
        message("To find a share of {share}", share=_share(made.share)),
        made.devices_to_find,
        words.devices(made.devices_to_find),
        message("half of the time, if the string looks like common text"),
    )
    yield from words.lifetime_facts(made.lifetime)
    yield Fact(
        "fakes_to_list",
        message("A false string"),
        reach.fakes,
        counted("{count:,} fake device", "{count:,} fake devices", reach.fakes),
        message("put a string of their own on the list half of the time"),
    )
    yield Fact(
        "fakes_gain",
        words.fakes_name(made.fakes),
        made.fakes_gain,
        message("{points} points", points=words.points(made.fakes_gain)),
        message("that they could add to any one string"),
    )
    yield from words.cost_facts(made, "")
