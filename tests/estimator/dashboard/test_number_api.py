"""The read API of numbers: series in place of values, a share below a limit, words for mistakes."""

from __future__ import annotations

import csv
import io
import json
from datetime import date
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from flask import Flask
from flask.testing import FlaskClient

from deniable import Registry
from deniable_collector.stores import Store
from deniable_estimator.answers.distribution import Distribution, series_names
from deniable_estimator.dashboard import api
from deniable_estimator.questions.reading import read

from .conftest import TOKEN, YESTERDAY

LOAD = "/api/v1/metrics/load"
TABS = "/api/v1/metrics/tabs"
DAYS = date(2026, 10, 24), date.fromisoformat(YESTERDAY)
DOCUMENT = json.loads(Path(api.__file__).with_name("openapi.json").read_text(encoding="utf-8"))


@pytest.fixture
def program(number_app: Flask) -> FlaskClient:
    client = number_app.test_client()
    client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {TOKEN}"
    return client


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def described(document: Any, name: str) -> bool:
    """Whether a response is as its schema says, with no key that the schema does not have."""
    schema = {**DOCUMENT, "$ref": f"#/components/schemas/{name}"}
    jsonschema_rs.Draft202012Validator(schema).validate(document)
    known = DOCUMENT["components"]["schemas"][name]["properties"]
    return set(document) <= set(known)


def test_an_estimate_is_that_of_the_library(
    program: FlaskClient, number_store: Store, numbers: Registry
) -> None:
    """The series, cells and edges are those of the answer, as the description says."""
    found = program.get(f"{LOAD}/estimate").json
    answer = read(number_store, numbers, "load", *DAYS)
    assert isinstance(answer, Distribution)
    assert found["kind"] == "distribution"
    assert found["size"] == 5
    assert {name: found[name] for name in ("series", "cdf", "unit", "range")} == {
        name: answer.to_dict()[name] for name in ("series", "cdf", "unit", "range")
    }
    assert described(found, "Distribution")
    assert "share_below" not in found
    mean = program.get(f"{TABS}/estimate").json
    assert (mean["kind"], mean["unit"], len(mean["series"])) == ("mean", "tabs", 1)
    assert described(mean, "Mean")


def test_series_can_be_named(program: FlaskClient) -> None:
    """Of those that are named nothing else is sent, as JSON and as CSV, over time and compared."""
    asked = "value=p95&value=p50"
    found = program.get(f"{LOAD}/estimate?{asked}").json
    assert [each["series"] for each in found["series"]] == ["p50", "p95"]
    assert not {"cells", "cdf"} & found.keys()
    assert described(found, "Distribution")
    lines = rows(program.get(f"{LOAD}/estimate?{asked}&format=csv").text)
    assert [each["series"] for each in lines] == ["p50", "p95"]
    trend = program.get(f"{LOAD}/trend?value=p95").json
    assert trend["kind"] == "distribution"
    told = [each["values"] for each in trend["periods"] if each["n"]]
    assert [[row["series"] for row in each] for each in told] == [["p95"], ["p95"]]
    assert described(trend, "Trend")
    days = f"from={YESTERDAY}&to={YESTERDAY}&before_from=2026-11-13&before_to=2026-11-13"
    change = program.get(f"{LOAD}/comparison?value=p50&{days}").json
    assert [each["series"] for each in change["values"]] == ["p50"]
    assert change["values"][0]["changed"] is True
    assert described(change, "Comparison")


def test_the_share_below_a_limit_can_be_asked_for(
    program: FlaskClient, number_store: Store, numbers: Registry
) -> None:
    """It is that of the library, in JSON and as a line of CSV."""
    answer = read(number_store, numbers, "load", *DAYS)
    assert isinstance(answer, Distribution)
    share = answer.share_below(2.5)
    found = program.get(f"{LOAD}/estimate?below=2.5&value=p50").json
    assert found["share_below"] == {
        "at": 2.5,
        "share": share.share,
        "std_error": pytest.approx(share.variance**0.5),
        "low": share.low,
        "high": share.high,
    }
    assert described(found, "Distribution")
    lines = rows(program.get(f"{LOAD}/estimate?below=2.5&value=p50&format=csv").text)
    assert [each["series"] for each in lines] == ["p50", "share below 2.5"]
    assert float(lines[1]["estimate"]) == share.share
    assert lines[1]["n"] == lines[0]["n"] == "80000"


def test_without_reports_numbers_are_null(program: FlaskClient) -> None:
    """Days without reports are an answer, whatever is asked."""
    days = "from=2026-10-01&to=2026-10-02"
    found = program.get(f"{LOAD}/estimate?below=2&{days}").json
    assert (found["n"], found["cells"], found["cdf"]) == (0, [], [])
    assert found["share_below"]["share"] is None
    assert all(each["estimate"] is None for each in found["series"])
    assert described(found, "Distribution")
    assert program.get(f"{TABS}/estimate?{days}").json["series"][0]["estimate"] is None
    assert program.get(f"{LOAD}/trend?{days}").status_code == 200


@pytest.mark.parametrize(
    ("path", "kind", "words"),
    [
        (f"{LOAD}/estimate?value=p42", "unknown-value", "p50, p90, p95, p99, geometric mean"),
        (f"{TABS}/trend?value=p50", "unknown-value", "value= can be mean"),
        (f"{TABS}/comparison?value=median", "unknown-value", "value= can be mean"),
        (f"{LOAD}/estimate?limit=3", "invalid-parameter", "limit counts the values of a list"),
        (f"{LOAD}/estimate?below=x", "invalid-parameter", "below"),
        (f"{LOAD}/estimate?below=nan", "invalid-parameter", "below"),
        (f"{LOAD}/estimate?below=inf", "invalid-parameter", "below"),
        (f"{LOAD}/estimate?below=1e9", "invalid-parameter", "range of load, 0.01 to 100"),
        (f"{TABS}/estimate?below=2", "invalid-parameter", "distribution"),
        ("/api/v1/metrics/dark_mode/estimate?below=2", "invalid-parameter", "distribution"),
    ],
)
def test_mistakes_say_what_there_is(program: FlaskClient, path: str, kind: str, words: str) -> None:
    """Each is a problem document that names the parameter, or what can be given."""
    answer = program.get(path)
    assert answer.status_code == 400
    assert answer.json["type"] == f"urn:deniable:problem:{kind}"
    assert words in answer.json["detail"]


@pytest.mark.parametrize("question", ["estimate", "trend", "comparison"])
def test_a_number_takes_no_list(program: FlaskClient, question: str) -> None:
    """A list that is sent to a number is refused in words of its own."""
    answer = program.post(f"{LOAD}/{question}", data="a\nb", content_type="text/plain")
    assert answer.status_code == 409
    assert answer.json["type"] == "urn:deniable:problem:no-values"
    assert "load has no list of values to send" in answer.json["detail"]


def test_the_list_tells_the_range(program: FlaskClient) -> None:
    """Numbers have their unit, range, scale and question; other metrics have no such keys, and
    empty fields in CSV."""
    listed = {each["name"]: each for each in program.get("/api/v1/metrics").json["metrics"]}
    told = {name: listed["load"][name] for name in ("unit", "low", "high", "scale", "ask")}
    assert told == {
        "unit": "s",
        "low": 0.01,
        "high": 100,
        "scale": "log",
        "ask": ["distribution"],
    }
    assert listed["narrow"]["ask"] == ["mean", "distribution"]
    assert listed["tabs"]["integer"] is True
    assert not {"unit", "low", "ask"} & listed["dark_mode"].keys()
    lines = {each["name"]: each for each in rows(program.get("/api/v1/metrics?format=csv").text)}
    assert (lines["load"]["unit"], lines["load"]["low"]) == ("s", "0.01")
    assert lines["narrow"]["ask"] == "mean distribution"
    assert lines["dark_mode"]["unit"] == ""
    assert described(listed["load"], "Listed")
    assert described(program.get(LOAD).json, "Metric")


def test_a_tag_stands_for_what_was_asked(program: FlaskClient) -> None:
    """The same question is not answered twice; another limit or series is another question."""
    first = program.get(f"{LOAD}/estimate?below=2").headers["ETag"]
    known = {"If-None-Match": first}
    assert program.get(f"{LOAD}/estimate?below=2", headers=known).status_code == 304
    for other in ("below=3", "below=2&value=p50", ""):
        assert program.get(f"{LOAD}/estimate?{other}", headers=known).status_code == 200


def test_series_are_known_before_any_report(program: FlaskClient, numbers: Registry) -> None:
    """What `value` may name is what the answers have."""
    for name in ("load", "tabs", "wait", "plugins", "narrow"):
        found = program.get(f"/api/v1/metrics/{name}/estimate").json["series"]
        kind = numbers[name].type
        assert tuple(each["series"] for each in found) == series_names(kind)  # type: ignore[arg-type]
