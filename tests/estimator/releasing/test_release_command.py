"""deniable release, from the store to the document, and everything it refuses or finds damaged."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import threading
import time

import numpy as np
import pytest
from click.testing import CliRunner

from deniable.protocol import windows
from deniable.tools.command_line import find
from deniable_collector.tally import Tally
from deniable_estimator.analyses import analysis_of
from deniable_estimator.asking.fetch import Question
from deniable_estimator.releasing.manifest import (
    ManifestError,
    make_key,
    private_key,
    public_key,
    signed,
    verify,
)
from deniable_estimator.releasing.manifest import document as make_document
from deniable_estimator.releasing.noise import of_rho
from deniable_estimator.releasing.release_ledger import ReleaseLedger

from .conftest import DAYS, document


@pytest.fixture
def key(tmp_path):
    """A private key; its public one lies beside it."""
    path = tmp_path / "release.pem"
    assert CliRunner().invoke(find("release", "key"), [str(path)]).exit_code == 0
    return path


def test_a_key_is_made_once(key):
    """It is for its owner alone, and a second one does not replace it."""
    assert key.stat().st_mode & 0o077 == 0
    before = key.read_bytes()
    again = CliRunner().invoke(find("release", "key"), [str(key)])
    assert again.exit_code == 1
    assert "exists" in again.output
    assert key.read_bytes() == before


def test_noise_is_drawn_once(run):
    """The same request gives the same bytes and spends nothing; another one has other noise."""
    one = run("browser --epsilon 1 --out -")
    two = run("browser --epsilon 1 --out -")
    three = run("browser --epsilon 1.5 --out -")
    assert document(one)["data"] == document(two)["data"] != document(three)["data"]
    assert one.stdout == two.stdout
    listed = document(run("list --json"))
    assert listed["total"]["epsilon"] == pytest.approx(2.5)
    assert "the same numbers, at no charge" in run("browser --epsilon 1").output


def test_the_leader_is_released_alone(run):
    """With 1,000 reports more a day than the next, firefox leads; nothing else is published."""
    found = document(run("browser --form leader --epsilon 1 --out -"))
    assert found["data"] == {"columns": ["leader"], "rows": [["firefox"]]}
    assert found["manifest"]["method"] == "exponential"


@pytest.mark.parametrize(
    ("options", "kind", "window_epsilon", "window_rho"),
    [
        ("", "laplace", 0.2, 0.1),
        ("--form leader", "exponential", 0.2, 0.1),
        ("--form trend", "laplace", 0.2, 0.02),
        ("--noise gaussian", "gaussian", None, None),
        ("--noise gaussian --form trend", "gaussian", None, None),
    ],
)
def test_a_release_is_charged_what_its_noise_costs(
    run, tmp_path, options, kind, window_epsilon, window_rho
):
    """Each of a device's five reports costs a fifth of a pure epsilon; in one table they add up
    before they are squared. What Gaussian noise costs in five windows is its epsilon. The manifest
    says the same."""
    manifest = document(run(f"browser --epsilon 1 {options} --out -"))["manifest"]
    (charge,) = ReleaseLedger(tmp_path / "releases.sqlite", 1e-6, None).charges()
    pure = window_epsilon is not None
    assert (charge.limit, charge.kind, charge.delta) == (8, kind, 0.0 if pure else 1e-8)
    assert charge.epsilon == pytest.approx(1.0, rel=1e-3)
    assert charge.window_epsilon == pytest.approx(window_epsilon)
    assert (manifest["epsilon"], manifest["delta"]) == (charge.epsilon, charge.delta)
    assert manifest["reports_of_a_device"] == 5
    if kind == "laplace":
        l1 = manifest["noise"]["sensitivity_of_a_report"]["l1"]
        assert manifest["noise"]["scale"] == str(5 * l1)
    if kind == "exponential":
        assert manifest["noise"]["rate"] == "1/10"
    if pure:
        assert charge.window_rho == pytest.approx(window_rho)
        assert manifest["epsilon_of_one_report"] == pytest.approx(window_epsilon)
    else:
        assert of_rho(5 * charge.window_rho, 1e-8) == pytest.approx(charge.epsilon)


def test_strings_of_a_list(run, registry, fill, tmp_path):
    """The strings of the operator's list are published; one that a spreadsheet would take for a
    formula is quoted in the table."""
    scheme = registry["word"].scheme
    strings = ["=1+1", "tea", "<script>alert(1)</script>", "none"]
    rows = analysis_of(scheme.mechanism).sample_rows(
        strings, np.array([4000, 5000, 3000, 0]), np.random.default_rng(2)
    )
    fill(Tally("word", scheme.fingerprint, (DAYS[0],), tuple(rows)), scheme)
    words = tmp_path / "words.txt"
    words.write_text("\n".join(strings), encoding="utf-8")
    table = tmp_path / "word.csv"
    command = f"word --candidates {words} --epsilon 1.5"
    rows = document(run(f"{command} --out -"))["data"]["rows"]
    assert [row[0] for row in rows] == strings
    assert run(f"{command} --out {table}").exit_code == 0
    assert b"\n'=1+1," in table.read_bytes()


def test_files_are_written_and_verified(run, key, tmp_path):
    """A signed document and its table pass; each of them with another digit, another key or no
    signature fails."""
    table = tmp_path / "browser.csv"
    assert run(f"browser --epsilon 1 --sign {key} --out {table}").exit_code == 0
    manifest = tmp_path / "browser.csv.manifest.json"
    public = tmp_path / "release.pem.pub"
    good = run(f"verify {manifest} --table {table} --key {public}")
    assert good.exit_code == 0
    text = manifest.read_text()
    changed = tmp_path / "changed.json"
    whole = json.loads(text)
    whole["data"]["rows"][0][1] += 1e-9
    changed.write_text(json.dumps(whole))
    assert "numbers are not those" in run(f"verify {changed}").output
    whole = json.loads(text)
    whole["manifest"]["epsilon"] = 0.001
    changed.write_text(json.dumps(whole))
    assert "signature does not fit" in run(f"verify {changed}").output
    del whole["signature"]
    changed.write_text(json.dumps(whole))
    assert "not signed" in run(f"verify {changed} --key {public}").output
    table.write_text(table.read_text().replace("firefox", "chrome"))
    assert "CSV is not the table" in run(f"verify {manifest} --table {table}").output
    make_key(tmp_path / "other.pem")
    assert "another key" in run(f"verify {manifest} --key {tmp_path / 'other.pem.pub'}").output


REFUSED = {
    "browser --epsilon nan": "no number",
    "browser --epsilon 1e308": "no number that an epsilon can be",
    "browser --epsilon 1e-400": "epsilon must be from",
    "browser --epsilon 50": "would add nothing",
    "browser --form leader": "say with which --epsilon",
    "speed --form leader --epsilon 1": "only values that are counted have a leader",
    "browser --where platform=web": "not counted by a segment",
    "browser --where ''": "--where",
    "browser --from '' --to 2026-01-20": "--from",
    "word --epsilon 1": "name those to look for with --candidates",
    "browser --sign /nowhere.pem": "nowhere.pem",
    "browser --out /nowhere/at/all.json": "no folder",
    "browser --plan --out x.json": "--plan writes nothing",
}


@pytest.mark.parametrize("text", REFUSED)
def test_bad_requests_are_refused_and_release_nothing(run, tmp_path, text):
    """Each names what is wrong; neither the ledger nor a file exists afterwards."""
    result = run(text)
    assert result.exit_code in (1, 2)
    assert REFUSED[text] in result.output
    assert not (tmp_path / "releases.sqlite").exists()


def test_windows_that_take_reports_are_refused(run, registry, fill, make_tally):
    """Today's window and one of two days ago are refused if they are named. Without --to they are
    left out."""
    scheme = registry["browser"].scheme
    for days in (0, 2):
        label = windows.window_at("day", time.time() - days * 86_400)
        fill(make_tally(scheme, 5000, [2000] * 4, [label]), scheme)
        result = run(f"browser --from {label} --to {label}")
        assert result.exit_code == 1
        assert f"window {label}" in result.output
        alone = run(f"browser --from {label}")
        assert alone.exit_code == 1
    manifest = document(run("browser --out -"))["manifest"]
    assert manifest["windows"]["last"] == DAYS[-1]


def test_windows_with_too_few_reports_are_refused(run, registry, fill, make_tally):
    """999 reports are too few for a table, and one such window for a trend."""
    scheme = registry["browser"].scheme
    fill(make_tally(scheme, 999, [500] * 4, ["2026-01-20"]), scheme)
    assert "999 reports" in run("browser --from 2026-01-20 --to 2026-01-20").output
    assert "999 reports" in run("browser --form trend").output
    assert run("browser").exit_code == 0


def test_a_budget_refuses_and_leaves_no_file(run, tmp_path):
    """The output is not written, and a plan says so before."""
    assert run("browser --epsilon 1", DENIABLE_RELEASE_BUDGET="1.5").exit_code == 0
    out = tmp_path / "second.json"
    result = run(f"browser --epsilon 0.9 --out {out}", DENIABLE_RELEASE_BUDGET="1.5")
    assert result.exit_code == 1
    assert "budget of releases does not allow this" in result.output
    assert not out.exists()
    plan = run("browser --epsilon 0.9 --plan", DENIABLE_RELEASE_BUDGET="1.5")
    assert "The budget does not allow it" in plan.output
    again = run("browser --epsilon 1 --plan", DENIABLE_RELEASE_BUDGET="1.5").output
    assert "costs nothing. 1 release reveals epsilon 1.000 of 1.5" in " ".join(again.split())
    assert "does not allow" not in again
    assert document(run("list --json"))["total"]["releases"] == 1


@pytest.mark.parametrize("asked", ["browser --epsilon 1", "dark_mode --epsilon 0.2 --form trend"])
def test_a_plan_tells_the_intervals_that_are_published(run, tmp_path, asked):
    """The widest interval of the plan is that of the release: noise moves numbers, and hardly
    their intervals."""
    told = re.search(
        r"points without the noise, ± ([\d.]+) points with it", run(f"{asked} --plan").output
    )
    assert run(f"{asked} --out {tmp_path / 'made.json'}").exit_code == 0
    data = json.loads((tmp_path / "made.json").read_text())["data"]
    low, high = (data["columns"].index(each) for each in ("low", "high"))
    widest = max(row[high] - row[low] for row in data["rows"])
    assert told
    assert float(told[1]) == pytest.approx(50 * widest, rel=0.1)


def test_a_table_is_never_written_without_its_manifest(run, tmp_path):
    """If one of the two files cannot be written, both stay as they were, and no other is left: who
    reads the folder never finds the table of one release beside the manifest of another."""
    out = tmp_path / "site" / "table.csv"
    out.parent.mkdir()
    beside = out.with_name("table.csv.manifest.json")
    assert run(f"browser --out {out}").exit_code == 0
    before = out.read_bytes()
    beside.unlink()
    beside.mkdir()
    refused = run(f"browser --epsilon 0.5 --out {out}")
    assert refused.exit_code == 1
    assert str(beside) in refused.output
    assert out.read_bytes() == before
    assert sorted(each.name for each in out.parent.iterdir()) == [out.name, beside.name]


CHANGED = [
    ("epsilon", 1),
    ("delta", "x"),
    ("reports", "many"),
    ("windows", None),
    ("where", []),
]


@pytest.mark.parametrize(("key", "value"), CHANGED)
def test_a_manifest_of_other_kinds_is_refused_in_words(run, tmp_path, key, value):
    """Verifying a stranger's document never ends in a Python error."""
    found = document(run("browser --out -"))
    found["manifest"][key] = value  # type: ignore[index]
    file = tmp_path / "changed.json"
    file.write_text(json.dumps(found))
    refused = run(f"verify {file}")
    assert refused.exit_code == 1
    assert "the manifest is not whole" in refused.output
    assert isinstance(refused.exception, SystemExit)


def test_what_no_digest_covers_is_refused(run, tmp_path):
    """Neither a second object of the same name, of which a reader may take the first, nor a further
    one beside the manifest passes."""
    text = run("browser --out -").stdout
    file = tmp_path / "changed.json"
    for more in ('"data": {"columns": [], "rows": []},', '"note": "reviewed",'):
        file.write_text(text.replace("{", "{" + more, 1))
        refused = run(f"verify {file}")
        assert refused.exit_code == 1
        assert "no document of a release" in refused.output


@pytest.mark.parametrize(
    ("change", "texts", "told"),
    [
        *(
            (f"charge = '{each}'", ("list", "browser --out -", "dark_mode --out -"), "is damaged")
            for each in ("{}", "no JSON", "3")
        ),
        ("chain = ''", ("list", "browser --out -", "dark_mode --out -"), "is damaged"),
        (
            "document = replace(document, 'firefox', 'firefix')",
            ("browser --out -",),
            "is not as it was written",
        ),
    ],
)
def test_a_damaged_ledger_is_named(run, tmp_path, change, texts, told):
    """A charge that cannot be read refuses all releases, in words; of a document whose numbers are
    not those of its manifest any more nothing is printed, and nothing is signed."""
    document(run("browser --out -"))
    with sqlite3.connect(tmp_path / "releases.sqlite") as opened:
        opened.execute(f"UPDATE releases SET {change}")
    opened.close()
    for text in texts:
        refused = run(text)
        assert refused.exit_code == 1
        assert told in refused.output
        assert refused.stdout == ""
        assert isinstance(refused.exception, SystemExit)


def test_a_signed_document_with_one_byte_changed_never_verifies(tmp_path, monkeypatch):
    """Each byte is changed in three ways: it is refused, or it says the same as before, as with
    another space between two keys. What is larger than a document may be is not read."""
    private = tmp_path / "release.pem"
    public = public_key(make_key(private))
    csv = b"value,estimate\r\nfirefox,0.1\r\n"
    manifest = {"deniable_release": 1, "metric": "m\u00e9", "epsilon": 0.5, "reports": 20_000}
    data = {"columns": ["value", "estimate"], "rows": [["firefox", 0.1], ["x", None], ["y", -0.0]]}
    text = signed(make_document(manifest, data, csv.decode()), private_key(private)).encode()
    told = verify(text, csv, public)
    passed = 0
    for place, byte in enumerate(text):
        for other in {byte ^ 1, byte ^ 32, ord("0")} - {byte}:
            changed = text[:place] + bytes([other]) + text[place + 1 :]
            try:
                found = verify(changed, csv, public)
            except ManifestError:
                continue
            passed += 1
            assert found == told
            assert json.loads(changed)["data"] == data
    assert passed < len(text) / 4
    monkeypatch.setattr("deniable_estimator.releasing.manifest.MOST_BYTES", len(text))
    assert verify(text, csv, public) == told
    with pytest.raises(ManifestError, match="larger than 64 MiB"):
        verify(text + b" ", csv, public)
    for cut in range(len(text) - 1):
        with pytest.raises(ManifestError):
            verify(text[:cut], None, public)


def test_a_window_that_cannot_be_read_is_not_left_out_silently(run, monkeypatch):
    """The manifest would name a window that the sum lacks, so nothing is released."""
    monkeypatch.setattr(Question, "unreadable", property(lambda question: ("2026-01-06",)))
    refused = run("browser --out -")
    assert refused.exit_code == 1
    assert "window 2026-01-06 cannot be read now" in refused.output


def test_a_pipe_is_written_to_and_stays_one(run, tmp_path):
    """--out never replaces a device or a pipe, like /dev/stdout, by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    told: list[str] = []
    reader = threading.Thread(target=lambda: told.append(pipe.read_text()), daemon=True)
    reader.start()
    assert run(f"browser --out {tmp_path / 'table.csv'}").exit_code == 0
    done = run(f"browser --out {pipe}")
    assert done.exit_code == 0, done.output
    reader.join(120)
    assert pipe.is_fifo()
    assert json.loads(told[0])["manifest"]["metric"] == "browser"


def test_a_trend_has_one_table_a_window(run):
    """Each window has its noise, and the reports of a device in several add up once each."""
    found = document(run("browser --form trend --epsilon 4 --noise gaussian --out -"))
    rows = found["data"]["rows"]
    assert found["data"]["columns"][:3] == ["window", "n", "value"]
    assert [row[0] for row in rows[::4]] == DAYS
    assert found["manifest"]["epsilon"] <= 4.0
    assert found["manifest"]["delta"] == 1e-8


@pytest.mark.parametrize("text", ["", "no key", "-----BEGIN PRIVATE KEY-----\nAAAA\n"])
def test_what_is_no_key(tmp_path, text):
    """A file without a key is refused in words, as either half of a pair; so is none."""
    file = tmp_path / "key.pem"
    file.write_text(text)
    for read in (private_key, public_key):
        with pytest.raises(ManifestError, match="in PEM"):
            read(file)
        with pytest.raises(ManifestError, match="No such file"):
            read(tmp_path / "away.pem")
