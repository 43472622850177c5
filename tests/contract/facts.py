"""What an output says, apart from how it is laid out: its facts.

A fact is a number or a sentence, under its *subject*: the row of a table, the object of a JSON
document. `facts_of` reads HTML, SVG, JSON, CSV and what a terminal shows; `written` is the form in
which facts are kept. Tags, classes, order, columns, whitespace and bars are no facts.
"""

from __future__ import annotations

import csv
import hashlib
import html.parser
import io
import json
import math
import re
from collections import Counter
from itertools import takewhile
from typing import TypeAlias

Facts: TypeAlias = Counter[tuple[str, str]]
"""How often each fact is said, with its subject; that of the whole output is empty."""

DIGITS = 9
DRAWN = 6
"""Digits of the longest number that places something on a page."""

TOLERANCE = 1e-7
"""Relative. Kinds of CPU add up in different orders: of most numbers that changes the sixteenth
digit, of a p-value in a far or skewed tail the ninth."""

NAMES = ("name", "value", "string", "period", "window", "series", "metric", "segment", "text", "id")
"""The first of these keys that an object or a row has says what it is about."""

INLINE = frozenset(
    {
        *("a", "abbr", "b", "bdi", "bdo", "button", "cite", "code", "data", "em", "i", "kbd"),
        *("label", "mark", "q", "s", "small", "span", "strong", "sub", "sup", "time", "tspan"),
        *("u", "var", "wbr"),
    }
)
"""Tags that divide no sentence."""

UNSEEN = frozenset({"script", "style", "template"})
VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "source", "wbr", "col"})
SAID = ("title", "aria-label", "alt", "placeholder")
"""Attributes that people read or hear."""

_FLOAT = re.compile(r"(?<![\w.])\d+\.\d+(?:e[+-]?\d+)?(?![\w.])")
_TICK = re.compile(r"[−+-]?[\d.,]+\s?\S{0,5}|\d{1,2} \w{3}(?: \d{4})?|[\d 年月日]+")
_DRAWN = re.compile(r"[─-▟■-◿]+")
_NUMBER = r"[−+±-]?[\d.,]+(?:e[+-]?\d+)?%?"
_NUMBERS = re.compile(
    rf"(?:{_NUMBER} \.\. {_NUMBER}|{_NUMBER})(?: (?:{_NUMBER} \.\. {_NUMBER}|{_NUMBER}))*"
)
_ONE = re.compile(rf"{_NUMBER} \.\. {_NUMBER}|{_NUMBER}")


def facts_of(text, form, *, around=False):
    """The facts of an output in one of the forms html, svg, json, openapi, csv and text.

    Args:
        around: whether what stands on every page is part of it: its header and its footer.
    """
    readers = {"json": _of_json, "openapi": _of_openapi, "csv": _of_csv, "text": _of_text}
    found = readers[form](text) if form in readers else _of_markup(text, around)
    return Counter((_plain(subject), fact) for subject, each in found if (fact := _plain(each)))


def look_of(text):
    """A digest of an output as it is laid out: of all of it but long numbers, which are facts."""
    short = _FLOAT.sub(lambda found: found[0] if _digits(found[0]) < DRAWN else "#", text)
    return hashlib.sha256(short.encode()).hexdigest()[:10]


def _plain(text):
    """The text with single spaces, and its longer numbers rounded; empty if nothing is said."""
    text = re.sub(r"\s+([,;:!?)]|\.(?!\.))", r"\1", " ".join(text.split()))
    return _rounded(text) if any(each.isalnum() for each in text) else ""


def _rounded(text):
    def shorter(found):
        return found[0] if _digits(found[0]) <= DIGITS else f"{float(found[0]):.{DIGITS}g}"

    return _FLOAT.sub(shorter, text)


def _digits(number):
    return len(number.partition("e")[0].replace(".", "").lstrip("0"))


def _of_json(text):
    yield from _of_value((), "", json.loads(text))


def _of_value(subject, key, value):
    """The facts of a JSON value: what it is about are the names of the objects around it."""
    if isinstance(value, dict):
        named = next((each for each in NAMES if isinstance(value.get(each), str)), None)
        inner = value[named] if named else key
        for each, part in value.items():
            if each != named:
                yield from _of_value((*subject, inner) if inner else subject, each, part)
    elif isinstance(value, list):
        if any(isinstance(each, dict | list) for each in value):
            for each in value:
                yield from _of_value(subject, key if isinstance(each, list) else "", each)
        elif value and all(isinstance(each, str) and " " in each for each in value):
            for each in value:
                yield " · ".join(subject), f"{key}: {each}"
        else:
            yield " · ".join(subject), f"{key}: {', '.join(map(_scalar, value)) or 'none'}"
    else:
        yield " · ".join(subject), f"{key}: {_scalar(value)}" if key else _scalar(value)


def _scalar(value):
    return value if isinstance(value, str) else json.dumps(value)


def _of_openapi(text):
    """Which requests an OpenAPI document describes, what they take, and what answers they get."""
    document = json.loads(text)
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            if method == "parameters":
                continue
            request = f"{method.upper()} {path}"
            for given in (*methods.get("parameters", ()), *described.get("parameters", ())):
                while "$ref" in given:
                    found = document
                    for part in given["$ref"].removeprefix("#/").split("/"):
                        found = found[part]
                    given = found
                needed = ", required" if given.get("required") else ""
                yield request, f"takes {given['name']} in {given['in']}{needed}"
            for body in described.get("requestBody", {}).get("content", ()):
                yield request, f"takes {body}"
            for status in described["responses"]:
                yield request, f"responds {status}"


def _of_csv(text):
    rows = list(csv.DictReader(io.StringIO(text)))
    same = {key for key in rows[0] if len({row[key] for row in rows}) == 1} if rows[1:] else set()
    for key in sorted(same):
        yield "", f"{key}: {rows[0][key]}"
    for row in rows:
        about = [key for key in NAMES if key in row and key not in same] or [next(iter(row))]
        subject = " · ".join(row[key] for key in about)
        for key, cell in row.items():
            if key not in same and key not in about:
                yield subject, f"{key}: {cell}"


def _of_text(text):
    """A line with several cells is a row; one that has a single cell is a sentence."""
    for line in text.splitlines():
        cells = [each for each in re.split(r"\s{2,}", _DRAWN.sub("  ", line).strip()) if each]
        if not cells:
            continue
        parts = [part for cell in cells for part in _parts(cell)]
        if len(parts) == 1:
            yield "", parts[0]
            continue
        # The words before the first number name the row; without numbers, the first cell does.
        words = list(takewhile(lambda each: not _ONE.fullmatch(each), parts))
        about = words if 0 < len(words) < len(parts) else parts[:1]
        for part in parts[len(about) :]:
            yield " · ".join(about), part


def _parts(cell):
    """Numbers side by side are cells of their own, also those that follow a word or two."""
    if _NUMBERS.fullmatch(cell):
        return _ONE.findall(cell)
    words = re.match(rf"(.+?) ({_NUMBERS.pattern})$", cell)
    return [words[1], *_ONE.findall(words[2])] if words and " " in words[2] else [cell]


class _Reader(html.parser.HTMLParser):
    """Gathers the phrases of a page, the cells of its tables with their columns, and what its
    attributes say."""

    def __init__(self, around):
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self._around = around
        self._open: list[str] = []
        self._unseen = 0
        self._phrase: list[str] = []
        self._columns: list[str] = []
        self._row: list[str] | None = None
        self._term = ""

    def handle_starttag(self, tag, attrs):
        given = {name: value or "" for name, value in attrs}
        if tag not in VOID:
            hidden = tag in UNSEEN or "hidden" in given or given.get("type") == "hidden"
            around = not self._around and tag in ("header", "footer") and "main" not in self._open
            self._unseen += bool(self._unseen) or hidden or around
            self._open.append(tag)
        if self._unseen:
            return
        if tag not in INLINE:
            self._end_phrase()
        else:
            self._phrase.append(" ")
        if tag == "tr":
            self._row = []
        if tag == "thead":
            self._columns = []
        for name in SAID:
            if given.get(name):
                self.found.append(("", given[name]))
        if tag == "input":
            self._input(given)
        if tag == "option" and "selected" in given:
            self._phrase.append("(chosen) ")

    def _input(self, given):
        kind = given.get("type", "text")
        if kind in ("radio", "checkbox"):
            self._phrase.append("(chosen) " if "checked" in given else "")
        elif kind != "hidden" and given.get("value"):
            self.found.append(("", f"{given.get('name', '')} = {given['value']}"))

    def handle_endtag(self, tag):
        if tag in VOID or tag not in self._open:
            return
        while True:
            ended = self._open.pop()
            if self._unseen:
                self._unseen -= 1
            else:
                self._end(ended)
            if ended == tag:
                return

    def _end(self, tag):
        if tag in ("td", "th") and self._row is not None:
            self._row.append(self._taken())
        elif tag == "tr" and self._row is not None:
            self._end_row(self._row)
            self._row = None
        elif tag == "dt":
            self._term = self._taken()
        elif tag == "dd":
            self.found.append(("", f"{self._term}: {self._taken()}"))
        elif tag in INLINE:
            self._phrase.append(" ")
        else:
            self._end_phrase()

    def _end_row(self, row):
        if "thead" in self._open:
            self._columns = row
            return
        if len(row) == 1:
            self.found.append(("", row[0]))
        columns = self._columns if len(self._columns) == len(row) else [""] * len(row)
        for column, cell in zip(columns[1:], row[1:], strict=True):
            if cell:
                self.found.append((row[0], f"{column}: {cell}" if column else cell))

    def handle_data(self, data):
        if not self._unseen:
            self._phrase.append(data)

    def _taken(self):
        text = " ".join("".join(self._phrase).split())
        self._phrase.clear()
        return text

    def _end_phrase(self):
        if self._row is not None and {"td", "th"} & {*self._open}:
            # A cell of several paragraphs is one fact.
            self._phrase.append(" ")
            return
        text = self._taken()
        # The marks of an axis are layout.
        if text and not ("svg" in self._open and _TICK.fullmatch(text)):
            self.found.append(("", text))


def _of_markup(text, around):
    reader = _Reader(around)
    reader.feed(text)
    reader.close()
    return iter(reader.found)


def written(facts):
    """The lines in which facts are kept: sorted, under their subjects, each once."""
    lines = []
    subject = ""
    for (about, fact), count in sorted(facts.items()):
        if about != subject:
            lines.append(f"# {about}")
            subject = about
        times = f" ×{count}" if count > 1 else ""
        lines.append(f"{'  ' if about else ''}{fact}{times}")
    return lines


def same(kept, found):
    """Whether two facts differ in nothing but the last digits of long numbers."""
    if kept == found:
        return True
    if _FLOAT.sub("0", kept) != _FLOAT.sub("0", found):
        return False
    return all(
        old == new
        or (
            max(_digits(old), _digits(new)) >= DIGITS - 1
            and math.isclose(float(old), float(new), rel_tol=TOLERANCE)
        )
        for old, new in zip(_FLOAT.findall(kept), _FLOAT.findall(found), strict=True)
    )


def difference(kept, found):
    """The facts that are missing (-) and new (+), each below its subject."""
    missing, new = Counter(_told(kept)), Counter(_told(found))
    missing, new = missing - new, new - missing
    for old in list(missing):
        if (near := next((each for each in new if same(old, each)), None)) is not None:
            del missing[old], new[near]
    marked = [(fact, f"- {fact}") for fact in missing] + [(fact, f"+ {fact}") for fact in new]
    return [line for _, line in sorted(marked)]


def _told(lines):
    """Each line with the output and the subject that it belongs to."""
    output = subject = ""
    for line in lines:
        if line.startswith("== "):
            output, subject = line, ""
        elif line.startswith("# "):
            subject = line
        else:
            yield " | ".join(each for each in (output, subject, line.strip()) if each)
