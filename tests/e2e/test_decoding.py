"""A long decode in a real browser: the page says how far it is, and turns into the answer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.support.wait import WebDriverWait

from deniable import Registry
from deniable_collector.stores import open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_estimator.analyses.sampling import sample_tally

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

TOKEN = "Vq3mS0x-8JtYc_1rKfWz5LbNpH2eGdUa"
REGISTRY = """
schema = 1
app = "example"
[metrics.site]
type = "string"
description = "Which site?"
owner = "me"
expires = 2099-06-30
epsilon = 4.0
lifetime_epsilon = 8.0
"""


@pytest.fixture
def page(
    dashboard_page: Callable[[], str],
    environ: dict[str, str],
    tmp_path: Path,
) -> str:
    """The address of a dashboard whose operator has listed a million strings; on each of three
    days 20,000 devices have named two of them, seed 1."""
    (tmp_path / "metrics.toml").write_text(REGISTRY)
    registry = Registry.parse(REGISTRY)
    scheme = registry["site"].scheme
    url = f"sqlite:///{tmp_path}/tallies.db"
    store = open_store(url)
    store.publish({"site": [scheme]})
    now = datetime.now(UTC)
    rng = np.random.default_rng(1)
    names = ["a.example", "b.example"]
    for ago in (2, 3, 4):
        tally = sample_tally(scheme, np.array([15_000, 5_000]), rng, values=names, metric="site")
        label = (now.date() - timedelta(days=ago)).isoformat()
        increments = {}
        for place, row in enumerate(tally.rows):
            columns = np.flatnonzero(row.cells)
            key = TallyRowKey(TallyKey("site", scheme.fingerprint, label), place)
            increments[key] = Increment(
                len(row.cells), row.reports, columns.tolist(), row.cells[columns].tolist()
            )
        store.fold(Commit((f"{ago:032x}",), increments), now.timestamp())
    store.close()
    folder = tmp_path / "lists"
    folder.mkdir()
    names += [f"s{number}.example" for number in range(999_998)]
    (folder / "site.txt").write_text("\n".join(names))
    environ.update(
        DENIABLE_REGISTRY=str(tmp_path / "metrics.toml"),
        DENIABLE_STORE=url,
        DENIABLE_CANDIDATES_DIR=str(folder),
        DENIABLE_DASHBOARD_TOKEN=TOKEN,
        DENIABLE_DASHBOARD_LOGIN_LINK="1",
        DENIABLE_DASHBOARD_BIND="127.0.0.1:0",
    )
    return dashboard_page()


def test_a_million_strings_are_waited_for(
    page: str, open_browser: Callable[[bool], Chrome]
) -> None:
    """Without JavaScript the page comes back by itself until the leading string is there."""
    browser = open_browser(False)
    browser.get(f"{page}/login?token={TOKEN}&next=/metric/site")
    source = browser.page_source
    assert "Calculating the result" in source
    assert "seconds so far" in source

    def leading(browser: Chrome) -> bool:
        found = browser.find_elements("css selector", "h2.headline")
        return bool(found) and "a.example leads" in found[0].text

    # The page may be replaced between finding its headline and reading it.
    waiting = WebDriverWait(browser, 100, ignored_exceptions=[StaleElementReferenceException])
    waiting.until(leading)
    assert browser.current_url == f"{page}/metric/site"
