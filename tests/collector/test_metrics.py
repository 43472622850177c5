"""Figures for Prometheus: from real processes, exact, and at their own address alone."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from tests.ports import until

import deniable
from deniable_collector.collector import Collector
from deniable_collector.inherited import Inherited
from deniable_collector.operation.prometheus import _AllProcesses
from deniable_collector.serving import gunicorn
from deniable_collector.settings import Settings

from .devices import fetch

DEPLOY = Path(__file__).parents[2] / "deploy"


def scrape(address):
    """All samples, as (name, labels) -> value, and the families' types."""
    status, text = fetch(f"{address}/metrics")
    assert status == 200
    families = list(text_string_to_metric_families(text.decode()))
    samples = {
        (each.name, tuple(sorted(each.labels.items()))): each.value
        for family in families
        for each in family.samples
    }
    assert len(samples) == sum(len(family.samples) for family in families)
    return samples, {family.name: (family.type, family.documentation) for family in families}


def value(samples, name, **labels):
    return samples.get((name, tuple(sorted(labels.items()))), 0)


@pytest.fixture
def batch(report, new_id):
    """Makes a batch of `good` reports, and one bad one for each reason asked for."""

    def make(good, *bad, batch_id=None):
        wrong = {"unknown_metric": {"metric": "x-sender-chose"}, "bad_columns": {"columns": -1}}
        reports = [report] * good + [{**report, **wrong[reason]} for reason in bad]
        return json.dumps({"batch": batch_id or new_id(), "reports": reports}).encode()

    return make


@pytest.fixture
def since(running):
    """What the figures of the shared collector have risen by since the test began."""
    before, _ = scrape(running.private)

    def since(name, **labels):
        now, _ = scrape(running.private)
        return value(now, name, **labels) - value(before, name, **labels)

    return since


def test_exact_after_a_known_load(running, batch, registry, since):
    """Every request, batch and report of a known load is counted once, and no label's value is a
    sender's."""
    reports = f"{running.address}/v1/reports"
    bodies = [batch(3, "unknown_metric", "bad_columns") for _ in range(20)]
    for body in bodies:
        assert fetch(reports, body)[0] == 202
    for body in bodies[:5]:
        assert fetch(reports, body)[0] == 202
    assert fetch(reports, batch(0, "bad_columns"))[0] == 202
    for _ in range(4):
        assert fetch(reports, b"{")[0] == 400
    assert fetch(f"{running.address}/x-sender-chose?x-sender-chose")[0] == 404
    for _ in range(3):
        assert fetch(f"{running.address}/healthz")[0] == 200
    assert since("deniable_requests_total", status="202", problem="") == 26
    assert since("deniable_requests_total", status="400", problem="not-json") == 4
    assert since("deniable_requests_total", status="404", problem="http-404") == 1
    for outcome, batches, count in (("accepted", 20, 60), ("duplicate", 5, 15)):
        assert since("deniable_batches_total", outcome=outcome) == batches
        assert since("deniable_reports_total", outcome=outcome) == count
    assert since("deniable_batches_total", outcome="empty") == 1
    assert since("deniable_reports_total", outcome="rejected") == 51
    assert since("deniable_reports_rejected_total", reason="unknown_metric") == 25
    assert since("deniable_reports_rejected_total", reason="bad_columns") == 26
    assert since("deniable_metric_reports_total", metric="browser") == 60
    assert since("deniable_commit_batches_sum") == 20
    assert since("deniable_commit_seconds_count") >= 1
    assert since("deniable_store_failures_total") == 0
    # A body is let go of a moment after its response.
    until(lambda: since("deniable_queue_bytes") <= 0, "bodies are held")
    samples, families = scrape(running.private)
    assert value(samples, "deniable_store_up") == 1
    assert value(samples, "deniable_registry_metrics") == len(registry)
    (build,) = [labels for name, labels in samples if name == "deniable_build_info"]
    assert dict(build)["version"] == deniable.__version__
    assert all(documentation for _, documentation in families.values())
    assert "x-sender-chose" not in str(samples)


def test_only_at_the_private_address(running):
    """The public address has no /metrics, whatever a request claims of host and port."""
    port = running.private.rpartition(":")[2]
    for name in ("Host", "X_Forwarded_Host", "X_Odd"):
        headers = {name: f"127.0.0.1:{port}", "X_Forwarded_Port": port}
        assert fetch(f"{running.address}/metrics", **headers)[0] == 404
    assert fetch(f"{running.private}/metrics")[0] == 200


def test_a_process_that_starts_is_no_error(tmp_path, monkeypatch):
    """A file that a starting process has created, and not yet filled, is left out of a scrape; what
    others have counted is added up."""
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    registry = CollectorRegistry()
    _AllProcesses(registry)
    (tmp_path / "counter_1.db").touch()
    assert list(registry.collect()) == []
    count = "from prometheus_client import Counter; Counter('seen', 'What was seen.').inc(3)"
    for _ in range(2):
        subprocess.run([sys.executable, "-c", count], check=True)
    (seen,) = registry.collect()
    assert [each.value for each in seen.samples] == [6]


def test_alerts_ask_for_what_is_told(store, registry):
    """Every series of the alert rules is one that GET /metrics has; each rule has what Prometheus
    needs, and a severity."""
    text = generate_latest(Collector(Inherited(Settings(), registry), store)).decode()
    told = set()
    for kind, name in re.findall(r"^# TYPE (?=\S+ (\w+))(\S+)", text, re.MULTILINE):
        told.add(name) if kind != "histogram" else told.update(
            f"{name}_{part}" for part in ("bucket", "sum", "count")
        )
    rules = yaml.safe_load((DEPLOY / "alerts.yml").read_text(encoding="utf-8"))
    (group,) = rules["groups"]
    asked = set()
    for rule in group["rules"]:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"]["summary"]
        assert rule["expr"].count("(") == rule["expr"].count(")")
        asked |= set(re.findall(r"\bdeniable_\w+", rule["expr"]))
    assert asked <= told
    assert {"deniable_store_up", "deniable_reports_total"} <= asked


def test_counts_begin_at_0():
    """A collector that nobody has sent to tells what it may count: Prometheus sees no increase of
    a series that begins with its first count."""
    told = (
        "from deniable_collector.operation.prometheus import begin_counts, summed\n"
        "from prometheus_client import generate_latest\n"
        "begin_counts(['browser'])\n"
        "print(generate_latest(summed()).decode())"
    )
    done = subprocess.run([sys.executable, "-c", told], check=True, capture_output=True, text=True)
    for line in (
        'deniable_requests_total{problem="internal",status="500"} 0.0',
        'deniable_requests_total{problem="queue-full",status="503"} 0.0',
        'deniable_reports_total{outcome="accepted"} 0.0',
        'deniable_reports_rejected_total{reason="unknown_scheme"} 0.0',
        'deniable_metric_reports_total{metric="browser"} 0.0',
    ):
        assert line in done.stdout


def test_gauges_end_with_their_process(tmp_path, monkeypatch):
    """What a process of the collector was doing leaves with it; what it has counted stays."""
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    for name in ("gauge_livesum_7.db", "gauge_livesum_8.db", "counter_7.db"):
        (tmp_path / name).touch()
    gunicorn.end_gauges(7)
    assert {each.name for each in tmp_path.iterdir()} == {"gauge_livesum_8.db", "counter_7.db"}
