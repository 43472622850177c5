"""The contents of the site from the lists of docs/index.md, which people also read on a forge.

Each heading of the second level is a section, and each item of its list that begins with a link to
a page is an entry: so a new page needs one line there. Sphinx warns of a page in no section.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

_SECTION = re.compile(r"^## (.+)\n((?:(?!## ).*\n?)*)", re.M)
_ENTRY = re.compile(r"^- \[([^\]]+)\]\(([^)#]+)\.md\)", re.M)


def _add_contents(app: Sphinx, docname: str, source: list[str]) -> None:
    """Append a hidden toctree for each section."""
    if docname != app.config.root_doc:
        return
    for title, text in _SECTION.findall(source[0]):
        if entries := _ENTRY.findall(text):
            options = f":caption: {title}\n:hidden:\n:titlesonly:\n"
            lines = "\n".join(f"{name} <{page}>" for name, page in entries)
            source[0] += f"\n\n```{{toctree}}\n{options}\n{lines}\n```\n"


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", _add_contents)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
