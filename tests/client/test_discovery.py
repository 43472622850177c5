"""Discovery: what of a string is reported, what may be declared, and what devices never report."""

import json
import re
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable import Registry, RegistryError, SchemeError
from deniable.protocol.exact import exp_below
from deniable.protocol.mechanisms import prefix_tree
from deniable.protocol.mechanisms.prefix_tree import (
    ALPHABETS,
    MAX_DISCOVERY_CELLS,
    MAX_TEXT,
    WINDOW,
    PrefixTree,
    base,
    head,
    place,
    plain,
)
from deniable.protocol.scheme import Scheme
from deniable.protocol.types.discovery import MAX_DENIED, MAX_PATTERN, Discovery, check_deny, denied

from . import discoveries

HALF = 1 << 52
FOLDER = Path(__file__).parents[2] / "client" / "vectors"
VECTORS = json.loads((FOLDER / "discovery.json").read_text(encoding="utf-8"))
TEXTS = st.text(max_size=60)

declared = partial(discoveries.declared, lifetime=60.0)


def test_the_vectors():
    """What the published file says of heads, places, patterns and texts that wait is computed."""
    for case in VECTORS["heads"]:
        assert head(case["text"], case["levels"], case["alphabet"]).hex() == case["head"]
    for case in VECTORS["places"]:
        levels, width = case["levels"], case["width"]
        found, rows = head(case["text"], levels), range(levels + 1)
        assert [prefix_tree.token(found, row) for row in range(levels)] == case["tokens"]
        assert [base(case["salt"], row, found[: 2 * row], width) for row in rows] == case["bases"]
        assert [place(case["salt"], row, found, width) for row in rows] == case["places"]
    for case in VECTORS["denied"]:
        assert denied(case["text"], [case["pattern"]]) == case["denied"]
    for case in VECTORS["recorded"]:
        kind = Discovery(case["max_length"], case["alphabet"], tuple(case["deny"]))
        assert kind.normalize(case["text"]) == case["waits"]


@given(TEXTS, st.integers(1, 16), st.sampled_from(sorted(ALPHABETS)))
def test_a_head_is_a_prefix_in_the_alphabet_or_nothing(text, levels, alphabet):
    """A head is the beginning of the normal form up to the first zero, over the alphabet alone."""
    whole = plain(text).encode()
    found = head(text, levels, alphabet)
    assert b"\0" not in found
    cut = whole[: 2 * levels]
    assert found == (cut if set(cut) <= set(ALPHABETS[alphabet]) else b"")


@given(TEXTS, st.integers(1, 8))
def test_a_place_lies_in_the_window_of_its_prefix(text, levels):
    """In each row the place of a string is the base of its prefix and a token below 65,536 more,
    so a server that knows the prefix finds all that can follow it."""
    found = head(text, levels)
    for row in range(levels + 1):
        begin = base("demo", row, found[: 2 * row], 712_980)
        step = (place("demo", row, found, 712_980) - begin) % 712_980
        assert step == (prefix_tree.token(found, row) if row < levels else 0)
        assert 0 <= step < WINDOW


def test_every_character_of_text_is_in_the_widest_alphabet():
    """All characters but the 33 control characters of ASCII can be found, of any script."""
    left_out = [
        code
        for code in (*range(0xD800), *range(0xE000, 0x110000, 31))
        if not set(chr(code).encode()) <= set(ALPHABETS["bytes"])
    ]
    assert left_out == [*range(0x20), 0x7F]


def test_long_runs_of_marks_take_no_time():
    """A megabyte of combining marks, which takes hours to bring into normal form, is cut first."""
    assert len(plain("e" + "\u0323\u0301" * 500_000)) <= MAX_TEXT
    assert len(head("\u0301" * 1_000_000, 16)) == 32


@pytest.mark.parametrize("text", VECTORS["invalid"])
def test_half_a_character_is_refused(text, make_client):
    """A lone surrogate is refused. Neither what is passed on nor any error behind it, which tools
    that report errors show too, holds the text."""
    troubles = []
    client = make_client(registry=declared(), on_trouble=troubles.append)
    client.record("search", text)
    (trouble,) = troubles
    assert "lone surrogate" in str(trouble)
    assert text not in str(trouble)
    assert trouble.__context__ is trouble.__cause__ is trouble.__traceback__ is None


@given(TEXTS, st.lists(st.sampled_from(["*a*", "b*", "*.exe", "ab", "*é*"]), max_size=3))
def test_what_waits_is_recorded_again_as_itself(text, deny):
    """The text that waits for the end of a window gives the same report after a restart: recorded
    again it is itself, and it has the head of the whole text, or none."""
    kind = Discovery(8, "bytes", tuple(deny))
    waits = kind.normalize(text)
    assert kind.normalize(waits) == waits
    assert head(waits, 4) in (head(text, 4), b"")
    assert len(waits) <= 8


@given(st.text("ab*", max_size=6), st.text("abAB", max_size=8))
def test_patterns_fit_as_the_regular_expression_would(pattern, text):
    """A pattern denies what the same pattern with `.*` for `*` matches, whatever the case."""
    same = ".*".join(map(re.escape, pattern.split("*")))
    assert denied(text, [pattern]) == bool(re.fullmatch(same, text, re.I | re.S))


def test_a_hostile_pattern_is_quick():
    """Many stars against many letters take no exponential time."""
    assert not denied("a" * MAX_TEXT, ["a*" * (MAX_PATTERN // 2 - 1) + "b"] * MAX_DENIED)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("*@*", "list of texts"),
        ([1], "list of texts"),
        (["ok", "**"], "number 2, that denies every string"),
        ([""], "denies every string"),
        (["a" * 129], "longer than 128"),
        (["a"] * 101, "above the limit of 100"),
        (["A\u030a"], "normal form C"),
        (["a\0"], "zero character"),
        (["\ud800"], "not valid Unicode"),
    ],
)
def test_patterns_that_are_refused(value, told):
    """A pattern that would deny everything, fit nothing, or is no text is refused."""
    assert told in str(check_deny(value))
    assert check_deny(["*@*", "token=*"]) is None


@pytest.mark.parametrize("levels", [1, 4, 8, 9, 16])
def test_designs_keep_within_epsilon(levels):
    """For epsilons from 0.05 to 10 the exact epsilon is within the declared one and near it, and
    a tally has at most 8,650,000 cells in tables that are four windows wide or more."""
    for epsilon in (0.05, 0.3, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0):
        made = PrefixTree.design("demo", epsilon, levels)
        assert made.odds <= exp_below(epsilon)
        assert epsilon - 1e-6 < made.epsilon <= epsilon + 1e-15
        assert sum(row.width for row in made.rows) <= MAX_DISCOVERY_CELLS
        assert made.width >= 4 * WINDOW
        assert len(made.rows) == levels + 1
        assert all(row.report_bytes <= 3 for row in made.rows)


def test_a_compiled_registry_is_checked():
    """A compiled metric without its patterns, or with a mechanism of another type, is refused; and
    no other type takes this mechanism."""
    document = declared().compile()
    for key, value in (("deny", ["*"]), ("minimum_share", 2), ("type", "string")):
        faulty = json.loads(json.dumps(document))
        faulty["metrics"]["search"][key] = value
        with pytest.raises(RegistryError, match=r"search\."):
            Registry.from_document(faulty)
    del document["metrics"]["search"]["deny"]
    with pytest.raises(RegistryError, match=r"deny.*missing"):
        Registry.from_document(document)
    definition = declared()["search"].scheme.definition()
    for kind in ("category", "boolean", "string", "number"):
        with pytest.raises(SchemeError, match="not reported through prefix_tree"):
            Scheme.from_definition({**definition, "type": kind})


def test_filters_are_no_part_of_the_scheme():
    """Reports before and after an edit of `deny` or `minimum_share` add up; those of another
    length or alphabet do not."""
    before = declared()["search"].scheme.fingerprint
    for line in ('deny = ["*@*"]', "minimum_share = 0.1"):
        assert declared(line)["search"].scheme.fingerprint == before
    for line in ("max_length = 18", 'alphabet = "hex"', "max_length = 6"):
        assert declared(line)["search"].scheme.fingerprint != before
