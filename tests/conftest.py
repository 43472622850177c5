"""What all tests have in common: how long an example may take says nothing on a busy machine."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Works where this folder or one inside it is named on the command line."""
    parser.addoption("--take", action="store_true", help="Take golden files and vectors anew.")
