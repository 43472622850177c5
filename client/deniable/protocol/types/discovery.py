"""Strings that nobody listed: which ones occur at all is found in the reports.

Those that fit a pattern of `deny` are never reported. A pattern is literal text in which `*` stands
for any run of characters, also for none. It must fit a whole string. Letters A to Z fit their small
forms and the other way round; all other characters fit themselves alone. Python and JavaScript read
that alike, which no regular expression would.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Self

from deniable.protocol.checks import Check, is_number, one_of
from deniable.protocol.coded_message import CodedMessage
from deniable.protocol.frozen import frozen
from deniable.protocol.mechanisms import Mechanism
from deniable.protocol.mechanisms.prefix_tree import (
    ALPHABETS,
    MAX_LEVELS,
    TOKEN_BYTES,
    PrefixTree,
    head,
    plain,
)
from deniable.protocol.types.base import MetricType, Table, Value
from deniable.protocol.value_list import clean_text, is_unicode

MAX_DENIED = 100
"""How many patterns a metric may have."""

MAX_PATTERN = 128
"""How many characters a pattern may have."""

_SMALL = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_LITERAL: dict[int, Any] = {**_SMALL, **str.maketrans({"?": "[?]", "[": "[[]"})}
"""The same of a pattern, with what `fnmatch` would take for more than itself."""


def check_deny(value: Any) -> str | None:
    """What is wrong with the value of `deny`; None if nothing is."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        return 'must be a list of texts, like ["*@*", "token=*"]'
    if len(value) > MAX_DENIED:
        return f"holds {len(value):,} patterns, above the limit of {MAX_DENIED}"
    for place, pattern in enumerate(value, 1):
        if wrong := _wrong(pattern):
            return f"has a pattern, number {place}, that {wrong}"
    return None


def _wrong(pattern: str) -> str | None:
    if len(pattern) > MAX_PATTERN:
        return f"is longer than {MAX_PATTERN} characters"
    if not pattern.strip("*"):
        return "denies every string, or none: it needs a character besides *"
    if not is_unicode(pattern):
        return "is not valid Unicode"
    if "\0" in pattern:
        return "holds a zero character, where every string ends"
    if unicodedata.normalize("NFC", pattern) != pattern:
        return "is not in Unicode normal form C, so that it would fit nothing"
    return None


def denied(text: str, patterns: Sequence[str]) -> bool:
    """Whether a string in normal form C fits one of the patterns."""
    small = text.translate(_SMALL)
    return any(fnmatchcase(small, pattern.translate(_LITERAL)) for pattern in patterns)


DEFAULT_LENGTH = 16
"""Bytes of a string that can be found, if the registry does not say."""

MAX_LENGTH = TOKEN_BYTES * MAX_LEVELS
"""The most that the registry may say."""


def _check_length(value: Any) -> str | None:
    fine = type(value) is int and TOKEN_BYTES <= value <= MAX_LENGTH and value % TOKEN_BYTES == 0
    return None if fine else f"must be an even number of bytes from {TOKEN_BYTES} to {MAX_LENGTH}"


def _check_share(value: Any) -> str | None:
    fine = is_number(value) and 0 <= value < 1
    return None if fine else "must be a share from 0 to below 1, like 0.01 for 1%"


@frozen
class Discovery(MetricType):
    """Any text, of which the first `max_length` bytes can be found.

    A device whose string is empty, denied, or holds a character outside of the alphabet among its
    first bytes reports the empty string, which is never listed. So it cannot be told from the
    others, which it could be if it were silent. The empty text also waits on the device for it.

    Attributes:
        max_length: how many bytes of the UTF-8 text can be found; longer strings are cut.
        alphabet: which bytes these may be, a name out of `prefix_tree.ALPHABETS`.
        deny: patterns of strings that devices never report.
        minimum_share: strings that are found with a smaller share are not shown.
    """

    name = "discovery"
    keys: ClassVar[Mapping[str, Check]] = {
        "max_length": _check_length,
        "alphabet": one_of(tuple(ALPHABETS)),
        "minimum_share": _check_share,
        "deny": check_deny,
    }
    foreign: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("values", "values_file", "other"), "its strings are found in the reports"),
        "segments": "each segment would need a tally of 69 MB of its own, and find only what is "
        "common in it. Discover in all devices, and follow what is found by segments",
    }
    suitable = PrefixTree
    without_memos = (PrefixTree.name,)
    explanation = CodedMessage(
        "prefixes_of_strings",
        "projective geometry over prefixes finds strings that nobody listed, with one short "
        "report of each device",
    )
    misfits: ClassVar[Mapping[str, str]] = {
        "memoize": "discovery has no memos: a memo would tie all tables of a string together. Set "
        'longitudinal = "fresh"; lifetime_epsilon limits how often a device reports'
    }

    max_length: int = DEFAULT_LENGTH
    alphabet: str = "bytes"
    deny: tuple[str, ...] = ()
    minimum_share: float = 0.0

    @property
    def levels(self) -> int:
        """How many tokens of two bytes can be found."""
        return self.max_length // TOKEN_BYTES

    @property
    def domain(self) -> str:
        return f"to find, {self.max_length} bytes"

    @classmethod
    def read(cls, table: Table) -> Self | None:
        settings = table.settings
        return cls(
            settings.get("max_length", DEFAULT_LENGTH),
            settings.get("alphabet", "bytes"),
            tuple(settings.get("deny", ())),
            float(settings.get("minimum_share", 0.0)),
        )

    @classmethod
    def told_by(cls, mechanism: Mechanism[Any]) -> Mapping[str, Any]:
        assert isinstance(mechanism, PrefixTree)
        return {
            "max_length": TOKEN_BYTES * mechanism.levels,
            "alphabet": mechanism.alphabet,
        }

    def compiled_keys(self) -> dict[str, Any]:
        return {"deny": list(self.deny), "minimum_share": self.minimum_share}

    def normalize(self, value: Value) -> str:
        text = clean_text(value, plain)
        # A character has a byte at least, so this holds the whole head and little more.
        cut = text[: self.max_length]
        if not head(cut, self.levels, self.alphabet) or any(
            denied(each, self.deny) for each in {text, cut}
        ):
            return ""
        return cut

    def item(self, text: str, mechanism: Mechanism[Any]) -> str:
        # What the registry denies now may have been recorded before it did.
        return self.normalize(text)

    def _design(
        self, mechanism: str, metric: str, epsilon: float, memo_epsilon: float | None
    ) -> Mechanism[Any]:
        return PrefixTree.design(metric, epsilon, self.levels, self.alphabet)

    def combines(self, before: MetricType) -> str:
        if not isinstance(before, Discovery):
            return "cannot combine what was not discovered: declare a new metric"
        return (
            "combine both schemes, but a string that only one of them can tell rests on its "
            "reports alone"
        )

    def reread(self, before: MetricType) -> str | None:
        if not isinstance(before, Discovery) or before.deny == self.deny:
            return None
        return (
            "denies other strings than before: the scheme is the same, so reports of both are "
            "added up"
        )
