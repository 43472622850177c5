"""What is asked for each golden file: the command lines, and the dashboard's addresses."""

from __future__ import annotations

__all__ = ["COMMANDS", "PAGES", "STRINGS"]

_TEN_DAYS = ["--from", "2026-11-11", "--to", "2026-11-20"]
_FIVE_DAYS = ["--from", "2026-11-16", "--to", "2026-11-20"]
_DAYS = "from=2026-11-16&to=2026-11-20"
_BEFORE = "before_from=2026-11-11&before_to=2026-11-15"

_METRICS = (
    "dark_mode",
    "notifications",
    "silent",
    "legacy",
    "browser",
    "country",
    "search_engine",
    "theme",
    "update_channel",
    "plan_tier",
    "interface_language",
    "keyboard",
    "crash_site",
    "font",
    "plugin",
    "command",
    "shortcut",
    "homepage",
    "extension",
)
STRINGS = ("crash_site", "font", "plugin", "command", "shortcut", "homepage", "extension")
_SMALL = tuple(each for each in _METRICS if each not in (*STRINGS, "country"))
_MEMOIZED = ("interface_language", "keyboard", "homepage", "extension")
_EACH_TYPE = ("notifications", "browser", "update_channel", "interface_language", "crash_site")


def _listed(name: str) -> list[str]:
    """The option that names the strings to look for, for a metric of strings."""
    return ["--candidates", f"candidates/{name}.txt"] if name in STRINGS else []


def _commands() -> dict[str, list[str]]:
    """The name of each golden file, and the command line whose output it has."""
    asked = {}
    for name in _METRICS:
        lists = _listed(name)
        days = lists if name in (*STRINGS, "plan_tier") else _TEN_DAYS
        asked[f"anomalies {name}.txt"] = ["anomalies", name, *days]
        asked[f"anomalies {name}.json"] = ["anomalies", name, *days, "--json"]
        asked[f"estimate {name}.txt"] = ["estimate", name, *lists]
        asked[f"estimate {name}.json"] = ["estimate", name, *lists, "--json"]
        asked[f"estimate {name}.csv"] = ["estimate", name, *lists, "--csv"]
        asked[f"privacy {name}.txt"] = ["privacy", name]
        asked[f"privacy {name}.json"] = ["privacy", name, "--household", "3", "--json"]
        asked[f"trend {name}.txt"] = ["trend", name, *days]
        if name in (*_SMALL, "homepage"):
            asked[f"trend {name}.json"] = ["trend", name, *days, "--json"]
            asked[f"trend {name}.csv"] = ["trend", name, *days, "--csv"]
    estimate = ["estimate", "browser", *_FIVE_DAYS]
    asked |= {
        "estimate, level.json": [*estimate, "--level", "0.8", "--adjust", "bonferroni", "--json"],
        "estimate, fakes.txt": [*estimate, "--fakes", "0.05", "--alarm-level", "0.01"],
        "estimate, without.txt": [*estimate, "--without", "2026-11-18"],
        "trend, weeks.txt": ["trend", "browser", "--by", "week", "--value", "safari"],
        "trend, weeks of strings.txt": [
            *("trend", "crash_site", "--by", "week", *_listed("crash_site")),
        ],
        "mistake, no candidates.txt": ["estimate", "crash_site"],
        "trend, months.json": ["trend", "dark_mode", "--by", "month", "--json"],
        "trend, without.txt": ["trend", "dark_mode", *_FIVE_DAYS, "--without", "2026-11-18"],
        "privacy.txt": ["privacy"],
        "privacy.json": ["privacy", "--json"],
        "mistake, metric.txt": ["estimate", "browsr"],
        "mistake, days.txt": ["trend", "browser", "--from", "2026-11-20", "--to", "2026-11-11"],
    }
    devices = ["--epsilon", "1", "--devices", "100000"]
    plans = {
        "boolean": ["--size", "2", *devices],
        "list": ["--size", "10", *devices, "--share", "0.05", "--sample-rate", "0.1"],
        "long list": ["--size", "3000", *devices, "--lifetime-epsilon", "8"],
        "memoized": ["--size", "5", *devices, "--memoize", "--lifetime-epsilon", "4"],
        "rappor": [
            *("--size", "5", *devices, "--memoize", "--lifetime-epsilon", "4"),
            *("--mechanism", "basic_rappor"),
        ],
        "unary encoding": ["--size", "20", *devices, "--mechanism", "optimized_unary_encoding"],
        "hadamard response": ["--size", "20", *devices, "--mechanism", "hadamard_response"],
        "pair": ["--pair", "3x4", *devices, "--effect", "0.2"],
        "segment": ["--size", "5", *devices, "--segment-share", "0.05"],
        "unknown mechanism": ["--size", "20", *devices, "--mechanism", "magic"],
        "lifetime": [
            *("--size", "2", "--lifetime", "8", "--years", "2", "--turnover", "0.3", *devices),
        ],
    }
    for name, arguments in plans.items():
        asked[f"plan, {name}.txt"] = ["plan", *arguments]
        asked[f"plan, {name}.json"] = ["plan", *arguments, "--json"]
    for name in ("dark_mode", "browser", "keyboard", "crash_site", "font", "homepage"):
        asked[f"simulate {name}.txt"] = [
            *("simulate", name, "--devices", "50000", "--seed", "7", *_listed(name)),
        ]
    asked["simulate browser.json"] = [*asked["simulate browser.txt"], "--json"]
    return asked


def _pages() -> dict[str, str]:
    """The name of each golden file, and the address that the dashboard gives it at."""
    asked = {
        "overview.html": "/",
        "overview in Chinese.html": "/?lang=zh-Hans",
        "overview of a tag.html": "/?tag=web",
        "plan.html": "/plan",
        "plan in Chinese.html": "/plan?lang=zh-Hans&size=40&memoize=on",
        "plan of a long list.html": "/plan?size=90&epsilon=2&devices=1000000&sample_rate=1",
        "plan with a mistake.html": "/plan?size=1",
        "plan of a pair.html": "/plan/pair?devices=50000",
        "plan of a segment in Chinese.html": "/plan?lang=zh-Hans&segment_share=0.05",
        "plan of a lifetime.html": "/plan/lifetime?turnover=30&devices=50000",
        "plan of a lifetime in Chinese.html": (
            "/plan/lifetime?lang=zh-Hans&question=mean&window=week"
        ),
        "API metrics.json": "/api/v1/metrics",
        "API metrics.csv": "/api/v1/metrics?format=csv",
        "API privacy.json": "/api/v1/privacy",
        "API plan of a lifetime.json": (
            "/api/v1/plan/lifetime?size=20&lifetime_epsilon=8&years=2&devices=100000"
        ),
        "API plan.json": "/api/v1/plan?size=20&epsilon=1&devices=100000&lifetime_epsilon=8",
        "API mistake.json": "/api/v1/metrics/browser/estimate?value=netscape",
        "API unknown metric.json": "/api/v1/metrics/browsr/estimate",
        "API largest.json": f"/api/v1/metrics/country/estimate?limit=7&{_DAYS}",
        "API named strings.json": (
            "/api/v1/metrics/font/estimate?value=font/module_0.ts:1&value=comic%20sans"
        ),
        "page of a value.html": f"/metric/browser?{_DAYS}&value=safari&by=day&order=declared",
        "page normalized.html": f"/metric/theme?{_DAYS}&shares=normalized&without=2026-11-18",
        "page with a trend of strings.html": f"/metric/crash_site?{_DAYS}&by=day",
        "page with a mistake.html": "/metric/browser?from=2026-11-20&to=2026-11-11",
        "compare defaults.html": "/metric/dark_mode/compare",
    }
    for name in _METRICS:
        page, source = f"/metric/{name}", f"/api/v1/metrics/{name}"
        asked[f"page {name}.html"] = page
        asked[f"file {name}.csv"] = f"{page}.csv"
        asked[f"API metric {name}.json"] = source
        asked[f"API anomalies {name}.json"] = f"{source}/anomalies?{_DAYS}"
        asked[f"API estimate {name}.json"] = f"{source}/estimate?{_DAYS}"
        if name not in ("silent", *_MEMOIZED):
            asked[f"compare {name}.html"] = f"{page}/compare?{_DAYS}&{_BEFORE}"
    for name in _EACH_TYPE:
        page, source = f"/metric/{name}", f"/api/v1/metrics/{name}"
        strings = name in STRINGS
        asked[f"page {name} in Chinese.html"] = f"{page}?lang=zh-Hans"
        asked[f"picture {name}.svg"] = f"{page}.svg"
        asked[f"picture of the trend of {name}.svg"] = f"{page}/trend.svg"
        asked[f"file {name}.json"] = f"{page}.json"
        asked[f"file of the trend of {name}.csv"] = f"{page}/trend.csv?{_DAYS}"
        asked[f"API estimate {name}.csv"] = f"{source}/estimate?{_DAYS}&format=csv"
        asked[f"API privacy {name}.json"] = f"{source}/privacy"
        asked[f"compare {name}.csv"] = f"{page}/compare.csv?{_DAYS}&{_BEFORE}"
        if not strings:
            asked[f"file of the trend of {name}.json"] = f"{page}/trend.json?{_DAYS}"
            asked[f"API trend {name}.json"] = f"{source}/trend?{_DAYS}"
        asked[f"API trend {name}.csv"] = f"{source}/trend?{_DAYS}&format=csv"
        asked[f"API comparison {name}.json"] = f"{source}/comparison?{_DAYS}&{_BEFORE}"
        asked[f"compare {name} in Chinese.html"] = f"{page}/compare?{_DAYS}&{_BEFORE}&lang=zh-Hans"
    return asked


COMMANDS = _commands()
PAGES = _pages()
