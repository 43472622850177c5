"""gunicorn's settings for a relay, from ours.

`deniable relay` runs `deniable_collector.oblivious.relay:app()` with them.
"""

from __future__ import annotations

from deniable_collector.oblivious.relay_settings import RelaySettings
from deniable_collector.serving.gunicorn import shared

_settings = RelaySettings.from_env()
# Each capsule may need a connection on both sides.
globals().update(shared(_settings, "relay", "deniable relay", 2 * _settings.max_connections))
