"""How Sphinx builds the documentation's site: `make site` runs it, and warnings are errors.

The pages are the Markdown files of docs/ and of the repository's root, where they stay readable on
a forge. docs/index.md arranges them: a page that it does not name is an error.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pygments.lexers import BashLexer
from sphinx.application import Sphinx

import deniable

sys.path.insert(0, str(Path(__file__).parent))

project = "deniable"
copyright = "the authors of deniable, Apache License 2.0"
release = version = deniable.__version__
language = "en"

# The root of the repository is the source folder, so that links between its pages are the same
# here and on a forge. Folders without pages are not walked through.
root_doc = "docs/index"
include_patterns = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "benchmarks/README.md",
    "docs/*.md",
    "docs/**/*.md",
]
exclude_patterns = [".*", "client", "collector", "demo", "deploy", "estimator", "site", "tests"]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "extensions.accessibility",
    "extensions.commands",
    "extensions.contents",
    "extensions.formulas",
    "extensions.openapi",
    "extensions.settings",
]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4

# Docstrings are written in plain text, with code between single backticks.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
add_module_names = False

html_theme = "furo"
html_title = "deniable"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_additional_pages = {"index": "redirect.html"}
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_use_index = True
html_math_renderer = "mathml"
templates_path = ["templates"]
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
highlight_language = "text"


def setup(app: Sphinx) -> None:
    app.add_lexer("crontab", BashLexer)
