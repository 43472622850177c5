"""Secrets come from the environment or from files, and are printed nowhere."""

import json

import pytest

from deniable_collector.settings import Settings, SettingsError

SECRET = "hush-hush-very-secret"
SECRETS = {
    "DENIABLE_STORE": f"redis://user:{SECRET}@127.0.0.1:1/0",
    "DENIABLE_REDIS_PASSWORD": SECRET,
    "DENIABLE_INGEST_KEYS": f"{SECRET}-1,{SECRET}-2",
}


def test_settings_hide_their_secrets():
    """Neither repr nor the settings in force nor their table show a secret; keys are not even
    kept."""
    settings = Settings.from_env(SECRETS)
    for text in (repr(settings), str(settings), json.dumps(settings.in_force(), default=str)):
        assert SECRET not in text
    assert SECRET not in repr(settings.ingest_keys)
    assert SECRET not in repr(Settings.table())


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("given", [{}, {"DENIABLE_INGEST_KEYS": f"{SECRET} with spaces"}])
def test_a_bad_secret_is_not_repeated(name, given, tmp_path):
    """An error about a secret names its variable and not its value, from a file too."""
    path = tmp_path / "secret"
    path.write_text(SECRETS[name])
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({**SECRETS, **given, f"{name}_FILE": str(path)})
    assert all(each in str(caught.value) for each in (name, *given))
    assert SECRET not in str(caught.value)


def test_a_running_collector_does_not_print_secrets(new_collector):
    """It starts with a store that cannot be reached, as devices keep their batches meanwhile, and
    warns of it. Of its start, settings in force and stop no line has a secret."""
    environ = {name: SECRETS[name] for name in ("DENIABLE_STORE", "DENIABLE_INGEST_KEYS")}
    collector = new_collector(**environ)
    collector.stop()
    assert "started" in collector.log
    assert "warning" in collector.log + collector.output
    assert SECRET not in collector.log + collector.output
