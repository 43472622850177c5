"""Values in sentences, whichever way they run."""

import pytest

from deniable_estimator.messages import isolated, message

FSI, PDI = "\u2068", "\u2069"


@pytest.mark.parametrize("value", ["firefox", "25%", "naïve café", "中文", "👩‍👩‍👧 ok", "", "é"])
def test_what_runs_from_left_to_right_stands_as_it_is(value):
    """Nothing is put around most values, not even of other scripts."""
    assert isolated(value) == value


@pytest.mark.parametrize("value", ["שלום", "مرحبا 12", "a\u200fb", "١٢"])
def test_what_runs_from_right_to_left_is_isolated(value):
    """The value is whole, between marks that end its influence."""
    assert isolated(value) == f"{FSI}{value}{PDI}"


@pytest.mark.parametrize("mark", list("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"))
def test_marks_that_reorder_are_shown_instead(mark):
    """Each of the nine marks is replaced, so that none ends the isolation or outlives it."""
    told = isolated(f"a{mark}b")
    assert told == f"{FSI}a\ufffdb{PDI}"


def test_every_sentence_isolates_what_stands_in_it():
    """A message does it for its arguments, once, also where one stands in another; a number or
    a sentence stays what it was."""
    inner = message("{value} leads", value="gpj\u202eexe")
    assert inner == f"{FSI}gpj\ufffdexe{PDI} leads"
    assert message("{told} with {share:.1f}", told=inner, share=0.25) == f"{inner} with 0.2"
    assert inner.arguments["value"] == "gpj\u202eexe"


@pytest.mark.parametrize("mark", ["\x85", "\x9b", "\u2028", "\u2029"])
def test_what_a_browser_hides_is_seen(mark):
    """A value with a control character that browsers show as nothing looks unlike one without."""
    assert isolated(f"sea{mark}rch") == "sea\N{REPLACEMENT CHARACTER}rch"
    assert mark not in isolated(f"\u05d0{mark}")
