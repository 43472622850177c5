"""Which windows are looked at for signs of fakes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta

from deniable_estimator.dashboard import gunicorn_conf, metric_view

from .conftest import browser_of, dashboard_of, fill


def test_what_has_not_changed_is_not_looked_at_again(empty_store, registry, monkeypatch):
    """Windows are looked at once, before anybody asks; when one has changed, it alone is looked at
    again."""
    for ago in range(60):
        day = (date(2026, 11, 20) - timedelta(ago)).isoformat()
        fill(empty_store, registry, "dark_mode", [0.3, 0.7], 9_000, day)
        fill(empty_store, registry, "browser", [0.25] * 4, 9_000, day)
    seen: list[str] = []
    real: Callable[..., object] = metric_view.looks_in

    def look(selection, labels):
        seen.extend(labels)
        return real(selection, labels)

    monkeypatch.setattr(metric_view, "looks_in", look)
    app = dashboard_of(empty_store, registry)
    gunicorn_conf._overview(app)
    assert len(seen) == 2 * 56
    seen.clear()
    browser = browser_of(app)
    browser.get("/")
    assert seen == []
    fill(empty_store, registry, "dark_mode", [0.3, 0.7], 10)
    browser.get("/")
    assert seen == ["2026-11-20"]
