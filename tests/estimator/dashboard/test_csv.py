"""CSV files: no cell is taken for a formula, numbers stay as they are, programs get raw texts."""

import csv
import io

import pytest
from tests.registries import declared

from deniable import Registry
from deniable_estimator.document.csv_files import csv_text

from .conftest import browser_of, dashboard_of, fill

HOSTILE = ("=1+1", "+a", "-b", "@c", "-0.5")
REGISTRY = declared(
    {"system": ["=linux", "mac"]},
    odd={"type": "category", "values": HOSTILE, "epsilon": 4.0, "segments": ["system"]},
)


@pytest.fixture
def odd(empty_store):
    """A signed-in browser at a metric whose values are formulas, over two days."""
    registry = Registry.parse(REGISTRY)
    empty_store.publish((metric.name, metric.scheme) for metric in registry)
    for day in ("2026-11-19", "2026-11-20"):
        fill(empty_store, registry, "odd", [0.3, 0.2, 0.2, 0.2, 0.1], 5000, day)
    return browser_of(dashboard_of(empty_store, registry), accept="")


def values(text, column="value"):
    """What stands in a column."""
    return {row[column] for row in csv.DictReader(io.StringIO(text, newline=""))}


@pytest.mark.parametrize(
    "path",
    [
        "/metric/odd.csv",
        "/metric/odd/trend.csv",
        "/metric/odd/segments.csv",
        "/metric/odd/compare.csv?from=2026-11-20&to=2026-11-20&before_from=2026-11-19&before_to=2026-11-19",
        "/api/v1/metrics/odd/estimate?format=csv",
        "/api/v1/metrics/odd/trend?format=csv",
        "/api/v1/metrics/odd/segments?format=csv&by=system",
    ],
)
def test_texts_are_no_formulas_and_programs_get_them_raw(odd, path):
    """Of pages and API, of estimates, trends, segments and comparisons alike."""
    safe = odd.get(path)
    assert safe.status_code == 200
    assert values(safe.text) == {"'=1+1", "'+a", "'-b", "'@c", "-0.5"}
    raw = odd.get(f"{path}{'&' if '?' in path else '?'}raw=1")
    assert values(raw.text) == set(HOSTILE)
    if "segments" in path:
        assert "'=linux" in values(safe.text, "system")
        assert "=linux" in values(raw.text, "system")


def test_a_value_that_is_asked_for_is_found_though_it_is_escaped(odd):
    """The trend of "=1+1" has its lines, escaped or raw."""
    path = "/api/v1/metrics/odd/trend?format=csv&value=%3D1%2B1"
    assert values(odd.get(path).text) == {"'=1+1"}
    assert values(odd.get(path + "&raw=1").text) == {"=1+1"}


def test_cells_by_kind():
    """Numbers, however they are written, stay; tabs and line ends cannot begin a formula."""
    rows = [(-0.5, "-0.5", "+1e-3", "\t=1", "\r=1", "-x", None)]
    expected = [["-0.5", "-0.5", "+1e-3", "\\t=1", "\\r=1", "'-x", ""]]
    assert list(csv.reader(io.StringIO(csv_text(("=a",), rows), newline="")))[1:] == expected
    assert csv_text(("=a",), ()) == "'=a\r\n"
    assert csv_text(("=a",), (), raw=True) == "=a\r\n"
