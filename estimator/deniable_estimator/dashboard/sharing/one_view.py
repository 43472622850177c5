"""A page without what leads elsewhere: whoever opens a link sees one view, and no way out of it.

The server opens nothing else to a link, so this is for the eye. It works on the finished page, so
that a new link of a page cannot be forgotten here: what is not known to belong to the view goes.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from html.parser import HTMLParser

__all__ = ["one_view"]

_INSIDE = frozenset({"crumbs", "controls", "elsewhere", "presets", "switch", "switches", "person"})
"""Classes of elements that are for people who have signed in."""

_VOID = frozenset(
    {
        *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param"),
        *("source", "track", "wbr"),
    }
)

_ADDRESSES = frozenset(
    {
        *("action", "background", "cite", "data", "formaction", "href", "manifest", "ping"),
        *("poster", "src", "srcset", "xlink:href"),
    }
)


def one_view(page: str, place: Callable[[str], str | None]) -> str:
    """The page with each address as `place` gives it; what it has no place for is taken out.

    Forms and their fields go, and what only serves to choose another view. Of a link without a
    place the text stays, except within a paragraph, where it is something to do.
    """
    reader = _OneView(place)
    reader.feed(page)
    reader.close()
    return "".join(reader.parts)


class _OneView(HTMLParser):
    """Writes what it reads, character by character, but for what is taken out."""

    def __init__(self, place: Callable[[str], str | None]) -> None:
        super().__init__(convert_charrefs=False)
        self.parts: list[str] = []
        self._place = place
        self._skipped: list[str] = []
        """The elements that are open in what is taken out."""
        self._links: list[str] = []
        """What each open link has become."""
        self._paragraphs = self._drawings = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._start(tag, attrs, closed=False)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._start(tag, attrs, closed=True)

    def handle_endtag(self, tag: str) -> None:
        if self._skipped:
            if tag in self._skipped:
                while self._skipped.pop() != tag:
                    pass
            return
        if tag == "a" and self._links:
            self.parts.append(f"</{self._links.pop()}>")
            return
        self._count(tag, -1)
        self.parts.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        self._write(data)

    def handle_entityref(self, name: str) -> None:
        self._write(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self._write(f"&#{name};")

    def handle_decl(self, decl: str) -> None:
        self._write(f"<!{decl}>")

    def _start(self, tag: str, attrs: list[tuple[str, str | None]], *, closed: bool) -> None:
        empty = closed or tag in _VOID
        if self._skipped:
            if not empty:
                self._skipped.append(tag)
            return
        classes = {*(dict(attrs).get("class") or "").split()}
        if tag in ("form", "script", "iframe", "object") or classes & _INSIDE:
            if not empty:
                self._skipped.append(tag)
            return
        text = self.get_starttag_text() or ""
        named = [(name, value or "") for name, value in attrs if name in _ADDRESSES]
        placed = {name: self._place(value) for name, value in named}
        if tag == "a":
            self._link(text, attrs, placed, empty)
            return
        if None in placed.values():
            # An image or a style sheet of elsewhere; the element stays if it has content.
            if empty:
                return
            text = _tag(tag, [pair for pair in attrs if placed.get(pair[0], "") is not None])
        if not empty:
            self._count(tag, 1)
        self.parts.append(text)

    def _link(
        self,
        text: str,
        attrs: list[tuple[str, str | None]],
        placed: dict[str, str | None],
        empty: bool,
    ) -> None:
        if not placed:
            self.parts.append(text)
            if not empty:
                self._links.append("a")
            return
        if None not in placed.values():
            changed = [(name, placed.get(name, value)) for name, value in attrs]
            self.parts.append(_tag("a", changed))
            if not empty:
                self._links.append("a")
            return
        if empty:
            return
        if self._paragraphs and not self._drawings:
            self._skipped.append("a")
            return
        other = "g" if self._drawings else "span"
        kept = [pair for pair in attrs if pair[0] in ("class", "aria-current", "lang", "title")]
        self.parts.append(_tag(other, kept))
        self._links.append(other)

    def _count(self, tag: str, step: int) -> None:
        if tag == "p":
            self._paragraphs = max(0, self._paragraphs + step)
        if tag == "svg":
            self._drawings = max(0, self._drawings + step)

    def _write(self, text: str) -> None:
        if not self._skipped:
            self.parts.append(text)


def _tag(name: str, attrs: list[tuple[str, str | None]]) -> str:
    written = (
        f" {each}" if value is None else f' {each}="{escape(value, quote=True)}"'
        for each, value in attrs
    )
    return f"<{name}{''.join(written)}>"
