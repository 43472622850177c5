"""The style sheet: contrasts that are computed from its colours, lengths that follow the text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import deniable_estimator.dashboard

FOLDER = Path(deniable_estimator.dashboard.__file__).parent
SHEET = (FOLDER / "static" / "dashboard.css").read_text(encoding="utf-8")
RULES = re.sub(r"/\*.*?\*/", "", SHEET, flags=re.DOTALL)
THEMES = ("light", "dark", "print")

SEEN = (
    # what must be seen, and beside what it is seen
    ("line", "surface"),  # borders of cards, fields, buttons and tags
    ("line", "ground"),
    ("note-line", "note"),
    ("note-line", "surface"),
    ("accent", "surface"),  # bars, lines and dots
    ("accent", "track"),
    ("accent", "accent-wash"),
    ("band", "surface"),  # the edges of a band
    ("band", "accent-wash"),
    ("noise", "surface"),  # bars of what cannot be told from noise
    ("noise", "track"),
    ("whisker", "surface"),
    ("whisker", "accent"),
    ("noise-whisker", "surface"),
    ("noise-whisker", "noise"),
    *((f"series-{place}", "surface") for place in range(2, 9)),  # lines of several values
    *(("alarm", ground) for ground in ("surface", "ground", "alarm-wash")),
)
READ = (
    *(("ink", ground) for ground in ("surface", "ground", "track", "accent-wash")),
    *(("soft", ground) for ground in ("surface", "ground", "track")),
    *(("accent-ink", ground) for ground in ("surface", "ground", "track")),
    *(("noise-ink", ground) for ground in ("surface", "ground")),
    ("note-ink", "note"),
    *(("alarm-ink", ground) for ground in ("surface", "ground", "alarm-wash")),
    ("problem", "surface"),
    ("problem", "ground"),
)

Colour = tuple[float, float, float]


def colours(theme: str) -> dict[str, Colour]:
    """The variables of a theme as linear light, transparent ones over the surface."""
    blocks = re.findall(r":root \{(.*?)\}", RULES, re.DOTALL)
    assert len(blocks) == len(THEMES)
    texts: dict[str, str] = {}
    for block in blocks[:1] if theme == "light" else (blocks[0], blocks[THEMES.index(theme)]):
        texts.update(re.findall(r"--([\w-]+): (#[0-9a-f]{6,8});", block))
    surface = _bytes(texts["surface"])[:3]
    found = {}
    for name, text in texts.items():
        *channels, alpha = (*_bytes(text), 255)[:4]
        found[name] = tuple(
            _linear((each * alpha + below * (255 - alpha)) / 255 / 255)
            for each, below in zip(channels, surface, strict=True)
        )
    return found  # type: ignore[return-value]


def _bytes(text: str) -> list[int]:
    return list(bytes.fromhex(text.removeprefix("#")))


def _linear(channel: float) -> float:
    """WCAG 2.2, relative luminance."""
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4


def contrast(one: Colour, other: Colour) -> float:
    """WCAG 2.2, contrast ratio."""
    dark, light = sorted(0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in (one, other))
    return (light + 0.05) / (dark + 0.05)


def test_the_formula_is_that_of_wcag() -> None:
    """Black on white is 21 to 1, and #767676 on white is known to be just above 4.5 to 1."""
    black, white = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    assert contrast(black, white) == pytest.approx(21)
    grey = _linear(0x76 / 255)
    assert contrast((grey, grey, grey), white) == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("theme", THEMES)
def test_what_must_be_seen_has_contrast(theme: str) -> None:
    """Bars, bands, whiskers and borders have 3 to 1 against what they lie on, and text has 4.5 to
    1 (WCAG 2.2, 1.4.11 and 1.4.3), on light and dark screens and on paper."""
    known = colours(theme)
    for pairs, least in ((SEEN, 3.0), (READ, 4.5)):
        poor = {
            f"{front} on {back}": round(ratio, 2)
            for front, back in pairs
            if (ratio := contrast(known[front], known[back])) < least
        }
        assert poor == {}


def test_every_border_is_one_of_those() -> None:
    """No border has a colour that the contrasts above do not know, except the hairlines between
    the rows of a table and the parts of a card, which repeat what the space says."""
    known = {f"var(--{name})" for name, _ in SEEN} | {"0", "transparent", "var(--ink)"}
    known |= {"var(--problem)"}
    for rule, text in re.findall(r"([^{}]+)\{([^{}]*)\}", RULES):
        for colour in re.findall(r"border(?:-color|-top|-bottom)?: (?:\S+ solid )?([^;]+);", text):
            hairline = colour == "var(--grid)" and "border-top" in text
            assert colour in known or hairline, rule.strip()


def test_lengths_follow_the_text() -> None:
    """Only hairlines and the like are in pixels, at most 3 of them; sizes of text never are. What
    a drawing on a page has of text and height is in em, and a width that decides about the layout
    as well. Paper has a size of its own."""
    screen, paper = RULES.split("@media print", 1)
    pixels = [
        line.strip()
        for line in screen.splitlines()
        if "--shadow" not in line
        for length in re.findall(r"([\d.]+)px", line)
        if float(length) > 3
    ]
    allowed = [".range > label:first-of-type"]
    assert [each for each in pixels if not each.startswith(tuple(allowed))] == []
    assert not re.search(r"font(-size)?:[^;]*[\d.]+(px|pt)", screen)
    assert not re.search(r"@media[^{]*px", RULES)
    assert re.findall(r"font-size: [\d.]+(?:px|pt)", paper) == ["font-size: 14px"]
    for name in ("_chart.svg", "_histogram.svg", "_trend.svg", "_reach.svg", "_privacy.html"):
        drawing = (FOLDER / "templates" / name).read_text(encoding="utf-8")
        for attribute, value in re.findall(r' (height|y|y1|y2|cy|dy)="([^"]+)"', drawing):
            fine = value in ("0", "100%") or value.endswith("em") or value.startswith("{{ em(")
            assert fine, (name, attribute, value)


def test_pictures_have_the_colours_of_the_pages() -> None:
    """A chart that is saved as a file has the light theme's colours, and so its contrasts."""
    light = set(re.findall(r"#[0-9a-f]{6}\b", RULES.split("@media")[0]))
    for name in (
        *("picture_trend.svg", "_picture_numbers.svg"),
        *("kinds/shares.svg", "kinds/mean.svg", "kinds/distribution.svg"),
    ):
        drawing = (FOLDER / "templates" / name).read_text(encoding="utf-8")
        assert set(re.findall(r"#[0-9a-f]{6}\b", drawing)) <= light
