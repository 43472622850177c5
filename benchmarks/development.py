"""`deniable dev`: how long from `record` until the report is on the live page, and the crowd.

The baseline, in the same run, is a request to the same server that only waits for nothing: what
HTTP on loopback costs here. Run: .venv/bin/python benchmarks/development.py [--rounds N]
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import deniable
from deniable_estimator.development.registry_file import RegistryFile
from deniable_estimator.development.server import DevelopmentApp, serving

METRICS = """
schema = 1
app = "bench"
[defaults]
owner = "bench@acme.example"
expires = 2999-12-31
[metrics.browser]
type = "category"
description = "The browser."
epsilon = 2.0
lifetime_epsilon = 8.0
values = ["firefox", "chrome", "safari", "edge", "other"]
[metrics.dark_mode]
type = "boolean"
description = "Dark mode."
epsilon = 2.0
lifetime_epsilon = 8.0
[metrics.plugin]
type = "string"
description = "A plugin."
epsilon = 2.0
lifetime_epsilon = 8.0
[metrics.startup]
type = "number"
description = "How long the start takes."
epsilon = 2.0
lifetime_epsilon = 8.0
low = 0.01
high = 60
scale = "log"
ask = "distribution"
[metrics.language]
type = "category"
description = "The language."
epsilon = 2.0
lifetime_epsilon = 8.0
values = ["en", "de", "fr", "zh", "other"]
longitudinal = "memoize"
"""


def get(address: str) -> tuple[int, bytes]:
    """A page's version, and the page."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    request = urllib.request.Request(address, headers={"Accept": "text/html"})
    with opener.open(request, timeout=60) as response:
        return int(response.headers.get("X-Version") or 0), response.read()


def latencies(address: str, path: Path, rounds: int) -> list[float]:
    """Seconds from `record` until a page that waits has the report."""
    client = deniable.Client(path, development=address)
    found = []
    for _ in range(rounds):
        version, _ = get(f"{address}/live/part?after=x")
        answered: list[tuple[float, bytes]] = []

        def wait(version: int = version, answered: list[tuple[float, bytes]] = answered) -> None:
            page = get(f"{address}/live/part?after={version}")[1]
            answered.append((time.perf_counter(), page))

        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.3)
        began = time.perf_counter()
        client.record("browser", "firefox")
        thread.join()
        at, page = answered[0]
        assert b'data-metric="browser"' in page
        found.append(at - began)
    client.close()
    return found


def crowd(file: RegistryFile, devices: int) -> float:
    """Seconds in which so many simulated devices have reported all metrics."""
    with tempfile.TemporaryDirectory() as folder:
        app = DevelopmentApp(file, Path(folder))
        app.add_devices(devices)
        began = time.perf_counter()
        app.crowd.add(app.store, file.registry, lambda _: None)
        seconds = time.perf_counter() - began
        app.close()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "metrics.toml"
        path.write_text(METRICS)
        file = RegistryFile(path)
        file.look()
        app = DevelopmentApp(file, Path(folder))
        with serving(app, 0) as address:
            base = []
            for _ in range(rounds):
                began = time.perf_counter()
                with urllib.request.urlopen(f"{address}/v1/registry") as response:
                    json.load(response)
                base.append(time.perf_counter() - began)
            found = latencies(address, path, rounds)
        app.close()
        print("| from `record` to the live page | median | longest |")
        print("| --- | ---: | ---: |")
        for name, each in (("GET /v1/registry (baseline)", base), ("a report on the page", found)):
            middle, longest = 1000 * statistics.median(each), 1000 * max(each)
            print(f"| {name} | {middle:.0f} ms | {longest:.0f} ms |")
        print("\n| simulated devices, 5 metrics, 8 windows | seconds |")
        print("| ---: | ---: |")
        for devices in (1_000, 10_000, 20_000, 1_000_000):
            print(f"| {devices:,} | {crowd(file, devices):.1f} |")


if __name__ == "__main__":
    main()
