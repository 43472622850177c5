"""Reports in words for the owner of the device, with what they reveal.

The sentences, and those of the page for the owner, are in owner.json in each language. Names in
braces are filled in.

What a report reveals is in its likelihoods: how often the device would send the same report if
one value were true, and how often if another were.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple, TypeAlias

from deniable.device.outbox import Entry
from deniable.protocol.mechanisms import Mechanism, Memoizing, Packing, Report, Row
from deniable.protocol.mechanisms.memoized_retention import MemoizedRetention
from deniable.protocol.mechanisms.number_range import TOP, NumberRange, Numeric, number_text
from deniable.protocol.registry import Registry
from deniable.protocol.scheme import Scheme
from deniable.protocol.wire import SealedReport, unpack_columns

OwnerLanguage: TypeAlias = Literal["en", "zh-Hans"]
"""A language of the sentences, as BCP 47 has it."""

OwnerTexts: TypeAlias = SimpleNamespace
"""The sentences in one language."""


def read_texts(path: Path) -> Mapping[OwnerLanguage, OwnerTexts]:
    """The sentences of a file of JSON, which has those of each language by their names."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return {language: SimpleNamespace(**texts) for language, texts in found.items()}


OWNER_TEXTS = read_texts(Path(__file__).with_name("owner.json"))

LISTED_VALUES = 20
"""Likelihoods are listed one by one for domains of at most so many values."""

_LISTED_SPANS = 4
"""A report is said to favour ranges of numbers, if they are at most so many."""

_LISTED_NUMBERS = 5
"""The likelihoods of a number are listed for so many, from one end of its range to the other."""


class SentReport(NamedTuple):
    """One report of this device.

    `status` is queued, sent, unanswered (not acknowledged, but it may have arrived), rejected or
    dropped. `reason` says why for the last two, and why a queued one waits.
    `words` says what was reported and what it reveals. `likelihoods` says how often the device
    would have sent this exact report if a value were true, for each value in the order of the
    domain. For a number it has entries for some of its range, and for a retention those of the
    question that the device answers. It is empty for strings, for domains larger than
    LISTED_VALUES, and for schemes that this app no longer knows.
    """

    metric: str
    description: str
    window: str
    status: str
    reason: str | None
    words: str
    likelihoods: Mapping[str, Fraction]

    def __str__(self) -> str:
        """One line: "2026-11-21, browser (sent): your device said ..."."""
        status = self.status if self.reason is None else f"{self.status}: {self.reason}"
        return f"{self.window}, {self.metric} ({status}): {self.words}."

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it; probabilities as exact fractions, "1/3"."""
        likelihoods = {value: str(each) for value, each in self.likelihoods.items()}
        return {**self._asdict(), "likelihoods": likelihoods}


def describe_entries(
    entries: Iterable[Entry], registry: Registry | None, texts: OwnerTexts = OWNER_TEXTS["en"]
) -> list[SentReport]:
    """The reports of the outbox in words, in the order given.

    The registry is used for schemes whose definition was too long to be stored.
    """
    schemes: dict[str, Scheme | None] = {}
    reports = []
    for entry in entries:
        sealed, status, reason, about, _ = entry
        if sealed.scheme not in schemes:
            schemes[sealed.scheme] = _scheme(entry, registry)
        told = _explain(schemes[sealed.scheme], sealed, texts)
        reports.append(SentReport(sealed.metric, about, sealed.window, status, reason, *told))
    return reports


def _scheme(entry: Entry, registry: Registry | None) -> Scheme | None:
    if entry.definition is not None:
        return Scheme.from_definition(json.loads(entry.definition))
    metric = None if registry is None else registry.metrics.get(entry.report.metric)
    if metric is not None and metric.scheme.fingerprint == entry.report.scheme:
        return metric.scheme
    return None


def _explain(
    scheme: Scheme | None, sealed: SealedReport, texts: OwnerTexts
) -> tuple[str, Mapping[str, Fraction]]:
    if scheme is None:
        return texts.unknown_scheme, {}
    words, likelihoods = _noisy(scheme, sealed, texts)
    if scheme.segments:
        given = scheme.combinations[sealed.row // len(scheme.mechanism.rows)]
        named = _join([f"{name} = “{value}”" for name, value in given.items()], texts)
        words = texts.segments.format(said=words, segments=named)
    return words, likelihoods


def _noisy(
    scheme: Scheme, sealed: SealedReport, texts: OwnerTexts
) -> tuple[str, Mapping[str, Fraction]]:
    """What the noisy part of a report reveals: all of it but the segments."""
    mechanism: Mechanism[Any] = scheme.mechanism
    number = sealed.row % len(mechanism.rows)
    report = Report(number, unpack_columns(mechanism.rows[number], sealed.columns))
    likely: Iterable[tuple[str, Fraction]] = ()
    said = _columns(mechanism.rows[number], report, texts)
    if isinstance(mechanism, Numeric):
        said = _favoured(mechanism, report, texts) or said
        places = _listed(mechanism.range).items()
        likely = ((name, mechanism.likelihood(report, place)) for name, place in places)
    elif isinstance(mechanism, MemoizedRetention):
        # What the report says in its row, which the device has drawn whatever is true.
        named = _cells(mechanism, number, sealed.window, texts)
        mechanism, report = mechanism.channels[number], Report(0, report.columns)
        likely = ((name, mechanism.likelihood(report, place)) for place, name in enumerate(named))
    elif 0 < len(scheme.values) <= LISTED_VALUES:
        pairs = zip(scheme.items, scheme.values, strict=True)
        likely = ((value, mechanism.likelihood(report, item)) for item, value in pairs)
    likelihoods = dict(likely)
    if len({*likelihoods.values()}) == 2 and not isinstance(mechanism, Numeric):
        said = _two_levels(likelihoods, texts)
    else:
        said = texts.odds.format(said=said, odds=float(mechanism.odds))
    if isinstance(mechanism, Memoizing):
        said = texts.memory.format(said=said, odds=float(mechanism.lifetime_odds))
    return said, likelihoods


def _favoured(mechanism: Numeric, report: Report, texts: OwnerTexts) -> str | None:
    """Which numbers would have sent this report most often; None if they are in many ranges."""
    numbers = mechanism.range
    spans = mechanism.favoured(report)
    if len(spans) > _LISTED_SPANS:
        return None
    ranges = []
    for first, last in spans:
        low, high = _number_text(numbers, first), _number_text(numbers, last + 1, ends=True)
        if first <= 0 and last >= TOP:
            ranges.append(texts.any_number)
        elif first <= 0:
            ranges.append(texts.up_to.format(high=high))
        elif last >= TOP:
            ranges.append(texts.from_on.format(low=low))
        elif low == high:
            ranges.append(texts.exactly.format(number=low))
        else:
            ranges.append(texts.between.format(low=low, high=high))
    return str(texts.number_in.format(ranges=_join(ranges, texts)))


def _cells(mechanism: MemoizedRetention, row: int, window: str, texts: OwnerTexts) -> list[str]:
    """The cells of a row of a retention, in words."""
    if mechanism.asks[row] == "lifecycle":
        return list(texts.lifecycle)
    cohorts = mechanism.first_windows(window)
    named = [texts.since.format(window=each) for each in cohorts]
    return [*named, texts.before.format(window=min(cohorts))]


def _columns(row: Row, report: Report, texts: OwnerTexts) -> str:
    """What was reported, where the values behind it are too many to name."""
    if row.packing is Packing.INDEX:
        return str(texts.number.format(said=report.columns, width=row.width))
    return str(texts.marked.format(said=report.columns.bit_count(), width=row.width))


def _listed(numbers: NumberRange) -> dict[str, int]:
    """Some numbers from one end of the range to the other, with their positions."""
    parts = range(_LISTED_NUMBERS)
    if numbers.integer:
        low, high = int(float(numbers.low)), int(float(numbers.high))
        whole = dict.fromkeys(low + (high - low) * part // parts[-1] for part in parts)
        return {str(each): numbers.position(float(each)) for each in whole}
    first, *inner, last = (_number_text(numbers, part * TOP // parts[-1]) for part in parts)
    # The ends are listed as themselves, whatever their texts were rounded to.
    return {first: 0, **{each: numbers.position(float(each)) for each in inner}, last: TOP}


def _number_text(numbers: NumberRange, position: int, *, ends: bool = False) -> str:
    """A number at a position: four digits of it, or of whole numbers the first from there on;
    where a range ends, the last before it."""
    value = numbers.value(position)
    if numbers.integer:
        return str(math.ceil(value) - ends)
    if numbers.scale == "log":
        # A narrow range needs more digits to tell its numbers apart.
        digits = 4 - min(0, math.floor(math.log10(numbers.end / numbers.start - 1)))
        return f"{value:.{min(digits, 15)}g}"
    digits = 3 - math.floor(math.log10(numbers.span))
    return number_text(round(value, digits))


def _two_levels(likelihoods: Mapping[str, Fraction], texts: OwnerTexts) -> str:
    most = max(likelihoods.values())
    high, low = percent(most), percent(min(likelihoods.values()))
    named = [value for value, each in likelihoods.items() if each == most]
    if len(named) == 1:
        return str(texts.named_one.format(value=named[0], high=high, low=low))
    values = _join([f"“{value}”" for value in named], texts)
    return str(texts.named_several.format(values=values, high=high, low=low))


def _join(parts: list[str], texts: OwnerTexts) -> str:
    """A list in a sentence."""
    *first, last = parts
    return texts.and_last.join((texts.and_next.join(first), last)) if first else last


def percent(share: Fraction) -> str:
    """Three digits, and more where what is not certain would read 100."""
    for digits in range(3, 9):
        told = f"{float(100 * share):.{digits}g}"
        if told != "100":
            break
    return f"{told}%"
