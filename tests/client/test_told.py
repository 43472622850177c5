"""Sentences that keep their code, template and arguments."""

from __future__ import annotations

import ast
import copy
import pickle
from collections import defaultdict
from pathlib import Path

import pytest

from deniable.errors import SchemeError, ValueListError
from deniable.mechanisms import design, design_memoized, explain, explain_memoized
from deniable.told import Told, counted
from deniable.value_list import parse_values, read_values, value_text, value_texts

ROOT = Path(__file__).parents[2]
PACKAGES = ("client/deniable", "estimator/deniable_estimator")


def test_it_is_its_english_sentence() -> None:
    """Who shows it takes it as any text; its parts are what it was made from."""
    told = Told("full", "{room} holds {count:,}", room=Told("attic", "the attic"), count=1200)
    assert told == "the attic holds 1,200"
    assert (told.code, told.template) == ("full", "{room} holds {count:,}")
    assert told.arguments["count"] == 1200
    assert told.arguments["room"].code == "attic"


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_copies_and_errors_keep_the_code(copied) -> None:
    """It goes through another process, a record's copy and `str(error)` without losing a part."""
    told = Told("full", "{room} holds {count:,}", room=Told("attic", "the attic"), count=1200)
    for kept in (copied(told), str(ValueError(told)), copied(SchemeError(told)).args[0]):
        assert isinstance(kept, Told)
        assert (kept, kept.code, kept.template) == (told, told.code, told.template)
        assert kept.arguments == told.arguments
        assert kept.arguments["room"].code == "attic"


def test_no_two_templates_have_the_same_code() -> None:
    """A code names one sentence, so a program that knows it knows the names of its arguments."""
    found = defaultdict(set)
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Name)
                    and node.func.id == "Told"
                ):
                    code, template = map(ast.literal_eval, node.args)
                    found[code].add(template)
    assert len(found) > 30
    assert {code: texts for code, texts in found.items() if len(texts) > 1} == {}


@pytest.mark.parametrize(
    ("size", "lifetime", "code"),
    [
        (10, None, "least_error"),
        (5000, None, "shorter_reports"),
        (10, 4.0, "small_memo_loss"),
        (5000, 8.0, "shorter_memo_reports"),
        (1000, 1.5, "smaller_memo_loss"),
    ],
)
def test_each_reason_of_a_choice_has_its_code(size: int, lifetime: float | None, code: str) -> None:
    """Which of the reasons it is, is not read from the sentence."""
    choice = explain(size, 1.0) if lifetime is None else explain_memoized(size, "m", 1.0, lifetime)
    assert choice.reason.code == code
    assert choice.reason == choice.reason.template.format(**choice.reason.arguments)


def test_an_error_of_a_scheme_has_its_code_and_arguments() -> None:
    """The limit and what was asked for are data; any other mistake has the general code."""
    with pytest.raises(SchemeError) as caught:
        design_memoized("auto", "m", 10, 2.0, 1.0)
    assert caught.value.code == "memo_range"
    assert caught.value.arguments == {"epsilon": 2.0, "most": 20.0, "lifetime": 1.0}
    with pytest.raises(SchemeError) as caught:
        design("auto", 10, 0.0)
    assert caught.value.code == "epsilon_range"
    with pytest.raises(SchemeError) as caught:
        design("nothing", 10, 1.0)
    assert caught.value.code == "no_mechanism"
    plain = SchemeError("q must be a prime")
    assert (plain.code, dict(plain.arguments)) == ("scheme", {})


@pytest.mark.parametrize(
    ("content", "line", "code"),
    [
        (b"", None, "no_value"),
        (b"a\n\xff", 2, "not_utf8"),
        (b"a\n\nb", 2, "no_text"),
        (b"a\x00", 1, "no_text"),
        (b"x" * 1100, 1, "no_text"),
        (b"x" * 3000, 1, "no_text"),
        (b"a\nb\na", 3, "repeated"),
    ],
)
def test_an_error_of_a_list_has_its_code(content: bytes, line: int | None, code: str) -> None:
    """Source, line and code are apart; the message has all of them."""
    with pytest.raises(ValueListError) as caught:
        parse_values(content, "Your list")
    error = caught.value
    assert (error.source, error.line, error.code) == ("Your list", line, code)
    assert str(error).startswith("Your list, line" if line else "Your list ")
    assert isinstance(str(error), Told)


def test_a_list_that_is_no_file_has_its_code(tmp_path: Path) -> None:
    """A file that is not there, and a name that no file can have."""
    for path, code in ((tmp_path / "missing", "unreadable"), ("\0", "no_file_name")):
        with pytest.raises(ValueListError) as caught:
            read_values(path)
        assert caught.value.code == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x" * 1025, "too_long"),
        ("x" * 3000, "too_long"),
        ("\ud800", "invalid_unicode"),
        ("a\n", "control_character"),
        ("", "blank"),
    ],
)
def test_why_a_text_is_no_value_has_its_code(text: str, code: str) -> None:
    """Alone, and inside of the error of a list that holds it."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        value_text(text)
    assert caught.value.args[0].code == code
    with pytest.raises(ValueListError) as listed:
        value_texts([text], "The list")
    assert listed.value.arguments["mistake"].code == code


def test_one_is_not_a_plural() -> None:
    """A count agrees with its noun."""
    assert [counted(each, "metric") for each in (0, 1, 2, 1000)] == [
        *("0 metrics", "1 metric", "2 metrics", "1,000 metrics"),
    ]
