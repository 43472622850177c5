"""The table of values: sorted, searched, and values ticked in it are drawn together."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable import Registry
from deniable_collector.stores import open_store
from deniable_estimator.dashboard.changes import table

from .conftest import browser_of, dashboard_of, fill_drawn
from .test_charts import estimated

HOSTILE = ["<script>x</script>", "\u202egnp.exe", "a" * 1000, "=cmd|' /C calc'!A0", "日本語"]
MANY = [*HOSTILE, *(f"value {each}" for each in range(900))]


@pytest.fixture
def registry():
    values = ", ".join(f"'''{each}'''" for each in MANY)
    return Registry.parse(
        "schema = 1\napp = 'x'\n[metrics.many]\ntype = 'category'\n"
        "description = 'Which of many?'\nowner = 'a@acme.example'\nexpires = 2027-06-30\n"
        f"epsilon = 4.0\nlifetime_epsilon = 8.0\nvalues = [{values}]\n"
    )


@pytest.fixture
def many(tmp_path, registry):
    """A reader of a metric of 905 values, over four days."""
    store = open_store(f"sqlite:///{tmp_path}/many.db")
    store.publish({"many": [registry["many"].scheme]})
    for day in ("2026-11-02", "2026-11-09", "2026-11-13", "2026-11-14"):
        counts = {each: 1_000 * (each < 40) for each in range(len(MANY))}
        fill_drawn(store, registry, "many", counts, day)
    app = dashboard_of(store, registry)
    yield browser_of(app)
    store.close()


def listed(page):
    return re.findall(r'<th scope="row"><label><input type="checkbox" name="value" value="([^"]*)"',
                      page)  # fmt: skip


def shown(client, query):
    while (answer := client.get(f"/metric/many?{query}")).status_code == 202:
        pass
    assert answer.status_code == 200, answer.status
    return answer.text


def test_values_are_sorted_and_searched(many):
    """By value, share or change, forwards and backwards, among hundreds of values; upper and lower
    case make no difference; nothing is folded away then."""
    found = listed(shown(many, "find=VALUE+19&sort=value"))
    assert found[0] == "value 19"
    assert len(found) == 11
    assert all("19" in each for each in found)
    assert found == sorted(found)
    backwards = listed(shown(many, "find=value+19&sort=-value"))
    assert backwards[0] == "value 199"
    page = shown(many, "sort=-share")
    assert 'aria-sort="ascending"' in page
    assert "sort=share" in page
    assert '<details class="fold">' not in page[page.index('id="numbers"') :]
    assert 'aria-sort="descending"' in shown(many, "sort=change")


@given(
    st.lists(st.integers(0, 400), min_size=3, max_size=40),
    st.sampled_from(["share", "-share", "value", "-value", None]),
    st.text(alphabet="v0123", max_size=2),
)
def test_nothing_is_lost(counts, sort, find):
    """Whatever is sorted and looked for, each value that contains the text stands once."""
    result = estimated(counts, max(1, sum(counts)))
    lines = table(result, 1000, sort=sort, find=find)
    found = [line.value for line in (*lines.standing, *lines.noise)]
    assert sorted(found) == sorted(value for value in result.values if find in value)
    assert lines.more == 0
    assert all(result.values[line.place] == line.value for line in lines.standing)
