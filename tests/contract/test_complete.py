"""No command and no address is left out of the contract."""

from __future__ import annotations

from collections.abc import Iterator

from werkzeug.exceptions import HTTPException

from .asking import Dashboard, run
from .questions import QUESTIONS

SERVERS = {"collect", "dashboard", "demo", "dev", "relay"}
"""Commands that run until they are ended: other tests start them."""

RANDOM = {"gateway-key new", "gateway-key rotate", "gateway-key show", "sent"}
"""Commands whose answer is random: keys, and what a device has sent."""

ELSEWHERE = {"web"}
"""Commands that copy built files, which a clone has only after `make web`."""

APART = {"static", "access.sign_in_post"}
"""Addresses of files, and the form through which every test signs in."""

LINES = [line for lines in QUESTIONS.values() for line in lines]


def commands(*path: str) -> Iterator[str]:
    """All commands below one, as its help lists them."""
    listed = run([*path, "--help"]).stdout.partition("\nCommands:\n")[2]
    names = [
        line.split()[0] for line in listed.splitlines() if line[:2] == "  " and line[2:3] != " "
    ]
    if path and not names:
        yield " ".join(path)
    for name in names:
        yield from commands(*path, name)


def test_every_command_has_its_options_here() -> None:
    """The help of each command is asked for, so that no option comes or goes unseen."""
    helped = {
        line.removeprefix("deniable ").removesuffix(" --help")
        for line in LINES
        if line.endswith(" --help")
    }
    assert helped == {*commands()}


def test_every_command_answers_here() -> None:
    """Each command that prints an answer is asked for one, beside its mistakes."""
    mistakes = {*QUESTIONS["mistakes with commands"]}
    answered = [f"{line} " for line in LINES if line not in mistakes and "--help" not in line]
    for command in {*commands()} - SERVERS - RANDOM - ELSEWHERE:
        asked = f"deniable {command.replace('release make', 'release')} "
        assert any(line.startswith(asked) for line in answered), command


def test_every_address_is_requested_here(dashboard: Dashboard) -> None:
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
