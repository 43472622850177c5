"""The crowd that facts are about, and a dashboard over it."""

import shutil

import pytest

from .asking import Crowd, Dashboard, crowd_folder


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The folder of the crowd."""
    return crowd_folder(tmp_path_factory)


@pytest.fixture(scope="session")
def dashboard(built):
    """A dashboard over it, in which each process of the tests asks."""
    made = Dashboard(built)
    yield made
    made.close()


@pytest.fixture
def people(built, dashboard, tmp_path):
    """A crowd whose folder is this test's own."""
    folder = tmp_path / "crowd"
    shutil.copytree(built, folder)
    return Crowd(folder, dashboard)
