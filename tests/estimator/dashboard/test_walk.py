"""A person who has never seen a metric's page reads it: what they must be able to answer from
its visible words alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html.parser import HTMLParser

import pytest
from flask.testing import FlaskClient

from deniable import Registry
from deniable_collector.stores import Store

from .conftest import fill


class Reader(HTMLParser):
    """What is seen of a page: no attributes, no descriptions of pictures, nothing folded away
    but its summary."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self._unseen: list[str] = []
        self._words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("head", "title", "desc", "details", "script", "style", "option", "textarea"):
            self._unseen.append(tag)
        if tag == "summary":
            self._unseen.append("shown")

    def handle_endtag(self, tag: str) -> None:
        if self._unseen and self._unseen[-1] == ("shown" if tag == "summary" else tag):
            self._unseen.pop()

    def handle_data(self, data: str) -> None:
        if not self._unseen or self._unseen[-1] == "shown":
            self._words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self._words).split())


@dataclass
class Answers:
    """What the reader takes from the page."""

    leader: str
    lead_is_real: bool
    devices: int
    risk: float
    """Out of 100: how often an even guess about one device is right at most after its report."""


def walk(client: FlaskClient, path: str) -> Answers:
    """Read the page as its headings and sentences say it."""
    text = Reader(client.get(path).text).text
    real = re.search(r"(\S+) leads with [\d.]+%, ahead of (\S+) by more than the noise\.", text)
    open_ = re.search(
        r"(\S+) has [\d.]+%, too close to (\S+(?: \S+)*?) to say which one leads\.", text
    )
    assert (real is None) != (open_ is None)
    leader = (real or open_)[1]  # type: ignore[index]
    devices = re.search(r"([\d,]+) devices reported", text)
    assert devices is not None
    risk = re.search(
        r"One report: a 50/50 guess becomes right at most ([\d.]+)% of the time\.",
        text,
    )
    assert risk is not None
    return Answers(leader, real is not None, int(devices[1].replace(",", "")), float(risk[1]))


@pytest.mark.parametrize(
    ("shares", "n", "expected"),
    [
        ([0.25, 0.74, 0.01, 0.0], 20_000, Answers("chrome", True, 20_000, 73.2)),
        ([0.48, 0.47, 0.03, 0.02], 20_000, Answers("firefox", False, 20_000, 73.2)),
        ([0.60, 0.10, 0.20, 0.10], 400, Answers("firefox", True, 400, 73.2)),
    ],
)
def test_a_stranger_answers_the_four_questions(
    empty_browser: FlaskClient,
    empty_store: Store,
    registry: Registry,
    shares: list[float],
    n: int,
    expected: Answers,
) -> None:
    """Which value leads, whether the lead is real, how many devices reported, what one risks:
    where the lead is real and where it is not."""
    fill(empty_store, registry, "browser", shares, n)
    assert walk(empty_browser, "/metric/browser") == expected


def test_a_stranger_sees_that_there_is_nothing_to_see(
    empty_browser: FlaskClient, empty_store: Store, registry: Registry
) -> None:
    """Where noise hides everything the page says so, and what would help, and names no leader."""
    fill(empty_store, registry, "browser", [0.3, 0.3, 0.2, 0.2], 20)
    text = Reader(empty_browser.get("/metric/browser").text).text
    assert "No value can be told from noise yet: it takes more reports, or a longer range." in text
    assert " leads" not in text
    assert "20 devices reported" in text


def test_several_days_are_reports_and_not_devices(
    browser: FlaskClient, store: Store, registry: Registry
) -> None:
    """Over several windows the page counts reports, and says how many one device can have
    given."""
    fill(store, registry, "browser", [0.25, 0.74, 0.01, 0.0], 20_000, "2026-11-19")
    text = Reader(browser.get("/metric/browser").text).text
    assert "40,000 reports, 19 Nov 2026 to 20 Nov 2026, at most one per device and day" in text
    assert "devices reported" not in text
