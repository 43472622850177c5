"""The file of people: its form, its tokens, its commands, and what a change of it does at once."""

import hmac
import json
import re
from datetime import date
from hashlib import sha256

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from deniable.tools.command_line import find
from deniable_estimator.dashboard.access.people import (
    MOST_PEOPLE,
    NAME_LENGTH,
    Role,
    check_name,
    find_person,
    hash_token,
    load_people,
    parse_people,
)
from deniable_estimator.dashboard.sharing.links import SharedLink, SharedLinks
from deniable_estimator.files import MAX_FILE, CheckedFileError

from .conftest import TOKEN, browser_of, dashboard_of

HASH = hash_token("deniable_secret", "00" * 16)


def run(*arguments, fine=True):
    """What `deniable dashboard people` prints."""
    result = CliRunner().invoke(find("dashboard", "people"), arguments)
    assert (result.exit_code == 0) is fine, result.output
    return result.output


def problems(text):
    """Line and place of every mistake."""
    with pytest.raises(CheckedFileError) as caught:
        parse_people(text)
    return [(each.line, each.where) for each in caught.value.problems]


def test_only_a_salted_hash_is_kept():
    """The file holds HMAC-SHA256 of the token under a salt of 128 random bits of each person."""
    first, second = hash_token("secret"), hash_token("secret")
    assert first != second
    for each in (first, second):
        kind, salt, digest = each.split(":")
        assert (kind, len(salt)) == ("hmac-sha256", 32)
        assert digest == hmac.new(bytes.fromhex(salt), b"secret", sha256).hexdigest()


def test_every_mistake_is_named_with_its_line():
    """All of them at once, in the order of the file."""
    text = f"""schema = 2
people_ = 1
[people.a]
role = "king"
[people.b]
role = "reader"
token = "deniable_in-the-clear"
colour = "red"
[people."<script>"]
role = "reader"
[people.c]
role = "reader"
token = "{HASH}"
[people.d]
role = "reader"
token = "{HASH}"
[people.D]
role = "reader"
"""
    assert problems(text) == [
        (1, "schema"), (2, "people_"), (4, "people.a.role"), (7, "people.b.token"),
        (8, "people.b.colour"), (9, "people.<script>"), (16, "people.d.token"), (17, "people.D"),
    ]  # fmt: skip
    with pytest.raises(CheckedFileError) as caught:
        parse_people(text)
    assert "in-the-clear" not in str(caught.value), "no message quotes a secret"
    assert HASH not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["", "schema = true", "schema = 1\npeople = 3", "schema = 1\n[people]\na = 1", "=", "\x00",
     "[" * 5000, "schema = 1\n[[people]]\nrole = 'reader'"],
)  # fmt: skip
def test_what_is_no_list_of_people_is_refused(text):
    """Each mistake of form is a mistake and no crash."""
    assert problems(text)


def test_the_file_is_limited(tmp_path):
    """A thousand people and a mebibyte are the most."""
    many = "schema = 1\n" + "".join(f'[people.p{n}]\nrole = "reader"\n' for n in range(MOST_PEOPLE))
    assert len(parse_people(many)) == MOST_PEOPLE == 1000
    with pytest.raises(CheckedFileError, match="1001 people; 1000 are the most"):
        parse_people(many + '[people.one_more]\nrole = "reader"\n')
    path = tmp_path / "people.toml"
    path.write_text("schema = 1\n".ljust(MAX_FILE, "#"))
    assert load_people(path) == {}
    path.write_text("schema = 1\n".ljust(MAX_FILE + 1, "#"))
    with pytest.raises(CheckedFileError, match="larger than 1,048,576 bytes"):
        load_people(path)
    path.write_bytes(b"schema = 1\n#\xff")
    with pytest.raises(CheckedFileError, match="not UTF-8"):
        load_people(path)


@pytest.mark.parametrize(
    ("name", "fine"),
    [
        ("ana.b+c_d-e@acme.example", True), ("O'Neil", True), ("سارة", True), ("Zoë", True),
        ("a" * NAME_LENGTH, True), ("a" * (NAME_LENGTH + 1), False), ("", False), (" a", False),
        ("a ", False), ("a,b", False), ("a\nb", False), ("\u202eana", False), ("<script>", False),
        ("Zoe\u0308", False), ("a/b", False), ("a\u200bb", False),
    ],
)  # fmt: skip
def test_names_are_letters_of_any_language(name, fine):
    """No name can hide another, leave its place on a page, or be two names joined by a comma."""
    assert (check_name(name) is None) is fine


def test_adding_keeps_the_file(tmp_path):
    """The token is printed once and its hash kept; comments, other people and the file's mode stay;
    a new file is its owner's alone, and nothing else is left in the folder."""
    path = tmp_path / "people.toml"
    at = ("--file", str(path))
    token = re.search(r"token: (deniable_\S{43})\n", run("add", "Ana", "--role", "analyst", *at))
    assert token is not None
    assert path.stat().st_mode & 0o777 == 0o600
    assert token[1] not in path.read_text()
    path.write_text(path.read_text().replace("[people.Ana]", "# who asks most\n[people.Ana]"))
    path.chmod(0o640)
    told = json.loads(run("add", "Bob B", "--role", "reader", "--json", *at))
    assert (told["name"], told["role"]) == ("Bob B", "reader")
    assert run("add", "eve@acme.example", "--role", "operator", "--no-token", *at)
    assert path.stat().st_mode & 0o777 == 0o640
    assert "# who asks most" in path.read_text()
    found = load_people(path)
    assert [each.role for each in found.values()] == [Role.ANALYST, Role.READER, Role.OPERATOR]
    assert find_person(found.values(), token[1]) == found["Ana"]
    assert find_person(found.values(), told["token"]) == found["Bob B"]
    assert not found["eve@acme.example"].hashed
    assert [each.name for each in tmp_path.iterdir() if each.name != "temporary"] == ["people.toml"]


def test_a_second_add_needs_replace(tmp_path):
    """Somebody who is listed is not changed by accident; --replace gives a new token and role."""
    at = ("--file", str(tmp_path / "people.toml"))
    first = json.loads(run("add", "Ana", "--role", "reader", "--json", *at))["token"]
    assert "--replace" in run("add", "Ana", "--role", "operator", *at, fine=False)
    assert "lists Ana already" in run(
        "add", "ana", "--role", "reader", "--replace", *at, fine=False
    )
    run("add", "Ana", "--role", "operator", "--replace", *at)
    found = load_people(tmp_path / "people.toml")
    assert found["Ana"].role is Role.OPERATOR
    assert find_person(found.values(), first) is None
    run("add", "Ana", "--role", "operator", "--replace", "--no-token", *at)
    assert not load_people(tmp_path / "people.toml")["Ana"].hashed


def test_a_file_with_mistakes_is_not_edited(tmp_path):
    """The commands name the mistakes and leave the file as it is."""
    path = tmp_path / "people.toml"
    path.write_text("schema = 1\n[people.a]\nrole = 'king'\n")
    before = path.read_bytes()
    told = run("add", "b", "--role", "reader", "--file", str(path), fine=False)
    assert "people.toml:3: error: people.a.role" in told
    assert path.read_bytes() == before
    assert "cannot be written" in run(
        "add", "a", "--role", "reader", "--file", str(tmp_path / "no" / "no" / "file"), fine=False
    )
    assert "NAME must be" in run("add", "<b>", "--role", "reader", "--file", str(path), fine=False)


def listed(path, **people):
    """Replace the file by these people with their roles, each with the token of that name."""
    text = "schema = 1\n" + "".join(
        f'[people.{name}]\nrole = "{role}"\ntoken = "{hash_token(f"token of {name}", "0" * 32)}"\n'
        for name, role in people.items()
    )
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "people.toml"
    listed(file, ana="analyst", bob="reader")
    return file


@pytest.fixture
def people_app(store, registry, path):
    return dashboard_of(store, registry, data=str(path.parent))


def test_a_change_of_the_file_is_in_force_at_once(people_app, path):
    """Whoever is removed, or gets another token, is signed out with the next request; whoever gets
    another role has it; nobody else is concerned; the dashboard's token goes on."""
    clients = {name: people_app.test_client() for name in ("ana", "bob", "own")}
    for name, client in clients.items():
        token = TOKEN if name == "own" else f"token of {name}"
        assert client.post("/login", data={"token": token}).status_code == 303
        assert client.get("/").status_code == 200
    assert clients["bob"].get("/plan").status_code == 403
    listed(path, bob="analyst")
    assert clients["ana"].get("/").status_code == 401
    bearer = {"Authorization": "Bearer token of ana"}
    assert people_app.test_client().get("/", headers=bearer).status_code == 401
    assert clients["bob"].get("/plan").status_code == 200
    path.write_text(path.read_text().replace(hash_token("token of bob", "0" * 32), HASH))
    assert clients["bob"].get("/").status_code == 401
    assert clients["own"].get("/").status_code == 200
    listed(path, ana="operator")
    assert clients["ana"].get("/plan").status_code == 200, (
        "with the old token it is the same person"
    )


def test_a_session_belongs_to_one_person(people_app):
    """Signing in begins a session of its own, whatever cookie the browser had, so a cookie that
    somebody planted before opens nothing afterwards."""
    client, thief = people_app.test_client(), people_app.test_client()
    client.post("/login", data={"token": "token of bob"})
    planted = client.get_cookie("deniable_dashboard")
    assert planted is not None
    client.post("/login", data={"token": "token of ana"})
    assert client.get("/plan").status_code == 200
    thief.set_cookie("deniable_dashboard", planted.value)
    assert thief.get("/plan").status_code == 403
    with client.session_transaction() as kept:
        session = kept["session"]
    for name in ("bob", "", "nobody"):
        with client.session_transaction() as kept:
            kept.clear()
            kept.update({"session": session, "person": name} if name else {"session": session})
        assert client.get("/").status_code == 401, "not even with the dashboard's key"


def test_mistakes_leave_the_last_good_file_in_force(people_app, path, caplog):
    """It is said once in the log, without a name, and on each page of an operator; a file that is
    gone lets nobody in; a good one mends both."""
    ana = browser_of(people_app, "token of ana", accept="")
    own = browser_of(people_app, accept="")
    good = path.read_text()
    path.write_text(good + "[people.mallory]\nrole = 'king'\n")
    told = "The file of people has mistakes."
    with caplog.at_level("INFO", "deniable_collector"):
        for _ in range(3):
            assert told not in ana.get("/").text
            assert told in own.get("/").text
        path.unlink()
        assert ana.get("/").status_code == 401
        assert told not in own.get("/").text
    events = [each.event for each in caplog.records]
    assert events == ["people-refused", "people-gone"]
    assert "mallory" not in caplog.text
    path.write_text(good)
    ana.post("/login", data={"token": "token of ana"})
    assert ana.get("/").status_code == 200


def test_a_file_with_mistakes_at_the_start(store, registry, tmp_path, caplog):
    """It is logged and lets in the dashboard's token alone, until it is corrected; without a file
    there is nobody, until `deniable dashboard people add` makes one."""
    path = tmp_path / "people.toml"
    app = dashboard_of(store, registry, data=str(tmp_path))
    assert browser_of(app).get("/").status_code in (200, 202)
    path.write_text("schema = 1\n[people.a]\nrole = 'king'\n")
    app = dashboard_of(store, registry, data=str(tmp_path))
    assert [getattr(each, "event", "") for each in caplog.records] == ["people-refused"]
    assert "The file of people has mistakes." in browser_of(app).get("/").text
    listed(tmp_path / "good", ana="analyst")
    assert app.test_client().post("/login", data={"token": "token of ana"}).status_code == 403
    (tmp_path / "good").replace(path)
    assert app.test_client().post("/login", data={"token": "token of ana"}).status_code == 303


def test_links_end_with_the_person(people_app, path):
    """The links of whoever is removed end at once, and somebody who comes back under the name does
    not own them, also if the dashboard has not looked in between; a new token or role makes no new
    person; while the file is away they are closed, and what is deleted stays so."""
    links = people_app.extensions["deniable_links"]
    visitor = people_app.test_client()
    makers = {}
    at = ("--role", "analyst", "--json", "--file", str(path))

    def add(name, *more):
        told = json.loads(run("add", name, *more, *at))
        makers[name] = browser_of(people_app, told["token"])

    def remove(name):
        path.write_text(re.sub(rf"\[people\.{name}\]\n(?:\w.*\n)*", "", path.read_text()))

    def made(name):
        page = makers[name].post("/share", data={"view": "/metric/browser", "days": "9"}).text
        return re.search(r'value="http://localhost(/shared/[^"]+)"', page)[1]

    for name in ("Eve", "Zoe"):
        add(name)
    eve, zoe = made("Eve"), made("Zoe")
    text = path.read_text()
    path.unlink()
    assert visitor.get(eve).status_code == 404
    assert links.listed() == []
    path.write_text(text)
    add("Eve", "--replace")
    assert visitor.get(eve).status_code == 200
    text = path.read_text()
    path.write_text("schema = 1\n[people.Eve]\nrole = 'king'\n")
    assert visitor.get(eve).status_code == 200
    path.write_text(text)
    remove("Eve")
    assert visitor.get(eve).status_code == 404
    without = path.read_text()
    path.write_text(text)
    assert visitor.get(eve).status_code == 404
    path.write_text(without)
    add("Eve")
    assert visitor.get(eve).status_code == 404
    again = made("Eve")
    remove("Eve")
    add("Eve")
    assert visitor.get(again).status_code == 404
    assert visitor.get(zoe).status_code == 200
    assert [each.maker for each in links.listed()] == ["Zoe"]


def test_links_end_if_no_dashboard_runs(store, registry, path, tmp_path):
    """Whoever is removed while no dashboard runs has no links when the next one starts; whoever was
    never in the file keeps them."""
    file = str(tmp_path / "links.db")
    kept = SharedLinks(file)
    day = date(2026, 11, 21)
    never = (("by a proxy", None), ("", None))
    for maker, entry in (("bob", ""), ("bob", "1"), ("gone", "1"), *never):
        kept.make(SharedLink("/metric/browser", day, day, maker=maker, entry=entry))
    app = dashboard_of(store, registry, data=str(path.parent))
    listed = app.extensions["deniable_links"].listed()
    assert [each.maker for each in listed] == ["", "by a proxy", "bob"]


@given(st.text(max_size=80))
def test_a_good_name_survives_the_file(name):
    """Whatever name is taken can be written to the file, and comes back as it was."""
    if check_name(name) is None:
        import tomlkit

        text = tomlkit.dumps({"schema": 1, "people": {name: {"role": "reader"}}})
        assert list(parse_people(text)) == [name]
