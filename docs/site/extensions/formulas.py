"""Formulas as MathML, which browsers draw without a script and without a font of their own.

docutils, on which Sphinx stands, translates the LaTeX. A formula that it cannot translate is an
error of the build.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

_LOGGER = logging.getLogger(__name__)


def _written(self: HTML5Translator, node: nodes.Element, *, as_block: bool) -> None:
    try:
        formula = str(tex2mathml(node.astext(), as_block=as_block))
    except MathError as error:
        _LOGGER.warning("formula: %s", error, location=node)
        raise nodes.SkipNode from error
    if as_block:
        # A wide formula scrolls by itself; so it must be reachable by keyboard.
        named = 'class="formula" tabindex="0" role="group" aria-label="Formula"'
        formula = f"<div {named}>{formula}</div>"
    self.body.append(formula)
    raise nodes.SkipNode


def _inline(self: HTML5Translator, node: nodes.math) -> None:
    _written(self, node, as_block=False)


def _block(self: HTML5Translator, node: nodes.math_block) -> None:
    _written(self, node, as_block=True)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
