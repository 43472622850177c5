"""Who is let in, and who is not."""

from __future__ import annotations

import pytest
from flask import Flask
from flask.testing import FlaskClient

PRIVATE = ["/", "/metric/browser", "/metric/browser.csv", "/metric/browser.json", "/nowhere"]


@pytest.mark.parametrize("path", PRIVATE)
def test_nothing_is_shown_without_a_token(anybody: FlaskClient, path: str) -> None:
    """A stranger gets no page, no file, and cannot even tell which metrics there are."""
    answer = anybody.get(path)
    assert answer.status_code in (303, 401)
    assert b"chrome" not in answer.data


def test_pages_lead_to_the_form_and_back(anybody: FlaskClient, token: str) -> None:
    """A stranger who asks for a page is asked for the token and then gets that page."""
    answer = anybody.get("/metric/browser?from=2026-11-01&to=2026-11-21")
    assert answer.status_code == 303
    form = anybody.get(answer.location)
    assert b"<form" in form.data
    target = "/metric/browser?from=2026-11-01&to=2026-11-21"
    assert target.replace("&", "&amp;") in form.text
    assert anybody.post("/login", data={"token": token, "next": target}).location == target


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "/\\evil", "x", ""])
def test_signing_in_never_leads_elsewhere(anybody: FlaskClient, token: str, target: str) -> None:
    """Whatever `next` says, signing in leads to a page of the dashboard."""
    answer = anybody.post("/login", data={"token": token, "next": target})
    assert answer.status_code == 303
    assert answer.location == "/"


@pytest.mark.parametrize("wrong", ["", "wrong", "correct horse battery stapl", "ü\udce4\x00"])
def test_a_wrong_token_is_refused(anybody: FlaskClient, wrong: str) -> None:
    """A wrong token sets no cookie and says so."""
    answer = anybody.post("/login", data={"token": wrong.encode("utf-8", "surrogateescape")})
    assert answer.status_code == 403
    assert "Set-Cookie" not in answer.headers
    assert b"not the token" in answer.data


def test_the_cookie_is_for_this_site_alone(anybody: FlaskClient, token: str) -> None:
    """The cookie is out of reach of scripts and other sites, and Secure over https."""
    plain = anybody.post("/login", data={"token": token}).headers["Set-Cookie"]
    assert "HttpOnly" in plain
    assert "SameSite=Strict" in plain
    assert "Secure" not in plain
    assert token not in plain
    over_tls = anybody.post("/login", data={"token": token}, base_url="https://localhost")
    assert "Secure" in over_tls.headers["Set-Cookie"]


def test_signing_out_forgets(browser: FlaskClient) -> None:
    """After signing out the pages are closed again."""
    assert browser.get("/").status_code == 200
    browser.post("/logout")
    assert browser.get("/").status_code == 303


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ],
)
@pytest.mark.parametrize("path", ["/login", "/logout"])
def test_forms_of_other_sites_are_refused(
    browser: FlaskClient, token: str, path: str, headers: dict[str, str]
) -> None:
    """A form that another site makes the browser send does nothing."""
    assert browser.post(path, data={"token": token}, headers=headers).status_code == 403
    assert browser.get("/").status_code == 200


def test_forms_of_our_own_are_taken(anybody: FlaskClient, token: str) -> None:
    """A browser that says that the form is ours is let in."""
    headers = {"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost"}
    assert anybody.post("/login", data={"token": token}, headers=headers).status_code == 303


def test_programs_show_the_token_with_each_request(app: Flask, token: str) -> None:
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


def test_a_login_link_works_once(app: Flask, token: str) -> None:
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


def test_a_wrong_login_link_does_not_use_up_the_right_one(app: Flask, token: str) -> None:
    """Only the right token spends the link."""
    client = app.test_client()
    client.get("/login?token=wrong")
    client.get(f"/login?token={token}")
    assert client.get("/").status_code == 200


def test_a_new_token_ends_all_sessions(app: Flask, browser: FlaskClient, token: str) -> None:
    """A cookie that was signed under another token is worth nothing."""
    cookie = browser.get_cookie("deniable_dashboard")
    assert cookie is not None
    from deniable_estimator.dashboard import create_app
    from deniable_estimator.dashboard.settings import Settings

    source = app.extensions["deniable_source"]
    other = create_app(
        Settings(dashboard_token=token[::-1]), store=source.store, registry=source.registry
    ).test_client()
    other.set_cookie("deniable_dashboard", cookie.value)
    assert other.get("/").status_code == 401


def test_probes_need_no_token(anybody: FlaskClient) -> None:
    """/healthz and the style sheet are open; they say nothing about the data."""
    assert anybody.get("/healthz").status_code == 200
    with anybody.get("/static/dashboard.css") as sheet:
        assert sheet.status_code == 200
