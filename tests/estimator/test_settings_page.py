"""The page that lists the settings lists all of them, as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from deniable_estimator.dashboard.settings import DashboardSettings

PAGE = (Path(__file__).parents[2] / "docs" / "settings.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("row", DashboardSettings.table(), ids=lambda row: str(row[0]))
def test_every_setting_is_listed(row: tuple[str, object, str]) -> None:
    """Each variable of the collector and the dashboard has its line, with default and meaning."""
    name, default, meaning = row
    shown = "(none)" if default in ("", (), None) else f"`{default}`"
    assert f"| `{name}` | {shown} | {meaning} |" in PAGE
