"""gunicorn's settings for a relay, from ours.

`deniable relay` runs `deniable_collector.oblivious.relay:app()` with them.
"""

from __future__ import annotations

from typing import Any

from deniable_collector.oblivious.relay_settings import RelaySettings
from deniable_collector.operation.events import tell
from deniable_collector.serving.gunicorn import open_files, shared

_settings = RelaySettings.from_env()
globals().update(shared(_settings, "relay", "deniable relay"))


def on_starting(server: Any) -> None:
    """Raise the limit of open files: each capsule may need a connection on both sides."""
    open_files(2 * _settings.max_connections)
    for told in RelaySettings.strangers():
        tell("warning", "unknown-setting", told)
