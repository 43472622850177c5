"""What is asked of the crowd: the commands and addresses that the files of facts name.

A line of a file that begins with `== ` is a question, and below it are the facts of its answer:
write a new one there, and take the facts. It is a command as it is typed, also after settings, or a
request: `GET /address`, `POST /address < file`, or `POST /address name=value`; `collector /address`
asks the collector. A command runs in a folder of the crowd's, with its store; what it writes there
is read by the commands below it, and by `cat`. `visit` requests what the pages below it would wait
for, and keeps no facts. Files whose names begin with `odd` ask a small crowd to which everything
happens that seldom does (`odd.py`).
"""

import tomllib
from importlib.metadata import entry_points
from pathlib import Path

from .crowd import FILES
from .odd import FILES as ODD

FACTS = Path(__file__).parent / "facts"
QUESTIONS = {
    file.stem.replace("-", " "): [
        line.removeprefix("== ")
        for line in file.read_text(encoding="utf-8").splitlines()
        if line.startswith("== ")
    ]
    for file in sorted(FACTS.iterdir())
}
COMMANDS = sorted(each.name.replace(".", " ") for each in entry_points(group="deniable.commands"))
"""All commands."""

_READERS = {
    "estimate": "browser",
    "estimate trend": "browser",
    "estimate segments": "browser --by platform",
    "estimate anomalies": "browser",
    "estimate discover": "plugin",
    "release": "browser",
}
"""Commands that read a store, and what each is asked of here."""

_OF_A_METRIC = _READERS | {"plan privacy": "browser", "plan simulate": "browser --devices 9"}
"""Commands about one metric of the registry."""

_MISTAKES = ("--registry missing.toml", "--registry broken.toml", "--colour")
_MISTAKES_OF_READERS = (
    "--from 2026-11-20 --to 2026-11-11",
    "--from yesterday",
    "--store sqlite:///missing.db",
    "--store nowhere",
)

_FIVE = "from=2026-11-16&to=2026-11-20"

_OF_EACH_METRIC = (
    "GET /api/v1/metrics/{}/estimate?level=0.8&adjust=bonferroni",
    f"GET /api/v1/metrics/{{}}/comparison?level=0.8&{_FIVE}"
    "&before_from=2026-11-09&before_to=2026-11-13",
    f"GET /api/v1/metrics/{{}}/trend?level=0.8&{_FIVE}",
    "GET /api/v1/metrics/{}/estimate?below=2",
    "GET /api/v1/metrics/{}/trend?value=mean",
    "GET /api/v1/metrics/{}/segments?by=platform",
    "GET /api/v1/metrics/{}/segments/trend?by=platform",
    "GET /api/v1/metrics/{}/finds",
    "GET /api/v1/metrics/{}/finds/trend?find=git",
    "GET /metric/{}/segments",
    "GET /metric/{}/strings",
    "GET /metric/{}/compare?value=firefox&without=2026-11-10",
    "GET /metric/{}?given=dark_mode&limit=3&value=edge",
    "GET /metric/{}/find?find=git",
)
"""Also what few kinds of metrics have: others must say so."""

_OF_EACH_ODDITY = (
    "deniable estimate {}",
    "deniable estimate trend {} --by week",
    "deniable estimate anomalies {}",
    "GET /metric/{}",
    "GET /metric/{}.svg",
    "GET /metric/{}.csv",
    "GET /api/v1/metrics/{}/estimate?level=0.7&adjust=bonferroni&limit=2",
    "GET /api/v1/metrics/{}/trend?level=0.99&by=week",
    "GET /api/v1/metrics/{}/comparison?since=2026-11-10&level=0.7",
    "GET /api/v1/metrics/{}/anomalies",
    "GET /api/v1/metrics/{}/segments?by=platform&level=0.7",
    "GET /api/v1/metrics/{}/finds?level=0.7",
    "GET /api/v1/metrics/{}/privacy?household=3",
    "GET /metric/{}/compare",
    "GET /metric/{}/trend.svg?by=day&from=2026-11-14",
    "GET /metric/{}?since=2026-11-10&lang=zh-Hans",
)

_DRAWN = {
    "category": "",
    "string": "--candidates lists/homepage.txt",
    "number": "",
    "discovery": "--candidates lists/plugins.txt",
    "retention": "",
}
"""How the values of each kind are spread in a simulated crowd."""


def needed():
    """What must be asked: of each command what it takes, and the common mistakes; of each metric
    and each mechanism whatever there is."""
    for command in COMMANDS:
        yield f"deniable {command} --help"
    for command, asked in _OF_A_METRIC.items():
        misspelt = asked.replace("browser", "browsr").replace("plugin", "plugn")
        yield f"deniable {command} {misspelt}"
        more = _MISTAKES_OF_READERS if command in _READERS else ()
        for mistake in (*_MISTAKES, *more):
            yield f"deniable {command} {asked} {mistake}"
    for folder, asked_of_each in ((FILES, _OF_EACH_METRIC), (ODD, _OF_EACH_ODDITY)):
        for name in _declared(folder / "metrics.toml"):
            yield from (asked.format(name) for asked in asked_of_each)
    for name, metric in _declared(FILES / "mechanisms.toml").items():
        yield from _of_mechanism(name, metric)


def _declared(file):
    return tomllib.loads(file.read_text(encoding="utf-8"))["metrics"]


def _of_mechanism(name, metric):
    """What reports and published sums reveal, simulated crowds, and what is said of drawn days: of
    common ones, and of one with three devices, one with very many and two that are forged."""
    kind, of = metric["type"], f"{name} --registry mechanisms.toml"
    yield f"deniable plan privacy {name} --outsider --registry mechanisms.toml --json"
    for devices in (20, 4_000):
        crowd = f"--devices {devices} --seed 7 --json {_DRAWN[kind]}"
        yield f"deniable plan simulate {of} {crowd}".strip()
    strings = " --candidates lists/homepage.txt" if kind == "string" else ""
    of = f"--registry mechanisms.toml {name}{strings}"
    asked = [f"estimate {of}", f"estimate trend {of}"]
    asked += [f"estimate anomalies --registry mechanisms.toml {name}"]
    if kind == "discovery":
        asked = [f"estimate discover {of}"]
    elif kind != "retention":
        asked += [f"release {of}"]
        asked += [f"release {of} --epsilon 2 --noise {each} --plan" for each in _NOISES]
    if "window" not in metric and kind not in ("discovery", "retention"):
        asked += [f"estimate {of} --since 2026-11-10"]
    if "segments" in metric:
        asked = [f"estimate segments {of} --by platform"]
    for each in asked:
        form = " --json" if each.startswith("estimate") else ""
        yield f"DENIABLE_STORE=sqlite:///mechanisms.db deniable {each}{form}"
    if "window" not in metric and kind != "retention":
        command = "estimate discover" if kind == "discovery" else "estimate"
        for number in range(8, 12):
            day = f"2026-11-{number:02}"
            for form in ("", " --json"):
                asked = f"{command} {of} --from {day} --to {day}{form}"
                yield f"DENIABLE_STORE=sqlite:///rare.db deniable {asked}"


_NOISES = ("laplace", "gaussian")
