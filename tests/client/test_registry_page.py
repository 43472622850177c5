"""The page on metrics.toml has every key and every mechanism, as the code that reads them."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from deniable import Metric, windows
from deniable.checks import MAX_DEVICES, MIN_SAMPLE_RATE
from deniable.commands import lint
from deniable.declarations import SCHEMA, Declarations
from deniable.keys import (
    DEFAULTS,
    MAX_LIFETIME_EPSILON,
    REQUIRED,
    TOP_KEYS,
    all_keys,
)
from deniable.mechanisms import (
    MAX_EPSILON,
    MAX_MEMO_EPSILON,
    DBitFlip,
    HierarchicalHistogram,
    NumberRange,
    SlidingWindow,
    design,
)
from deniable.mechanisms.prefix_code import ALPHABETS
from deniable.metric import ANSWERS, LONGITUDINAL, PLATFORMS
from deniable.types import MAX_PAIR_CELLS, MAX_VALUES, TYPES, Discovery, Pair
from deniable.types.deny import MAX_DENIED, MAX_PATTERN
from deniable.types.discovery import MAX_LENGTH
from deniable.types.number import CELL_CHOICES, QUESTIONS
from deniable.types.pair import FORGET
from deniable.value_list import MAX_VALUE_BYTES
from deniable_estimator.forecasting.detection import reports_to_detect
from deniable_estimator.forecasting.lifetime_split import (
    MOST_EPSILON,
    declared,
    report_variance,
    smallest_lifetime,
    split_of,
    spread_over,
)
from deniable_estimator.forecasting.number_forecast import reports_for_quantile

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "registry.md").read_text(encoding="utf-8")
PRODUCTION = (DOCS / "production.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.M | re.S)


def table(text: str, heading: str) -> dict[str, list[str]]:
    """The rows of the tables that begin with such a heading: first cell -> the others."""
    rows: dict[str, list[str]] = {}
    for part in re.findall(rf"^\| {heading} \|.*\n\|[ -|]*\n((?:\|.*\n)+)", text, re.M):
        for line in part.splitlines():
            first, *others = [cell.strip() for cell in line.strip("|").split(" | ")]
            assert first.strip("`") not in rows, first
            rows[first.strip("`")] = others
    return rows


TOP = table(PAGE, "key at the top")
ROWS = table(PAGE, "key")


def test_every_key_has_one_row() -> None:
    """Each key that the registry reads has a row with meaning, default and limits; no other has."""
    assert set(TOP) == set(TOP_KEYS)
    assert set(ROWS) == set(all_keys())
    for cells in [*TOP.values(), *ROWS.values()]:
        assert len(cells) == 3
        assert all(cells)


def test_every_default_is_that_of_the_code() -> None:
    """Required keys are called so; the default of any other is the one of `Metric`."""
    for field in dataclasses.fields(Metric):
        if field.name not in ROWS or field.name == "values":
            continue
        shown = ROWS[field.name][1]
        if field.name in REQUIRED:
            assert shown == "none: required", field.name
        elif isinstance(field.default, (str, float)):
            assert shown.split(",")[0] == f"`{json.dumps(field.default)}`", field.name
        else:
            assert field.default in (None, ())
            assert re.match('none|all of|`"other"` if', shown), field.name


@pytest.mark.parametrize(
    ("key", "named"),
    [
        ("type", TYPES),
        ("window", windows.KINDS),
        ("aggregate", sorted({each for kind in TYPES.values() for each in kind.aggregates})),
        ("answer", ANSWERS),
        ("platform", PLATFORMS),
        ("longitudinal", LONGITUDINAL),
        ("epsilon", [f"{MAX_EPSILON:g}"]),
        ("lifetime_epsilon", [f"{MAX_LIFETIME_EPSILON:,.0f}"]),
        ("memo_epsilon", [f"{MAX_MEMO_EPSILON:g}"]),
        ("devices", [f"{MAX_DEVICES:,}"]),
        ("values", [f"{MAX_VALUES:,}", f"{MAX_VALUE_BYTES:,}"]),
        ("sample_rate", [f"{MIN_SAMPLE_RATE:.9f}"]),
        ("ask", QUESTIONS),
        ("cells", map(str, CELL_CHOICES)),
        ("of", [f"at most {MAX_PAIR_CELLS} cells"]),
        ("forget", FORGET),
        ("max_length", [f"2 to {MAX_LENGTH}"]),
        ("alphabet", ALPHABETS),
        ("deny", [f"{MAX_DENIED} patterns of 1 to {MAX_PATTERN} characters"]),
    ],
)
def test_every_limit_is_that_of_the_code(key: str, named: Any) -> None:
    """The last column names each choice, and each bound."""
    assert all(each in ROWS[key][2] for each in named)
    assert {key for key in all_keys() if f"`{key}`" in TOP["defaults"][2]} == set(DEFAULTS)
    assert TOP["schema"][2] == f"`{SCHEMA}`"


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_passes_lint(text: str, tmp_path: Path) -> None:
    """Each block of TOML is taken by `deniable lint` without a mistake or a warning."""
    head = "" if "schema =" in text else 'schema = 1\napp = "editor"\n\n'
    (tmp_path / "metrics.toml").write_text(head + text, encoding="utf-8")
    (tmp_path / "languages.txt").write_text("english\nchinese\nother\n", encoding="utf-8")
    done = CliRunner().invoke(lint, [str(tmp_path / "metrics.toml"), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["problems"]
    assert [each for each in found if each["severity"] != "note"] == []


def test_every_key_is_in_an_example() -> None:
    """Each key of a metric, and each at the top, is set in one of the examples."""
    text = "\n".join(EXAMPLES)
    for key in all_keys():
        assert re.search(rf"^{key} = ", text, re.M), key
    for key in TOP_KEYS:
        assert re.search(rf"^(\[{key}|{key} = )", text, re.M), key


def test_every_mechanism_is_listed() -> None:
    """The list has each name that `mechanism` may say, under the types that may say it."""
    rows = table(PAGE, "name")
    for kind in TYPES.values():
        for memoize, longitudinal in ((False, "fresh"), (True, "memoize")):
            listed = {
                name
                for name, (types, _) in rows.items()
                if f"`{longitudinal}`" in types
                and (f"{kind.name}," in types.replace("any type but number,", ""))
                | ("any type" in types and f"but {kind.name}" not in types)
            }
            expected = set(kind.mechanisms(memoize=memoize))
            assert listed == expected - {"auto"}
            assert expected or (kind in (Pair, Discovery) and memoize)


def columns(heading: str, each: Callable[[str, str], str]) -> None:
    """Compare a table of numbers with what `each` says of a row's and a column's heading."""
    lines = PAGE.partition(f"| {heading} |")[2].splitlines()
    across = [cell.strip() for cell in lines[0].strip(" |").split("|")]
    assert lines[2].startswith("| ")
    for line in lines[2:]:
        if not line:
            break
        down, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert cells == [each(down, head) for head in across]


def test_the_numbers_are_computed() -> None:
    """The tables under "Choosing the numbers" hold what the formulas give."""
    columns(
        "epsilon",
        lambda _, epsilon: f"{1 / (1 + math.exp(-float(epsilon))):.0%}",
    )

    def needed(size: str, epsilon: str) -> str:
        mechanism = design("auto", int(size), float(epsilon.removeprefix("epsilon ")))
        return f"{reports_to_detect(mechanism, int(size), 0.01):,}"

    columns("values", needed)

    def bounded(quantile: str, epsilon: str) -> str:
        made = HierarchicalHistogram.design(
            NumberRange("0", "1"), float(epsilon.removeprefix("epsilon "))
        )
        return f"{reports_for_quantile(made, float(quantile)):,}"

    columns("quantile", bounded)

    def memoized(row: str, epsilon: str) -> str:
        cells, quantile = row.split(", ")
        limit = float(epsilon.removeprefix("epsilon "))
        made = DBitFlip.design(NumberRange("0", "1"), limit, 4 * limit, int(cells))
        return f"{reports_for_quantile(made, float(quantile)):,}"

    columns("cells and quantile", memoized)


def test_the_divisions_of_a_lifetime_are_computed() -> None:
    """The table under "Dividing a lifetime" and the figures below it are what the formulas give."""
    numbers = NumberRange("0", "1")
    designs: dict[str, Callable[[float], Any]] = {
        "2 values": lambda epsilon: design("auto", 2, epsilon),
        "20 values": lambda epsilon: design("auto", 20, epsilon),
        "mean": lambda epsilon: SlidingWindow.design(numbers, epsilon),
        "distribution": lambda epsilon: HierarchicalHistogram.design(numbers, epsilon),
    }
    sent = spread_over(730)

    def told(name: str, reports: int) -> float:
        epsilon = declared(Fraction(8, reports))
        return split_of(designs[name], epsilon, reports, sent, share=0.01).information

    def cell(reports: str, head: str) -> str:
        count = int(reports)
        if head == "epsilon":
            return f"{declared(Fraction(8, count)):g}"
        if head == "sample_rate":
            return f"{count / 730:.3g}"
        if head == "right guesses":
            right = 100 / (1 + math.exp(-declared(Fraction(8, count))))
            digits = 1 if right < 99.9 else 2
            return f"{math.ceil(right * 10**digits) / 10**digits}%"
        return f"{told(head, count) / told(head, 8):.1f}"

    columns("reports", cell)
    least = smallest_lifetime(designs["2 values"], told("2 values", 8), sent, most_reports=8)
    assert least is not None
    assert least.reports == 1
    text = " ".join(PAGE.split())
    assert f"one report with epsilon {least.epsilon:g} shows as much" in text
    odds = math.ceil(math.exp(least.epsilon))
    assert f"a factor of {odds} at most, not by {math.ceil(math.exp(8)):,}" in text
    three, eight = (
        split_of(designs["2 values"], declared(Fraction(8, each)), each, sent, share=0.5)
        for each in (3, 8)
    )
    gain = three.information / eight.information
    assert f"three reports are worth {gain:.1f} times as many devices as eight" in text
    noise = [report_variance(designs["2 values"](each), 0.5).noise for each in (2.36, 1.0, 2.37)]
    assert noise[0] > noise[1] / 8 > noise[2]
    assert "as little noise as one with epsilon 2.37" in text
    assert f"epsilon above {MOST_EPSILON:g}" in text


BEFORE: dict[str, Any] = {
    "type": "category",
    "description": "d",
    "owner": "o",
    "expires": date(2099, 1, 1),
    "values": ["a", "b", "c", "d"],
    "epsilon": 1.0,
    "memo_epsilon": 3.0,
    "lifetime_epsilon": 7.0,
    "longitudinal": "memoize",
    "aggregate": "first",
}
EDITS: dict[str, Any] = {
    "type": "boolean",
    "description": "another",
    "owner": "another",
    "expires": date(2098, 1, 1),
    "epsilon": 1.5,
    "lifetime_epsilon": 8.0,
    "memo_epsilon": 3.5,
    "values": ["a", "b", "c", "d", "e"],
    "values_file": "languages.txt",
    "other": "d",
    "window": "week",
    "aggregate": "any",
    "answer": "at_once",
    "sample_rate": 0.5,
    "longitudinal": "fresh",
    "mechanism": "basic_rappor",
    "tags": ["t"],
    "platform": ["web"],
    "devices": 500,
    "segments": ["plan"],
    "keep": {"day": "90 days"},
}
NUMBER_BEFORE: dict[str, Any] = {
    "type": "number",
    "description": "d",
    "owner": "o",
    "expires": date(2099, 1, 1),
    "epsilon": 1.0,
    "lifetime_epsilon": 7.0,
    "low": 1,
    "high": 400,
    "ask": "distribution",
}
NUMBER_EDITS: dict[str, Any] = {
    "low": 2,
    "high": 500,
    "unit": "s",
    "scale": "log",
    "integer": True,
    "ask": "mean",
    "cells": 64,
}
"""The same for the keys that only a number takes."""
FRESH = {key: BEFORE[key] for key in ("description", "owner", "expires")} | {
    "epsilon": 1.0,
    "lifetime_epsilon": 7.0,
}
PAIRED: dict[str, Any] = {
    "seconds": FRESH | {"type": "number", "low": 0, "high": 9, "ask": "mean"},
    "dark": FRESH | {"type": "boolean"},
    "other": FRESH | {"type": "boolean"},
}
"""What a pair may be of."""
PAIR_BEFORE: dict[str, Any] = FRESH | {
    "type": "pair",
    "of": ["seconds", "dark"],
    "bins": {"seconds": [1]},
}
PAIR_EDITS: dict[str, Any] = {
    "of": ["seconds", "other"],
    "bins": {"seconds": [2]},
    "forget": "marginals",
}
"""The same for the keys that only a pair takes."""
GOES_WITH = {
    "type": ("values",),
    "values_file": ("values",),
    "longitudinal": ("memo_epsilon",),
}
"""What must be left out after an edit of such a key."""

FOUND_EDITS: dict[str, Any] = {
    "max_length": 12,
    "alphabet": "hex",
    "deny": ["*@*"],
    "minimum_share": 0.05,
}
FOUND_BEFORE: dict[str, Any] = {
    **{key: value for key, value in PAIR_BEFORE.items() if key not in Pair.keys},
    "type": "discovery",
}


@pytest.mark.parametrize("key", all_keys())
def test_every_edit_is_on_the_production_page(key: str, tmp_path: Path) -> None:
    """The table of edits names every key once, and says "new" of those that make a new scheme."""
    rows = {
        name.strip("`"): cells
        for names_, cells in table(PRODUCTION, "edit of").items()
        for name in names_.split(", ")
    }
    assert set(rows) == set(all_keys())
    (tmp_path / "languages.txt").write_text("x\ny\n", encoding="utf-8")

    def fingerprint(settings: dict[str, Any]) -> str:
        segments = {"plan": {"values": ["free", "paid"]}}
        document = {
            "schema": SCHEMA,
            "app": "a",
            "segments": segments,
            "metrics": {**PAIRED, "m": settings},
        }
        reader = Declarations(document, {}, tmp_path)
        metrics = reader.read()[1]
        assert reader.problems == []
        return metrics["m"].scheme.fingerprint

    before, edits = (NUMBER_BEFORE, NUMBER_EDITS) if key in NUMBER_EDITS else (BEFORE, EDITS)
    before, edits = (PAIR_BEFORE, PAIR_EDITS) if key in PAIR_EDITS else (before, edits)
    before, edits = (FOUND_BEFORE, FOUND_EDITS) if key in FOUND_EDITS else (before, edits)
    left_out = GOES_WITH.get(key, ())
    edited = {name: before[name] for name in before if name not in left_out} | {key: edits[key]}
    new = fingerprint(edited) != fingerprint(before)
    assert rows[key][0] == ("new" if new else "same")
