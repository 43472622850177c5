"""A registry that is read again: a mistake in it changes nothing, and is told."""

import resource
import runpy

import pytest
from tests.registries import tables

from deniable_collector import inherited
from deniable_collector.serving.http import ROOM
from deniable_collector.settings import Settings


@pytest.fixture
def held(monkeypatch, tmp_path, metrics):
    """What a master would hold, of a file that the test may change."""
    (tmp_path / "metrics.toml").write_text(metrics)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(inherited, "_held", None)
    inherited.read()
    return tmp_path / "metrics.toml"


@pytest.mark.parametrize("trouble", ["mistake", "gone", "not text", "bug", "settings"])
def test_whatever_is_wrong_what_was_read_stays(held, monkeypatch, caplog, trouble):
    """A mistake, a file that is gone or no text, a secret that cannot be read, and an error that
    nobody expects leave what is held as it is, and are told."""
    before = inherited.inherited()
    {
        "mistake": lambda: held.write_text("schema = 2"),
        "gone": held.unlink,
        "not text": lambda: held.write_bytes(b"\xff"),
        "bug": lambda: monkeypatch.setattr(inherited.Registry, "load", lambda _: 1 / 0),
        "settings": lambda: monkeypatch.setenv("DENIABLE_STORE_FILE", "/none"),
    }[trouble]()
    inherited.read_again()
    after = inherited.inherited()
    assert (after.settings, after.registry) == (before.settings, before.registry)
    assert after.mistakes
    (record,) = caplog.records
    assert record.event == "reload-refused"
    assert after.mistakes[0] in record.getMessage()
    assert record.fields["mistakes"] == list(after.mistakes)


def test_without_a_master_each_reads_for_itself(monkeypatch, tmp_path, metrics):
    """Under a server that shares nothing, the environment and the file are read each time."""
    monkeypatch.setattr(inherited, "_held", None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "metrics.toml").write_text(metrics)
    assert len(inherited.inherited().registry) == 3
    (tmp_path / "metrics.toml").write_text(metrics + tables(new={"type": "boolean"}))
    assert len(inherited.inherited().registry) == 4


def test_a_collector_without_mistakes_says_nothing_of_them(serve, registry, tmp_path):
    """/readyz has a detail only where something was not reloaded."""
    settings = Settings(store=f"sqlite:///{tmp_path / 'store.db'}")
    ready = serve(registry, settings=settings, mistakes=("one", "two")).get("/readyz").json
    assert (ready["status"], ready["mistakes"]) == ("ready", ["one", "two"])
    assert serve(registry, settings=settings).get("/readyz").json == {"status": "ready"}


def test_what_gunicorn_starts_with(held, monkeypatch, caplog):
    """The settings are its own too; before it forks, files for all connections are asked for, and
    an unknown setting is told. What cannot be read ends it then, but not when it is read again."""
    limits = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limit: limits.append(limit))
    monkeypatch.setenv("DENIABLE_BIND", "127.0.0.1:0")
    monkeypatch.setenv("DENIABLE_PORT", "1")
    conf = runpy.run_module("deniable_collector.gunicorn_conf")
    named = (conf["bind"], conf["workers"], conf["timeout"], conf["graceful_timeout"])
    assert named == (["127.0.0.1:0"], 2, 60, 30)
    monkeypatch.setattr(inherited, "_held", None)
    conf["on_starting"](None)
    assert limits == [(900 + 3 * ROOM, 4096)]
    assert len(inherited.inherited().registry) == 3
    held.write_text("schema = 2")
    conf["on_reload"](None)
    with pytest.raises(SystemExit) as ended:
        conf["on_starting"](None)
    assert ended.value.code == 1
    told = [record.event for record in caplog.records]
    assert told == ["unknown-setting", "reload-refused", "unknown-setting", "not-started"]
