"""A registry and a store of made-up crowds for the documentation's pictures.

Each day's tally is drawn from its exact distribution, as so many devices would have made it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from deniable import Metric, Registry
from deniable.protocol.types.number import Number
from deniable_collector.settings import Settings
from deniable_collector.stores import Store, open_store
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses import analysis_of, sample_tally
from deniable_estimator.asking.query import Days, Query
from deniable_estimator.asking.reader import Reader
from deniable_estimator.development.crowd import fold_tally
from deniable_estimator.releasing.making import release
from deniable_estimator.releasing.preparing import ReleaseRequest, prepare
from deniable_estimator.releasing.release_ledger import ReleaseLedger

REGISTRY = """
schema = 1
app = "example"
[defaults]
owner = "growth@acme.example"
expires = 2027-06-30

[segments.platform]
values = ["android", "ios", "web"]

[metrics.browser]
type = "category"
description = "Which browser opens links on this desktop?"
values = ["chrome", "edge", "firefox", "opera", "safari", "other"]
epsilon = 1.0
lifetime_epsilon = 8.0
sample_rate = 0.05
tags = ["platform"]

[metrics.dark_mode]
type = "boolean"
description = "Is dark mode on when the day ends?"
epsilon = 1.0
lifetime_epsilon = 8.0
sample_rate = 0.05
tags = ["settings"]

[metrics.language]
type = "category"
description = "In which language is the app read?"
values = [
    "english", "russian", "turkish", "spanish", "persian", "french", "german", "japanese",
    "vietnamese", "chinese", "arabic", "italian", "dutch", "polish", "indonesian", "portuguese",
    "ukrainian", "thai", "korean", "hebrew", "other",
]
epsilon = 2.0
lifetime_epsilon = 16.0
sample_rate = 0.05
tags = ["settings"]

[metrics.search_engine]
type = "string"
description = "Which site is searched first?"
owner = "web@acme.example"
epsilon = 2.0
lifetime_epsilon = 16.0
sample_rate = 0.05
tags = ["platform"]

[metrics.crash_on_start]
type = "boolean"
description = "Did the app crash while starting?"
owner = "quality@acme.example"
epsilon = 0.5
lifetime_epsilon = 4.0
sample_rate = 0.05
devices = 3000
tags = ["quality"]

[metrics.page_load]
type = "number"
description = "How long does the first page take?"
owner = "web@acme.example"
low = 0.01
high = 100
unit = "s"
scale = "log"
ask = "distribution"
epsilon = 1.0
lifetime_epsilon = 8.0
sample_rate = 0.05
segments = ["platform"]
tags = ["platform"]

[metrics.tabs]
type = "number"
description = "How many tabs are open?"
low = 0
high = 100
integer = true
ask = "mean"
epsilon = 1.0
lifetime_epsilon = 8.0
sample_rate = 0.05
tags = ["platform"]

[metrics.plan]
type = "category"
description = "Which plan is paid for?"
values = ["free", "pro", "team"]
epsilon = 1.0
lifetime_epsilon = 8.0
sample_rate = 0.05
tags = ["plans"]

[metrics.minutes]
type = "number"
description = "How long was the app open in the day?"
low = 0
high = 1440
unit = "min"
aggregate = "sum"
ask = "mean"
epsilon = 1.0
lifetime_epsilon = 8.0
sample_rate = 0.05
tags = ["plans"]

[metrics.plan_and_minutes]
type = "pair"
of = ["plan", "minutes"]
bins = { minutes = [5, 15, 60] }
forget = "marginals"
description = "Is the app used longer on some plans?"
epsilon = 1.0
lifetime_epsilon = 8.0
sample_rate = 0.05
tags = ["plans"]

[metrics.plugin]
type = "discovery"
description = "Which plugin was used last?"
max_length = 12
alphabet = "identifier"
deny = ["^acme_"]
epsilon = 4.0
lifetime_epsilon = 16.0
sample_rate = 0.05
tags = ["settings"]

[metrics.old_importer]
type = "boolean"
description = "Was the old importer used?"
owner = "quality@acme.example"
expires = 2026-01-31
epsilon = 1.0
lifetime_epsilon = 8.0
tags = ["quality"]
"""
BOARD = """
schema = 1
title = "Every Monday"
description = "What the team looks at together."

[[items]]
title = "Are we faster?"
text = "Release 4.2 loads the first page in the background."

[[items]]
metric = "page_load"
view = "trend"
values = ["p50", "p95"]
size = "full"

[[items]]
metric = "browser"

[[items]]
metric = "language"
view = "table"
values = ["english", "chinese", "german"]

[[items]]
metric = "dark_mode"
view = "headline"
size = "small"

[[items]]
metric = "tabs"
title = "Open tabs, last week"
days = 7
size = "small"

[[items]]
metric = "crash_on_start"
view = "headline"
size = "small"

[[items]]
metric = "dark_mode"
view = "trend"
by = "week"
days = 56

[[items]]
metric = "search_engine"
values = ["google.com", "bing.com", "duckduckgo.com"]
"""
DAYS = 75
FLOODED = 65
"""So many days ago fakes said that dark mode is on: what an alarm looks like, far from today."""
CROWD = 400_000
CROWDS = {"language": 40_000}
"""So few that rare languages cannot be told from noise."""
PLATFORMS = {"android": 0.45, "ios": 0.2, "web": 0.35}
SLOWER = 1.6
"""Pages take so many times longer on Android."""
PLANS = np.array([[0.30, 0.23, 0.12, 0.05], [0.03, 0.05, 0.08, 0.05], [0.01, 0.01, 0.02, 0.05]])
"""The share of each plan (free, pro, team) with each range of minutes."""
SITES = ("google.com", "bing.com", "duckduckgo.com", "yahoo.com", "ecosia.org", "yandex.com")

PLUGINS = (
    *("spell_check", "minimap", "git_blame", "word_count", "vim_keys", "markdown", "autosave"),
    *("todo_list", "color_picker", "table_tools", "snippets", "terminal", "csv_viewer", "zen_mode"),
    *("emoji_panel", "bookmarks", "sql_format", "json_tree", "diff_view", "code_lens", "pomodoro"),
    *("translate", "latex_math", "mermaid", "icon_pack", "focus_timer", "rest_client", "hex_view"),
)
"""What nobody listed: the n-th is used by a share that falls as n ** -.8."""
WITHOUT = 0.3
"""So many devices have used no plugin."""


def build(folder: Path) -> dict[str, str]:
    """Write registry, candidates and store into a folder; the settings that point there."""
    (folder / "metrics.toml").write_text(REGISTRY, encoding="utf-8")
    (folder / "candidates").mkdir()
    sites = [*SITES, "ask.com", "lycos.com", "startpage.com", "qwant.com"]
    (folder / "candidates" / "search_engine.txt").write_text("\n".join(sites), encoding="utf-8")
    registry = Registry.load(folder / "metrics.toml")
    url = f"sqlite:///{folder}/tallies.db"
    store = open_store(Settings(store=url))
    store.publish((metric.name, metric.scheme) for metric in registry)
    rng = np.random.default_rng(7)
    today = datetime.now(UTC).date()
    for ago in range(DAYS, 0, -1):
        _report(store, registry, today - timedelta(days=ago), 1 - ago / DAYS, rng)
    _release(folder / "releases.sqlite", store, registry, today)
    store.close()
    (folder / "annotations.toml").write_text(_annotations(today), encoding="utf-8")
    (folder / "boards").mkdir()
    (folder / "boards" / "monday.toml").write_text(BOARD, encoding="utf-8")
    return {
        "DENIABLE_BOARDS": str(folder / "boards"),
        "DENIABLE_DATA": str(folder),
        "DENIABLE_REGISTRY": str(folder / "metrics.toml"),
        "DENIABLE_STORE": url,
        "DENIABLE_CANDIDATES_DIR": str(folder / "candidates"),
        "DENIABLE_RELEASES": str(folder / "releases.sqlite"),
        "DENIABLE_RELEASE_BUDGET": "5",
    }


def _release(path: Path, store: Store, registry: Registry, today: date) -> None:
    """Some releases of the last weeks, with and without noise."""
    half, tenth = Fraction(1, 2), Fraction(1, 10)
    asked: tuple[tuple[int, str, int, int, dict[str, Any]], ...] = (
        # days ago, metric, first and last day as days ago, and how it is released
        (33, "browser", 70, 50, {}),
        (20, "dark_mode", 55, 35, {"form": "trend", "method": "gaussian", "epsilon": half}),
        (12, "page_load", 34, 25, {}),
        (5, "language", 40, 20, {"form": "leader", "epsilon": tenth}),
        (1, "browser", 49, 20, {"epsilon": half}),
    )
    ledger = ReleaseLedger(path, 1e-6, None)
    for ago, metric, first, last, how in asked:
        days = (today - timedelta(days=first), today - timedelta(days=last))
        then = datetime.combine(today - timedelta(days=ago), time(12), UTC).timestamp()
        where = {"platform": "web"} if metric == "page_load" else {}
        request = ReleaseRequest(Query(metric, Days(*days), where=where), **how)
        release(prepare(Reader(store), registry, request, then), ledger, now=then)


def _annotations(today: date) -> str:
    """What happened in these weeks."""
    entries = (
        (FLOODED, "Fakes were sent to dark mode", "https://status.acme.example/fakes", "dark_mode"),
        (24, "Release 4.2", "https://acme.example/releases/4.2", None),
        (11, "Mail to all readers", None, None),
        (10, "Mirror in Singapore", None, "page_load"),
        (0, "Release 4.3", "https://acme.example/releases/4.3", None),
    )
    lines = ["schema = 1"]
    for ago, text, link, metric in entries:
        lines += ["", "[[annotations]]", f"date = {today - timedelta(days=ago)}"]
        lines += [f'text = "{text}"']
        lines += [f'link = "{link}"'] if link else []
        lines += [f'metrics = ["{metric}"]'] if metric else []
    return "\n".join(lines) + "\n"


def _report(
    store: Store, registry: Registry, day: date, progress: float, rng: np.random.Generator
) -> None:
    """One day's reports; `progress` runs from 0 to 1 while tastes drift."""
    step = min(1.0, max(0.0, (progress - 0.6) / 0.3))
    wave = 0.01 * np.sin(progress * 20)
    english = 0.60 + 0.03 * progress
    rest = np.arange(2, 22) ** -1.1
    plugins = np.arange(1, len(PLUGINS) + 1) ** -0.8
    # A plugin of a new release becomes popular.
    plugins[-1] += 0.5 * step
    shares: dict[str, Sequence[float]] = {
        "browser": (0.62 + 0.05 * progress, 0.12, 0.09 - 0.04 * progress, 0.03, 0.09 + wave, 0.04),
        "dark_mode": (0.22 + 0.05 * step + wave, 0.78 - 0.05 * step - wave),
        "language": (english, *(rest / rest.sum() * (1 - english))),
        "crash_on_start": (0.03, 0.97),
        "plan_and_minutes": PLANS.ravel(),
        "plugin": (*((1 - WITHOUT) * plugins / plugins.sum()), WITHOUT),
        "search_engine": (0.58, 0.14, 0.08 + 0.06 * progress, 0.06, 0.04, 0.03),
    }
    now = datetime.now(UTC).timestamp()
    for name, weights in shares.items():
        metric = registry[name]
        if name == "search_engine" and progress < 0.8:
            continue
        tally = _tally(metric, np.array(weights), day, rng)
        if name == "dark_mode" and progress == 1 - FLOODED / DAYS:
            (row,) = tally.rows
            tally = replace(tally, rows=(row + TallyRow(6000, np.array([6000, 0])),))
        fold_tally(store, tally, now)
    own = np.random.default_rng([7, day.toordinal()])
    answering = round(CROWD * 0.05)
    # Some pages come from a cache; a release makes the others faster.
    load = np.exp(own.normal(np.log(1.4 - 0.3 * step), 0.7, answering))
    load *= np.where(own.random(answering) < 0.3, 0.1, 1)
    groups = np.split(
        load, np.round(np.cumsum(list(PLATFORMS.values())[:-1]) * answering).astype(int)
    )
    groups[0] *= SLOWER
    tabs = own.negative_binomial(1.2, 0.12, answering).astype(float)
    fold_tally(store, _tally_of_numbers(registry["page_load"], groups, day, own), now)
    fold_tally(store, _tally_of_numbers(registry["tabs"], [tabs], day, own), now)


def _tally_of_numbers(
    metric: Metric, groups: Sequence[np.ndarray[tuple[int], np.dtype[np.float64]]], day: date,
    rng: np.random.Generator,
) -> Tally:  # fmt: skip
    """The tally of the numbers of each segment, in their order."""
    assert isinstance(metric.type, Number)
    rows: list[TallyRow] = []
    for values in groups:
        positions = [metric.type.range.position(value) for value in values.tolist()]
        items, counts = np.unique(positions, return_counts=True)
        rows += analysis_of(metric.scheme.mechanism).sample_rows(items, counts, rng)
    return Tally(metric.name, metric.scheme.fingerprint, (day.isoformat(),), tuple(rows))


def _tally(
    metric: Metric, weights: np.ndarray[tuple[int], np.dtype[np.float64]], day: date,
    rng: np.random.Generator,
) -> Tally:  # fmt: skip
    crowd = metric.devices or CROWDS.get(metric.name, CROWD)
    answering = rng.binomial(crowd, metric.sample_rate * (0.9 + 0.2 * rng.random()))
    counts = rng.multinomial(answering, weights / weights.sum())
    values = SITES if metric.needs_candidates else None
    if metric.name == "plugin":
        values = (*PLUGINS, "")
    return sample_tally(
        metric.scheme, counts, rng, values=values, metric=metric.name, window=day.isoformat()
    )
