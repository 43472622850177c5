"""What `make texts` does: collects the texts to translate, and updates the catalogues.

The texts are those of the estimator and its pages, and of the client package its sentences
(`deniable.protocol.coded_message.CodedMessage`) and the names of its mechanisms.

Texts that are no longer used are removed from a catalogue. New ones are added without a
translation, and a test fails until there is one.
"""

from __future__ import annotations

import ast
import io
import sys
from collections.abc import Container, Iterator
from pathlib import Path
from typing import IO, Any

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

import deniable
import deniable_estimator
from deniable.protocol.mechanisms import MECHANISMS
from deniable_estimator.dashboard.language import LANGUAGES, TRANSLATIONS
from deniable_estimator.planning.words import mechanism_words

_ROOT = Path(deniable_estimator.__file__).parent
"""The folder in which texts are searched."""

_BELOW = Path(deniable.__file__).parent
"""The folder of the client package."""


def _of_python(
    file: IO[bytes], keywords: Container[str], comment_tags: object, options: object
) -> Iterator[tuple[int, str, tuple[str | None, ...], list[str]]]:
    """Calls in a module that have texts as arguments, also inside the arguments of others, which
    Babel's own method does not see."""
    for node in ast.walk(ast.parse(file.read())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            called = ast.unparse(node.func)
            texts = tuple(
                value if isinstance(value := getattr(each, "value", None), str) else None
                for each in node.args
            )
            if called in keywords and any(texts):
                yield node.lineno, called, texts, []


_METHODS: list[tuple[str, Any]] = [
    ("**.py", _of_python),
    ("**/templates/**.html", "jinja2.ext.babel_extract"),
    ("**/templates/**.svg", "jinja2.ext.babel_extract"),
]
_OPTIONS = {
    f"**/templates/**.{kind}": {"newstyle_gettext": "true", "trimmed": "true"}
    for kind in ("html", "svg")
}
_KEYWORDS = {
    "gettext": None,
    "_": None,
    "ngettext": (1, 2),
    "pgettext": ((1, "c"), 2),
    "message": None,
    "sentence": None,
    "counted": (1, 2),
    "CodedMessage": (2,),
}
_KEYWORDS_BELOW = {"CodedMessage": (2,), "SchemeError.of": (2,)}


def template() -> Catalog:
    """All English texts, each with the files that contain it."""
    found = Catalog(project="deniable", charset="utf-8")
    texts = [*extract_from_dir(_ROOT, _METHODS, _OPTIONS, keywords=_KEYWORDS)]
    below = extract_from_dir(_BELOW, _METHODS, {}, keywords=_KEYWORDS_BELOW)
    texts += [(f"{_BELOW.name}/{each[0]}", *each[1:]) for each in below]
    texts += [
        (f"{_BELOW.name}/mechanisms", number, mechanism_words(name), [], None)
        for number, name in enumerate(MECHANISMS)
    ]
    for filename, _, text, _, context in sorted(texts, key=lambda each: (each[0], each[1])):
        place = Path(filename).as_posix()
        known = found.get(text if isinstance(text, str) else text[0], context)
        if known is None or (place, 1) not in known.locations:
            added = found.add(text, None, [(place, 1)], context=context)
            if place.endswith(".py"):
                # In a sentence with braces, a percent sign is only a percent sign.
                added.flags.discard("python-format")
    return found


def brought_up_to_date(tag: str, texts: Catalog) -> Catalog:
    """The catalogue of a language, with these texts and no others."""
    locale = tag.replace("-", "_")
    with (TRANSLATIONS / f"{locale}.po").open("rb") as file:
        catalog = read_po(file, locale=locale)
    kept = catalog.creation_date
    catalog.update(texts, no_fuzzy_matching=True)
    catalog.obsolete.clear()
    catalog.creation_date = catalog.revision_date = kept
    catalog.project, catalog.version = "deniable", deniable.__version__
    catalog.last_translator = catalog.language_team = LANGUAGES[tag].name
    catalog.msgid_bugs_address = ""
    return catalog


def written(catalog: Catalog, *, header: bool = True) -> bytes:
    """The catalogue as the content of its file."""
    file = io.BytesIO()
    write_po(file, catalog, width=100, omit_header=not header, include_lineno=False)
    return file.getvalue()


def files() -> Iterator[tuple[Path, bytes]]:
    """Every catalogue with the content that it should have."""
    texts = template()
    yield TRANSLATIONS / "messages.pot", written(texts, header=False)
    for tag in LANGUAGES:
        if tag != "en":
            name = f"{tag.replace('-', '_')}.po"
            yield TRANSLATIONS / name, written(brought_up_to_date(tag, texts))


def main() -> None:
    """Write the catalogues, and print how many translations are missing."""
    for path, content in files():
        path.write_bytes(content)
    for tag in LANGUAGES:
        if tag != "en":
            missing = [
                each for each in brought_up_to_date(tag, template()) if each.id and not each.string
            ]
            sys.stdout.write(f"{tag}: {len(missing)} texts have no translation\n")


if __name__ == "__main__":
    main()
