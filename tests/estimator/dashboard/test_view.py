"""The switches of the metric's page, and its chart as a picture."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from flask.testing import FlaskClient


def test_a_closed_list_takes_no_other(browser: FlaskClient) -> None:
    """A metric that declares its values refuses an upload."""
    answer = browser.post("/metric/browser", data={})
    assert answer.status_code == 400
    assert "lists its values" in answer.text


def test_consistent_shares_are_shown_as_such(browser: FlaskClient) -> None:
    """The switch draws the consistent shares and says so; intervals stay the unbiased ones'."""
    plain = browser.get("/metric/browser").text
    consistent = browser.get("/metric/browser?shares=consistent").text
    assert "consistent share: not negative" in consistent
    assert "interval of the unbiased estimate" in consistent
    assert "consistent share: not negative" not in plain
    bars = [re.findall(r'<rect class="bar" x="[^"]+" width="([^"]+)%" y="\d', each)
            for each in (plain, consistent)]  # fmt: skip
    assert bars[0] != bars[1]
    assert browser.get("/metric/browser?shares=made-up").status_code == 400
    assert browser.get("/metric/browser?order=random").status_code == 400


def test_the_picture_stands_by_itself(browser: FlaskClient) -> None:
    """The SVG is well-formed, escapes hostile values, needs no style sheet and is a download."""
    answer = browser.get("/metric/browser.svg")
    assert answer.mimetype == "image/svg+xml"
    assert answer.headers["Content-Disposition"] == "attachment; filename=browser.svg"
    drawing = ElementTree.fromstring(answer.text)
    texts = "".join(drawing.itertext())
    assert "chrome" in texts
    assert "20,000 answers" in texts
    assert not any("class" in each.attrib or "style" in each.attrib for each in drawing.iter())
    assert "<script" not in answer.text
    assert browser.get("/metric/silent.svg").status_code == 400
