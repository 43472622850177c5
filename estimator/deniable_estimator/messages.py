"""Sentences that can be told in another language: text in English that remembers its template.

A `Message` is a str, so that whoever writes English (the commands, JSON, CSV, the read API) uses
it as one. A page translates the template, and what stands in it, with `translated`.
"""

from __future__ import annotations

import gettext
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache, reduce
from typing import Any

from deniable_estimator.isolation import isolated

__all__ = [
    "Dated",
    "Language",
    "Message",
    "alternatives",
    "counted",
    "joined",
    "listed",
    "message",
    "recognized",
    "sentence",
    "spaced",
    "translated",
]


class Message(str):
    """A sentence in English, with the template and the arguments that it was made of."""

    __slots__ = ("arguments", "template")

    template: tuple[str, ...]
    """The template, or the two for one and for several, of which `count` decides."""
    arguments: Mapping[str, Any]

    def __str__(self) -> str:
        """Itself, not a copy without its template: so that an error's text keeps it as well."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _message, (self.template, dict(self.arguments))


class Dated(str):
    """A date in English, which remembers the date and which of its parts are written."""

    __slots__ = ("parts", "when")

    when: date
    parts: str
    """What is written, as a skeleton of CLDR: yMMMd, yMMM or MMMd."""

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
    """A language that sentences are told in."""

    tag: str
    """As BCP 47 has it: en, zh-Hans."""
    name: str
    """What those who speak it call it."""
    texts: gettext.NullTranslations
    """The sentences, under those in English."""

    @property
    def locale(self) -> str:
        """As Babel has it."""
        return self.tag.replace("-", "_")


def sentence(template: str) -> str:
    """The template itself, marked for the catalogue: for one that is filled in elsewhere."""
    return template


def message(template: str, **arguments: Any) -> Message:
    """The sentence that the template makes of its arguments, which it names in braces."""
    return _message((template,), arguments)


def counted(one: str, several: str, count: int, **arguments: Any) -> Message:
    """The same of something that is counted, as `count`."""
    return _message((one, several), {**arguments, "count": count})


def joined(parts: Iterable[str]) -> str:
    """Several things in one sentence, divided by semicolons."""
    return _chain(sentence("{told}; {part}"), parts)


def listed(parts: Iterable[str]) -> str:
    """The same, divided by commas."""
    return _chain(sentence("{told}, {part}"), parts)


def spaced(parts: Iterable[str]) -> str:
    """Several sentences, one after the other."""
    return _chain(sentence("{told} {part}"), parts)


def alternatives(parts: Iterable[str]) -> str:
    """One thing or another."""
    return _chain(sentence("{told} or {part}"), parts)


def recognized(text: str, templates: Iterable[str]) -> str:
    """The message that one of the templates makes of the text, or the text itself.

    For what is told by rooms below, which know of no translation.
    """
    for template in templates:
        found = _pattern(template).fullmatch(text)
        if found is not None:
            return message(template, **found.groupdict())
    return text


def translated(text: str, language: Language) -> str:
    """A message or a date in a language, with the messages and dates in it; other text as it is."""
    if isinstance(text, Dated):
        return _date(text, language)
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
    return (
        translated(argument, language) if isinstance(argument, Message | Dated) else _kept(argument)
    )


def _kept(argument: Any) -> Any:
    """A value must not turn the rest of the sentence around; what is a sentence has seen to it."""
    return isolated(argument) if type(argument) is str else argument


def _date(text: Dated, language: Language) -> str:
    if language.tag == "en":
        return text
    from babel.dates import format_skeleton

    told: str = format_skeleton(text.parts, text.when, locale=language.locale)
    return told


@cache
def _pattern(template: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", template)
    return re.compile(
        "".join(
            f"(?P<{part}>.+)" if place % 2 else re.escape(part) for place, part in enumerate(parts)
        ),
        re.DOTALL,
    )
