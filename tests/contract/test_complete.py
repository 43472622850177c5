"""No command and no address is left out of the contract."""

import shlex

import pytest
from werkzeug.exceptions import HTTPException

from deniable.tools.command_line import find
from deniable.tools.sent_command import main as sent

from .asking import run
from .questions import COMMANDS, FACTS, QUESTIONS, needed

SERVERS = {"collect", "dashboard", "demo", "dev", "relay"}
"""Commands that run until they are ended: other tests start them."""

RANDOM = {"relay key new", "relay key rotate", "relay key show", "sent"}
"""Commands whose answer is random: keys, and what a device has sent."""

ELSEWHERE = {"compile web"}
"""Commands that copy built files, which a clone has only after `make web`."""

APART = {"static", "access.sign_in_post"}
"""Addresses of files, and the form through which every test signs in."""

LINES = [line for lines in QUESTIONS.values() for line in lines]

KEPT: dict[str, str] = {}
for _file in FACTS.iterdir():
    for _each in _file.read_text(encoding="utf-8").removeprefix("== ").split("\n== "):
        _line, _, _told = _each.partition("\n")
        KEPT[_line] = f"{KEPT.get(_line, '')}{_told}\n"
"""What `test_facts` finds each line to say, wherever it stands."""


def test_whatever_there_is_is_asked():
    """Each command, metric and mechanism is asked all that must be. What is missing is a line to
    write into a file of facts, after `== `."""
    assert set(needed()).difference(LINES) == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_runs_here(name):
    """The help of each command begins with an example. It is asked here and ends well; those of
    servers, and of commands whose answer is random, can be typed as they stand."""
    example = run([*name.split(), "--help"]).stdout.splitlines()[0].removeprefix("Example: ")
    if name not in SERVERS | RANDOM | ELSEWHERE:
        assert "exit code 0" in KEPT[example].splitlines()
    elif name == "sent":
        with pytest.raises(SystemExit) as ended:
            sent([*shlex.split(example)[2:], "--help"])
        assert ended.value.code == 0
    else:
        arguments = shlex.split(example)[1 + len(name.split()) :]
        assert example.startswith(f"deniable {name} ")
        find(*name.split()).make_context(name, arguments)


def test_every_address_is_requested_here(dashboard):
    """Each address of the dashboard is requested, with each method that it takes."""
    routes = dashboard.app.url_map.bind("deniable.acme.example", url_scheme="https")
    found = set()
    for line in LINES:
        verb, rest = line.split(" ", 1)
        method = "GET" if verb == "visit" else verb
        if method in ("GET", "POST"):
            path = rest.split(" ")[0].partition("?")[0].replace("LINK", "/shared/x")
            try:
                rule, _ = routes.match(path, method, return_rule=True)
            except HTTPException:
                continue
            found.add((rule.endpoint, method))
    expected = {
        (rule.endpoint, method)
        for rule in dashboard.app.url_map.iter_rules()
        for method in (rule.methods or set()) & {"GET", "POST"}
    }
    assert {each for each in expected - found if each[0] not in APART} == set()
