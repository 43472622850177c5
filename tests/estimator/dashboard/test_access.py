"""Who is let in, and who is not."""

import pytest

from deniable_collector.settings import SettingsError

from .conftest import TOKEN, dashboard_of

PRIVATE = ["/", "/metric/browser", "/metric/browser.csv", "/metric/browser.json", "/nowhere"]


@pytest.mark.parametrize("path", PRIVATE)
def test_nothing_is_shown_without_a_token(anybody, path):
    """A stranger gets no page, no file, and cannot even tell which metrics there are."""
    answer = anybody.get(path)
    assert answer.status_code in (303, 401)
    assert b"chrome" not in answer.data


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "/\\evil", "x", ""])
def test_signing_in_never_leads_elsewhere(anybody, token, target):
    """Whatever `next` says, signing in leads to a page of the dashboard."""
    answer = anybody.post("/login", data={"token": token, "next": target})
    assert answer.status_code == 303
    assert answer.location == "/"


@pytest.mark.parametrize("wrong", ["", "wrong", TOKEN[:-1], "ü\udce4\x00"])
def test_a_wrong_token_is_refused(anybody, wrong):
    """A wrong token sets no cookie and says so."""
    answer = anybody.post("/login", data={"token": wrong.encode("utf-8", "surrogateescape")})
    assert answer.status_code == 403
    assert "Set-Cookie" not in answer.headers
    assert b"not the token" in answer.data


def test_the_cookie_is_for_this_site_alone(anybody, token):
    """The cookie is out of reach of scripts and other sites, and Secure over https."""
    plain = anybody.post("/login", data={"token": token}).headers["Set-Cookie"]
    assert "HttpOnly" in plain
    assert "SameSite=Strict" in plain
    assert "Expires=" in plain, "it outlives the browser, as the session does"
    assert "Secure" not in plain
    assert token not in plain
    over_tls = anybody.post("/login", data={"token": token}, base_url="https://localhost")
    assert "Secure" in over_tls.headers["Set-Cookie"]


def test_each_way_leads_on_by_a_page(app, browser):
    """Every redirect is a 303, after which a browser asks for a page, whatever it has sent."""
    stranger = app.test_client()
    stranger.environ_base["HTTP_ACCEPT"] = "text/html"
    ways = [
        (stranger.get("/"), "/login"),
        (stranger.get("/metric/browser?from=2026-11-01"),
         "/login?next=%2Fmetric%2Fbrowser%3Ffrom%3D2026-11-01"),
        (stranger.get("/metric/browser?"), "/login?next=%2Fmetric%2Fbrowser"),
        (stranger.get("/login?token=wrong"), "/login?used=1"),
        (browser.get("/login"), "/"),
        (browser.get("/login?next=/metric/browser"), "/metric/browser"),
        (browser.get("/login?token=wrong&next=/metric/browser"), "/"),
        (stranger.get(f"/login?token={TOKEN}&next=/metric/browser"), "/metric/browser"),
        (browser.get(f"/login?token={TOKEN}"), "/"),
        (stranger.post("/login", data={"token": f" {TOKEN} "}), "/"),
        (browser.post("/logout"), "/login"),
        (browser.post("/logout"), "/login"),
    ]  # fmt: skip
    assert [(each.status_code, each.location) for each, _ in ways] == [
        (303, location) for _, location in ways
    ]


def test_only_people_are_led_to_the_form(app):
    """Who asks for a file, the read API, or no page gets an error instead."""
    stranger = app.test_client()
    page = {"Accept": "text/html"}
    assert stranger.get("/metric/browser", headers=page).status_code == 303
    for path, headers in (
        ("/metric/browser.csv", page),
        ("/api/v1/metrics", page),
        ("/metric/browser", {"Accept": "application/json"}),
        ("/metric/browser", page | {"Authorization": "Bearer wrong"}),
    ):
        assert stranger.get(path, headers=headers).status_code == 401, (path, headers)


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ],
)
@pytest.mark.parametrize("path", ["/login", "/logout", "/api/v1/metrics/browser/estimate"])
def test_forms_of_other_sites_are_refused(browser, token, path, headers):
    """A form that another site makes the browser send does nothing; the API says so as a
    problem."""
    refused = browser.post(path, data={"token": token}, headers=headers)
    assert refused.status_code == 403
    assert refused.is_json is path.startswith("/api")
    assert browser.get("/").status_code == 200


def test_programs_show_the_token_with_each_request(app, token):
    """A bearer token opens files and pages, sets no cookie, and a wrong one is told what to do."""
    program = app.test_client()
    answer = program.get("/metric/browser.json", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200
    assert "Set-Cookie" not in answer.headers
    for wrong in ("Bearer wrong", "Bearer", "Basic dTpw", "Bearer \xfc"):
        refused = program.get("/metric/browser.json", headers={"Authorization": wrong})
        assert refused.status_code == 401
        assert refused.mimetype == "application/problem+json"
        assert refused.headers["WWW-Authenticate"].startswith("Bearer")


def test_a_login_link_works_once(app, token):
    """The link signs in and leaves the address bar; whoever finds it later is asked again."""
    first, second = app.test_client(), app.test_client()
    answer = first.get(f"/login?token={token}")
    assert (answer.status_code, answer.location) == (303, "/")
    assert first.get("/").status_code == 200
    late = second.get(f"/login?token={token}")
    assert late.location == "/login?used=1"
    assert token not in late.text
    assert b"works once" in second.get(late.location).data
    assert second.get("/").status_code == 401


def test_a_copied_cookie_ends_with_its_session(app, browser):
    """Signing out ends the session for every copy of its cookie, and no other session."""
    cookie = browser.get_cookie("deniable_dashboard")
    assert cookie is not None
    thief, other = app.test_client(), app.test_client()
    thief.set_cookie("deniable_dashboard", cookie.value)
    other.post("/login", data={"token": TOKEN})
    assert thief.get("/").status_code == 200
    browser.post("/logout")
    assert thief.get("/").status_code == 401
    assert other.get("/").status_code == 200


def test_sessions_are_shared_and_outlive_a_restart(store, registry, tmp_path):
    """Two applications with one file, as processes of one dashboard or before and after a restart
    are, let the same sessions in and end them for each other."""
    first, second = (
        dashboard_of(store, registry, data=str(tmp_path)).test_client() for _ in range(2)
    )
    first.post("/login", data={"token": TOKEN})
    cookie = first.get_cookie("deniable_dashboard")
    assert cookie is not None
    second.set_cookie("deniable_dashboard", cookie.value)
    assert second.get("/").status_code == 200
    second.post("/logout")
    assert first.get("/").status_code == 401
    later = dashboard_of(store, registry, data=str(tmp_path)).test_client()
    later.set_cookie("deniable_dashboard", cookie.value)
    assert later.get("/").status_code == 401
    with pytest.raises(SettingsError, match="DENIABLE_DATA"):
        dashboard_of(store, registry, data=str(tmp_path / "sessions.db" / "none"))


def test_a_cookie_is_secure_where_the_public_address_is(store, registry):
    """DENIABLE_PUBLIC_URL decides, not what the request says of itself: both cookies."""
    for address, secure in (("https://d.example", True), ("http://d.example:81", False)):
        client = dashboard_of(store, registry, public_url=address).test_client()
        for scheme in ("http", "https"):
            answer = client.post(
                "/login?lang=zh-Hans", data={"token": TOKEN}, base_url=f"{scheme}://localhost"
            )
            assert ("Secure" in answer.headers["Set-Cookie"]) is secure
            page = client.get("/login?lang=zh-Hans", base_url=f"{scheme}://x.example")
            assert ("Secure" in page.headers["Set-Cookie"]) is secure
        ours = {"Origin": address}
        assert client.post("/login", data={"token": TOKEN}, headers=ours).status_code == 303
        theirs = {"Origin": "http://localhost"}
        assert client.post("/login", data={"token": TOKEN}, headers=theirs).status_code == 403


def test_a_stranger_locks_nobody_out(app):
    """After ten wrong tokens within a minute, by form or header, further wrong ones of that network
    are told to wait; a right one is let in by form and header at any time."""
    guesser = app.test_client()
    guesser.environ_base.update(REMOTE_ADDR="203.0.113.5", HTTP_ACCEPT="text/html")
    wrong = {"Authorization": "Bearer wrong"}
    for _ in range(5):
        assert guesser.post("/login", data={"token": "wrong"}).status_code == 403
        assert guesser.get("/api/v1/metrics", headers=wrong).status_code == 401
    refused = guesser.post("/login", data={"token": "wrong"})
    assert refused.status_code == 429
    assert 0 < int(refused.headers["Retry-After"]) <= 60
    assert f"Wait {refused.headers['Retry-After']} s" in refused.text
    assert '<form class="card"' in refused.text
    program = guesser.get("/api/v1/metrics", headers=wrong)
    assert (program.status_code, program.mimetype) == (429, "application/problem+json")
    right = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json"}
    assert guesser.get("/api/v1/metrics", headers=right).status_code == 200
    assert guesser.post("/login", data={"token": TOKEN}).status_code == 303
    assert guesser.get("/").status_code == 200


def test_links_are_counted_only_where_they_sign_in(store, registry):
    """Any web page can ask for /login?token=x by an image: this counts only while a link can sign
    in, and then keeps the right link from nobody."""
    for open_ in (False, True):
        app = dashboard_of(store, registry, dashboard_login_link=open_)
        client = app.test_client()
        for _ in range(11):
            client.get("/login?token=wrong", headers={"Accept": "text/html"})
        assert client.post("/login", data={"token": "wrong"}).status_code == (429 if open_ else 403)
        signed = client.get(f"/login?token={TOKEN}").location
        assert signed == ("/" if open_ else "/login?used=1")


def test_a_new_token_ends_all_sessions(browser, store, registry, token):
    """A cookie that was signed under another token is worth nothing."""
    cookie = browser.get_cookie("deniable_dashboard")
    assert cookie is not None
    other = dashboard_of(store, registry, dashboard_token=token[::-1]).test_client()
    other.set_cookie("deniable_dashboard", cookie.value)
    assert other.get("/").status_code == 401
