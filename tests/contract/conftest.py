"""The crowd that facts are about, and a dashboard over it."""

import shutil

import pytest

from deniable_estimator.dashboard import privacy_label
from deniable_estimator.privacy.outsider import outsider_of

from . import odd
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


@pytest.fixture(scope="session")
def oddities(tmp_path_factory):
    """The folder of the odd crowd, and a dashboard over it."""
    folder = tmp_path_factory.mktemp("odd") / "crowd"
    odd.build(folder)
    made = Dashboard(folder)
    yield folder, made
    made.close()


@pytest.fixture
def odd_people(oddities, tmp_path, monkeypatch):
    """The odd crowd, whose folder is this test's own."""
    folder, dashboard = oddities

    def quickly(registry, metric, reports):
        # What sums reveal is asked of the other crowd: of some metrics here it takes minutes.
        return outsider_of(registry, registry["silent_week"], reports)

    monkeypatch.setattr(privacy_label, "outsider_of", quickly)
    return Crowd(shutil.copytree(folder, tmp_path / "crowd"), dashboard)
