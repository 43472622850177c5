"""The crowd that facts are about, and a dashboard over it."""

import shutil

import pytest

from .asking import Crowd, Dashboard, crowd_folder


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The folder of the crowd, of which others make copies: nobody writes into it."""
    return crowd_folder(tmp_path_factory)


@pytest.fixture(scope="session")
def dashboard(built, tmp_path_factory):
    """A dashboard over a copy, which each process of the tests asks."""
    made = Dashboard(shutil.copytree(built, tmp_path_factory.mktemp("dashboard") / "crowd"))
    yield made
    made.close()


@pytest.fixture
def people(built, dashboard, tmp_path):
    """A crowd whose folder is this test's own."""
    folder = tmp_path / "crowd"
    shutil.copytree(built, folder)
    return Crowd(folder, dashboard)
