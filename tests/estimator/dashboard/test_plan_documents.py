"""A plan is said once: in a terminal, on its page and by the read API."""

import html
import json
import re

import pytest
from click.testing import CliRunner

from deniable.tools.command_line import find
from deniable_estimator.document.document import cell
from deniable_estimator.planning.kinds import PLANS, make

from .conftest import text_of

ASKED = {
    "values": "size=6&epsilon=1&lifetime_epsilon=8&devices=50000&share=0.05&segment_share=0.1",
    "number": "low=0&high=10&ask=both&epsilon=2&lifetime_epsilon=8&devices=50000&integer=1",
    "pair": "rows=3&columns=4&epsilon=2&lifetime_epsilon=8&devices=50000&segment_share=0.5",
    "discovery": "max_length=8&epsilon=4&lifetime_epsilon=8&devices=1000000",
    "retention": "asks=both&ages=6&epsilon=2&lifetime_epsilon=4&devices=50000&window=month",
    "lifetime": "ask=mean&low=0&high=20&lifetime_epsilon=8&years=1&devices=5000",
}


def plain(text):
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


@pytest.mark.parametrize("name", PLANS)
def test_all_say_the_same(shared_browser, name):
    """What the document of a plan says stands in the terminal and on the page, and its JSON is the
    same from the command and from the API."""
    kind, below = PLANS[name], "" if name == "values" else f"/{name}"
    given = dict(each.split("=") for each in ASKED[name].split("&"))
    asked = {
        each.name: each.parse(given[each.name]) if each.name in given else each.default
        for each in kind.inputs
    }
    document = make(name, asked).document
    options = ["x".join(given[each] for each in ("rows", "columns"))] if name == "pair" else []
    for each in kind.inputs:
        value = asked[each.name]
        if "terminal" in each.places and value is not None and value is not False:
            options.append(f"--{each.name.replace('_', '-')}")
            options += [] if value is True else [str(value)]
    command = find("plan") if name == "values" else find("plan", name)
    # What a form begins with beside what is asked.
    more = "&epsilon=" if name == "lifetime" else "&sample_rate=1"
    page = plain(text_of(shared_browser, f"/plan{below}?{ASKED[name]}{more}"))
    shown = CliRunner().invoke(command, options, env={"COLUMNS": "400"}).output
    told = [document.subtitle, document.verdict.text, *(each.text for each in document.notes)]
    for fact in document.facts:
        told += [fact.name, fact.text, fact.help]
    for frame in document.frames:
        told += [frame.title, *frame.notes]
        for row in frame.rows:
            told += [cell(frame.columns[at], row[at]) for at in frame.shown]
    for text in told:
        assert " ".join(text.split()) in page
        assert " ".join(text.split()) in " ".join(shown.split())
    by_command = json.loads(CliRunner().invoke(command, [*options, "--json"]).stdout)
    by_api = json.loads(text_of(shared_browser, f"/api/v1/plan{below}?format=json&{ASKED[name]}"))
    assert by_command == by_api
    assert {each.key for each in document.facts} | {each.key for each in document.frames} <= {
        *by_api
    }
