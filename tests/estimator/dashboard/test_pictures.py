"""Charts and trends as SVG and PNG files."""

from __future__ import annotations

import hashlib
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from xml.etree import ElementTree

import pytest
from tests.ports import until

from deniable_estimator.asking.work import Workers
from deniable_estimator.dashboard.calculations import FONT, png

from .conftest import fill, program_of


def size(picture):
    """Width and height of a PNG, from its header."""
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", picture[16:24])
    return width, height


@pytest.mark.parametrize("path", ["/metric/dark_mode", "/metric/dark_mode/trend"])
def test_a_png_is_the_svg_scaled(browser, store, registry, path):
    """The PNG has twice the SVG's size, and is a download. (To start the process that draws takes a
    second.)"""
    fill(store, registry, "dark_mode", [0.3, 0.7], 20_000, "2026-11-19")
    drawing = ElementTree.fromstring(browser.get(f"{path}.svg").text)
    width, height = (round(float(drawing.get(name, ""))) for name in ("width", "height"))
    assert drawing.tag.endswith("svg")
    answer = browser.get(f"{path}.png")
    assert answer.mimetype == "image/png"
    assert "attachment; filename=dark_mode" in answer.headers["Content-Disposition"]
    assert size(answer.data) == (width * 2, height * 2)


def test_a_picture_is_drawn_once_and_no_thread_waits_for_it(app, browser, monkeypatch):
    """Another process draws it, once for all who ask. Of twelve who ask at the same time at most
    eight wait, and the others are told to ask again; afterwards it is known."""
    drawn, leave = [], threading.Event()
    real = Workers.run

    def run(workers, function, *arguments, **options):
        drawn.append(function)
        leave.wait(60)
        return real(workers, function, *arguments, **options)

    monkeypatch.setattr(Workers, "run", run)
    told: list[int] = []
    path = "/metric/browser.png"

    def ask():
        told.append(program_of(app).get(path).status_code)

    with ThreadPoolExecutor(12) as pool:
        for _ in range(12):
            pool.submit(ask)
        try:
            until(lambda: len(told) >= 4, "they wait for each other")
            assert set(told) == {503}
        finally:
            leave.set()
    assert 200 in told
    assert browser.get(path).status_code == 200
    assert drawn == [png]


def test_a_frame_passes_over_names_that_others_add(browser):
    """Who shows it may count its visitors by the address; what it asks itself is read."""
    assert browser.get("/embed/metric/browser?utm_source=blog&days=7").status_code == 200
    assert browser.get("/embed/metric/browser?utm_source=blog&from=soon").status_code == 400


def test_text_is_drawn_without_fonts_of_the_machine():
    """The font that comes along is the one whose licence stands beside it, and it is used:
    letters leave marks on the ground, different letters different ones."""
    assert (
        hashlib.sha256(FONT.read_bytes()).hexdigest()
        == "abdc775b21b1bc470d50c97e790d276f2054b7504e56e5bd3e64f48d68582322"
    )
    assert "DejaVu Sans 2.37" in (FONT.parent / "LICENSE").read_text(encoding="utf-8")

    def drawn(text):
        return png(
            '<svg xmlns="http://www.w3.org/2000/svg" width="80" height="30" '
            f'font-family="No Such Font"><text x="5" y="20">{text}</text></svg>',
            machine_fonts=False,
        )

    assert len({drawn(text) for text in ("", "chrome", "firefox", "±0.7%", "яндекс")}) == 5
