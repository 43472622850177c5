"""People whom a reverse proxy names: believed from listed proxies, and from nobody else."""

import re
import socket

import pytest

from deniable_collector.settings import SettingsError
from deniable_estimator.dashboard.settings import DashboardSettings

from .conftest import REGISTRY, TOKEN, dashboard_of, running_dashboard

HERE = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def new_app(store, registry, tmp_path):
    """Makes a dashboard that believes 10.1.0.0/16, by default with roles in a header."""
    path = tmp_path / "people.toml"
    path.write_text('schema = 1\n[people.Ana]\nrole = "analyst"\n[people."Zoë"]\nrole = "reader"\n')

    def new(*, by_file=False, **more):
        way = {"data": str(path.parent)} if by_file else {"dashboard_role_header": "X-Role"}
        return dashboard_of(
            store,
            registry,
            dashboard_user_header="X-Forwarded-User",
            **{"dashboard_proxies": ("10.1.0.0/16", "::1"), **way, **more},
        )

    return new


def proxied(app, address="10.1.2.3", **headers):
    """A browser behind a proxy at this address that adds these headers."""
    client = app.test_client()
    client.environ_base.update(
        REMOTE_ADDR=address,
        HTTP_ACCEPT="text/html",
        **{f"HTTP_{name.upper()}": text for name, text in headers.items()},
    )
    return client


def test_a_proxy_names_people_and_roles(new_app):
    """By header or by the file of people; pages say who it is, and offer no way out that the
    proxy would undo."""
    by_header = proxied(new_app(), x_forwarded_user="Bob", x_role="reader")
    page = by_header.get("/").text
    assert "<bdi>Bob</bdi> <small>reader</small>" in page
    assert "Sign out" not in page
    assert by_header.get("/plan").status_code == 403
    by_file = proxied(new_app(by_file=True), x_forwarded_user="Ana")
    assert by_file.get("/plan").status_code == 200
    away = new_app(by_file=True, dashboard_sign_out="/oauth2/sign_out")
    assert '<a href="/oauth2/sign_out">Sign out</a>' in (
        proxied(away, x_forwarded_user="Ana").get("/").text
    )
    utf8 = "Zoë".encode().decode("latin-1")
    assert "<bdi>Zoë</bdi>" in proxied(new_app(by_file=True), x_forwarded_user=utf8).get("/").text


@pytest.mark.parametrize("by_file", [True, False])
def test_a_link_has_its_makers_entry(new_app, by_file):
    """Whoever is in the file of people has links that end with the entry there; of whoever is not,
    they stay."""
    app = new_app(by_file=by_file)
    ana = proxied(app, x_forwarded_user="Ana", x_role="analyst", sec_fetch_site="same-origin")
    assert ana.post("/share", data={"view": "/metric/browser", "days": "9"}).status_code == 200
    (link,) = app.extensions["deniable_links"].listed()
    assert link.entry == ("" if by_file else None)


@pytest.mark.parametrize("address", ["10.2.0.1", "127.0.0.1", "::2", "", "10.1.2", "unix"])
def test_nobody_else_is_believed(new_app, address, caplog):
    """The headers of any other sender are ignored and counted, whatever else they claim; the log
    has the number, and neither the name nor the address."""
    app = new_app(trusted_proxies=1)
    liar = proxied(
        app, address, x_forwarded_user="Mallory", x_role="operator",
        x_forwarded_for="10.1.2.3", x_real_ip="10.1.2.3", forwarded="for=10.1.2.3",
    )  # fmt: skip
    with caplog.at_level("INFO", "deniable_collector"):
        for _ in range(12):
            assert liar.get("/").status_code == 303
    told = [each for each in caplog.records if getattr(each, "event", "") == "person-not-believed"]
    assert [each.fields["requests"] for each in told] == [1, 10]
    assert "Mallory" not in caplog.text
    assert "10.1.2.3" not in caplog.text


@pytest.mark.parametrize(
    ("address", "proxies", "status"),
    [
        *((each, ("10.1.0.0/16", "::1"), 200) for each in ("10.1.2.3", "::ffff:10.1.2.3")),
        *((each, ("10.1.0.0/16", "::1"), 200) for each in ("::1", "::1%lo")),
        ("", ("unix",), 200),
        ("10.1.2.3", ("unix",), 303),
    ],
)
def test_each_form_of_a_listed_address_is_believed(new_app, address, proxies, status):
    """An IPv4 address as IPv6 writes it, and an address with its zone. Who connects to the
    dashboard's socket has no address, and is believed as `unix`."""
    app = new_app(dashboard_proxies=proxies)
    client = proxied(app, address, x_forwarded_user="Bob", x_role="reader")
    assert client.get("/").status_code == status


@pytest.mark.parametrize(
    "headers",
    [
        {"x_forwarded_user": "Mallory,Ana", "x_role": "operator"},
        {"x_forwarded_user": "Ana", "x_role": "reader,operator"},
        {"x_forwarded_user": "Ana", "x_role": "Operator"},
        {"x_forwarded_user": "Ana", "x_role": ""},
        {"x_forwarded_user": "Ana"},
        {"x_role": "operator"},
        {"x_forwarded_user": "", "x_role": "operator"},
        {"x_forwarded_user": "\xff\xfe", "x_role": "operator"},
        {"x_forwarded_user": "a" * 10_000, "x_role": "operator"},
        {"x_forwarded_user": "<script>", "x_role": "operator"},
    ],
)
def test_a_name_or_role_that_is_none_is_refused(new_app, headers, caplog):
    """Also two headers of one name, which arrive as one with a comma; what was sent is nowhere in
    the refusal, and a session in the cookie does not help."""
    client = proxied(new_app(), **headers)
    page = client.get("/")
    assert page.status_code == 403
    told = "1 request of a proxy named somebody without a role: the proxy must send reader"
    assert f"{told}, analyst or operator in X-Role" in caplog.text
    assert "have no role at this dashboard" in page.text
    assert "Mallory" not in page.text
    assert "<script>" not in page.text


def test_whoever_is_not_in_the_file_has_no_role(new_app, caplog):
    """Where the file has the roles, the proxy can add nobody, by no header."""
    client = proxied(new_app(by_file=True), x_forwarded_user="Eve", x_role="operator")
    assert client.get("/").status_code == 403
    assert "list the person with `deniable dashboard people add`" in caplog.text
    assert proxied(new_app(by_file=True), x_role="operator").get("/").status_code == 303


def test_forms_behind_a_proxy_must_come_from_here(new_app):
    """The proxy's own cookie may come along with the form of another site, so a form that does not
    say where it comes from is refused."""
    client = proxied(new_app(), x_forwarded_user="Ana", x_role="analyst")
    refused = [{}, {"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}]
    for headers in refused:
        assert client.post("/metric/browser", headers=headers).status_code == 403
    for headers in (HERE, {"Origin": "http://localhost"}):
        assert client.post("/metric/browser", headers=headers).status_code == 400


def test_tokens_work_behind_a_proxy(new_app):
    """The dashboard's token goes on as before, where the proxy names nobody; a token in the header
    wins; a password for the proxy is none for the dashboard."""
    app = new_app()
    client = proxied(app)
    assert client.get("/").status_code == 303
    assert client.post("/login", data={"token": TOKEN}).status_code == 303
    assert client.get("/plan").status_code == 200
    named = proxied(app, x_forwarded_user="Bob", x_role="reader")
    assert named.get("/plan", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert named.get("/", headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert named.get("/", headers={"Authorization": "Basic Qm9iOnB3"}).status_code == 200
    assert client.get("/", headers={"Authorization": "Basic Qm9iOnB3"}).status_code == 401


def test_a_name_ends_the_session_of_before(new_app):
    """Whom a proxy has named in a browser is not, without the name, who signed in there before."""
    app = new_app()
    client = proxied(app)
    client.post("/login", data={"token": TOKEN})
    assert client.get("/plan").status_code == 200
    named = {"X-Forwarded-User": "Bob", "X-Role": "reader"}
    assert client.get("/", headers=named).status_code == 200
    assert client.get("/plan").status_code == 303


PROXY = {
    "DENIABLE_DASHBOARD_TOKEN": TOKEN,
    "DENIABLE_DASHBOARD_USER_HEADER": "X-Forwarded-User",
    "DENIABLE_DASHBOARD_ROLE_HEADER": "X-Role",
    "DENIABLE_DASHBOARD_PROXIES": "127.0.0.1, 10.0.0.0/8",
}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"PROXIES": ""}, "DENIABLE_DASHBOARD_PROXIES is missing"),
        ({"ROLE_HEADER": ""}, "nothing says their roles"),
        ({"USER_HEADER": ""}, "DENIABLE_DASHBOARD_ROLE_HEADER does nothing without"),
        ({"USER_HEADER": "", "ROLE_HEADER": ""}, "DENIABLE_DASHBOARD_PROXIES does nothing"),
        ({"ROLE_HEADER": "x-forwarded-user"}, "must be another header"),
        ({"USER_HEADER": "X_Forwarded_User"}, "letters, digits and hyphens"),
        ({"USER_HEADER": "Authorization"}, "a header of its own"),
        ({"PROXIES": "0.0.0.0/0"}, "addresses or networks of your proxies"),
        ({"PROXIES": "10.0.0.1/8"}, "addresses or networks of your proxies"),
        ({"SIGN_OUT": "javascript:alert(1)"}, "must be a path or an address"),
        ({"SIGN_OUT": "//evil.example/"}, "must be a path or an address"),
    ],
)
def test_half_a_proxy_is_refused(changed, told):
    """A setting that is missing, or that would believe everybody, keeps the dashboard from
    starting, and is named."""
    environ = PROXY | {f"DENIABLE_DASHBOARD_{name}": text for name, text in changed.items()}
    with pytest.raises(SettingsError, match=re.escape(told)):
        DashboardSettings.from_env(environ)
    settings = DashboardSettings.from_env(PROXY)
    assert settings.dashboard_proxies == ("127.0.0.1", "10.0.0.0/8")


def asked(address, *lines):
    """The status of a page that is asked for with exactly these header lines."""
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=120) as connection:
        head = ["GET / HTTP/1.1", "Host: d", "Accept: text/html", "Connection: close", *lines]
        connection.sendall("\r\n".join([*head, "", ""]).encode("latin-1"))
        answer = b""
        while part := connection.recv(4096):
            answer += part
    return int(answer.split(b" ")[1])


@pytest.mark.campaign
def test_headers_cannot_be_smuggled(tmp_path, store):
    """With the real server: a header with underscores is none, two of one name are refused, and
    so is one in another form."""
    (tmp_path / "metrics.toml").write_text(REGISTRY)
    with running_dashboard(tmp_path, **PROXY) as (address, _):
        role = "X-Role: reader"
        assert asked(address, "X-Forwarded-User: Ana", role) == 200
        assert asked(address, "x-forwarded-user: Ana", role) == 200
        assert asked(address, "X_Forwarded_User: Ana", role.replace("-", "_")) == 303
        assert asked(address, "X_Forwarded_User: Mallory", "X-Forwarded-User: Ana", role) == 200
        assert asked(address, "X-Forwarded-User: Mallory", "X-Forwarded-User: Ana", role) == 403
        assert asked(address, "X-Forwarded-User: Ana", role, "X-Role: operator") == 403
        assert asked(address, "X-Forwarded-User : Ana", role) == 400
        assert asked(address, "X-Forwarded-User: Ana\n X-Role: operator", role) in (400, 403)
