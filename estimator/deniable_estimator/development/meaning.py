"""What one report says about each value: exact likelihood ratios of its mechanism.

Let P(report | v) be the probability that a device whose value is v sends this very report. Whoever
sees the report multiplies the odds of two values u : v by P(report | u) / P(report | v). The
values that have the same probability form one group here; the ratios are to the group with the
least. None is above e^epsilon, whatever the report is.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Any

from deniable import Scheme
from deniable.device.outbox import Entry
from deniable.device.sent import OWNER_TEXTS, OwnerLanguage, describe_entries
from deniable.protocol.mechanisms import Mechanism, Packing, Report
from deniable.protocol.mechanisms.memoized_retention import MemoizedRetention
from deniable.protocol.mechanisms.number_range import TOP, Numeric
from deniable.protocol.mechanisms.prefix_tree import PrefixTree
from deniable.protocol.wire import SealedReport, positions, unpack_columns

MOST_VALUES = 2_000
"""Of a longer list only so many values are looked at, evenly spread over it."""

PROBES = 400
"""Made-up strings that stand for all strings, where the mechanism takes any."""

_STEPS = 16
"""The range of a number is divided into so many parts, at whose ends it is looked at."""

_NAMED = 17
"""So many values of a group are named."""

LISTED_COLUMNS = 24
"""So many columns of a report are listed."""


@dataclass(frozen=True)
class LikelyValues:
    """Values for which the report is equally likely."""

    values: tuple[str, ...]
    """The first of them."""
    more: int
    """How many there are beside these."""
    probability: Fraction
    """How often a device with one of them sends exactly this report."""
    ratio: Fraction
    """How much likelier that is than for the values with the least probability."""

    @property
    def exponent(self) -> float:
        """ln(ratio)."""
        return math.log(self.ratio)


@dataclass(frozen=True)
class Meaning:
    """What a report says. `groups` begin with the likeliest values."""

    row: int
    rows: int
    columns: tuple[int, ...]
    """The columns that are set, or the first of them."""
    set: int
    """How many are set."""
    width: int
    words: str
    """The sentence that the owner of a device reads."""
    groups: tuple[LikelyValues, ...]
    kind: str
    """What the groups are of: "values", "some" (of a long list), "strings" or "numbers"."""
    probes: int
    """How many made-up strings are among the groups; they are not named."""
    epsilon: float
    """ln of the largest ratio that any report of the mechanism has, rounded up."""


def meaning_of(
    scheme: Scheme, sealed: SealedReport, language: OwnerLanguage, strings: Sequence[str] = ()
) -> Meaning:
    """What a well-formed report of the scheme says. `strings` are those that may be named, if its
    values are any strings."""
    return _meaning(scheme, json.dumps(sealed), language, tuple(strings[: MOST_VALUES - PROBES]))


@lru_cache(maxsize=512)
def _meaning(
    scheme: Scheme, sealed_json: str, language: OwnerLanguage, strings: tuple[str, ...]
) -> Meaning:
    sealed = SealedReport(*json.loads(sealed_json))
    mechanism = scheme.mechanism
    # The segments are in the row, in clear; the rest of it is the mechanism's.
    number = sealed.row % len(mechanism.rows)
    row = mechanism.rows[number]
    report = Report(number, unpack_columns(row, sealed.columns))
    one = row.packing is Packing.INDEX
    listed = [report.columns] if one else islice(positions(report.columns), LISTED_COLUMNS)
    entry = Entry(sealed, "sent", None, "", scheme.canonical().decode())
    (described,) = describe_entries([entry], None, OWNER_TEXTS[language])
    probes = 0
    if isinstance(mechanism, Numeric):
        kind = "numbers"
        likelihoods = [
            (name, mechanism.likelihood(report, place))
            for name, place in _numbers(mechanism, report).items()
        ]
    elif isinstance(mechanism, MemoizedRetention):
        kind = "values"
        likelihoods = [*described.likelihoods.items()]
    elif scheme.needs_candidates or isinstance(mechanism, PrefixTree):
        kind = "strings"
        likelihoods = [(each, mechanism.likelihood(report, each)) for each in strings]
        made = [mechanism.likelihood(report, _probe(mechanism, each)) for each in range(PROBES)]
        likelihoods += [("", each) for each in made]
        probes = PROBES
    else:
        kind = "values" if len(scheme.values) <= MOST_VALUES else "some"
        step = -(-len(scheme.values) // MOST_VALUES)
        some = range(0, len(scheme.values), step)
        likelihoods = [
            (scheme.values[each], mechanism.likelihood(report, scheme.items[each])) for each in some
        ]
    return Meaning(
        sealed.row,
        len(scheme.rows),
        tuple(listed),
        1 if one else report.columns.bit_count(),
        row.width,
        described.words,
        _grouped(likelihoods),
        kind,
        probes,
        mechanism.epsilon,
    )


def _numbers(mechanism: Numeric, report: Report) -> dict[str, int]:
    """Some numbers with their positions: evenly spread over the range, and one of each part of it
    that the report favours."""
    numbers = mechanism.range
    places = {part * TOP // _STEPS for part in range(_STEPS + 1)}
    places.update(
        (max(first, 0) + min(last, TOP)) // 2 for first, last in mechanism.favoured(report)
    )
    found: dict[str, int] = {}
    for place in sorted(places):
        value = numbers.value(place)
        if numbers.integer:
            value = min(math.ceil(value), int(float(numbers.high)))
        # The position of the number that is shown, whatever its text was rounded to.
        text = f"{value:.4g}" if not numbers.integer else str(value)
        found.setdefault(text, numbers.position(float(text)))
    return found


def _grouped(likelihoods: Sequence[tuple[str, Fraction]]) -> tuple[LikelyValues, ...]:
    groups: defaultdict[Fraction, list[str]] = defaultdict(list)
    for value, probability in likelihoods:
        groups[probability].append(value)
    least = min(groups)
    found = []
    for probability in sorted(groups, reverse=True):
        values = groups[probability]
        named = tuple(each for each in values if each)[:_NAMED]
        found.append(
            LikelyValues(named, len(values) - len(named), probability, probability / least)
        )
    return tuple(found)


def _probe(mechanism: Mechanism[Any], number: int) -> str:
    """A string that no device has, one of many."""
    if not isinstance(mechanism, PrefixTree):
        return f"\0probe {number}"
    # What is cut at a zero character, or not in the alphabet, would be the empty string. Digits
    # in base 6 become letters that every alphabet has.
    return "".join("abcdef"[number // 6**place % 6] for place in range(2 * mechanism.levels))
