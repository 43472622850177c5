"""The crowd that facts are about, and a dashboard over it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from .asking import Crowd, Dashboard, crowd_folder


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the crowd."""
    return crowd_folder(tmp_path_factory)


@pytest.fixture(scope="session")
def dashboard(built: Path) -> Iterator[Dashboard]:
    """A dashboard over it, in which each process of the tests asks."""
    made = Dashboard(built)
    yield made
    made.close()


@pytest.fixture
def people(built: Path, dashboard: Dashboard, tmp_path: Path) -> Crowd:
    """A crowd whose folder is this test's own."""
    folder = tmp_path / "crowd"
    shutil.copytree(built, folder)
    return Crowd(folder, dashboard)
