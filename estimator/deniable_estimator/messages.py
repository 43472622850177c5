"""Sentences that can be translated, and values inside of them.

A `Message` is a str, so code that writes English (the commands, JSON, CSV, the read API) uses it
as one. A page translates the template and its arguments with `translated`, and does the same with
what the packages below say (`deniable.protocol.coded_message.CodedMessage`).

A value that is written from right to left must not reorder the rest of its sentence (`isolated`).
By Unicode's bidirectional algorithm (UAX 9) it is put between FIRST STRONG ISOLATE and POP
DIRECTIONAL ISOLATE. Characters that would end this, or reorder what follows, are shown as
replacement characters.
"""

from __future__ import annotations

import gettext
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import reduce
from typing import Any

from deniable.protocol.coded_message import CodedMessage

_BEGIN, _END = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"

_MARKS = dict.fromkeys(
    (*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\N{REPLACEMENT CHARACTER}"
)
"""Embeddings, overrides and isolates: no language needs them inside a value."""

_CONTROLS = dict.fromkeys((*range(0x80, 0xA0), 0x2028, 0x2029), "\N{REPLACEMENT CHARACTER}")
"""Control characters beyond ASCII and ends of lines: a browser shows nothing for most of them, so
that two values would look alike."""

_LEFT_TO_RIGHT = frozenset(("L", "EN", "ES", "ET", "CS", "NSM", "BN", "B", "S", "WS", "ON", ""))
"""The classes of letters that do not reorder their neighbours."""


def isolated(value: str) -> str:
    """The value as it can be used in any sentence; unchanged, if it is written left to right and
    holds no invisible control character."""
    # A message stays the one that it is, and can be translated later.
    if value.isascii():
        return value
    if not _CONTROLS.keys().isdisjoint(map(ord, value)):
        value = value.translate(_CONTROLS)
    if all(unicodedata.bidirectional(each) in _LEFT_TO_RIGHT for each in value):
        return value
    return f"{_BEGIN}{value.translate(_MARKS)}{_END}"


class Message(str):
    """A sentence in English, with the template and the arguments that it was made from."""

    __slots__ = ("arguments", "template")

    template: tuple[str, ...]
    """The template, or two of them, for singular and plural, between which `count` decides."""
    arguments: Mapping[str, Any]

    def __str__(self) -> str:
        """The message itself, not a copy without its template, so that errors keep it as well."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _message, (self.template, dict(self.arguments))


class Dated(str):
    """A date in English, which also stores the date and its format."""

    __slots__ = ("parts", "when")

    when: date
    parts: str
    """The format, as a CLDR skeleton: yMMMd, yMMM or MMMd."""

    @classmethod
    def of(cls, text: str, when: date, parts: str) -> Dated:
        """The text of a date."""
        made = cls(text)
        made.when, made.parts = when, parts
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Dated.of, (str.__str__(self), self.when, self.parts)


@dataclass(frozen=True)
class Language:
    """A language of the pages."""

    tag: str
    """As BCP 47 has it: en, zh-Hans."""
    name: str
    """Its name in the language itself."""
    texts: gettext.NullTranslations
    """The translations of the English sentences."""

    @property
    def locale(self) -> str:
        """As Babel has it."""
        return self.tag.replace("-", "_")


def sentence(template: str) -> str:
    """Marks a template for the catalogue that is filled in elsewhere; returns it."""
    return template


def message(template: str, **arguments: Any) -> Message:
    """The sentence from a template and its arguments, which it names in braces."""
    return _message((template,), arguments)


def counted(one: str, several: str, count: int, **arguments: Any) -> Message:
    """The same with singular and plural, by `count`."""
    return _message((one, several), {**arguments, "count": count})


def joined(parts: Iterable[str]) -> str:
    """Several parts in one sentence, separated by semicolons."""
    return _chain(sentence("{told}; {part}"), parts)


def listed(parts: Iterable[str]) -> str:
    """The same, separated by commas."""
    return _chain(sentence("{told}, {part}"), parts)


def spaced(parts: Iterable[str]) -> str:
    """Several sentences, one after the other."""
    return _chain(sentence("{told} {part}"), parts)


def alternatives(parts: Iterable[str]) -> str:
    """Parts joined by "or"."""
    return _chain(sentence("{told} or {part}"), parts)


def translated(text: str, language: Language) -> str:
    """A message or date in a language, with the messages and dates in it; other text unchanged."""
    if isinstance(text, Dated):
        return _date(text, language)
    if isinstance(text, CodedMessage):
        text = _message((text.template,), text.arguments)
    if not isinstance(text, Message) or language.tag == "en":
        return text
    one, *several = text.template
    if several:
        template = language.texts.ngettext(one, several[0], text.arguments["count"])
    else:
        template = language.texts.gettext(one)
    return template.format(**{name: _told(each, language) for name, each in text.arguments.items()})


def _message(template: tuple[str, ...], arguments: Mapping[str, Any]) -> Message:
    chosen = template[0 if len(template) == 1 or arguments["count"] == 1 else 1]
    made = Message(chosen.format(**{name: _kept(each) for name, each in arguments.items()}))
    made.template, made.arguments = template, arguments
    return made


def _chain(template: str, parts: Iterable[str]) -> str:
    texts = list(parts)
    return (
        reduce(lambda told, part: message(template, told=told, part=part), texts) if texts else ""
    )


def _told(argument: Any, language: Language) -> Any:
    known = isinstance(argument, Message | Dated | CodedMessage)
    return translated(argument, language) if known else _kept(argument)


def _kept(argument: Any) -> Any:
    """Isolate a value, so that it cannot reorder the sentence; a message has done so already."""
    if isinstance(argument, CodedMessage):
        return _message((argument.template,), argument.arguments)
    return isolated(argument) if type(argument) is str else argument


def _date(text: Dated, language: Language) -> str:
    if language.tag == "en":
        return text
    from babel.dates import format_skeleton

    told: str = format_skeleton(text.parts, text.when, locale=language.locale)
    return told
