"""One declaration of an input, from which its option, its form field and its parameter are made.

A tuple of inputs is what a question takes: `terminal/options.py` makes click options of it,
`dashboard/api/description.py` the OpenAPI description of the parameters of an address, `read_form`
reads a page's form, and `read_inputs` an address, all mistakes at once. Below are those that
commands, pages and the read API ask of a metric. Nothing here imports numpy.
"""

from __future__ import annotations

import difflib
import math
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import MAXYEAR, MINYEAR, date
from typing import Any, Final, Literal, TypeAlias

from deniable import SchemeError, WindowError
from deniable.protocol import windows
from deniable.protocol.segments import MAX_SEGMENTS
from deniable_estimator.errors import EstimateError
from deniable_estimator.messages import alternatives, counted, listed, message, sentence, spaced

REQUIRED: Final = object()
"""The default of an input that must be given."""

Asked: TypeAlias = Mapping[str, Any]
"""What was asked: the value of each input, by its name."""

Place: TypeAlias = Literal["terminal", "page", "api"]


LONGEST_SEARCH = 200
"""Characters of a search."""


class InputError(SchemeError):
    """What was asked cannot be answered, and `name` is the input at fault."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return InputError, (self.name, str(self))


@dataclass(frozen=True, slots=True)
class Input:
    """Something that can be asked: a number from `low` to `high`, a text of at most `high`
    characters, one of `choices`, a flag, or what `read` makes of a text."""

    name: str
    read: Callable[..., Any]
    """`int`, `float`, `str`, `bool`; or a function, which raises a ValueError that says what to
    write."""
    label: str = ""
    help: str = ""
    default: Any = REQUIRED
    low: float = -math.inf
    high: float = math.inf
    choices: Mapping[str, str] = field(default_factory=dict)
    """Each with its text on a page."""
    many: int = 0
    """How often it can be given at most, if more than once: `read` takes all of its texts then."""
    served: float | None = None
    """The largest number that a server calculates, if it is less than `high`."""
    start: str | None = None
    """What a form begins with, if it is not the default."""
    shape: str | None = None
    """Of a text on the command line, like SEGMENT=VALUE."""
    places: frozenset[Place] = frozenset({"terminal", "page", "api"})
    """Where it can be given; elsewhere it has its default."""

    @property
    def needed(self) -> bool:
        """Whether it must be given."""
        return self.default is REQUIRED

    @property
    def first(self) -> str:
        """What its field in a form begins with."""
        if self.start is not None or self.default in (None, REQUIRED):
            return self.start or ""
        return self.default if self.read is str else f"{self.default:g}"

    @property
    def highest(self) -> float:
        """The largest number that a page or an address takes."""
        return self.high if self.served is None else self.served

    def parse(self, *texts: str, blank: bool = False) -> Any:
        """The value of what was given for it: one text, or several of an input of `many`. Texts
        are in normal form C then, as values are, but for those taken `as_given`. An empty one is a
        mistake, or was not given where forms send empty fields (`blank`).

        Raises:
            InputError: it has none; the message says what to write.
        """
        try:
            if self.read is not as_given:
                texts = tuple(unicodedata.normalize("NFC", each) for each in texts)
            return self._value(texts, blank)
        except ValueError as error:
            raise InputError(self.name, str(error)) from None

    def _value(self, texts: Sequence[str], blank: bool) -> Any:
        if not blank and not all(texts):
            raise ValueError(message("Nothing is written. Write something, or leave it out."))
        if self.many:
            texts = [each for each in texts if each]
        if len(texts) > (self.many or 1):
            raise ValueError(
                message(
                    "Give at most {most}, and not {count}.", most=self.many or 1, count=len(texts)
                )
            )
        if self.many:
            return self.read(texts)
        (text,) = texts
        if self.read is bool:
            if text.lower() not in _FLAGS:
                raise ValueError(message("Choose one of {choices}.", choices="true, false"))
            return _FLAGS[text.lower()]
        if not text and not self.needed:
            return self.default
        if self.choices:
            if text not in self.choices:
                raise ValueError(message("Choose one of {choices}.", choices=listed(self.choices)))
            return text
        if self.read in (int, float):
            return self._number(text)
        if len(text) > self.high or (self.read is str and not text.isprintable()):
            raise ValueError(message("Write at most {most:,} characters.", most=int(self.high)))
        return self.read(text)

    def _number(self, text: str) -> float:
        try:
            value = float(text if text.isascii() and "_" not in text else "")
            value = int(value) if self.read is int and value.is_integer() else self.read(text)
        except ValueError:
            value = math.nan
        if not (self.low <= value <= self.highest and math.isfinite(value)):
            told = _WHOLE if self.read is int else _NUMBER if self.low > -math.inf else _ANY_NUMBER
            raise ValueError(message(told, lowest=self.low, highest=self.highest))
        return value


_WHOLE = sentence("Write a whole number from {lowest:,} up to {highest:,}.")
_NUMBER = sentence("Write a number from {lowest:g} up to {highest:,}.")
_ANY_NUMBER = sentence("Write a number, like 2.5.")
_FLAGS = {**dict.fromkeys(("1", "true", "on"), True), **dict.fromkeys(("", "0", "false"), False)}


@dataclass(frozen=True, slots=True)
class Field:
    """An input in a form, as it was filled in."""

    input: Input
    text: str
    """Of a flag `on`, if it is set."""
    mistake: str | None = None


def read_form(
    inputs: Sequence[Input], arguments: Mapping[str, str]
) -> tuple[list[Field], dict[str, Any] | None]:
    """The fields of a form with their mistakes; and what is asked, if there are none. A form that
    was not sent is filled in with what it begins with."""
    shown = [each for each in inputs if "page" in each.places]
    texts = {each.name: arguments.get(each.name, each.first).strip() for each in shown}
    asked, mistakes = _parsed(inputs, texts, blank=True)
    fields = [Field(each, texts[each.name], mistakes.get(each.name)) for each in shown]
    return fields, None if mistakes else asked


def read_inputs(
    inputs: Sequence[Input], arguments: Mapping[str, str], *, blank: bool = True
) -> dict[str, Any]:
    """What an address asks: the value of each of these inputs, which is the default of what it
    does not give, or leaves empty (`blank`).

    Raises:
        EstimateError: it gives what is not known, or cannot be read; the message names every
            mistake.
    """
    names = [each.name for each in inputs]
    asked, mistakes = _parsed(inputs, arguments, blank)
    told = list(unknown_names(arguments, names))
    for name, mistake in mistakes.items():
        told.append(message("“{name}”: {mistake}", name=name, mistake=mistake))
    if told:
        raise EstimateError(spaced(told), *mistakes, *set(arguments).difference(names))
    return asked


def _parsed(
    inputs: Sequence[Input], arguments: Mapping[str, str], blank: bool
) -> tuple[dict[str, Any], dict[str, str]]:
    """The value of each input, or what is wrong with what was given for it."""
    asked: dict[str, Any] = {}
    mistakes: dict[str, str] = {}
    for each in inputs:
        name = each.name
        try:
            if name in arguments:
                texts = getattr(arguments, "getlist", lambda name: [arguments[name]])(name)
                asked[name] = each.parse(*texts, blank=blank)
            elif each.needed:
                raise InputError(name, message("It is missing."))
            else:
                asked[name] = each.default
        except InputError as error:
            mistakes[name] = str(error)
    return asked, mistakes


def unknown_names(arguments: Iterable[str], known: Collection[str]) -> Iterator[str]:
    """What is wrong with names of an address that are not among those `known`: they would have
    been meant to change something."""
    strange = []
    for name in arguments:
        if name in known or name == "lang":
            continue
        if near := difflib.get_close_matches(name, known, n=1):
            yield message(
                "“{name}” is not known here. Did you mean “{near}”?", name=name, near=near[0]
            )
        else:
            strange.append(f"“{name}”")
    if strange:
        yield counted(
            "{names} is not known here. Remove it; {known} can be given.",
            "{names} are not known here. Remove them; {known} can be given.",
            len(strange),
            names=listed(strange),
            known=alternatives(f"“{each}”" for each in known),
        )


def day_in(text: str) -> date:
    """A day that can be asked for: the windows of the first and the last year may have none before
    or after them."""
    try:
        found = date.fromisoformat(text)
    except ValueError:
        told = message("Write year, month and day, like 2026-11-21.")
        raise ValueError(told) from None
    if MINYEAR < found.year < MAXYEAR:
        return found
    raise ValueError(
        message("Days from 0002-01-01 to 9998-12-31 can be asked for, and not {day}.", day=text)
    )


def _windows(texts: Sequence[str]) -> tuple[str, ...]:
    """The labels of windows, in their order and each once."""
    labels = {label for text in texts for each in text.split(",") if (label := each.strip())}
    try:
        return tuple(sorted(labels, key=windows.start))
    except WindowError:
        raise ValueError(
            message("Write windows like 2026-11-21, 2026-W47 or 2026-11, divided by commas.")
        ) from None


def _segments(texts: Sequence[str]) -> dict[str, str]:
    """Segments with their values."""
    found: dict[str, str] = {}
    for each in texts:
        name, equals, value = each.partition("=")
        if not (name and equals and value):
            told = message("Write a segment with its value, like platform=web.")
            raise ValueError(told)
        if name in found:
            raise ValueError(message("It names {segment} twice.", segment=name))
        found[name] = value
    return found


def choice(name: str, choices: Iterable[str], default: str | None = None) -> Input:
    """One of these texts."""
    return Input(name, str, default=default, choices=dict.fromkeys(choices, ""))


def as_given(text: str) -> str:
    """The text itself, with whatever space is around it."""
    return text


def _names(texts: Sequence[str]) -> tuple[str, ...]:
    """Names, which may be divided by commas."""
    return tuple(name for each in texts for name in each.split(",") if name)


def each_once(texts: Sequence[str]) -> tuple[str, ...]:
    """Texts of which none is there twice."""
    return tuple(dict.fromkeys(texts))


FROM = Input("from", day_in, help="First day (UTC) of the range", default=None, shape="DAY")
TO = Input("to", day_in, help="Last day (UTC) of the range", default=None, shape="DAY")
WITHOUT = Input(
    *("without", _windows, ""),
    "Leave out this window: a day (2026-11-21), a week (2026-W47) or a month (2026-11), as the "
    "metric's windows are; may be given several times, or several divided by commas",
    default=(),
    many=100,
    shape="WINDOW",
)
SINCE = Input(
    *("since", as_given, ""),
    "The complete windows after this annotation, or after a day like 2026-11-20, in place of from "
    "and to; what changed is told from as many before it, and a trend begins with these",
    default="",
    high=200,
    shape="ANNOTATION",
)
WHERE = Input(
    *("where", _segments, ""),
    "Only the reports of this segment, like platform=web; may be given once for each",
    default={},
    many=MAX_SEGMENTS,
    shape="SEGMENT=VALUE",
)
DIVIDED = Input(
    *("by", _names, ""),
    "One estimate for each value of this segment, like platform; may be given twice",
    many=MAX_SEGMENTS,
    shape="SEGMENT",
)
AGAINST = Input(
    *("against", _segments, ""),
    "The segment that the others are compared with, like platform=web; by default the largest",
    default={},
    many=MAX_SEGMENTS,
    shape="SEGMENT=VALUE",
)
MIN_SHARE = Input(
    *("min_share", float, ""),
    "Leave out strings with a smaller share, like 0.01 for 1%; the registry's minimum_share holds "
    "too",
    default=None,
    low=0,
    high=1,
)
BEFORE_FROM, BEFORE_TO = (Input(f"before_{each.name}", day_in, default=None) for each in (FROM, TO))
DAYS = (SINCE, FROM, TO, WITHOUT)
"""What chooses the days."""
