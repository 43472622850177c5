"""The option that takes the golden files anew."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Works where this folder is named on the command line: `python -m pytest tests/golden`."""
    parser.addoption("--take", action="store_true", help="Take the golden files anew.")
