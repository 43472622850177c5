"""`deniable store`: what its commands do and say."""

from __future__ import annotations

import json
import time
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from deniable import windows
from deniable_collector.stores import StoreUnavailable, open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_collector.stores.sqlite.store import SqliteStore
from deniable_collector.upkeep import commands as store_commands

STORES = ["sqlite", "redis", "cluster"]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Files of dropped windows go at once: another file tests what they wait for."""
    monkeypatch.setattr("deniable_collector.stores.redis.dropping._SYNC_SECONDS", 0.0)


@pytest.fixture
def run(home):
    """Runs a command on the store of the environment."""

    def run(*arguments, code=0, answer=None, store=None, archive=""):
        environ = home.environ if store is None else {**home.environ, "DENIABLE_STORE": store}
        environ = {**environ, "DENIABLE_ARCHIVE": str(archive)}
        result = CliRunner().invoke(
            store_commands.store, [str(each) for each in arguments], answer, environ
        )
        assert result.exit_code == code, result.output
        return result

    return run


@pytest.fixture
def scheme(store, registry):
    scheme = registry["browser"].scheme
    store.publish({"browser": [scheme], "dark_mode": [registry["dark_mode"].scheme]})
    return scheme


@pytest.fixture
def filled(store, scheme, new_id, noon):
    """A store with three days of one metric."""
    for number, day in enumerate(("2026-11-01", "2026-11-02", "2026-11-20"), 1):
        key = TallyRowKey(TallyKey("browser", scheme.fingerprint, day), 0)
        store.fold(Commit((new_id(),), {key: Increment(5, number, (1,), (number,))}), noon)
    return store


def test_info(filled, run, home, scheme):
    """The table and the JSON say what a store holds, metrics without reports too."""
    said = run("info").stdout
    assert "2026-11-01 to 2026-11-20" in said
    assert scheme.fingerprint in said
    document = json.loads(run("info", "--json").stdout)
    assert document["kind"] == home.url.partition(":")[0]
    assert document["shards"] == 1
    browser, dark_mode = document["schemes"]
    assert browser == {
        "metric": "browser",
        "scheme": scheme.fingerprint,
        "mechanism": "subset_selection",
        "windows": 3,
        "sealed": 0,
        "first": "2026-11-01",
        "last": "2026-11-20",
        "reports": 6,
        "sums": {"copies": 0, "kept": [], "dropped_windows": 0},
        "counters": 15,
    }
    assert (dark_mode["windows"], dark_mode["first"], dark_mode["reports"]) == (0, None, 0)


def test_drop_asks_first(filled, run, scheme):
    """Windows go when the question was answered by yes, and not by no or by looking."""
    dry = run("drop", "--before", "2026-11-03", "--dry-run")
    assert "browser: 2026-11-01 to 2026-11-02, 2 windows" in dry.stdout
    assert "2 tallies of 1 metric would go" in dry.stdout
    no = run("drop", "--before", "2026-11-03", answer="n\n", code=1)
    assert "Drop 2 tallies of 1 metric that had ended by 2026-11-03, for ever?" in no.output
    assert len(filled.windows("browser", scheme.fingerprint)) == 3
    assert (
        "2 tallies of 1 metric dropped"
        in run("drop", "--before", "2026-11-03", answer="y\n").stdout
    )
    assert filled.windows("browser", scheme.fingerprint) == ["2026-11-20"]
    assert "0 tallies of 0 metrics dropped" in run("drop", "--before", "2026-11-03").stdout


def test_drop_in_a_script(filled, run, scheme):
    """--yes does not ask, and --json says which tallies went."""
    document = json.loads(run("drop", "--before", "2026-11-02", "--yes", "--json").stdout)
    gone = {"metric": "browser", "scheme": scheme.fingerprint, "window": "2026-11-01"}
    assert document == {
        "dropped": True,
        "before": "2026-11-02",
        "tallies": [gone],
        "sums": [],
    }
    assert len(filled.windows("browser", scheme.fingerprint)) == 2


def test_drop_warns_of_windows_that_take_reports(filled, run, scheme, new_id):
    """Who drops a window that is not settled is told that it begins again."""
    assert "again at zero" not in run("drop", "--before", "2020-01-01", "--yes").stderr
    today = windows.window_at("day", 4_070_908_800.0)
    key = TallyRowKey(TallyKey("browser", scheme.fingerprint, today), 0)
    filled.fold(Commit((new_id(),), {key: Increment(5, 1, (1,), (1,))}), 4_070_908_800.0)
    for how in ("--dry-run", "--yes"):
        assert "start again at zero" in run("drop", "--before", "2100-01-01", how).stderr


def test_export_and_import(filled, run, home, tmp_path, scheme):
    """A file goes from one store to another; the second time nothing is added, and it is said."""
    file, other = tmp_path / "tallies.gz", f"sqlite:///{tmp_path / 'other.db'}"
    assert "6 reports in 3 tallies of 1 scheme" in run("export", file).stdout
    assert "--force" in run("export", file, code=1).output
    facts = json.loads(run("export", file, "--force", "--origin", "eu", "--json").stdout)
    assert (facts["origin"], facts["reports"], facts["bytes"]) == ("eu", 6, file.stat().st_size)
    assert "is sound: 6 reports" in run("import", file, "--dry-run", store=other).stdout
    run("info", store=other, code=1)
    assert "added 6 reports" in run("import", file, store=other).stdout
    assert "nothing was added" in run("import", file, store=other).stdout
    again = json.loads(run("import", file, "--json", store=other).stdout)
    assert again["added"] == {"rows": 0, "reports": 0, "sums": 0}
    assert again["known"] == {"rows": 3, "reports": 6, "sums": 0}
    with closing(open_store(other)) as target:
        days = ["2026-11-01", "2026-11-02", "2026-11-20"]
        assert target.tally("browser", scheme.fingerprint, days).rows[0].cells[1] == 6


def test_part_of_a_store(filled, run, tmp_path):
    """Metrics and days can be chosen; a metric that is not there is a mistake."""
    file, other = tmp_path / "tallies.gz", f"sqlite:///{tmp_path / 'other.db'}"
    days = ("--since", "2026-11-02", "--before", "2026-11-20")
    assert "2 reports in 1 tally" in run("export", file, "--metric", "browser", *days).stdout
    wrong = run("export", tmp_path / "no.gz", "--metric", "brauser", code=1).output
    assert "no metric brauser here; there is: browser, dark_mode" in wrong
    assert not (tmp_path / "no.gz").exists()
    run("import", file, "--metric", "dark_mode", store=other, code=1)
    for command in (("import", "--dry-run"), ("import",)):
        assert "no metric" in run(*command, file, "--metric", "x", store=other, code=1).output


def test_merge(filled, run, home, tmp_path, scheme):
    """The tallies of another store are added, once; an interrupted or repeated merge adds up."""
    other = f"sqlite:///{tmp_path / 'other.db'}"
    prefix = () if home.kind == "sqlite" else ("--prefix", home.prefix)
    assert "added 6 reports" in run("merge", home.url, *prefix, store=other).stdout
    assert "nothing was added" in run("merge", home.url, *prefix, store=other).stdout
    part = json.loads(
        run("merge", home.url, *prefix, "--since", "2026-11-20", "--json", store=other).stdout
    )
    # Another choice is another file, of the same tallies.
    assert (part["added"]["reports"], part["known"]["reports"]) == (0, 3)
    with closing(open_store(other)) as target:
        days = ["2026-11-01", "2026-11-02", "2026-11-20"]
        assert target.tally("browser", scheme.fingerprint, days).reports == 6


def test_an_empty_store_is_not_merged(filled, run, home, tmp_path):
    """A misspelt prefix names a store without anything in it: that is said, and not `added 0`."""
    if home.kind == "sqlite":
        empty, prefix = tmp_path / "empty.db", ()
        with closing(open_store(f"sqlite:///{empty}")) as store:
            store.publish({})
        url = f"sqlite:///{empty}"
    else:
        url, prefix = home.url, ("--prefix", "misspelt")
    other = f"sqlite:///{tmp_path / 'other.db'}"
    assert "--prefix" in run("merge", url, *prefix, store=other, code=1).output


def test_its_own_windows_are_not_added(filled, run, home, tmp_path, scheme):
    """A store refuses a file or a merge of its own windows, as long as it has them. When they were
    dropped, they come back, once."""
    days = ["2026-11-01", "2026-11-02", "2026-11-20"]
    file = tmp_path / "tallies.gz"
    run("export", file)
    assert "counted twice" in run("import", file, code=1).output
    copy = f"sqlite:///{tmp_path / 'copy.db'}"
    run("import", file, store=copy)
    origin = json.loads(run("export", tmp_path / "again.gz", "--json").stdout)["origin"]
    merged = run("merge", copy, "--origin", origin, code=1)
    assert "window 2026-11-01 of metric browser comes from this very store" in merged.output
    assert filled.tally("browser", scheme.fingerprint, days).reports == 6
    run("drop", "--before", "2026-11-03", "--yes")
    assert "2026-11-20" in run("import", file, code=1).output
    back = ("import", file, "--before", "2026-11-03")
    assert "added 3 reports" in run(*back).stdout
    assert "nothing was added" in run(*back).stdout
    assert filled.tally("browser", scheme.fingerprint, days).reports == 6


@pytest.mark.parametrize("command", [("verify",), ("seal", "--dry-run"), ("export", "no.gz")])
def test_days_in_the_wrong_order(filled, run, command):
    """A range of days that no window can be in is a mistake, and not an empty answer."""
    days = ("--since", "2026-11-03", "--before", "2026-11-02")
    assert "--since must be the earlier day" in run(*command, *days, code=2).output


def test_blocks_are_not_moved_to_an_empty_name(filled, run):
    """The value of a variable that is not set is no place, and not the store itself."""
    assert "PLACE is empty" in run("move", "", code=2).output


def test_a_store_is_not_merged_into_itself(filled, run, home, scheme):
    """Nothing is counted twice by naming the same store as both."""
    assert "same store" in run("merge", home.url, code=1).output
    if home.kind == "sqlite":
        path = home.url.removeprefix("sqlite:///")
        parts = Path(path)
        other = f"sqlite:///{parts.parent}/../{parts.parent.name}/{parts.name}"
        assert "same store" in run("merge", other, code=1).output
    days = ["2026-11-01", "2026-11-02", "2026-11-20"]
    assert filled.tally("browser", scheme.fingerprint, days).reports == 6


@pytest.mark.parametrize(
    "arguments", [("info",), ("drop", "--before", "2026-01-01"), ("export", "x.gz")]
)
def test_no_store(run, tmp_path, arguments, monkeypatch):
    """A store that is not there is one line that says so, and no file is left behind."""
    monkeypatch.chdir(tmp_path)
    nowhere = f"sqlite:///{tmp_path / 'nowhere.db'}"
    assert "there is no store" in run(*arguments, store=nowhere, code=1).output
    assert not list(tmp_path.glob("*x.gz*"))


def test_an_import_that_broke_off(run, home, filled, tmp_path, monkeypatch):
    """When the store goes away in the middle, the command says that it can be repeated; that
    completes the import, and says what was in already."""
    file, other = tmp_path / "tallies.gz", f"sqlite:///{tmp_path / 'other.db'}"
    run("export", file)
    fold, folds = SqliteStore.fold, []

    def breaking(store, commit, now):
        folds.append(commit)
        if len(folds) == 2:
            raise StoreUnavailable("away")
        return fold(store, commit, now)

    monkeypatch.setattr(SqliteStore, "fold", breaking)
    assert "not added twice" in run("import", file, store=other, code=1).output
    said = run("import", file, store=other).stdout
    assert "added 5 reports" in said
    assert "1 report had been added before" in said


@pytest.mark.parametrize("arguments", [("verify",), ("seal",), ("info",)])
def test_a_store_that_goes_away(run, filled, tmp_path, monkeypatch, arguments):
    """A command that adds nothing says only that it can be repeated."""
    file, other = tmp_path / "tallies.gz", f"sqlite:///{tmp_path / 'other.db'}"
    run("export", file)
    run("import", file, store=other)

    def away(store):
        raise StoreUnavailable("away")

    monkeypatch.setattr(SqliteStore, "schemes", away)
    said = run(*arguments, store=other, code=1).output
    assert "try again later" in said
    assert "added" not in said


def test_a_damaged_file(run, tmp_path):
    """A file that is none is told in one line."""
    file = tmp_path / "x.gz"
    file.write_bytes(b"something else")
    assert "holds no tallies of deniable" in run("import", file, code=1).output


def test_a_folder_that_is_not_there(filled, run, tmp_path):
    """An export that cannot be written says which file and why."""
    wrong = run("export", tmp_path / "none" / "x.gz", code=1).output
    assert "No such file or directory" in wrong


def test_seal_and_verify(filled, run, scheme, home):
    """`seal` says what it would do, does it, and says what was saved; `verify` reads all; what
    other commands show is the same as before."""
    settled = ("2026-11-01", "2026-11-02")
    assert "would be sealed" in run("seal", "--dry-run", "--before", "2026-11-03").stdout
    assert not filled.sealed("browser", scheme.fingerprint, settled)
    document = json.loads(run("seal", "--json", "--before", "2026-11-03").stdout)
    assert (document["sealed"], document["tallies"], document["failed"]) == (True, 2, [])
    assert document["bytes"]["before"] > 0
    assert filled.sealed("browser", scheme.fingerprint, settled) == set(settled)
    assert "nothing to seal" in run("seal", "--before", "2026-11-03").stdout
    assert json.loads(run("verify", "--json").stdout) == {
        "tallies": 3,
        "damaged": [],
        "sums": [],
        "unused_files": [],
    }
    assert "3 tallies can be read, 0 cannot" in run("verify").stdout
    found = json.loads(run("info", "--json").stdout)["schemes"][0]
    assert (found["windows"], found["sealed"], found["reports"]) == (3, 2, 6)
    assert "no metric nobody here" in run("seal", "--metric", "nobody", code=1).output


def test_windows_that_may_accept_reports_stay_open(store, scheme, run, new_id, registry):
    """`seal` leaves a window open whose reports may still come, whatever days are chosen."""
    day = windows.window_at("day", time.time() - 86_400)
    key = TallyRowKey(TallyKey("browser", scheme.fingerprint, day), 0)
    store.fold(Commit((new_id(),), {key: Increment(5, 1, (1,), (1,))}), time.time())
    assert "nothing to seal" in run("seal", "--before", "2999-01-01").stdout
    assert not store.sealed("browser", scheme.fingerprint, [day])


def test_a_damaged_block_is_named(filled, run, home, scheme, tmp_path):
    """`verify` names the window of a damaged block and exits with 1; `info` warns and goes on."""
    folder = tmp_path / "archive"
    with closing(open_store(home.url, prefix=home.prefix, archive=str(folder))) as store:
        store.seal(TallyKey("browser", scheme.fingerprint, "2026-11-01"))
    (path,) = folder.glob("*.block")
    path.write_bytes(path.read_bytes()[:-1])
    text = run("verify", code=1, archive=folder).output
    assert "the sealed block of metric browser, window 2026-11-01 is damaged" in text
    assert "2 tallies can be read, 1 cannot" in text
    told = json.loads(run("verify", "--json", code=1, archive=folder).stdout)
    assert [each["window"] for each in told["damaged"]] == ["2026-11-01"]
    shown = run("info", "--json", archive=folder)
    assert "warning: the sealed block" in shown.stderr
    assert json.loads(shown.stdout)["schemes"][0]["reports"] == 5


def test_unused_files_are_listed(filled, run, home, scheme, tmp_path):
    """`verify` lists files of blocks that this store does not use, those that a crash left half
    written too, and no others."""
    folder = tmp_path / "archive"
    with closing(open_store(home.url, prefix=home.prefix, archive=str(folder))) as store:
        store.seal(TallyKey("browser", scheme.fingerprint, "2026-11-01"))
    assert json.loads(run("verify", "--json", archive=folder).stdout)["unused_files"] == []
    (folder / "left.block").write_bytes(b"")
    assert json.loads(run("verify", "--json", archive=folder).stdout)["unused_files"] == [
        "left.block"
    ]
    (folder / ".k1lled.part").write_bytes(b"sums")
    text = run("verify", archive=folder).stdout
    assert "not used by this store: left.block" in text
    assert "not used by this store: .k1lled.part" in text


def test_a_file_that_cannot_be_read_is_named(filled, run, home, scheme, tmp_path):
    """`verify` and `info` name the window of a file that the disk does not read, and go on."""
    folder = tmp_path / "archive"
    with closing(open_store(home.url, prefix=home.prefix, archive=str(folder))) as store:
        store.seal(TallyKey("browser", scheme.fingerprint, "2026-11-01"))
    (path,) = folder.glob("*.block")
    path.unlink()
    path.mkdir()
    text = run("verify", code=1, archive=folder).output
    assert "metric browser, window 2026-11-01 cannot be read from the folder" in text
    assert "2 tallies can be read, 1 cannot" in text
    shown = run("info", "--json", archive=folder)
    assert "window 2026-11-01 cannot be read" in shown.stderr
    assert json.loads(shown.stdout)["schemes"][0]["reports"] == 5


def test_drop_needs_the_folder(filled, run, home, scheme, tmp_path):
    """`drop` without the folder of sealed windows drops nothing and says what to set."""
    folder = tmp_path / "archive"
    with closing(open_store(home.url, prefix=home.prefix, archive=str(folder))) as store:
        store.seal(TallyKey("browser", scheme.fingerprint, "2026-11-01"))
    said = run("drop", "--before", "2026-11-05", "--yes", code=1)
    assert "is sealed in a folder of files or in a bucket: set DENIABLE_ARCHIVE" in said.output
    assert len(filled.windows("browser", scheme.fingerprint)) == 3
    run("drop", "--before", "2026-11-05", "--yes", archive=folder)
    assert list(folder.glob("*.block")) == []
