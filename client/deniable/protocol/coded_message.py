"""Sentences for people that are data as well: a code, with the arguments of an English template.

A program asks for the code and the arguments, and never searches the words. Whoever shows the
sentence in another language translates the template and fills in the arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class CodedMessage(str):
    """An English sentence, or a part of one, with what it was made from.

    Attributes:
        code: what the sentence says, for programs. Two templates never have the same code.
        template: the English words, which name the arguments in braces.
        arguments: what is filled in: numbers, texts and other sentences.
    """

    __slots__ = ("arguments", "code", "template")

    code: str
    template: str
    arguments: Mapping[str, Any]

    def __new__(cls, code: str, template: str, /, **arguments: Any) -> CodedMessage:
        made = super().__new__(cls, template.format(**arguments))
        made.code, made.template, made.arguments = code, template, arguments
        return made

    def __str__(self) -> str:
        """The sentence itself, not a copy without its code, so that `str(error)` keeps it."""
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[str, str], dict[str, Any]]:
        """For copies, and for the way to another process."""
        return (self.code, self.template), dict(self.arguments)


def counted(count: int, noun: str, nouns: str = "") -> str:
    """A number with its noun in English: 1 metric, 2 metrics. `nouns` is the plural of one that
    takes more than an s."""
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"
