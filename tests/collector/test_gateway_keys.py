"""The gateway's file of keys, and `deniable relay key`."""

import json
import os
import stat
from dataclasses import replace

import pytest
from click.testing import CliRunner

from deniable.protocol.oblivious.capsules import new_private_key
from deniable.protocol.oblivious.signed_keys import verified
from deniable.tools.command_line import find
from deniable_collector.oblivious.key_file import KeyFile, KeyFileError
from deniable_collector.oblivious.relay_settings import RelaySettings
from deniable_collector.settings import Settings, SettingsError


def run(*arguments):
    return CliRunner().invoke(find("relay", "key"), [str(each) for each in arguments])


def test_new_rotate_show(tmp_path):
    """The identity stays, the newest key is first, the oldest goes; nothing secret is printed."""
    path = tmp_path / "keys.json"
    made = run("new", path)
    assert made.exit_code == 0, made.output
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    first = KeyFile.read(path)
    assert run("rotate", path, "--kem", "p256").exit_code == 0
    second = KeyFile.read(path)
    assert run("rotate", path, "--json").exit_code == 0
    third = KeyFile.read(path)
    assert {first.identity, second.identity, third.identity} == {third.identity}
    assert [each.id for each in second.keys] == [(first.keys[0].id + 1) % 256, first.keys[0].id]
    assert third.keys[1] == second.keys[0]
    assert len(third.keys) == 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    shown = run("show", path, "--json").output
    assert json.loads(shown)["identity"] == third.identity
    assert [each["kem"] for each in json.loads(shown)["keys"]] == ["x25519", "p256"]
    secrets = json.loads(path.read_text())
    for output in (made.output, shown, run("show", path).output):
        assert secrets["identity"] not in output
        assert not any(each["secret"] in output for each in secrets["keys"])
    assert [each.name for each in tmp_path.iterdir()] == ["keys.json"]
    assert len(verified(third.identity, third.document, third.signature)) == 2


@pytest.mark.parametrize(("ids", "new"), [([255], 0), ([254, 3], 255), ([255, 0, 1], 2), ([9], 10)])
def test_the_number_after_the_newest(tmp_path, ids, new):
    """A new key has the next free number after the newest key's, and 255 is a number as any."""
    held = replace(
        KeyFile.new("x25519"), keys=tuple(new_private_key(number, "x25519") for number in ids)
    )
    path = tmp_path / "keys.json"
    held.write(path)
    assert [each.id for each in KeyFile.read(path).keys] == ids
    assert held.rotated("p256", 7).keys[0].id == new


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_the_owner_of_the_file_stays(tmp_path):
    """Root may rotate the keys of the collector's user, who can read the new file too."""
    path = tmp_path / "keys.json"
    KeyFile.new("x25519").write(path)
    os.chown(path, 1234, 2345)
    path.chmod(0o640)
    KeyFile.read(path).rotated("x25519", 1).write(path, replacing=True)
    found = path.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (1234, 2345, 0o640)


def test_no_file_is_replaced(tmp_path):
    """`new` leaves what is there, and says what to do instead."""
    path = tmp_path / "keys.json"
    path.write_text("precious")
    result = run("new", path)
    assert (result.exit_code, path.read_text()) == (1, "precious")
    assert "rotate" in result.output
    assert run("new", tmp_path / "no" / "keys.json").exit_code == 1


@pytest.mark.parametrize("mode", [0o604, 0o640 | 0o020, 0o644, 0o606])
def test_a_file_that_others_may_read(tmp_path, mode):
    """A file that others may read, or a group write, is refused with the command that helps."""
    path = tmp_path / "keys.json"
    KeyFile.new("x25519").write(path)
    path.chmod(mode)
    with pytest.raises(KeyFileError, match="chmod 600"):
        KeyFile.read(path)
    path.chmod(0o640)
    assert KeyFile.read(path).keys


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(format="x"),
        lambda d: d.update(keys=d["keys"] * 2),
        lambda d: d.update(identity="A" * 43 + "="),
        lambda d: d["keys"][0].update(id=256),
        lambda d: d["keys"][0].update(id="1"),
        lambda d: d["keys"][0].update(kem="rsa"),
        lambda d: d["keys"][0].update(secret="<script>"),
        lambda d: d["keys"][0].update(kem="p256", secret="A" * 43 + "="),
    ],
)
def test_a_damaged_file(tmp_path, change):
    """A file with any part damaged is refused as a whole, by the collector too."""
    path = tmp_path / "keys.json"
    KeyFile.new("x25519").write(path)
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(KeyFileError, match="damaged"):
        KeyFile.read(path)


def test_a_relays_settings():
    """A relay heeds its own settings and those about connections, and tells nothing secret."""
    environ = {
        "DENIABLE_RELAY_GATEWAY": "https://t.acme.example/",
        "DENIABLE_RELAY_KEY": "a-key-for-the-relay",
        "DENIABLE_RELAY_TIMEOUT": "300",
        "DENIABLE_STORE": "redis://ignored",
    }
    settings = RelaySettings.from_env(environ)
    assert settings.relay_gateway == "https://t.acme.example"
    known = {name for name, _, _ in RelaySettings.table()}
    assert known >= {"DENIABLE_BIND", "DENIABLE_RATE", "DENIABLE_RELAY_KEY"}
    assert not known & {"DENIABLE_STORE", "DENIABLE_REGISTRY", "DENIABLE_RELAY_KEYS"}
    assert "a-key-for-the-relay" not in repr(settings.in_force())
    assert "DENIABLE_STORE" not in settings.in_force()
    assert RelaySettings.strangers(environ) == Settings.strangers(environ) == []
    for name, value in (("KEY", "short"), ("TIMEOUT", "0"), ("TIMEOUT", "301"), ("GATEWAY", "x")):
        with pytest.raises(SettingsError, match=f"DENIABLE_RELAY_{name}"):
            RelaySettings.from_env({f"DENIABLE_RELAY_{name}": value})
