"""A privacy notice and a question for consent, as `deniable lint --notice` writes them.

They say what follows from the registry and from what the SDK and the collector do. Why an app asks,
on which legal basis and with which processors, its operator adds:
docs/how-to/data-protection.md explains each part. The sentences are in notice.json in each
language.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path

from deniable.device.owner import certainty
from deniable.device.sent import OwnerLanguage, OwnerTexts, read_texts
from deniable.protocol.errors import Problem
from deniable.protocol.keep import Keep
from deniable.protocol.mechanisms import MAX_MEMO_EPSILON, Memoizing
from deniable.protocol.metric import Metric
from deniable.protocol.registry import Registry

_NEEDED = {
    "recipient": 'a notice names who receives the reports: write recipient = "..." at the top',
    "contact": 'a notice says where people can ask: write contact = "..." at the top',
}


def unnamed(registry: Registry) -> Iterator[Problem]:
    """What a notice needs and the registry does not say: who receives the reports, where to ask."""
    for key, needed in _NEEDED.items():
        if getattr(registry, key) is None:
            yield Problem(None, key, needed)


def notice(registry: Registry, language: OwnerLanguage) -> str:
    """The notice and the question for consent, as Markdown, of a registry that is not `unnamed`."""
    texts = TEXTS[language]
    asked = [metric for metric in registry if metric.name not in registry.unasked]
    told = {
        "app": _plain(registry.app),
        "recipient": _plain(registry.recipient or ""),
        "contact": _plain(registry.contact or ""),
        "segments": texts.between.join(_segments(asked)),
        "kept": _kept(asked, texts),
        "rows": "\n".join((*texts.table, *(_row(each, registry, texts) for each in asked))),
        "questions": "\n".join(f"- {_plain(metric.description)}" for metric in asked),
    }
    parts = [
        texts.title,
        texts.who,
        texts.asked,
        "{rows}",
        *_remarks(registry, asked, texts),
        texts.leaves,
        *([texts.clear] if any(metric.segments for metric in asked) else []),
        texts.reveals,
        texts.kept,
        texts.rights if all(metric.platform == ("web",) for metric in asked) else texts.commands,
        texts.law,
        texts.consent,
        "{questions}",
        texts.choice,
    ]
    return "\n\n".join(part.format(**told) for part in parts) + "\n"


def _row(metric: Metric, registry: Registry, texts: OwnerTexts) -> str:
    often = texts.often[metric.window]
    if metric.rate < 1:
        often += texts.sampled[metric.window].format(percent=f"{100 * metric.rate:.3g}")
    mechanism = metric.scheme.mechanism
    if isinstance(mechanism, Memoizing):
        all_of_them = texts.one_value.format(bound=_bound(mechanism.lifetime_epsilon, texts))
    else:
        limits = (metric.lifetime_epsilon, registry.lifetime_epsilon or math.inf)
        epsilon = Fraction(mechanism.epsilon)
        all_of_them = _bound(Fraction(min(limits)) // epsilon * epsilon, texts)
    name = f"{_plain(metric.description)} (`{metric.name}`)"
    return f"| {name} | {often} | {_bound(mechanism.epsilon, texts)} | {all_of_them} |"


def _bound(epsilon: Fraction | float, texts: OwnerTexts) -> str:
    """How often an even guess is right at most afterwards, with the epsilon that says the same."""
    if epsilon > MAX_MEMO_EPSILON:
        return str(texts.useless)
    digits = math.ceil(Fraction(epsilon) * 100 - Fraction(1, 10**9)) / 100
    return str(texts.bound.format(guess=certainty(Fraction(epsilon)), epsilon=f"{digits:g}"))


def _remarks(registry: Registry, asked: Iterable[Metric], texts: OwnerTexts) -> Iterator[str]:
    for name, pair in registry.unasked.items():
        yield texts.joined.format(name=name, pair=pair.name)
    if registry.lifetime_epsilon is not None:
        yield texts.cap.format(bound=_bound(registry.lifetime_epsilon, texts))
    if soon := [f"`{metric.name}`" for metric in asked if metric.answer == "at_once"]:
        yield texts.soon.format(names=texts.between.join(soon))
    if any("web" in metric.platform for metric in asked):
        yield texts.web


def _segments(asked: Iterable[Metric]) -> list[str]:
    """The segments that are told in clear, each with its values."""
    found = {each.name: each.values for metric in asked for each in metric.segments}
    return [f"{name} ({', '.join(map(_plain, values))})" for name, values in found.items()]


def _kept(asked: Iterable[Metric], texts: OwnerTexts) -> str:
    """How long sums stay, as far as the registry says it."""
    groups: dict[Keep, list[str]] = {}
    for metric in asked:
        groups.setdefault(metric.keep, []).append(f"`{metric.name}`")
    told = []
    for keep, names in groups.items():
        spans = [
            (texts.for_ever if days is None else texts.for_days).format(
                calendar=texts.calendars[calendar], days=days
            )
            for calendar, days in keep
        ]
        span = texts.between.join(spans) or texts.unlimited
        told.append(texts.of.format(names=texts.between.join(names), span=span))
    return "; ".join(told) if len(groups) > 1 else span


def _plain(text: str) -> str:
    """A text of the registry as Markdown shows it, on one line."""
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", " ".join(text.split()))


TEXTS = read_texts(Path(__file__).with_name("notice.json"))
