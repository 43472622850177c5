"""What is asked wrongly: the page keeps the form as it was sent, and names the field."""

from __future__ import annotations

import re

import pytest
from flask.testing import FlaskClient

SWAPPED = "from=2026-11-20&to=2026-11-01"


def fields(page: str) -> dict[str, str]:
    """What the fields of a page's forms hold, by name."""
    inputs = re.findall(r"<input [^>]+>", page)
    named = {name[1]: each for each in inputs if (name := re.search(r' name="(\w+)"', each))}
    return {
        name: found[1] if (found := re.search(r' value="([^"]*)"', each)) else ""
        for name, each in named.items()
    }


def invalid(page: str) -> set[str]:
    """The names of the fields that are marked."""
    return {
        name[1]
        for each in re.findall(r"<input [^>]+>", page)
        if "aria-invalid" in each and (name := re.search(r' name="(\w+)"', each))
    }


@pytest.mark.parametrize(
    ("query", "marked", "told"),
    [
        (SWAPPED, {"from", "to"}, "Swap the two dates."),
        ("from=soon&to=2026-11-20", {"from"}, "“from” is not a date."),
        ("from=2026-11-01&to=2026-11-31", {"to"}, "“to” is not a date."),
        ("from=1900-01-01&to=2026-11-20", {"from", "to"}, "longer than ten years"),
        ("from=2026-11-01&to=2026-11-20&by=hour", set(), "“by” can be day or week"),
        ("from=2026-11-01&to=2026-11-20&frm=1", set(), "Did you mean “from”?"),
        ("from=2026-11-01&to=2026-11-20&utm=1", set(), "“utm” is not known here"),
        ("from=2026-11-01&to=2026-11-20&value=opera", set(), "“value”"),
    ],
)
@pytest.mark.parametrize("path", ["/metric/browser", "/metric/browser/compare"])
def test_a_metric_keeps_its_form(
    browser: FlaskClient, path: str, query: str, marked: set[str], told: str
) -> None:
    """Swapped dates, no dates, and parameters or choices that there are not: 400, the form as it
    was sent, the fields at fault marked, and what to do said on the page."""
    if path.endswith("compare") and ("by=" in query or "value=" in query):
        told = "is not known here"
    answer = browser.get(f"{path}?{query}")
    assert answer.status_code == 400
    page = answer.text
    sent = dict(pair.split("=") for pair in query.split("&"))
    kept = fields(page)
    assert (kept["from"], kept["to"]) == (sent["from"], sent["to"])
    assert invalid(page) == marked
    alert = re.search(r'<p class="problem"[^>]* role="alert"[^>]*>(.*?)</p>', page)
    assert alert is not None
    assert told in alert[1]
    assert "Which browser opens links?" in page
    assert "20,000 reports" not in page
    assert not re.search(r'<ul class="presets".*aria-current.*</ul>', page, re.DOTALL)


def test_the_earlier_period_is_named(browser: FlaskClient) -> None:
    """A mistake in the period to compare with names its own fields, not those of the other."""
    later = "from=2026-11-20&to=2026-11-20"
    page = browser.get(
        f"/metric/browser/compare?{later}&before_from=2026-11-19&before_to=2026-11-02"
    )
    assert page.status_code == 400
    assert invalid(page.text) == {"before_from", "before_to"}
    assert "“before_to”" in page.text
    assert fields(page.text)["before_from"] == "2026-11-19"
    page = browser.get(f"/metric/browser/compare?{later}&before_from=x")
    assert invalid(page.text) == {"before_from"}
    assert "“before_from” is not a date." in page.text


def test_periods_that_overlap_keep_the_form(browser: FlaskClient) -> None:
    """Two periods that share a day cannot be compared: the form stays, and the period to compare
    with is marked."""
    days = "from=2026-11-20&to=2026-11-20&before_from=2026-11-19&before_to=2026-11-20"
    page = browser.get(f"/metric/browser/compare?{days}")
    assert page.status_code == 400
    assert invalid(page.text) == {"before_from", "before_to"}
    assert fields(page.text)["before_to"] == "2026-11-20"
    assert "2026-11-20" in page.text.partition('role="alert"')[2]


def test_what_is_no_date_stays_in_its_field(browser: FlaskClient) -> None:
    """A date field of a browser drops what is no date, so that it stands in a field of text; and
    it is escaped."""
    page = browser.get('/metric/browser?from="><b>soon&to=2026-11-20').text
    field = re.search(r'<input[^>]* name="from"[^>]*>', page)
    assert field is not None
    assert 'type="text"' in field[0]
    assert 'value="&#34;&gt;&lt;b&gt;soon"' in field[0]


def test_the_overview_and_the_planner_keep_their_forms(browser: FlaskClient) -> None:
    """A parameter that they do not know is refused with the form as it was sent."""
    page = browser.get("/?q=dark&tga=settings")
    assert page.status_code == 400
    assert fields(page.text)["q"] == "dark"
    assert "Did you mean “tag”?" in page.text
    page = browser.get("/plan?devices=12345&sise=20")
    assert page.status_code == 400
    assert fields(page.text)["devices"] == "12345"
    assert "Did you mean “size”?" in page.text
    page = browser.get("/plan?epsilon=3&lifetime_epsilon=2")
    assert page.status_code == 400
    assert invalid(page.text) == {"lifetime_epsilon"}


def test_files_and_programs_are_told_as_well(browser: FlaskClient) -> None:
    """Of a file, and for a program, the same mistakes are a problem document."""
    for path in ("/metric/browser.csv", "/metric/browser/trend.json", "/metric/browser.svg"):
        answer = browser.get(f"{path}?{SWAPPED}")
        assert answer.status_code == 400
        assert answer.mimetype == "application/problem+json"
        assert "Swap the two dates." in answer.json["detail"]
        assert browser.get(f"{path}?frm=2026-11-01").status_code == 400
    assert browser.get("/metric/browser.png?scale=1").status_code == 200
    program = browser.get(f"/metric/browser?{SWAPPED}", headers={"Accept": "application/json"})
    assert program.status_code == 400
    assert program.mimetype == "application/problem+json"


def test_every_language_tells_it(browser: FlaskClient) -> None:
    """In Chinese the mistake is told in Chinese."""
    page = browser.get(f"/metric/browser?{SWAPPED}&lang=zh-Hans")
    assert page.status_code == 400
    assert "请交换两个日期" in page.text
