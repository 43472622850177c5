"""Headlines name what was found, and pictures show it: segments, pairs and discoveries."""

import re
import xml.etree.ElementTree as ET

import pytest

from deniable import Registry

from .conftest import browser_of, dashboard_of, fill

REGISTRY = """
schema = 1
app = "example"
[defaults]
owner = "growth@acme.example"
expires = 2027-06-30
[segments.system]
values = ["linux", "windows", "macos"]
[metrics.crashed]
type = "boolean"
description = "Did it crash?"
epsilon = 4.0
lifetime_epsilon = 8.0
segments = ["system"]
"""


def crashes(store, *shares, n=50_000):
    """A browser at a metric with these shares of crashes by system."""
    registry = Registry.parse(REGISTRY)
    store.publish({"crashed": [registry["crashed"].scheme]})
    for place, share in enumerate(shares):
        fill(store, registry, "crashed", [share, 1 - share], n, segment=place)
    return browser_of(dashboard_of(store, registry))


def headline(page):
    """The answer in a sentence."""
    found = re.search(r'class="headline[^>]*>(.*?)</h2>', page)
    assert found is not None
    return re.sub("[\u2066-\u2069]", "", found[1])


def words(svg):
    """All text of a picture, which parses."""
    return " ".join("".join(ET.fromstring(svg).itertext()).split())


@pytest.mark.parametrize(
    ("shares", "told"),
    [
        ((0.4, 0.2, 0.1), r"linux has the highest share of yes: 40\.\d%, twice windows .*"),
        ((0.1, 0.5, 0.1), r"windows has the highest share of yes: 50\.\d%, 5\.?\d? times .*"),
        ((0.1, 0.4, 0.4), r"\w+ has a higher share of yes than linux: .*, 4\.?\d? times as .*"),
        ((0.5, 0.5, 0.45), r"\w+ has a higher share of yes than macos: .*% against 4\d\.\d%\."),
        ((0.3, 0.3, 0.3), "No difference between segments that can be told from noise"),
    ],
)  # fmt: skip
def test_the_headline_of_segments_names_the_finding(empty_store, shares, told):
    """The segment with the highest share, and how many times that of the next, or of the lowest
    where the first two cannot be told apart; nothing where nothing stands out. 150,000 reports at
    epsilon 4: each share has a standard error of .3 points, 10 to 30 of which are between those
    that are named."""
    page = crashes(empty_store, *shares).get("/metric/crashed/segments").text
    assert re.fullmatch(told, headline(page)), headline(page)


def test_segments_have_a_scale_from_zero_a_picture_ranges_and_one_warning(empty_store):
    """The bars begin at the left edge, which is 0; the picture says what the headline says; the
    page can be shared, and its link opens page, files and picture."""
    client = crashes(empty_store, 0.4, 0.2, 0.1)
    page = client.get("/metric/crashed/segments").text
    assert '<span class="axis"><span>0</span>' in page
    assert len(re.findall(r'<rect class="bar" x="0(?:\.0)?%"', page)) == 4
    assert page.count("not private") == 1
    assert ">28 days</a>" in page
    assert 'href="/share?view=/metric/crashed/segments"' in page
    picture = client.get("/metric/crashed/segments.svg?by=system")
    assert picture.mimetype == "image/svg+xml"
    assert headline(page) in words(picture.text)
    assert client.get("/metric/crashed/segments.png").data.startswith(b"\x89PNG")
    view = {"view": "/metric/crashed/segments?by=system", "days": "9", "unfinished": "1"}
    made = client.post("/share", data=view).text
    link = re.search(r'value="http://localhost(/shared/[^"]+)"', made)
    assert link is not None
    stranger = client.application.test_client()
    shared = stranger.get(link[1]).text
    assert headline(shared) == headline(page)
    for form in ("csv", "json", "svg", "png"):
        (address,) = re.findall(rf'href="(/shared/[^"]+segments\.{form})"', shared)
        assert stranger.get(address).status_code == 200
    assert "<form" not in shared
    assert "<select" not in shared


def test_the_definition_and_the_label_are_behind_details(empty_store):
    """Before Details stand the name, the answer and its picture, and nothing of epsilon, standard
    errors, p-values or fakes."""
    page = crashes(empty_store, 0.4, 0.2, 0.1).get("/metric/crashed").text
    answer, _, rest = page.partition('<details class="card details" id="details">')
    for text in ("Epsilon", "Std. error", "Adjusted p", "50/50 guess", "fake devices", "Owner"):
        assert text not in answer
        assert text in rest
    assert answer.index("crashed") < answer.index("say yes") < answer.index("chart large")
