"""Pages of numbers: what they say of means, distributions, and limits that are typed in."""

from __future__ import annotations

import math
import re
from datetime import date

import pytest
from flask import Flask
from flask.testing import FlaskClient

from deniable import Registry
from deniable_collector.stores import Store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_estimator.answers.distribution import Distribution
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.dashboard.words import example, percent
from deniable_estimator.questions.reading import read

from .conftest import NOW, NUMBERS, TOKEN, YESTERDAY, fill_numbers

DAY = date.fromisoformat(YESTERDAY)
ONE_DAY = f"from={YESTERDAY}&to={YESTERDAY}"


def headline(page: str) -> str:
    found = re.search(r'<h2 id="estimate" class="headline[^"]*">([^<]*)</h2>', page)
    assert found
    return found[1]


def test_a_mean_is_told_with_its_interval(
    number_reader: FlaskClient, number_store: Store, numbers: Registry
) -> None:
    """The headline has the estimate of the library in the unit; the true mean of 8 tabs lies in
    its interval (5% chance that it would not; the tally is always the same)."""
    page = number_reader.get(f"/metric/tabs?{ONE_DAY}").text
    found = re.fullmatch(
        r"The mean is ([\d.]+) tabs; the 95% interval is ([\d.]+) to ([\d.]+) tabs\.",
        headline(page),
    )
    assert found
    mean, low, high = map(float, found.groups())
    series = read(number_store, numbers, "tabs", DAY, DAY).series
    assert mean == pytest.approx(float(series.value[0]), abs=0.005)
    assert low < 8 < high
    assert "a mean does not show how many there are" in page
    assert "The geometric mean is the mean of the logarithms" not in page


def test_a_geometric_mean_is_explained(number_reader: FlaskClient) -> None:
    """On a logarithmic scale the mean is called geometric, and the page says what that is."""
    page = number_reader.get("/metric/wait").text
    assert headline(page).startswith("The geometric mean is ")
    assert "The geometric mean is the mean of the logarithms" in page


def test_a_distribution_is_told_by_its_median_and_its_95(number_reader: FlaskClient) -> None:
    """Yesterday's numbers are lognormal about 2 s: half of them are below 2, 95% below 10.36
    (a chance of 5% each that the interval would not hold it; the tally is always the same)."""
    page = number_reader.get(f"/metric/load?{ONE_DAY}").text
    found = re.fullmatch(
        r"Half of the devices are below [\d.]+ s \(95% interval ([\d.]+) to ([\d.]+) s\); "
        r"95% are below [\d.]+ s \(95% interval ([\d.]+) to ([\d.]+) s\)\.",
        headline(page),
    )
    assert found
    low, high, low_95, high_95 = map(float, found.groups())
    assert low < 2 < high
    assert low_95 < 2 * math.exp(1.645) < high_95
    for name in ("p50", "p90", "p95", "p99", "geometric mean"):
        assert f'<th scope="row">{name}</th>' in page


def test_an_open_quantile_is_told_as_at_least(number_reader: FlaskClient) -> None:
    """A third of the memory is above the range: p95 has no upper limit, and the page says why."""
    page = number_reader.get("/metric/narrow").text
    assert headline(page).endswith("; p95: at least 4 GB.")
    assert re.search(r"At least 3\d\.\d% of the numbers lie at high \(4\) or above", page, re.I)
    assert "no upper limit" in page
    assert "4 GB or above" in page


def test_whole_numbers_are_told_without_decimals(number_reader: FlaskClient) -> None:
    """Half of the devices have 3 plugins or fewer."""
    page = number_reader.get("/metric/plugins").text
    assert headline(page).startswith("Half of the devices are at 3 or below (95% interval 3 to 3)")
    assert "neighbouring cells" not in page, "each number has a cell of its own: none is finer"


@pytest.mark.parametrize("limit", ["1", "2.5", "5e1", " 2.5 ", "0.01", "100"])
def test_the_share_below_a_limit_is_that_of_the_library(
    number_reader: FlaskClient, number_store: Store, numbers: Registry, limit: str
) -> None:
    """A limit that is typed in is answered with the shares below and above it."""
    answer = number_reader.get("/metric/load", query_string={"limit": limit})
    assert answer.status_code == 200
    found = read(number_store, numbers, "load", date(2026, 10, 24), DAY)
    assert isinstance(found, Distribution)
    share = found.share_below(float(limit))
    half = (share.high - share.low) / 2
    told = re.search(
        r'<p class="since" role="status"><strong>([^<]*)</strong> are below', answer.text
    )
    assert told
    assert told[1] == percent(share.share, half)
    assert percent(share.low, half) in answer.text
    assert percent(1 - share.share, half) in answer.text
    assert f'value="{limit.strip()}"' in answer.text


@pytest.mark.parametrize("limit", ["soon", "nan", "inf", "1e9", "0.001", "-1", "2,5", "<b>"])
def test_a_bad_limit_names_its_field(number_reader: FlaskClient, limit: str) -> None:
    """What is no number, and what lies outside of the range, is refused beside the field; the rest
    of the page stands."""
    answer = number_reader.get("/metric/load", query_string={"limit": limit})
    assert answer.status_code == 400
    page = answer.text
    field = re.search(r'<input id="limit"[^>]*>', page)
    assert field
    assert 'aria-invalid="true" aria-describedby="mistake"' in field[0]
    assert re.search(r'<p class="problem" id="mistake" role="alert">“limit”', page)
    assert headline(page).startswith("Half of the devices")
    assert "<b>" not in page
    problem = number_reader.get(
        "/metric/load", query_string={"limit": limit}, headers={"Accept": "application/json"}
    )
    assert problem.status_code == 400
    assert "“limit”" in problem.json["detail"]


def test_a_limit_of_whole_numbers_counts_those_below(
    number_reader: FlaskClient, number_store: Store, numbers: Registry
) -> None:
    """Below 2.5 lie 0, 1 and 2, as below 3: nothing has to be guessed."""
    pages = [number_reader.get(f"/metric/plugins?limit={each}").text for each in ("2.5", "3")]
    told = [re.search(r"<strong>([^<]*)</strong> are below", page) for page in pages]
    assert told[0]
    assert told[1]
    assert told[0][1] == told[1][1]
    assert "inside of a cell" not in pages[0]


def test_a_view_of_a_number_has_its_own_parameters(number_reader: FlaskClient) -> None:
    """Numbers have no order, no normalized shares; a mean has no limit: such parameters are
    refused, and no switch offers them."""
    for path in (
        "/metric/tabs?limit=2",
        "/metric/tabs?order=declared",
        "/metric/load?shares=normalized",
        "/metric/dark_mode?limit=2",
    ):
        assert number_reader.get(path).status_code == 400, path
    assert number_reader.get("/metric/load?value=p90&limit=2&by=week").status_code == 200
    page = number_reader.get("/metric/load?limit=2").text
    assert "normalized" not in page
    assert "limit=2" in page.replace("&amp;", "&").partition('class="switch"')[2]


def test_every_quantile_can_be_followed_over_time(number_reader: FlaskClient) -> None:
    """The median is shown first, each other series can be chosen, and axes have the unit."""
    page = number_reader.get("/metric/load").text
    assert "Over time: p50" in page
    assert len(re.findall(r'<li(?: class="current")?>(?:<a href="[^"]*value=|<p>)', page)) == 5
    chosen = number_reader.get("/metric/load?value=geometric+mean").text
    assert "Over time: geometric mean" in chosen
    assert re.search(r'<text class="level"[^>]*>[\d.]+ s</text>', chosen)
    assert re.search(r"up [\d.]+ s \(95% CI", chosen)
    assert number_reader.get("/metric/load?value=p42").status_code == 400


def test_what_is_open_has_no_dot_over_time(number_reader: FlaskClient) -> None:
    """Both days say only that p99 is at least 4 GB: the trend has no number to draw a dot for."""
    page = number_reader.get("/metric/narrow?value=p99").text
    trend = page[page.index("Over time: p99") : page.index('class="choices"')]
    assert "circle" not in trend
    assert "at least 4 GB" in page


def test_too_few_and_no_reports_have_words(
    number_store: Store, numbers: Registry, number_reader: FlaskClient
) -> None:
    """Three devices bound no median; where nobody has reported, the page says what to check."""
    fill_numbers(number_store, numbers, "load", [1.0, 2.0, 3.0], "2026-11-01")
    few = number_reader.get("/metric/load?from=2026-11-01&to=2026-11-01")
    assert headline(few.text).startswith("Too few devices have reported to tell where half of them")
    assert 'class="chart numbers' not in few.text
    assert "nan" not in few.text
    assert "inf%" not in few.text
    none = number_reader.get("/metric/load?from=2026-10-01&to=2026-10-02")
    assert none.status_code == 200
    assert "No reports in these days" in none.text


def test_cards_show_the_mean_and_the_median(number_reader: FlaskClient) -> None:
    """A card has the number, its interval and a small picture."""
    page = number_reader.get("/").text
    assert re.search(r'<p class="figure">[\d.]+ tabs</p>', page)
    assert re.search(r"mean; 95% interval [\d.]+ to [\d.]+ tabs", page)
    assert re.search(r"Median; 95% interval [\d.]+ to [\d.]+ s", page)
    assert re.search(r'<svg class="mini" [^>]*aria-label="[^"]+"><path d="M[^"]+V96"/>', page)
    assert 'class="chart scale small"' in page


def test_a_comparison_is_in_the_unit(number_reader: FlaskClient) -> None:
    """Times have doubled: the change is told in seconds, never in points, and an open end has
    words."""
    days = f"{ONE_DAY}&before_from=2026-11-13&before_to=2026-11-13"
    page = number_reader.get(f"/metric/load/compare?{days}").text
    assert re.search(r"p50 is up [\d.]+ s \(95% CI \+[\d.]+ to \+[\d.]+\)", page)
    assert "Change, s</th>" in page
    assert "points" not in page.replace("normalized points", "")
    assert "each row has a scale of its own" in page
    assert "tested by the share of devices below it" in page
    narrow = number_reader.get(f"/metric/narrow/compare?{days}").text
    assert "inf" not in re.sub(r"[Ii]nfo\w*", "", narrow)
    assert "at least 4 GB" in narrow
    tabs = number_reader.get(f"/metric/tabs/compare?{days}").text
    assert re.search(r"mean is up [\d.]+ tabs", tabs)
    assert "tested by the share" not in tabs


def test_pictures_are_drawn(number_reader: FlaskClient) -> None:
    """Each kind has its SVG and PNG, and so has a trend."""
    for path in ("/metric/load", "/metric/tabs", "/metric/load/trend", "/metric/tabs/trend"):
        drawn = number_reader.get(f"{path}.svg")
        assert (drawn.status_code, drawn.mimetype) == (200, "image/svg+xml")
        assert "Every number is an estimate" in drawn.text
        assert "share" not in re.sub(r"<(title|desc)>.*?</\1>", "", drawn.text)
        assert number_reader.get(f"{path}.png").data.startswith(b"\x89PNG")
    assert "at least 4 GB" in number_reader.get("/metric/narrow.svg").text


def test_a_frame_shows_a_number(number_store: Store, numbers: Registry) -> None:
    """A chart of each kind can be shown on another site."""
    settings = DashboardSettings(
        dashboard_token=TOKEN,
        dashboard_frame_ancestors="https://other.example",
        public_url="http://localhost",
    )
    app = create_app(settings, store=number_store, registry=numbers, clock=lambda: NOW)
    client = app.test_client()
    client.post("/login", data={"token": TOKEN})
    for name, kind in (("load", "numbers"), ("tabs", "scale")):
        page = client.get(f"/metric/{name}").text
        link = re.search(r"http://localhost(/embed/[^&\s]*(?:&amp;[^&\s]*?)*)&#34;", page)
        found = link or re.search(r'src="http://localhost(/embed/[^"]*)"', page)
        assert found
        framed = client.get(found[1].replace("&amp;amp;", "&").replace("&amp;", "&"))
        assert framed.status_code == 200
        assert f'class="chart {kind}' in framed.text


def test_an_alarm_speaks_of_numbers(number_store: Store, numbers: Registry) -> None:
    """A flood of one message is told as anomalous, without a word of shares."""
    scheme = numbers["tabs"].scheme
    key = TallyRowKey(TallyKey("tabs", scheme.fingerprint, YESTERDAY), 0)
    width = scheme.mechanism.rows[0].width
    flood = Increment(width, 30_000, (width - 1,), (30_000,))
    number_store.fold(Commit(("f" * 32,), {key: flood}), NOW)
    settings = DashboardSettings(dashboard_token=TOKEN)
    app = create_app(settings, store=number_store, registry=numbers, clock=lambda: NOW)
    client = app.test_client()
    client.environ_base["HTTP_ACCEPT"] = "text/html"
    client.post("/login", data={"token": TOKEN})
    page = client.get("/metric/tabs").text
    assert headline(page) == "Anomalous: 20 Nov 2026. Do not rely on these numbers."
    assert "Do not correct the numbers" in page
    assert (
        "shares"
        not in page[page.index('role="alert"') : page.index("</div>", page.index('role="alert"'))]
    )


def test_an_app_is_told_how_to_record_a_number(numbers: Registry) -> None:
    """The example is a number of the range, whole where numbers are."""
    assert example(numbers["tabs"]) == "26"
    assert example(numbers["load"]) == "1"
    assert example(numbers["dark_mode"]) == "True"


def test_a_question_that_has_changed_is_no_obstacle(
    number_store: Store, numbers: Registry, number_app: Flask
) -> None:
    """A metric that asked for a mean and now asks for a distribution shows the days since then."""
    mean = NUMBERS.replace('ask = "distribution"', 'ask = "mean"', 1)
    before = Registry.parse(mean)
    number_store.publish({"load": [before["load"].scheme]})
    found = read(number_store, numbers, "load", DAY, DAY)
    assert isinstance(found, Distribution)
    fill_numbers(number_store, before, "load", [1.0] * 500, "2026-11-05")
    assert read(number_store, numbers, "load", date(2026, 11, 4), date(2026, 11, 5)).kind == "mean"


def test_the_label_of_a_number_says_what_is_in_force(number_reader: FlaskClient) -> None:
    """The exact odds stand there; p and q, which only frequency oracles have, do not."""
    page = number_reader.get("/metric/tabs").text
    assert "e<sup>ε</sup>" in page
    assert "<dt>p</dt>" not in page
    assert "0 to 50 tabs" in page
    assert "whole numbers" in page
