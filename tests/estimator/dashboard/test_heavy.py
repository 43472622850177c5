"""However much readers ask for at a time, the dashboard answers: with what it has, or with when."""

from __future__ import annotations

import http.client
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from flask import Flask
from flask.testing import FlaskClient

from deniable import Registry
from deniable_collector.settings import SettingsError
from deniable_collector.stores import Store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.access.tokens import ApiToken, digest_of_token, token_lines
from deniable_estimator.dashboard.app import close_app
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.dashboard.workers import Workers
from deniable_estimator.questions.reading import read

from .conftest import NOW, TOKEN, YESTERDAY, running_dashboard

REGISTRY = """
schema = 1
app = "example"
[defaults]
owner = "me"
expires = 2027-06-30

[metrics.site]
type = "string"
description = "Which site?"
epsilon = 4.0
lifetime_epsilon = 8.0

[metrics.slow]
type = "string"
description = "Which site, slowly?"
mechanism = "cohort_local_hashing"
epsilon = 4.0
lifetime_epsilon = 8.0

[metrics.long]
type = "category"
description = "Which of many?"
epsilon = 4.0
lifetime_epsilon = 8.0
values = [{values}]
"""
SITES = ("a.example", "b.example")
PLAN = "size=9000&epsilon=1&lifetime_epsilon=8&sample_rate=0.1&memoize=1"
OTHER = "another-token-of-a-program"

Made = Callable[..., Flask]


@pytest.fixture
def registry() -> Registry:
    return Registry.parse(REGISTRY.format(values=", ".join(f'"v{n}"' for n in range(2_000))))


@pytest.fixture
def store(empty_store: Store, registry: Registry) -> Store:
    """Yesterday 20,000 devices named one of two sites, or one of the first ten values; seed 1."""
    rng = np.random.default_rng(1)
    for metric in registry:
        counts = np.full(2, 10_000)
        if metric.values:
            counts = np.zeros(len(metric.values), int)
            counts[:10] = 2_000
        values = None if metric.values else list(SITES)
        tally = sample_tally(metric.scheme, counts, rng, values=values, metric=metric.name)
        increments = {}
        for place, row in enumerate(tally.rows):
            columns = np.flatnonzero(row.cells)
            key = TallyRowKey(TallyKey(metric.name, metric.scheme.fingerprint, YESTERDAY), place)
            increments[key] = Increment(
                len(row.cells), row.reports, columns.tolist(), row.cells[columns].tolist()
            )
        empty_store.fold(Commit((os.urandom(16).hex(),), increments), NOW)
    return empty_store


@pytest.fixture
def made(store: Store, registry: Registry) -> Iterator[Made]:
    """Makes an application with such settings, and ends its processes."""
    apps: list[Flask] = []

    def make(**settings: object) -> Flask:
        lines = token_lines(
            ApiToken("other", digest_of_token(OTHER), frozenset({"plan", "read:estimates"}))
        )
        kept = DashboardSettings(dashboard_token=TOKEN, api_tokens=lines, **settings)  # type: ignore[arg-type]
        apps.append(create_app(kept, store=store, registry=registry, clock=lambda: NOW))
        return apps[-1]

    yield make
    for app in apps:
        close_app(app)


def program(app: Flask, token: str = TOKEN) -> FlaskClient:
    client = app.test_client()
    client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {token}"
    return client


def person(app: Flask) -> FlaskClient:
    client = app.test_client()
    client.environ_base["HTTP_ACCEPT"] = "text/html"
    assert client.post("/login", data={"token": TOKEN}).status_code == 303
    return client


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Calculations that do not end before the test lets them; and readers of little patience."""
    gate = threading.Event()
    run = Workers.run

    def wait(self: Workers, *arguments: object, **options: object) -> object:
        assert gate.wait(30)
        return run(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Workers, "run", wait)
    monkeypatch.setattr("deniable_estimator.dashboard.source.PAGE_PATIENCE", 0.01)
    monkeypatch.setattr("deniable_estimator.dashboard.source.FILE_PATIENCE", 0.02)
    yield gate
    gate.set()


def test_a_full_queue_says_when(made: Made, held: threading.Event) -> None:
    """Page and API answer 503 with Retry-After, the page in words, the API as a problem; once there
    is room again, the same question is answered."""
    app = made(dashboard_queue=2)
    reader, api = person(app), program(app)
    for devices in (1001, 1002):
        assert reader.get(f"/plan?{PLAN}&devices={devices}").status_code == 202
    page = reader.get(f"/plan?{PLAN}&devices=1003")
    assert page.status_code == 503
    seconds = int(page.headers["Retry-After"])
    assert page.headers["Refresh"] == str(seconds)
    assert "Long calculations that wait or are under way: 2, as many as there may be." in page.text
    assert f"Ask again in {seconds} s." in page.text
    problem = api.get(f"/api/v1/plan?{PLAN}&devices=1003")
    assert problem.status_code == 503
    assert problem.mimetype == "application/problem+json"
    assert problem.json["type"] == "urn:deniable:problem:busy"
    assert problem.headers["Retry-After"] == str(seconds)
    assert reader.get("/plan?size=10").status_code == 200, "what is short needs no queue"
    held.set()
    for _ in range(300):
        if (answer := api.get(f"/api/v1/plan?{PLAN}&devices=1003")).status_code == 200:
            break
        time.sleep(0.05)
    assert answer.json["devices"] == 1003


def test_one_reader_leaves_room_for_others(made: Made, held: threading.Event) -> None:
    """A reader has a part of the queue; another token, and a browser, each have theirs."""
    app = made(dashboard_queue=12, dashboard_queue_of_one=2)
    readers = program(app), program(app, OTHER), person(app)
    numbers = count(1000)
    for reader, path, status in zip(
        readers, ("/api/v1/plan", "/api/v1/plan", "/plan"), (503, 503, 202), strict=True
    ):
        for _ in range(2):
            answer = reader.get(f"{path}?{PLAN}&devices={next(numbers)}")
            assert answer.status_code == status
            assert "of yours" not in answer.text
        refused = reader.get(f"{path}?{PLAN}&devices={next(numbers)}")
        assert refused.status_code == 503
        assert "Long calculations of yours that wait or are under way: 2" in refused.text
        assert int(refused.headers["Retry-After"]) >= 1


def test_few_large_pages_are_written_at_a_time(made: Made) -> None:
    """Four pages that list every value; the fifth reader is told to come back, and others are not
    concerned."""
    app = made()
    reader, decodes = person(app), app.extensions["deniable_source"].decodes
    while reader.get("/metric/long").status_code == 202:
        time.sleep(0.05)
    with ExitStack() as others:
        for _ in range(4):
            others.enter_context(decodes.large())
        refused = reader.get("/metric/long?lines=all")
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        assert reader.get("/metric/long").status_code == 200
    for _ in range(5):
        assert reader.get("/metric/long?lines=all").status_code == 200


def test_long_answers_are_those_of_the_library(
    made: Made, store: Store, registry: Registry, tmp_path: Path
) -> None:
    """Sent strings, a list in a file and many declared values, as JSON, CSV and a page: what
    another process calculates and writes is what this one would."""
    names = [*SITES, *(f"s{number}.example" for number in range(1_500))]
    (tmp_path / "site.txt").write_text("\n".join(names))
    app = made(candidates_dir=str(tmp_path))
    api, reader = program(app), person(app)
    expected = read(store, registry, "site", candidates=names)
    sent = api.post(
        "/api/v1/metrics/site/estimate", data="\n".join(names), content_type="text/plain"
    )
    listed = api.get("/api/v1/metrics/site/estimate")
    assert sent.json["values"] == listed.json["values"]
    assert [each["share"] for each in listed.json["values"]] == expected.share.tolist()
    assert api.get("/metric/site.csv").text == expected.to_csv()
    assert "leads" in reader.get("/metric/site").text
    assert reader.get("/metric/site/trend.csv").text.count("\n") == 1 + len(names)
    long = api.get("/api/v1/metrics/long/estimate?format=csv").text
    assert long == read(store, registry, "long").to_csv()
    trend = api.get("/api/v1/metrics/long/trend?value=v3")
    assert [each["n"] for each in trend.json["periods"] if len(each["values"]) == 1] == [20_000]


def test_what_needs_too_much_is_refused(made: Made, registry: Registry) -> None:
    """A list that would need more than the memory of a process is a problem that names the setting,
    and the next question is answered."""
    api = program(made(dashboard_memory=512 << 20))
    names = "\n".join(f"s{number}.example" for number in range(100_000))
    answer = api.post("/api/v1/metrics/slow/estimate", data=names, content_type="text/plain")
    assert answer.status_code == 400
    assert answer.json["type"] == "urn:deniable:problem:too-heavy"
    assert "DENIABLE_DASHBOARD_MEMORY" in answer.json["detail"]
    assert api.get(f"/api/v1/plan?{PLAN}&devices=1000").status_code == 200


def test_the_length_of_a_sent_list_is_a_setting(made: Made) -> None:
    """DENIABLE_DASHBOARD_STRINGS bounds what is sent, as text, as JSON and on the page."""
    app = made(dashboard_strings=3)
    for strings, status in ((["a", "b", "c"], 200), (["a", "b", "c", "d"], 400)):
        for answer in (
            *(
                program(app).post(
                    "/api/v1/metrics/site/estimate",
                    data="\n".join(strings) + end,
                    content_type="text/plain",
                )
                for end in ("", "\n")
            ),
            program(app).post("/api/v1/metrics/site/estimate", json={"candidates": strings}),
        ):
            assert answer.status_code == status
            assert status == 200 or "more than 3 strings" in answer.json["detail"]
    settings = DashboardSettings.from_env({"DENIABLE_DASHBOARD_STRINGS": "5000"})
    assert settings.dashboard_strings == 5000
    with pytest.raises(SettingsError, match="DENIABLE_DASHBOARD_MEMORY must be at least 512 MiB"):
        DashboardSettings.from_env({"DENIABLE_DASHBOARD_MEMORY": "100 MiB"})


@pytest.fixture
def live(store: Store, tmp_path: Path, registry: Registry) -> Iterator[tuple[str, int]]:
    """A dashboard under gunicorn; where it listens, and its first process."""
    (tmp_path / "metrics.toml").write_text(
        REGISTRY.format(values=", ".join(f'"v{n}"' for n in range(2_000)))
    )
    with running_dashboard(tmp_path) as (address, process):
        try:
            yield address.removeprefix("http://"), process.pid
        finally:
            process.kill()


def answer_time(host: str, method: str, path: str, body: bytes | None = None) -> tuple[int, float]:
    """Status and seconds of one request on a connection of its own."""
    begun = time.perf_counter()
    connection = http.client.HTTPConnection(host, timeout=60)
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "text/plain"}
    connection.request(method, path, body, {} if path == "/healthz" else headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, time.perf_counter() - begun


def test_probes_are_answered_while_the_queue_is_full(live: tuple[str, int]) -> None:
    """While twelve connections ask for plans and long lists without a pause, and are refused for
    a full queue, /healthz takes less than 100 ms (the median; a machine with other work to do may
    take half a second one time in ten); at
    SIGTERM, in the middle of it all, the server ends, and so do all of its processes."""
    host, server = live
    numbers, ended, statuses = count(1), threading.Event(), []
    names = b"\n".join(b"s%d.example" % number for number in range(50_000))

    def flood(kind: int) -> None:
        while not ended.is_set():
            number = next(numbers)
            try:
                if kind % 3:
                    path = f"{('/plan', '/api/v1/plan')[kind % 2]}?{PLAN}&devices={1000 + number}"
                    statuses.append(answer_time(host, "GET", path)[0])
                else:
                    path = "/api/v1/metrics/slow/estimate"
                    statuses.append(answer_time(host, "POST", path, b"x%d\n" % number + names)[0])
            except (OSError, http.client.HTTPException):
                return

    threads = [threading.Thread(target=flood, args=(kind,)) for kind in range(12)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(2)
        times = []
        for _ in range(60):
            status, seconds = answer_time(host, "GET", "/healthz")
            assert status == 200
            times.append(seconds)
            time.sleep(0.03)
        started = children(server)
        os.kill(server, 15)
        begun = time.monotonic()
        while alive(server) and time.monotonic() - begun < 30:
            time.sleep(0.05)
        assert not alive(server), "it hangs at its end"
        # The last to go is Python's own, which looks after what the others share.
        while any(map(alive, started)) and time.monotonic() - begun < 30:
            time.sleep(0.05)
        assert not any(map(alive, started)), "processes stay behind"
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert 503 in statuses
    assert statistics.median(times) < 0.1, times
    assert statistics.quantiles(times, n=10)[-1] < 0.5, times


def children(process: int) -> list[int]:
    """All that a process has started, and what these have."""
    found = []
    for file in Path(f"/proc/{process}").glob("task/*/children"):
        for child in map(int, file.read_text().split()):
            found += [child, *children(child)]
    return found


def alive(process: int) -> bool:
    """Whether it runs: its exit status may wait longer."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
