"""The tables of settings, of the collector, the dashboard and the relay, from their declarations.

The page docs/reference/settings.md includes the files that this writes into .make/settings/.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from deniable_collector.oblivious.relay_settings import RelaySettings
from deniable_collector.settings import Settings
from deniable_estimator.dashboard.settings import DashboardSettings

_SERVERS: dict[str, tuple[type[Settings], bool]] = {
    "collector": (Settings, False),
    "dashboard": (DashboardSettings, True),
    "relay": (RelaySettings, True),
}
"""For each table its class, and whether only what differs from the collector's is in it."""


def table(settings: type[Settings], *, own: bool) -> str:
    """The variables of a server with their defaults and meanings, as a table in Markdown."""
    of_all = {each.name: each for each in fields(Settings)}
    lines = ["| variable | default | meaning |", "| --- | --- | --- |"]
    for each in fields(settings):
        known = of_all.get(each.name)
        if (
            own
            and known
            and (known.default, known.metadata["help"])
            == (
                each.default,
                each.metadata["help"],
            )
        ):
            continue
        default = "(none)" if each.default in ("", (), None) else f"`{each.default}`"
        meaning = each.metadata["help"].replace("*", "\\*").replace("_", "\\_")
        lines.append(f"| `DENIABLE_{each.name.upper()}` | {default} | {meaning} |")
    return "\n".join(lines) + "\n"


def _write(app: Sphinx) -> None:
    folder = Path(__file__).parents[3] / ".make" / "settings"
    folder.mkdir(parents=True, exist_ok=True)
    for name, (settings, own) in _SERVERS.items():
        (folder / f"{name}.md").write_text(table(settings, own=own), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
