"""Annotations on the pages, in the files, in the pictures and in the read API."""

import re
from xml.etree import ElementTree as ET

import pytest

from deniable_estimator.dashboard.access.tokens import ApiToken, digest_of_token, token_lines

from .conftest import browser_of, dashboard_of, fill, text_of

HOSTILE = '=1+1 <script>alert(1)</script> & \\"quotes\\" \u202eabc'
FILE = f"""schema = 1
[[annotations]]
date = 2026-11-18
text = "Release 4.2"
link = "https://acme.example/releases/4.2?a=1&b=2"

[[annotations]]
date = 2026-11-19T06:00:00Z
text = "{HOSTILE}"
metrics = ["browser"]

[[annotations]]
date = 2026-11-21
text = "Release 4.3"

[[annotations]]
date = 2026-11-18
text = "Only for others"
metrics = ["dark_*"]
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "annotations.toml"
    path.write_text(FILE, encoding="utf-8")
    return path


@pytest.fixture
def annotated_app(store, registry, path):
    """A dashboard with the file, and a token of the read API that is limited to one metric."""
    for day in ("2026-11-17", "2026-11-18", "2026-11-19"):
        fill(store, registry, "browser", [0.25, 0.74, 0.01, 0.0], 20_000, day)
    only = ApiToken(
        "narrow", digest_of_token("n" * 43), frozenset({"read:estimates"}), metrics=("dark_mode",)
    )
    return dashboard_of(store, registry, data=str(path.parent), api_tokens=token_lines(only))


@pytest.fixture
def reader(annotated_app):
    return browser_of(annotated_app, accept="text/html, */*;q=0.8")


def test_hostile_text_is_text_everywhere(reader):
    """In HTML, in SVG and in JSON it is no mark-up, and a control of direction is replaced; in CSV
    it is no formula."""
    page = text_of(reader, "/metric/browser")
    picture = reader.get("/metric/browser/trend.svg").text
    for text in (page, picture):
        assert "<script>" not in text
        assert "\u202e" not in text
    root = ET.fromstring(picture)
    assert "Release 4.2" in "".join(root.itertext())
    assert reader.get("/metric/browser/trend.png").data.startswith(b"\x89PNG")
    found = reader.get("/api/v1/annotations?metric=browser").json
    assert "<script>" in found["annotations"][1]["text"]
    (row,) = re.findall("'=1[+]1.*", reader.get("/api/v1/annotations?format=csv").text)
    assert "<script>" in row


@pytest.mark.parametrize(
    ("query", "days"),
    [
        ("from=2026-11-19", [19, 21]),
        ("to=2026-11-18", [18, 18]),
        ("metric=silent", [18, 21]),
        ("metric=silent&metric=dark_mode&to=2026-11-20", [18, 18]),
    ],
)
def test_the_api_selects_by_days_and_metrics(reader, query, days):
    """Each end can be left out, and names are those of metrics."""
    found = reader.get(f"/api/v1/annotations?{query}").json["annotations"]
    assert [each["date"][:10] for each in found] == [f"2026-11-{day}" for day in days]


def test_a_limited_token_learns_of_its_metrics_alone(annotated_app):
    """Neither an entry about another metric nor the name of one."""
    client = annotated_app.test_client()
    headers = {"Authorization": f"Bearer {'n' * 43}"}
    found = client.get("/api/v1/annotations", headers=headers).json["annotations"]
    assert [each["text"] for each in found] == ["Release 4.2", "Only for others", "Release 4.3"]
    assert [each["metrics"] for each in found] == [None, ["dark_mode"], None]
    refused = client.get("/api/v1/annotations?metric=browser", headers=headers)
    assert refused.status_code == 403


def test_a_change_is_seen_and_a_mistake_is_told(reader, path):
    """The next page has what was added, in its version too; after a mistake the pages keep what the
    file said, and name the mistake with its line but not the folder."""
    tag = reader.get("/api/v1/metrics/browser/trend").headers["ETag"]
    path.write_text(FILE.replace("Release 4.2", "Release 4.2.1"), encoding="utf-8")
    page = text_of(reader, "/metric/browser")
    assert "Release 4.2.1" in page
    changed = reader.get("/api/v1/metrics/browser/trend", headers={"If-None-Match": tag})
    assert changed.status_code == 200
    path.write_text("schema = 1\n[[annotations]]\ndate = 1\n", encoding="utf-8")
    page = text_of(reader, "/metric/browser")
    assert "Release 4.2.1" in page
    assert "annotations.toml:3: error: annotations.1.date: must be a day" in page
    assert str(path.parent) not in page
