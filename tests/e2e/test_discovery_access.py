"""The pages of a discovery for everybody, with strings that strangers chose to break them."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.ports import free_port
from tests.registries import declared

from deniable import Registry
from deniable_collector.stores import open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_estimator.analyses import analysis_of

from .browsing import complaints
from .running import until

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

TERMS = {"type": "discovery", "max_length": 6, "epsilon": 4.0, "lifetime_epsilon": 40.0}
REGISTRY = declared(terms=TERMS, quiet=TERMS)
CROWD = {"search": 30_000, "\u0645\u0627": 16_000, "<b>\u202e": 15_000, "\u641c\u7d22": 14_000}
TOKEN = "Vq3mS0x-8JtYc_1rKfWz5LbNpH2eGdUb"


@pytest.fixture
def discovery_page(
    dashboard_page: Callable[[], str], environ: dict[str, str], tmp_path: Path
) -> str:
    """The address of a dashboard over two days of strings."""
    (tmp_path / "metrics.toml").write_text(REGISTRY, encoding="utf-8")
    registry, rng = Registry.parse(REGISTRY), np.random.default_rng(7)
    scheme, url = registry["terms"].scheme, f"sqlite:///{tmp_path}/tallies.db"
    now = datetime.now(UTC)
    with closing(open_store(url)) as store:
        store.publish({each.name: [each.scheme] for each in registry})
        for ago in (2, 1):
            key = TallyKey("terms", scheme.fingerprint, f"{now.date() - timedelta(days=ago)}")
            rows = analysis_of(scheme.mechanism).sample_rows(
                tuple(CROWD), np.array([*CROWD.values()]), rng
            )
            increments = {
                TallyRowKey(key, place): Increment(
                    len(row.cells), row.reports, np.flatnonzero(row.cells), row.cells[row.cells > 0]
                )
                for place, row in enumerate(rows)
                if row.reports
            }
            store.fold(Commit((secrets.token_hex(16),), increments), now.timestamp())
    environ.update(
        DENIABLE_REGISTRY=str(tmp_path / "metrics.toml"),
        DENIABLE_STORE=url,
        DENIABLE_DASHBOARD_BIND=f"127.0.0.1:{free_port()}",
        DENIABLE_DASHBOARD_TOKEN=TOKEN,
        DENIABLE_DASHBOARD_LOGIN_LINK="1",
    )
    return dashboard_page()


def test_axe_finds_nothing_on_a_discovery(
    discovery_page: str, open_browser: Callable[[bool], Chrome], axe: str
) -> None:
    """axe-core finds nothing on the page of a discovery, whether it found strings or has no report,
    in light and dark, on a desktop and on a phone, in both languages."""
    browser = open_browser(True)
    browser.get(f"{discovery_page}/login?token={TOKEN}")

    def decoded() -> bool:
        browser.get(f"{discovery_page}/metric/terms")
        return "search" in browser.find_element("tag name", "main").text

    until(decoded)
    found: list[str] = []
    for language in ("en", "zh-Hans"):
        for path in ("terms", "terms?by=week", "quiet"):
            joiner = "&" if "?" in path else "?"
            address = f"{discovery_page}/metric/{path}{joiner}lang={language}"
            found += complaints(browser, axe, address)
    assert found == []
