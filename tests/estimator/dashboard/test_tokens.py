"""Tokens of the read API: how they are made, what they open, and what is said when they do not."""

import json
import logging

import pytest
from click.testing import CliRunner

from deniable import Registry
from deniable_collector.settings import SettingsError
from deniable_estimator.dashboard.access.tokens import (
    SCOPES,
    ApiToken,
    digest_of_token,
    parse_tokens,
    token_lines,
)
from deniable_estimator.dashboard.commands import new
from deniable_estimator.dashboard.settings import DashboardSettings

from .conftest import REGISTRY, dashboard_of, program_of

TAGGED = REGISTRY.replace("[metrics.dark_mode]", '[metrics.dark_mode]\ntags = ["growth"]')
SHA = "a" * 64


def made(*options):
    """A new token and its lines, made by the command."""
    result = CliRunner().invoke(new, ["--name", "test", *options, "--json"])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    return document["token"], document["lines"]


def reader(store, lines, token, registry=None, ledger="none"):
    """A program that shows this token to a dashboard with these tokens."""
    app = dashboard_of(store, registry or Registry.parse(TAGGED), api_tokens=lines, releases=ledger)
    return program_of(app, token)


def test_a_revoked_token_opens_nothing_from_then_on(store, tmp_path, monkeypatch, caplog):
    """The dashboard runs on while lines of its file of tokens are removed and added: the next
    request already goes by them. With a mistake in the file, what it said before stays in force."""
    token, lines = made("--scope", "read:metrics")
    file = tmp_path / "tokens.toml"
    file.write_text(lines)
    monkeypatch.setenv("DENIABLE_API_TOKENS_FILE", str(file))
    client = reader(store, lines, token)

    def status():
        return client.get("/api/v1/metrics").status_code

    assert status() == 200
    file.write_text("")
    assert status() == 401
    file.write_text(f"# back again\n{lines}")
    assert status() == 200
    with caplog.at_level(logging.WARNING):
        file.write_text(f"{lines}\n[[tokens]]\nname = 3\n")
        assert status() == 200
    assert "tokens.toml" in caplog.text
    file.unlink()
    assert status() == 401


def test_a_token_is_shown_once_apart_from_its_lines():
    """What goes into the file holds the digest, not the token; two tokens are never alike."""
    options = ["--name", "grafana", "--scope", "plan", "--metric", "b*", "--tag", "x"]
    options.append("--settled")
    result = CliRunner().invoke(new, options)
    secret = result.stderr.strip().removeprefix("token: ")
    assert secret not in result.stdout
    (kept,) = parse_tokens(result.stdout)
    assert kept == ApiToken(
        "grafana", digest_of_token(secret), frozenset({"plan"}), ("b*",), ("x",), settled=True
    )
    assert made("--scope", "plan")[0] != made("--scope", "plan")[0]


@pytest.mark.parametrize(
    ("path", "scope"),
    [
        ("/api/v1/metrics", "read:metrics"),
        ("/api/v1/metrics/browser", "read:metrics"),
        ("/api/v1/metrics/browser/privacy", "read:metrics"),
        ("/api/v1/privacy", "read:metrics"),
        ("/api/v1/metrics/browser/estimate", "read:estimates"),
        ("/api/v1/metrics/browser/trend", "read:estimates"),
        ("/api/v1/metrics/browser/comparison", "read:estimates"),
        ("/api/v1/releases", "read:releases"),
        ("/api/v1/overview", "read:estimates"),
        ("/api/v1/plan?size=10&epsilon=1&devices=1000", "plan"),
    ],
)
def test_each_address_needs_its_scope(store, path, scope):
    """The scope alone opens it; all others together do not, and the problem names it."""
    secret, lines = made("--scope", scope)
    assert reader(store, lines, secret).get(path).status_code == 200
    others = [part for each in SCOPES if each != scope for part in ("--scope", each)]
    secret, lines = made(*others)
    refused = reader(store, lines, secret).get(path)
    assert refused.status_code == 403
    assert refused.mimetype == "application/problem+json"
    assert refused.json["type"] == "urn:deniable:problem:missing-scope"
    assert refused.json["scope"] == scope
    assert scope in refused.json["detail"]


@pytest.mark.parametrize("limit", [("--metric", "brow*"), ("--tag", "growth"), ("--tag", "g*")])
def test_a_token_may_be_limited_to_metrics(store, limit):
    """By name or by tag: it lists and reads those, and is refused the others by name."""
    secret, lines = made("--scope", "read:metrics", "--scope", "read:estimates", *limit)
    client = reader(store, lines, secret)
    mine = "browser" if limit[0] == "--metric" else "dark_mode"
    (listed,) = client.get("/api/v1/metrics").json["metrics"]
    assert listed["name"] == mine
    (summary,) = client.get("/api/v1/overview").json["metrics"]
    assert summary["name"] == mine
    assert client.get(f"/api/v1/metrics/{mine}/estimate").status_code == 200
    for path in ("/api/v1/metrics/silent", "/api/v1/metrics/silent/estimate"):
        refused = client.get(path)
        assert refused.status_code == 403
        assert refused.json["type"] == "urn:deniable:problem:metric-out-of-reach"
        assert refused.json["metric"] == "silent"
    others = {"browser", "dark_mode", "silent"} - {mine}
    for path in ("/api/v1/privacy", "/api/v1/privacy/outsider"):
        assert client.get(path).status_code == 403
        assert not any(name in client.get(path).text for name in others)
    for name in others:
        missed = client.get(f"/api/v1/metrics/{name}x")
        assert missed.status_code == 404
        assert not any(f" {other}?" in missed.text for other in others)


def test_a_token_of_the_api_opens_no_page(store):
    """Pages, their files and the form are for people, and for the dashboard's own token."""
    options = [part for each in SCOPES for part in ("--scope", each)]
    secret, lines = made(*options)
    client = reader(store, lines, secret)
    for path in ("/", "/metric/browser", "/metric/browser.csv", "/plan"):
        refused = client.get(path)
        assert refused.status_code == 403
        assert refused.json["type"] == "urn:deniable:problem:token-out-of-scope"
    assert client.post("/login", data={"token": secret}).status_code == 403


def test_no_token_is_ever_logged(store, caplog):
    """Neither a right nor a wrong token, nor a digest, stands in the log or in an answer."""
    secret, lines = made("--scope", "read:metrics")
    with caplog.at_level(logging.DEBUG):
        answers = [
            reader(store, lines, shown).get(path).text
            for shown in (secret, secret[:-1])
            for path in ("/api/v1/metrics", "/api/v1/plan", "/nowhere", "/")
        ]
    for told in (caplog.text, *answers):
        assert secret[:-1] not in told
        assert digest_of_token(secret) not in told
    assert digest_of_token(secret) not in repr(DashboardSettings(api_tokens=lines))


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (
            f'[[tokens]]\nname = "a"\nsha256 = "{SHA}"\nscopes = ["plan"]\nsettled = 1',
            "tokens.1.settled: must be true or false",
        ),
        ("/etc/tokens.toml", "is not TOML.*name its file with DENIABLE_API_TOKENS_FILE"),
        ("x = 1", "x: is unknown"),
        ("tokens = 1", r"\[\[tokens\]\]"),
        (f'[[tokens]]\nname = ""\nsha256 = "{SHA}"\nscopes = ["plan"]', "tokens.1.name"),
        ('[[tokens]]\nname = "a"\nsha256 = "secret"\nscopes = ["plan"]', "tokens.1.sha256"),
        (f'[[tokens]]\nname = "a"\nsha256 = "{SHA}"', "tokens.1.scopes"),
        (f'[[tokens]]\nname = "a"\nsha256 = "{SHA}"\nscopes = "plan"', "tokens.1.scopes"),
        (
            f'[[tokens]]\nname = "a"\nsha256 = "{SHA}"\nscopes = ["plan"]\nmetric = 1',
            "is unknown",
        ),
        (f'[[tokens]]\nname = "a"\nsha256 = "{SHA}"\ntags = []', "tags: is empty"),
        (
            2 * token_lines(ApiToken("a", SHA, frozenset({"plan"}))),
            "two tokens of one name",
        ),
    ],
)
def test_a_mistake_in_the_file_is_told_before_anything_starts(text, advice):
    """The message says which token and what to write, and quotes neither digest nor token."""
    with pytest.raises(SettingsError, match=advice) as caught:
        DashboardSettings.from_env({"DENIABLE_API_TOKENS": text})
    assert SHA not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_no_address_leads_to_a_host_that_the_request_names(store):
    """Doubled slashes are no address, rather than a redirect to whatever Host says."""
    secret, lines = made("--scope", "read:metrics")
    client = reader(store, lines, secret)
    for path in ("/metric//browser", "//metric/browser", "/api/v1//metrics"):
        answer = client.get(path, base_url="http://evil.example")
        assert "evil.example" not in answer.headers.get("Location", "")
        assert answer.status_code in (403, 404)


def test_a_wrong_token_opens_nothing(store):
    """A token that was withdrawn, cut short or shown in another way is refused with 401."""
    secret, lines = made("--scope", "read:metrics")
    for wrong in ("", secret[:-1], secret.upper(), f"{secret} ", digest_of_token(secret)):
        client = reader(store, lines, wrong + "x")
        assert client.get("/api/v1/metrics").status_code == 401
    assert reader(store, "", secret).get("/api/v1/metrics").status_code == 401
    basic = reader(store, lines, secret)
    basic.environ_base["HTTP_AUTHORIZATION"] = f"Basic {secret}"
    refused = basic.get("/api/v1/metrics")
    assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
