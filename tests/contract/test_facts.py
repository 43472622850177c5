"""What deniable says of one crowd stays what it said: every number and every sentence.

The files in `facts` have the facts of each output (`facts.py`), not its layout. Where a change is
meant, `python -m pytest tests/contract/test_facts.py --take` takes them anew; its difference is
part of the commit.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .facts import difference, written
from .questions import QUESTIONS

FACTS = Path(__file__).parent / "facts"
MOST = 60
"""So many lines of a difference are shown."""


def file_of(name):
    """Where the facts of a question are kept."""
    return FACTS / f"{name.replace(' ', '-')}.txt"


@pytest.mark.parametrize("name", QUESTIONS)
def test_facts(name, people, request):
    """The outputs of a question say what they said; of some questions there are dozens, drawn and
    decoded anew."""
    found: list[str] = []
    known: dict[tuple[str, ...], str] = {}
    for line in QUESTIONS[name]:
        if line.startswith("visit "):
            people.ask(line.replace("visit", "GET"))
            continue
        lines = written(people.ask(line))
        first = known.setdefault(tuple(lines), line)
        found += [f"== {line}", *(lines if first is line else [f"the same as {first}"])]
    kept = file_of(name)
    if request.config.getoption("--take", default=False):
        kept.write_text("".join(f"{each}\n" for each in found), encoding="utf-8")
        return
    changed = difference(kept.read_text(encoding="utf-8").splitlines(), found)
    if changed:
        more = [f"... and {len(changed) - MOST} lines more"] if len(changed) > MOST else []
        shown = "\n".join(each[:300] for each in (*changed[:MOST], *more))
        pytest.fail(
            f"what is said of {name!r} has changed. If it is meant to, take it anew by "
            f"`python -m pytest tests/contract/test_facts.py --take`.\n{shown}",
            pytrace=False,
        )


def test_no_file_is_left_over():
    """Each file of facts belongs to a question."""
    assert {*FACTS.iterdir()} == {file_of(name) for name in QUESTIONS}
