"""Every route has one least role, and people get what theirs allows."""

import pytest

from deniable import Registry
from deniable_estimator.dashboard.access.people import (
    ROOMS,
    Role,
    hash_token,
    needed_role,
)

from .conftest import browser_of, dashboard_of, program_of
from .test_candidates import REGISTRY as SITE

TOKENS = {role: f"deniable_{role.word}-{'x' * 43}" for role in Role}
PEOPLE = "schema = 1\n" + "".join(
    f'[people.{role.word.title()}]\nrole = "{role.word}"\ntoken = "{hash_token(token)}"\n'
    for role, token in TOKENS.items()
)


def routes(app):
    """Method and endpoint of every route, without what Flask adds to each."""
    for rule in app.url_map.iter_rules():
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}:
            yield method, rule.endpoint


@pytest.fixture
def people_file(tmp_path):
    path = tmp_path / "people.toml"
    path.write_text(PEOPLE)
    return path


@pytest.fixture
def people_app(store, registry, people_file):
    return dashboard_of(store, registry, data=str(people_file.parent))


def test_every_room_has_its_role(app):
    """A room without a line in the table is a mistake, and so is a line without a room."""
    endpoints = {endpoint for _, endpoint in routes(app)}
    assert {each if each in ROOMS else each.split(".")[0] for each in endpoints} == set(ROOMS)


def test_a_room_without_a_line_opens_to_operators_only():
    """What was forgotten stays shut; what does not exist cannot be told from what one may see;
    to send something takes an analyst."""
    assert needed_role("GET", "made_up.page") is Role.OPERATOR
    assert needed_role("GET", None) is Role.READER
    assert needed_role("HEAD", "pages.overview") is Role.READER
    assert needed_role("POST", "pages.overview") is Role.ANALYST


def test_only_these_routes_open_without_signing_in(app):
    """The list of what a stranger may see is short, and a longer one must be meant."""
    assert {f"{how} {each}" for how, each in routes(app) if needed_role(how, each) is None} == {
        "GET static", "GET healthz", "GET access.sign_in", "POST access.sign_in_post",
        "POST access.sign_out", "GET api.openapi", "GET nothing_shared",
    }  # fmt: skip


def address(app, endpoint):
    """An address of the endpoint, with some text for each part of it."""
    rule = next(each for each in app.url_map.iter_rules() if each.endpoint == endpoint)
    form = "svg" if "picture" in endpoint else "csv"
    known = {"name": "browser", "form": form, "filename": "dashboard.css"}
    parts = {name: known.get(name, "0123456789ab") for name in rule.arguments}
    with app.test_request_context():
        return app.url_for(endpoint, **parts)


@pytest.mark.parametrize("role", Role)
def test_each_role_opens_what_the_table_says(people_app, role):
    """Every route answers 403 to whoever has less than its role, and something else to others: to
    a session and to the token in a header alike."""
    browser, program = browser_of(people_app, TOKENS[role]), people_app.test_client()
    bearer = {"Authorization": f"Bearer {TOKENS[role]}"}
    tried = 0
    for method, endpoint in routes(people_app):
        needed = needed_role(method, endpoint)
        if needed is None:
            continue
        if endpoint.startswith(("api.comparison", "api.plan")):
            needed = Role.ANALYST
        path = address(people_app, endpoint)
        for answer in (
            browser.open(path, method=method),
            program.open(path, method=method, headers=bearer),
        ):
            assert (answer.status_code == 403) is (role < needed), (method, path)
            tried += 1
    assert tried > 50


def test_pages_offer_what_the_role_allows(people_app):
    """A reader sees no link to the planner and none that compares; an analyst sees both."""
    for role, offered in ((Role.READER, False), (Role.ANALYST, True)):
        page = browser_of(people_app, TOKENS[role]).get("/").text
        assert ('href="/plan"' in page) is offered


def test_a_reader_cannot_name_strings_in_an_address(empty_store, people_file):
    """To look for strings of one's own takes an analyst, sent as a list or named one by one."""
    registry = Registry.parse(SITE)
    empty_store.publish([("site", registry["site"].scheme)])
    app = dashboard_of(empty_store, registry, data=str(people_file.parent))
    for role, status in ((Role.READER, 403), (Role.ANALYST, 200)):
        client = program_of(app, TOKENS[role])
        answer = client.get("/api/v1/metrics/site/estimate?value=a.example")
        assert answer.status_code == status
