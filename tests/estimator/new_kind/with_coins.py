"""deniable with one kind of answer more: a type in the client, the folder `coin`, and its lines
in the lists of kinds and plans. It runs in a process of its own, before anything reads them."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

from deniable.protocol import types
from deniable.protocol.types.texts import Boolean
from deniable_estimator import kinds


class CoinType(Boolean):
    """Heads or tails."""

    name = "coin"


home = ModuleType("deniable.protocol.types.coin")
home.Coin = CoinType  # type: ignore[attr-defined]
sys.modules[home.__name__] = home
types.TYPES._classes["coin"] = ("coin", "Coin")  # type: ignore[attr-defined]
kinds.__path__.append(str(Path(__file__).parent))

from deniable_estimator.kinds.coin.answer import CoinKind  # type: ignore[import-not-found]  # noqa: E402

from deniable_estimator.kinds import coin  # type: ignore[attr-defined]  # noqa: E402
from deniable_estimator.kinds.registry import KINDS  # noqa: E402

KINDS.insert(0, CoinKind())
kinds.PLANS["coin"] = coin.PLAN  # type: ignore[index]


def main() -> None:
    """Ask a dashboard and the commands, as standard input says, and print what they say."""
    import json
    import os
    import re
    import shlex

    from click.testing import CliRunner
    from tests.estimator.dashboard.conftest import browser_of, dashboard_of, fill, program_of
    from tests.registries import declared

    from deniable import Registry
    from deniable.tools.command_line import find
    from deniable_collector.settings import Settings
    from deniable_collector.stores import open_store

    asked = json.load(sys.stdin)
    Path("boards").mkdir()
    item = 'schema = 1\ntitle = "Coins"\n[[items]]\nmetric = "flip"\n'
    Path("boards", "coins.toml").write_text(item, encoding="utf-8")
    text = declared({"platform": ["web", "app"]}, flip={"type": "coin", "segments": ["platform"]})
    Path("metrics.toml").write_text(text, encoding="utf-8")
    registry = Registry.parse(text)
    store = open_store(Settings(store=os.environ["DENIABLE_STORE"]))
    store.publish((metric.name, metric.scheme) for metric in registry)
    for day, heads in (("13", 0.6), ("14", 0.6), ("19", 0.7), ("20", 0.7)):
        for segment in (0, 1):
            fill(store, registry, "flip", [heads, 1 - heads], 20_000, f"2026-11-{day}", segment)
    app = dashboard_of(store, registry, boards="boards")
    browser, stranger = browser_of(app), browser_of(app, "")
    form = {"view": "/metric/flip", "days": "30", "unfinished": "1"}
    link = re.search(r'value="http://localhost([^"]+)"', browser.post("/share", data=form).text)
    assert link is not None
    told = {"link": stranger.get(link[1]).text}
    told |= {path: browser.get(path).text for path in asked["pages"]}
    told |= {path: program_of(app).get(path).text for path in asked["api"]}
    for line in asked["commands"]:
        done = CliRunner().invoke(find(), shlex.split(line))
        told[line] = done.stdout + done.stderr
    store.close()
    print(json.dumps(told))


if __name__ == "__main__":
    main()
