"""What the theme's pages lack for keyboards and screen readers, added when they are written.

Each change names its place in the theme's HTML. If a new version of the theme moves it, the build
warns, so that the change is not lost in silence.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import logging

_LOGGER = logging.getLogger(__name__)

_CHANGES = (
    # Both landmarks need a name of their own.
    (r'<aside class="sidebar-drawer"', r'\g<0> aria-label="Pages"'),
    (r'<aside class="toc-drawer[^"]*"', r'\g<0> aria-label="On this page"'),
    # A heading without a level is none.
    (r'<p class="caption" role="heading"', r'\g<0> aria-level="2"'),
    # What scrolls must be reachable by keyboard.
    (r'(<div class="highlight">)<pre>', r'\1<pre tabindex="0">'),
    (r'<div class="table-wrapper[^"]*"', r'\g<0> tabindex="0"'),
    (r'<p>(?=<img alt="[^"]*" src="[^"]*\.svg" />)', '<p class="picture" tabindex="0">'),
    # A heading without words is an empty cell.
    (r'<th class="head[^"]*">(?:<p></p>)?</th>', "<td></td>"),
    (r'(?=<div id="search-results")', "<h1>Search</h1>\n"),
)


def _improve(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    unseen = dict(_CHANGES)
    for path in Path(app.outdir).rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        for pattern, replacement in _CHANGES:
            text, count = re.subn(pattern, replacement, text)
            if count:
                unseen.pop(pattern, None)
        path.write_text(text, encoding="utf-8")
    for pattern in unseen:
        _LOGGER.warning("the theme's pages have no %s any more: see accessibility.py", pattern)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("build-finished", _improve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
