"""The newest complete week on a metric's page: what it says, what changed, who leads by now."""

from __future__ import annotations

import re
from datetime import date, timedelta

import pytest
from flask.testing import FlaskClient

from deniable import Registry
from deniable_collector.stores import Store
from deniable_estimator.dashboard.ranges import DayRange, newest_period

from .conftest import NOW, fill

MONDAY = date(2026, 11, 9)
"""That of the newest complete week at NOW, a Saturday."""


def weeks(
    store: Store, registry: Registry, shares: dict[int, list[float]], n: int = 20_000
) -> None:
    """Each week's shares, by how many weeks it lies before the newest, on every day of it."""
    for ago, each in shares.items():
        for day in range(7):
            at = MONDAY + timedelta(day - 7 * ago)
            fill(store, registry, "browser", each, n, at.isoformat())


def words(page: str) -> str:
    return re.sub(r"[\u2068\u2069]|<[^>]+>", "", page)


@pytest.mark.parametrize(
    ("kind", "last", "first_day", "last_day"),
    [
        ("day", date(2026, 11, 20), date(2026, 11, 9), date(2026, 11, 15)),
        ("day", date(2026, 11, 15), date(2026, 11, 9), date(2026, 11, 15)),
        ("day", date(2026, 11, 14), date(2026, 11, 2), date(2026, 11, 8)),
        ("week", date(2026, 12, 31), date(2026, 11, 9), date(2026, 11, 15)),
        ("month", date(2026, 11, 20), date(2026, 10, 1), date(2026, 10, 31)),
        ("month", date(2026, 9, 30), date(2026, 9, 1), date(2026, 9, 30)),
    ],
)
def test_the_newest_week_is_from_monday_to_sunday(
    kind: str, last: date, first_day: date, last_day: date
) -> None:
    """It has ended by now, and does not lie after the days that are shown; months are whole."""
    days = DayRange(last - timedelta(27), last)
    found = newest_period(days, NOW, kind)  # type: ignore[arg-type]
    assert found == DayRange(first_day, last_day)


def test_before_the_calendar_there_is_no_week() -> None:
    """Days at its beginning have no complete week, which is no error."""
    for kind in ("day", "week"):
        assert newest_period(DayRange(date.min, date.min), NOW, kind) is None
    assert newest_period(DayRange(date.min, date.min), NOW, "month") is None


def test_what_changed_last_week_is_told_at_once(
    empty_browser: FlaskClient, empty_store: Store, registry: Registry
) -> None:
    """The page names the values that changed in the newest week beyond noise, says how many, and
    marks them in the table; the others are there with their intervals."""
    weeks(empty_store, registry, {1: [0.5, 0.3, 0.1, 0.1], 0: [0.5, 0.25, 0.15, 0.1]})
    page = empty_browser.get("/metric/browser").text
    text = words(page)
    assert "Newest complete week, 9 Nov 2026 to 15 Nov 2026: firefox 50.0% (49" in text
    assert re.search(r"chrome is down 5\.0 points \(95% CI \N{MINUS SIGN}\d\.\d to", text)
    assert re.search(r"is up 5\.0 points .* Compared with 2 Nov 2026 to 8 Nov 2026\.", text)
    assert "2 of 4 changed by more than noise." in text
    rows = re.findall(r"<tr[^>]*><th scope=\"row\">.*?</tr>", page)
    changed = [words(row) for row in rows if '<td class="changed">' in row]
    assert len(changed) == 2
    assert any(row.strip().startswith("chrome") for row in changed)
    same = next(row for row in rows if "> firefox<" in row)
    assert re.search(
        r'class="dim">0\.0 <span class="ends">\(\N{MINUS SIGN}\d\.\d to \+\d\.\d\)', same
    )


def test_nothing_changed_is_said_in_plain_words(
    empty_browser: FlaskClient, empty_store: Store, registry: Registry
) -> None:
    """Two equal weeks: no change, no mark, no count."""
    weeks(empty_store, registry, {1: [0.5, 0.3, 0.1, 0.1], 0: [0.5, 0.3, 0.1, 0.1]})
    page = empty_browser.get("/metric/browser").text
    assert "No change that can be told from noise. Compared with 2 Nov 2026" in words(page)
    assert 'class="changed"' not in page
    assert "changed by more than noise" not in page


def test_another_leader_is_named_only_beyond_noise(
    empty_browser: FlaskClient, empty_store: Store, registry: Registry
) -> None:
    """Over four weeks firefox leads, in the newest one chrome does; where the two are too close
    in either part, nothing is said."""
    weeks(empty_store, registry, {each: [0.47, 0.38, 0.1, 0.05] for each in (1, 2, 3)}, 2_500)
    weeks(empty_store, registry, {0: [0.38, 0.47, 0.1, 0.05]}, 2_500)
    text = words(empty_browser.get("/metric/browser").text)
    assert "firefox leads with" in text
    assert "chrome leads now; before this, firefox did." in text
    alone = words(empty_browser.get("/metric/browser?from=2026-11-09&to=2026-11-15").text)
    assert "leads now" not in alone


def test_a_close_leader_is_no_news(
    empty_browser: FlaskClient, empty_store: Store, registry: Registry
) -> None:
    """A lead of half a point in the newest week is noise, so no new leader is named."""
    weeks(empty_store, registry, {each: [0.5, 0.45, 0.05, 0.0] for each in (1, 2, 3)})
    weeks(empty_store, registry, {0: [0.465, 0.47, 0.065, 0.0]})
    assert "leads now" not in empty_browser.get("/metric/browser").text


def test_the_week_or_these_days_can_be_compared(
    empty_browser: FlaskClient, empty_store: Store, registry: Registry
) -> None:
    """A switch leads from the newest week to the days of the page; days that are chosen are
    compared themselves, and an unknown choice is refused."""
    weeks(empty_store, registry, {each: [0.5, 0.3, 0.1, 0.1] for each in range(9)})
    page = empty_browser.get("/metric/browser").text
    assert "change=range" in page
    ranged = words(empty_browser.get("/metric/browser?change=range").text)
    assert "Compared with 26 Sep 2026 to 23 Oct 2026" in ranged
    assert "Newest complete week" not in ranged
    chosen = words(empty_browser.get("/metric/browser?from=2026-11-02&to=2026-11-15").text)
    assert "Compared with 19 Oct 2026 to 1 Nov 2026" in chosen
    both = words(
        empty_browser.get("/metric/browser?from=2026-11-02&to=2026-11-15&change=newest").text
    )
    assert "Compared with 2 Nov 2026 to 8 Nov 2026" in both
    assert empty_browser.get("/metric/browser?change=year").status_code == 400


def test_a_week_without_reports_before_says_so(
    empty_browser: FlaskClient, empty_store: Store, registry: Registry
) -> None:
    """One week alone is told, and compared with nothing."""
    weeks(empty_store, registry, {0: [0.5, 0.3, 0.1, 0.1]})
    text = words(empty_browser.get("/metric/browser").text)
    assert "Newest complete week, 9 Nov 2026 to 15 Nov 2026: firefox 50.0%" in text
    assert "No reports from 2 Nov 2026 to 8 Nov 2026 to compare with." in text


def test_numbers_have_their_changes_too(number_reader: FlaskClient) -> None:
    """A mean and every quantile have the change in their table, in the unit."""
    days = "from=2026-11-20&to=2026-11-20"
    mean = words(number_reader.get(f"/metric/tabs?{days}").text)
    assert "Change, tabs" in mean
    assert re.search(r"mean is up [23]\.\d+ tabs .* Compared with 13 Nov 2026\.", mean)
    spread = number_reader.get(f"/metric/load?{days}").text
    assert spread.count('<td class="changed">') + spread.count('<td class="dim">') >= 4
    assert "Change, s" in words(spread)


def test_the_definition_and_the_risk_stand_on_top(browser: FlaskClient) -> None:
    """Before any number: name, question, window, epsilon, owner, since when, and how fresh; the
    risk is one sentence, with its picture behind it."""
    page = browser.get("/metric/browser").text
    head = page[: page.index('<section class="card" aria-labelledby="estimate"')]
    text = words(head)
    for each in ("browser", "category, 4 values", "1 per report, 8 in a lifetime", "growth@acme"):
        assert each in text
    assert "20 Nov 2026, ended 9 hours ago" in text
    assert re.search(r"Data since\s*20 Nov 2026", text)
    assert "One report: a 50/50 guess becomes right at most 73.2% of the time." in head
    assert head.index("<summary>One report") < head.index('class="belief"')
    assert "&lt;script&gt;" in head
    assert "<script" not in page


def test_the_smallest_visible_share_leads_to_the_planner(browser: FlaskClient) -> None:
    """With 20,000 reports at epsilon 1 among four values 1% cannot be seen; the link has the
    numbers of the metric, and the planner takes them."""
    page = browser.get("/metric/browser").text
    found = re.search(r"Shares of ([\d.]+)% or more stand out from the noise\. So a share of 1% is"
                      r" not visible\.", words(page))  # fmt: skip
    assert found is not None
    assert 1 < float(found[1]) < 6
    (link,) = set(re.findall(r'href="(/plan\?[^"]+)"', page))
    link = link.replace("&amp;", "&")
    assert "devices=20000" in link
    assert "size=4" in link
    plan = browser.get(link)
    assert plan.status_code == 200
    assert f"Shares of {found[1]}% or more are detectable." in words(plan.text)


def test_numbers_lead_to_the_planner_of_numbers(number_reader: FlaskClient) -> None:
    """The link of a number has its range, unit and question."""
    for name in ("load", "tabs", "narrow"):
        page = number_reader.get(f"/metric/{name}").text
        (link,) = set(re.findall(r'href="(/plan/number\?[^"]+)"', page))
        answer = number_reader.get(link.replace("&amp;", "&"))
        assert answer.status_code == 200
        assert "my_metric" in answer.text
