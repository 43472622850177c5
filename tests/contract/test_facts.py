"""What deniable says of one crowd stays what it said: every number and every sentence.

The files in `facts` have the facts of each output (`facts.py`), not its layout, of which those in
`looks` have a digest. Where a change is meant, take them anew by
`python -m pytest tests/contract/test_facts.py --take`; the difference of the facts is part of the
commit, and what is laid out anew is looked at.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .facts import difference, written
from .questions import FACTS, QUESTIONS

LOOKS = Path(__file__).parent / "looks"
MOST = 60
"""So many lines of a difference are shown."""


def file_of(name, folder=FACTS):
    """Where the facts, or the looks, of a question are kept."""
    return folder / f"{name.replace(' ', '-')}.txt"


@pytest.mark.parametrize("name", QUESTIONS)
def test_facts(name, request):
    """The outputs of a question say what they said, and look as they did; of some questions there
    are dozens, drawn and decoded anew."""
    people = request.getfixturevalue("odd_people" if name.startswith("odd ") else "people")
    found: list[str] = []
    looks: list[str] = []
    known: dict[tuple[str, ...], str] = {}
    for line in QUESTIONS[name]:
        if line.startswith("visit "):
            people.ask(line.replace("visit", "GET"))
            found.append(f"== {line}")
            continue
        said = people.ask(line)
        lines = written(said.facts)
        looks.append(f"{said.look} {line}")
        first = known.setdefault(tuple(lines), line)
        found += [f"== {line}", *(lines if first is line else [f"the same as {first}"])]
    kept, seen = file_of(name), file_of(name, LOOKS)
    if request.config.getoption("--take", default=False):
        for file, told in ((kept, found), (seen, looks)):
            file.write_text("".join(f"{each}\n" for each in told), encoding="utf-8")
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
    other = {*looks}.difference(seen.read_text(encoding="utf-8").splitlines())
    assert not other, "laid out anew: look at it, and if it is meant to be, --take it"


def test_no_file_is_left_over():
    """Each file of looks belongs to one of facts."""
    assert {each.name for each in LOOKS.iterdir()} == {each.name for each in FACTS.iterdir()}
