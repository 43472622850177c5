"""The page of the strings that were found: its parameters, and the trend of one of them."""

import json
import re

import numpy as np
import pytest
from tests.registries import declared

from deniable import Registry
from deniable_collector.stores import open_store
from deniable_estimator.analyses import analysis_of
from deniable_estimator.asking.work import Workers

from .conftest import browser_of, dashboard_of, put, text_of

FOUND = declared(
    terms={"type": "discovery", "epsilon": 4.0, "lifetime_epsilon": 40.0, "max_length": 4},
    plain={"type": "boolean"},
)
CROWDS = {
    "2026-11-02": {"git": 30_000, "svn": 30_000},
    "2026-11-10": {"git": 20_000, "svn": 40_000},
    "2026-11-17": {"git": 45_000, "svn": 15_000},
}

DAYS = "from=2026-11-02&to=2026-11-15"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Three days of two strings, of which git becomes more frequent at last."""
    registry = Registry.parse(FOUND)
    store = open_store(f"sqlite:///{tmp_path_factory.mktemp('found')}/store.db")
    store.publish({each.name: [each.scheme] for each in registry})
    rng = np.random.default_rng(8)
    for day, crowd in CROWDS.items():
        metric = registry["terms"]
        counts = np.array([*crowd.values()], np.int64)
        rows = analysis_of(metric.scheme.mechanism).sample_rows([*crowd], counts, rng)
        put(store, metric, rows, day)
    yield store, registry
    store.close()


@pytest.fixture
def reader(found, monkeypatch):
    """A browser of a dashboard that calculates in its own process: to start another takes long."""
    monkeypatch.setattr(Workers, "run", lambda _, work, *of, strings=None: work(*of))
    return browser_of(dashboard_of(*found))


def test_the_trend_of_a_find(reader):
    """A find that is chosen is drawn by the period and in the days that are asked for."""
    text = text_of(reader, f"/metric/terms/strings?find=git&by=week&{DAYS}")
    assert "git by week" in text
    assert "From 2026-W45: git 49." in text
    assert "2026-W46: git 3" in text
    assert "2026-W47" not in text
    assert re.search(r'<span aria-current="true">week</span>', text)
    days = text_of(reader, f"/metric/terms/strings?find=git&by=day&{DAYS}")
    assert "git by day" in days
    assert "From 2 Nov 2026: git 49." in days
    none = text_of(reader, "/metric/terms/strings?find=git&by=month")
    assert "git by month" not in none, "one month alone is no trend"
    plain = text_of(reader, f"/metric/terms/strings?{DAYS}")
    assert "git by" not in plain
    assert "2 strings were found" in plain


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("find=hg", "“hg” was not found in these days."),
        ("find=git&by=hour", "by"),
        ("from=yesterday", "from"),
        ("colour=red", "colour"),
        ("find=git&to=2026-10-01&from=2026-10-02", "from"),
    ],
)
def test_what_there_is_not(reader, asked, told):
    """It is refused in words, by the page and by the file."""
    for address in ("strings", "strings.json"):
        answer = reader.get(f"/metric/terms/{address}?{asked}")
        while answer.status_code == 202:
            answer = reader.get(f"/metric/terms/{address}?{asked}")
        text = answer.text.replace("\\u201c", "“").replace("\\u201d", "”")
        assert answer.status_code == 400
        assert told in re.sub("[\u2068\u2069]|\\\\u206[89]", "", text)


def test_its_files(reader):
    """The finds with their shares, or the trend of the chosen one."""
    finds = json.loads(text_of(reader, f"/metric/terms/strings.json?{DAYS}"))
    assert (finds["metric"], finds["from"], finds["to"]) == ("terms", "2026-11-02", "2026-11-15")
    shares = {each["text"]: each["share"] for each in finds["finds"]}
    assert shares["svn"] == pytest.approx(7 / 12, abs=0.03)
    assert shares["git"] == pytest.approx(5 / 12, abs=0.03)
    table = reader.get(f"/metric/terms/strings.csv?find=svn&by=day&{DAYS}")
    assert "terms-string-trend.csv" in table.headers["Content-Disposition"]
    lines = [each.split(",") for each in table.text.splitlines()]
    assert [line[0] for line in lines] == ["period", "2026-11-02", "2026-11-10"]
    assert [line[7] for line in lines[1:]] == ["svn", "svn"]
    assert [float(line[8]) for line in lines[1:]] == pytest.approx([1 / 2, 2 / 3], abs=0.05)
    assert reader.get("/metric/plain/strings").headers["Location"].endswith("/metric/plain")
    listed = reader.get(f"/metric/terms/strings.csv?{DAYS}")
    assert "terms-strings.csv" in listed.headers["Content-Disposition"]
    assert "svn" in listed.text
