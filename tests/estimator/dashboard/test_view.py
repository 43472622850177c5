"""The switches of the metric's page."""

from __future__ import annotations

import re

from flask.testing import FlaskClient


def test_a_closed_list_takes_no_other(browser: FlaskClient) -> None:
    """A metric that declares its values refuses an upload."""
    answer = browser.post("/metric/browser", data={})
    assert answer.status_code == 400
    assert "lists its values" in answer.text


def test_normalized_shares_are_shown_as_such(browser: FlaskClient) -> None:
    """The switch draws the normalized shares and says so; intervals stay the unbiased ones'."""
    plain = browser.get("/metric/browser").text
    normalized = browser.get("/metric/browser?shares=normalized").text
    assert "normalized share (sums to 100%)" in normalized
    assert "interval of the unbiased estimate" in normalized
    assert "normalized share (sums to 100%)" not in plain
    bars = [re.findall(r'<rect class="bar" x="[^"]+" width="([^"]+)%" y="\d', each)
            for each in (plain, normalized)]  # fmt: skip
    assert bars[0] != bars[1]
    assert browser.get("/metric/browser?shares=made-up").status_code == 400
    assert browser.get("/metric/browser?order=random").status_code == 400
