"""What is asked of the crowd: for each file of facts, the commands and addresses that it is about.

A line is a command as it is typed, also after settings, or a request: `GET /address`,
`POST /address < file`, or `POST /address name=value`; `collector /address` asks the collector. A
command runs in a folder of the crowd's, with its store; what it writes there is read by the
commands below it, and by `cat`. `visit` requests what the pages below it would wait for, and keeps
no facts. A line that ends with a backslash goes on in the next one.
"""

import random
import tomllib
from importlib.metadata import entry_points

from .crowd import FILES
from .odd import FILES as ODD

_RELEASE = "Release 4.2: <dark> by default"
_RELEASED = "Release%204.2:%20%3Cdark%3E%20by%20default"

_FIVE = "from=2026-11-16&to=2026-11-20"
_BEFORE = "before_from=2026-11-09&before_to=2026-11-13"
_WEEKS = "from=2026-08-10&to=2026-11-15"

_DAYS = ",".join(f"2026-{1 + day // 28:02}-{1 + day % 28:02}" for day in range(101))
"""More windows than can be left out."""

_READERS = (
    "estimate",
    "estimate trend",
    "estimate segments",
    "estimate anomalies",
    "estimate discover",
    "release",
)
"""Commands that read a store."""

_OF_A_METRIC = (*_READERS, "plan privacy", "plan simulate")
"""Commands about one metric of the registry."""

MECHANISMS = FILES / "mechanisms.toml"
"""A registry with a metric of each mechanism."""

_NAMES = tomllib.loads((FILES / "metrics.toml").read_text("utf-8"))["metrics"]
_DECLARED = tomllib.loads(MECHANISMS.read_text(encoding="utf-8"))["metrics"]

_DRAWN = {
    "category": "",
    "string": "--candidates lists/homepage.txt",
    "number": "--normal 3,2",
    "discovery": "--candidates lists/plugins.txt",
    "retention": "",
}
"""How the values of each kind are spread in a simulated crowd."""

COMMANDS = sorted(each.name.replace(".", " ") for each in entry_points(group="deniable.commands"))
"""All commands."""


_WRONG_PLANS = """
    plan --size 1
    plan --size 10 --epsilon 0
    plan --size 10 --epsilon inf
    plan --size 10 --epsilon nan
    plan --size 10 --epsilon 1000
    plan --size 10 --devices 0
    plan --size 10 --share 1.5
    plan --size 10 --sample-rate 0
    plan --size 10 --mechanism magic
    plan --size 8 --memoize
    plan --size 8 --memoize --epsilon 1 --lifetime-epsilon 1 --devices 9
    plan pair 1x5
    plan pair 31x30
    plan pair 2x9 --effect 1
    plan --size 5 --low 1
    plan --size 5 --half-width 2
    plan number
    plan number --low 0 --high 9
    plan number --low 0 --high 9 --ask mean --memoize
    plan number --low 0 --high 9 --ask mean --scale log
    plan number --low 9 --high 0 --ask mean
    plan number --low inf --high 9 --ask mean
    plan number --low 0 --high 9 --ask distribution --half-width 0.001
    plan discovery --max-length 7
    plan discovery --epsilon 11
    plan lifetime --years 2 --size 2
    plan lifetime --years 2 --lifetime-epsilon 8
    plan lifetime --years 2 --lifetime-epsilon 8 --low 1 --high 2
    plan lifetime --years 2 --lifetime-epsilon 8 --size 2 --low 1
    plan lifetime --years 2 --lifetime-epsilon 8 --size 2 --turnover 1
    plan lifetime --years 21 --lifetime-epsilon 8 --size 2
"""

_WRONG_CROWDS = """
    load_time
    load_time --normal 1,1 --lognormal 1,1
    load_time --normal 1
    load_time --normal 1,0
    load_time --normal nan,1
    load_time --lognormal 0,1
    load_time --normal 1,1 --zipf 1
    load_time --normal 1,1 --shares missing.csv
    load_time --normal 1,1 --candidates lists/two.txt
    load_time --numbers missing.csv
    dark_mode --normal 1,1
    plugin
    plugin --shares missing.csv --zipf 1
    plugin --normal 1,1
"""

_WRONG_LIMITS = """
    load_time --below 1000
    load_time --below nan
    load_time --below 1 --csv
    load_time --candidates missing.txt
    tabs --below 1
"""


def _mistakes():
    """The common mistakes, made with each command that can have them made."""
    metric = dict.fromkeys(_OF_A_METRIC, "browser")
    metric |= {
        "estimate discover": "plugin",
        "estimate segments": "browser --by platform",
        "plan simulate": "browser --devices 9",
    }
    lines = []
    for command in _OF_A_METRIC:
        lines += [
            f"{command} {metric[command].replace('browser', 'browsr').replace('plugin', 'plugn')}",
            f"{command} {metric[command]} --registry missing.toml",
            f"{command} {metric[command]} --registry broken.toml",
            f"{command} {metric[command]} --colour",
        ]
    for command in _READERS:
        lines += [
            f"{command} {metric[command]} --from 2026-11-20 --to 2026-11-11",
            f"{command} {metric[command]} --from yesterday",
            f"{command} {metric[command]} --store sqlite:///missing.db",
            f"{command} {metric[command]} --store nowhere",
        ]
    lines += [
        "nothing",
        "trend browser",
        "gateway-key show missing",
        "store inf",
        "dashboard peopel",
        "--colour",
        "estimate crash_site",
        "estimate crash_site --candidates missing.txt",
        "estimate segments browser --by plan",
        "estimate segments browser",
        "estimate load_time --given dark_mode",
        "estimate plugin",
        "estimate discover browser",
        "estimate discover plugin --promote load_time",
        "estimate discover plugin --promote plugin",
        "estimate discover plugin --by week --promote crash_site",
        "estimate trend browser --value netscape",
        "estimate trend plan_tier --by week",
        "estimate trend dark_mode --from 2025-10-16",
        "estimate trend dark_mode --from 1990-01-01 --by week",
        "estimate dark_mode --since 2026-11-20",
        "estimate segments theme --by platform --by platform",
        "estimate segments theme --by platform --against platform=tv",
        "plan simulate browser",
        "plan",
        "plan --size 1 --epsilon 1 --devices 10",
        "plan pair 3 --epsilon 1 --devices 10",
        "release browser --to 2026-11-08 --epsilon 0",
        "release verify missing.json",
        "lint missing.toml",
        "compile missing.toml -o metrics.json",
        "add browser --type boolean --yes",
        "add new --type nothing --yes",
        "annotate x --date 2026-13-01",
        "annotate x --metric browsr",
        "watch missing.toml --once",
        "watch broken.toml --check",
        "watch digest --store nowhere",
        "watch digest --weeks 0",
        "store info --store sqlite:///missing.db",
        "store info --store nowhere",
        "store drop --before yesterday --yes",
        "store drop --before 2026-11-20 --yes",
        "store export sums.jsonl --metric browsr",
        "store import missing.jsonl",
        "store import metrics.toml",
        "store export no.gz --since 2026-11-03 --before 2026-11-02",
        "dashboard people add Bob --role king --file people.toml",
        "dashboard token new --name x --scope read:nothing",
        "dashboard token new --name x",
        "dashboard token new --name 'a\"b' --scope plan",
        "dashboard token new --name x --scope plan --metric 'a\"b'",
        "dashboard token new --name x --scope plan --metric ''",
        "relay key show missing",
        "estimate rappor hash --params missing.csv --candidates rappor/candidates.txt",
        "estimate rappor decode --params rappor/map.csv --counts rappor/counts.csv "
        "--map rappor/map.csv",
        "collect --registry missing.toml",
        "collect --store nowhere --bind 127.0.0.1:0",
        "collect --store oracle://hush@host --bind 127.0.0.1:0",
        "collect --registry broken.toml --bind 127.0.0.1:0",
        "collect --workers 0 --bind nowhere",
        "dashboard --registry missing.toml",
        "dashboard --store nowhere --bind 127.0.0.1:0",
        "relay",
        "relay --gateway t.acme.example",
        "dev missing.toml",
        "dev .",
        "dev metrics.toml --origin app.test",
        "compile web missing.toml --out web",
        "doctor missing.toml",
        "sent --app notes",
        "estimat",
        "plan nmber",
        "estimate browser --registri x",
        "estimate",
        "plan number --low 1",
        "release browser --noise pink",
        "doctor broken.toml",
        "doctor --endpoint t.acme.example",
        "doctor --endpoint http://127.0.0.1:1",
        "doctor --operator --endpoint http://127.0.0.1:1",
        "sent --app editor",
        "sent --app Editor!",
    ]
    for each in map(str.strip, _WRONG_PLANS.strip().splitlines()):
        usual = ("--epsilon 1", "--devices 100000") if "lifetime" not in each else ()
        lines.append(" ".join([each, *(one for one in usual if one.split()[0] not in each)]))
    lines += [f"plan simulate {each} --devices 10" for each in _WRONG_CROWDS.strip().splitlines()]
    lines += [f"estimate {each}" for each in _WRONG_LIMITS.strip().splitlines()]
    return "\n".join(f"deniable {each}" for each in lines)


_NOISES = ("laplace", "gaussian")


def _days_of(kind):
    """What the store with windows of each mechanism says of those of one kind."""
    store = "DENIABLE_STORE=sqlite:///mechanisms.db deniable"
    lines = []
    for name, metric in _DECLARED.items():
        if metric["type"] != kind:
            continue
        strings = " --candidates lists/homepage.txt" if kind == "string" else ""
        of = f"--registry mechanisms.toml {name}{strings}"
        asked = [f"estimate {of}", f"estimate trend {of}", f"estimate anomalies {of}"]
        if kind == "discovery":
            asked = [f"estimate discover {of}"]
        elif kind != "retention":
            asked += [f"release {of}"]
            asked += [f"release {of} --epsilon 2 --noise {each} --plan" for each in _NOISES]
        if "window" not in metric and kind not in ("discovery", "retention"):
            asked += [f"estimate {of} --since 2026-11-10"]
        if "segments" in metric:
            asked = [f"estimate segments {of} --by platform"]
        lines += [f"{store} {each}{' --json' * each.startswith('estimate')}" for each in asked]
    return "\n".join(lines)


def _rare_days_of(kind):
    """What is said of a day with three devices, one with very many and two that are forged, of
    those of one kind."""
    store = "DENIABLE_STORE=sqlite:///rare.db deniable"
    asked = {"discovery": "estimate discover"}.get(kind, "estimate")
    strings = " --candidates lists/homepage.txt" if kind == "string" else ""
    return "\n".join(
        f"{store} {asked} --registry mechanisms.toml {name}{strings} --from {day} --to {day}{form}"
        for name, metric in _DECLARED.items()
        if metric["type"] == kind and "window" not in metric
        for day in (f"2026-11-{number:02}" for number in range(8, 12))
        for form in ("", " --json")
    )


_PLANNED = {
    "": {
        "size": (2, 3, 12, 90, 900),
        "segment-share": (None, None, 0.2),
        "share": (None, 0.01, 0.3),
        "memoize": (None, None, ""),
    },
    " number": {
        "ask": ("mean", "distribution", "both"),
        "low": (-4, 0, 0.5),
        "high": (3, 70),
        "scale": (None, "log"),
        "integer": (None, ""),
        "half-width": (None, 0.1),
    },
    " pair": {"effect": (None, 0, 0.4, 1), "segment-share": (None, 0.3)},
    " discovery": {"max-length": (None, 2, 6, 24), "share": (None, 0.05)},
    " retention": {
        "asks": (None, "lifecycle", "cohorts"),
        "ages": (None, 1, 5),
        "new": (None, 0.4),
        "window": (None, "day", "month"),
    },
    " lifetime": {
        "ask": (None, "share", "mean", "distribution"),
        "years": (0.1, 1, 7),
        "turnover": (None, 0.1, 0.8),
        "window": (None, "week", "month"),
        "low": (1,),
        "high": (30,),
        "size": (None, 9),
        "scale": (None, "log"),
    },
}
"""Options of each plan; None: it is not given."""

_OF_ANOTHER_KIND = {
    "addresses of another kind": (
        "/api/v1/metrics/{}/estimate?below=2",
        "/api/v1/metrics/{}/trend?value=mean",
        "/api/v1/metrics/{}/segments?by=platform",
        "/api/v1/metrics/{}/segments/trend?by=platform",
        "/api/v1/metrics/{}/finds",
        "/api/v1/metrics/{}/finds/trend?find=git",
    ),
    "pages of another kind": (
        "/metric/{}/segments",
        "/metric/{}/strings",
        "/metric/{}/compare?value=firefox&without=2026-11-10",
        "/metric/{}?given=dark_mode&limit=3&value=edge",
        "/metric/{}/find?find=git",
    ),
}
"""What few kinds of metrics have, and is asked of all."""


def _plans():
    """Plans of every size: each with options at random."""
    rng = random.Random(28)
    for plan, options in _PLANNED.items():
        for number in range(14):
            asked = {**options, "devices": (30, 900, 40_000, 3_000_000), "sample-rate": (None, 0.3)}
            if plan == " lifetime":
                del asked["sample-rate"]
            else:
                asked |= {"epsilon": (0.1, 0.8, 2, 5, 9)}
            asked |= {"lifetime-epsilon": (4, 20, 200)}
            given = [(name, rng.choice(values)) for name, values in asked.items()]
            words = [f"--{name} {value}".strip() for name, value in given if value is not None]
            words += [rng.choice(("2x2", "3x9"))] * (plan == " pair")
            yield f"deniable plan{plan} {' '.join(words)}{' --json' * (number % 2)}"


def _commands():
    """What each command takes."""
    return "\n".join(f"deniable {each} --help" for each in COMMANDS)


_ASKED = {
    "overview": """
        visit /metric/crash_site.csv
        visit /metric/homepage.csv
        visit /metric/plugin/strings.csv
        GET /
        GET /?lang=zh-Hans
        GET /?tag=web
        GET /?view=list&sort=change
        GET /?view=list&sort=attention&from=2026-11-01&to=2026-11-15
        GET /?view=list&sort=reports&state=change
        GET /?view=list&sort=newest&type=retention
        GET /?view=list&sort=name&owner=web@acme.example
        GET /?q=FIRE+which&state=calm
        GET /api/v1/overview
        GET /api/v1/overview?format=csv
        GET /api/v1/overview?state=sad
        GET /api/v1/overview?sort=up&page=2
        GET /api/v1/metrics
        GET /api/v1/metrics?format=csv
        GET /api/v1/annotations
        GET /api/v1/annotations?metric=browser
        GET /api/v1/annotations?from=2026-11-01&metric=theme&format=csv
        GET /api/v1/annotations?to=2026-11-01
        GET /api/v1/metrics?q=FIRE&owner=web@acme.example
        GET /api/v1/metrics?tag=look&from=2026-11-16
        GET /healthz
    """,
    "a yes or no": f"""
        deniable estimate dark_mode
        deniable estimate trend dark_mode --by week
        deniable estimate trend dark_mode --by month --json
        deniable estimate trend dark_mode --from 2026-11-05 --to 2026-11-12
        GET /metric/dark_mode
        GET /metric/dark_mode?lang=zh-Hans
        GET /metric/dark_mode/compare
        GET /metric/dark_mode/compare?lang=zh-Hans
        GET /metric/dark_mode/compare.json?{_FIVE}&{_BEFORE}
        GET /metric/dark_mode/trend.svg
    """,
    "a forged day": f"""
        deniable estimate notifications
        deniable estimate notifications --from 2026-11-20
        deniable estimate anomalies notifications
        deniable estimate anomalies notifications --from 2026-11-17 --json
        deniable estimate anomalies browser --from 2026-11-16
        GET /metric/notifications
        GET /metric/notifications?lang=zh-Hans
        GET /metric/notifications.svg
        GET /api/v1/metrics/notifications/anomalies?{_FIVE}
    """,
    "a silent metric": """
        deniable estimate silent
        deniable estimate silent --json
        deniable estimate trend silent
        deniable release silent
        GET /metric/silent
        GET /metric/silent.csv
        GET /metric/silent.svg
        GET /api/v1/metrics/silent/estimate
    """,
    "a category": f"""
        deniable estimate browser
        deniable estimate browser --json
        deniable estimate browser --csv
        deniable estimate browser --from 2026-11-16
        DENIABLE_FAKES=0.05 DENIABLE_ALARM_LEVEL=0.01 deniable estimate browser --from 2026-11-16
        deniable estimate browser --from 2026-11-16 --without 2026-11-18
        GET /metric/browser
        GET /metric/browser?lang=zh-Hans
        GET /metric/browser.csv
        GET /metric/browser.json
        GET /metric/browser.svg
        GET /metric/browser.png
        GET /metric/browser?{_FIVE}&shares=normalized&without=2026-11-18,2026-11-17,2026-11-03
        GET /metric/browser?from=2026-11-20&to=2026-11-11
        GET /api/v1/metrics/browser
        GET /api/v1/metrics/browser/estimate?{_FIVE}
        GET /api/v1/metrics/browser/estimate?{_FIVE}&format=csv
        GET /api/v1/metrics/browser/estimate?{_FIVE}&adjust=bonferroni&level=0.8&limit=3
        GET /api/v1/metrics/browser/estimate?value=edge&value=safari&limit=1&format=csv&raw=1
        GET /api/v1/metrics/browser/estimate?{_FIVE}&without=2026-11-18&value=firefox
        GET /api/v1/metrics/browser/trend?{_FIVE}&without=2026-11-18&value=firefox
        GET /api/v1/metrics/browser/comparison?{_FIVE}&without=2026-11-18
    """,
    "a category over time": f"""
        deniable estimate trend browser --from 2026-11-14 --csv
        deniable estimate trend browser --by week --value safari
        GET /metric/browser?{_FIVE}&value=safari&value=edge&by=day&sort=value
        GET /metric/browser?{_FIVE}&sort=change
        GET /metric/browser/trend.csv?{_FIVE}
        GET /metric/browser/trend.json?{_FIVE}
        GET /metric/browser/trend.svg?from=2026-10-01&value=safari&by=week
        GET /metric/browser/trend.png
        GET /api/v1/metrics/browser/trend?{_FIVE}&value=firefox
        GET /api/v1/metrics/browser/trend?by=month&value=firefox&format=csv
    """,
    "a comparison": f"""
        GET /metric/browser/compare?{_FIVE}&{_BEFORE}
        GET /metric/browser/compare.csv?{_FIVE}&{_BEFORE}
        GET /metric/browser/compare.json?{_FIVE}&{_BEFORE}
        GET /api/v1/metrics/browser/comparison?{_FIVE}&{_BEFORE}
        GET /metric/load_time/compare?{_FIVE}&{_BEFORE}
        GET /api/v1/metrics/tabs/comparison?{_FIVE}&{_BEFORE}
    """,
    "a long list": f"""
        deniable estimate country
        deniable estimate trend country --value "country 007"
        GET /metric/country?{_FIVE}
        GET /metric/country?{_FIVE}&find=COUNTRY+01&sort=value
        GET /metric/country?{_FIVE}&find=country+01&sort=-value
        GET /metric/country?{_FIVE}&sort=-share
        GET /metric/country?{_FIVE}&lines=all
        GET /api/v1/metrics/country/estimate?limit=7&{_FIVE}
    """,
    "an earlier epsilon": """
        deniable estimate update_channel
        GET /metric/update_channel
        GET /api/v1/metrics/update_channel/estimate?from=2026-11-10&to=2026-11-16
    """,
    "since an annotation": f"""
        DENIABLE_DATA=. deniable estimate dark_mode --since "{_RELEASE}"
        DENIABLE_DATA=. deniable estimate dark_mode --since "{_RELEASE}" --json
        DENIABLE_DATA=. deniable estimate dark_mode --since "{_RELEASE}" --from 2026-11-16
        deniable estimate interface_language --since 2026-09-01
        deniable estimate dark_mode --since "Release 4.3"
        deniable estimate trend load_time --since 2026-11-09
        DENIABLE_DATA=. deniable estimate trend dark_mode --since "{_RELEASE}" --csv
        DENIABLE_DATA=. deniable estimate trend dark_mode --since "{_RELEASE}" --json
        GET /metric/dark_mode?since={_RELEASED}
        GET /metric/interface_language?since={_RELEASED}&lang=zh-Hans
        GET /metric/dark_mode/trend.svg?since={_RELEASED}
        GET /metric/dark_mode/trend.csv?since={_RELEASED}
        GET /metric/dark_mode/trend.json?since={_RELEASED}
        GET /api/v1/metrics/dark_mode/trend?by=day&since={_RELEASED}&format=csv
        GET /api/v1/metrics/dark_mode/trend?since={_RELEASED}&value=true&value=false
        GET /metric/dark_mode?since=2026-11-10
        GET /metric/dark_mode?since=Release+4.3
        GET /metric/dark_mode?since=2026-11-20
        GET /metric/dark_mode?since=0001-01-02
        GET /metric/dark_mode?since=2026-11-09&from=2026-11-01
        GET /?since=2026-11-20
        GET /?since=2026-11-09&from=2026-11-01
        GET /?since={_RELEASED}
        GET /api/v1/overview?since={_RELEASED}
        GET /api/v1/metrics/browser/comparison?since={_RELEASED}
    """,
    "an expired metric of months": """
        deniable estimate plan_tier --json
        deniable estimate trend plan_tier
        GET /metric/plan_tier
        GET /api/v1/metrics/plan_tier
    """,
    "memos": f"""
        deniable estimate interface_language
        deniable estimate trend interface_language --from 2026-11-14
        GET /metric/interface_language
        GET /metric/interface_language?lang=zh-Hans
        GET /api/v1/metrics/interface_language/comparison?{_FIVE}&{_BEFORE}
        GET /api/v1/metrics/interface_language/privacy
    """,
    "strings": f"""
        deniable estimate crash_site --candidates lists/crash_site.txt
        deniable estimate crash_site --candidates lists/crash_site.txt --json
        deniable estimate trend crash_site --candidates lists/crash_site.txt
        GET /metric/crash_site
        GET /metric/crash_site?lang=zh-Hans
        GET /metric/crash_site.svg
        GET /metric/crash_site/trend.csv?{_FIVE}&value=src/module_0.ts:1
        GET /api/v1/metrics/crash_site/estimate?value=src/module_0.ts:1&value=comic%20sans
        POST /api/v1/metrics/crash_site/estimate < lists/two.txt
        POST /api/v1/metrics/crash_site/trend?{_FIVE} < lists/two.txt
        POST /api/v1/metrics/crash_site/comparison?{_FIVE}&{_BEFORE} < lists/two.txt
        POST /metric/crash_site candidates@lists/two.txt
        POST /metric/crash_site/forget
    """,
    "strings of memos": """
        deniable estimate homepage --candidates lists/homepage.txt
        GET /metric/homepage
        GET /api/v1/metrics/homepage/estimate?limit=5
    """,
    "a distribution": f"""
        deniable estimate load_time
        deniable estimate load_time --below 0.5 --json
        deniable estimate load_time --csv
        deniable estimate load_time --below 0.5 --below 200
        deniable estimate load_time --below 0.01 --below 100
        GET /metric/load_time?limit=100
        deniable estimate trend load_time --from 2026-11-14
        GET /metric/load_time
        GET /metric/load_time?lang=zh-Hans
        GET /metric/load_time.svg
        GET /metric/load_time/trend.svg
        GET /metric/load_time?limit=2.5&value=p90&by=week
        GET /metric/load_time?limit=%2050%20
        GET /metric/load_time?limit=nan
        GET /metric/load_time?limit=101
        GET /metric/load_time?limit=0.009
        GET /metric/load_time?limit=%3Cb%3E
        GET /metric/load_time?shares=normalized
        GET /metric/load_time?from=2026-09-01&to=2026-09-02
        GET /metric/tabs?limit=2
        GET /metric/tabs?order=declared
        GET /metric/load_time.csv
        GET /api/v1/metrics/load_time
        GET /api/v1/metrics/load_time/estimate?value=p95&below=2.5
        GET /api/v1/metrics/load_time/trend?{_FIVE}&value=p90
    """,
    "a mean": f"""
        deniable estimate tabs
        deniable estimate tabs --csv
        deniable estimate trend tabs --by week
        GET /metric/tabs
        GET /metric/tabs.svg
        GET /api/v1/metrics/tabs/estimate
        GET /api/v1/metrics/tabs/trend?{_FIVE}&format=csv
        GET /metric/tabs/compare?{_FIVE}&{_BEFORE}
    """,
    "a pair": f"""
        deniable estimate mode_by_channel
        deniable estimate mode_by_channel --given update_channel
        deniable estimate mode_by_channel --csv
        deniable estimate mode_by_channel --given tabs
        deniable estimate mode_by_channel --from 2026-11-20 --json
        deniable plan simulate mode_by_channel --devices 60 --seed 7
        deniable plan simulate mode_by_channel --devices 3000 --seed 7 --json
        deniable estimate trend mode_by_channel --by week
        GET /metric/mode_by_channel
        GET /metric/mode_by_channel?lang=zh-Hans
        GET /metric/mode_by_channel.svg
        GET /metric/mode_by_channel.csv
        GET /metric/mode_by_channel?given=browser
        GET /metric/mode_by_channel?limit=3
        GET /metric/mode_by_channel?value=nothing
        GET /metric/browser?given=browser
        GET /metric/mode_by_channel/compare?{_FIVE}&{_BEFORE}
        GET /api/v1/metrics/mode_by_channel/estimate
    """,
    "segments": f"""
        deniable estimate theme
        deniable estimate segments theme --by platform
        deniable estimate segments theme --by platform --csv
        deniable estimate segments theme --by platform --recent
        deniable estimate segments theme --by platform --against platform=tablet --json
        deniable estimate segments theme --by platform --recent --against platform=tablet
        deniable estimate segments theme --by platform --from 2026-01-01 --to 2026-01-02
        deniable estimate trend theme --by-segment platform --from 2026-11-10 --csv
        deniable estimate trend theme --by-segment platform --by month --json
        deniable estimate theme --where platform
        deniable estimate theme --where platform=tablet --where platform=tv
        deniable estimate theme --where platform=tablet --json
        deniable estimate trend theme --by-segment platform --by week
        deniable estimate trend theme --by-segment platform --by month --csv
        GET /metric/theme
        GET /metric/theme/segments?lang=zh-Hans
        GET /metric/theme/segments.csv
        GET /metric/theme/segments.svg
        GET /metric/theme/segments.png
        GET /metric/theme/segments.csv?period=week
        GET /metric/theme/segments?series=light&against=tablet&period=week
        GET /metric/theme/segments.json?{_FIVE}
        GET /metric/theme?where=platform=tablet
        GET /api/v1/metrics/theme/segments?{_FIVE}&by=platform
        GET /api/v1/metrics/theme/segments?{_FIVE}&by=platform&against=platform=tablet&format=csv
        GET /api/v1/metrics/theme/segments/trend?{_FIVE}&by=platform&period=week
        GET /api/v1/metrics/theme/estimate?{_FIVE}&where=platform=tablet
    """,
    "a discovery": """
        deniable estimate discover plugin
        deniable estimate discover plugin --json
        deniable estimate discover plugin --by week
        deniable estimate discover plugin --by week --csv
        deniable estimate discover plugin --min-share 0.05 --csv
        deniable estimate discover plugin --from 2026-01-01 --to 2026-01-07
        deniable estimate discover plugin --promote browser
        deniable estimate discover plugin --promote tabs
        deniable estimate discover plugin --promote crash_site
        deniable estimate discover plugin --promote browser --by week
        deniable estimate discover plugin --promote crash_site --candidates-dir lists
        GET /metric/plugin
        GET /metric/plugin?lang=zh-Hans
        GET /metric/plugin/strings?find=git&by=week
        GET /metric/plugin/strings?find=git&by=month
        GET /metric/plugin/strings?find=hg
        GET /metric/plugin/strings?find=git&by=hour
        GET /metric/plugin/strings?colour=red
        GET /metric/plugin/strings.csv?find=git&by=week
        GET /metric/plugin/strings.json?find=hg
        GET /metric/plugin/strings.svg
        GET /metric/plugin/strings.csv
        GET /metric/plugin/strings.json
        GET /api/v1/metrics/plugin/finds?min_share=0.05
    """,
    "a retention": f"""
        deniable estimate weekly_use
        deniable estimate trend weekly_use
        deniable plan simulate weekly_use --devices 50000 --seed 7
        GET /metric/weekly_use?{_WEEKS}
        GET /metric/weekly_use?{_WEEKS}&lang=zh-Hans
        GET /metric/trial.csv?{_WEEKS}
        GET /metric/weekly_use.svg?{_WEEKS}
        GET /metric/weekly_use.png?{_WEEKS}
        GET /metric/weekly_use/compare
        GET /metric/weekly_use/trend.svg?{_WEEKS}
        GET /metric/growth
        GET /metric/growth.svg
        GET /metric/growth/trend.csv?from=2026-11-02&to=2026-11-15
        GET /metric/growth.json
        GET /metric/trial?{_WEEKS}
        GET /metric/trial?{_WEEKS}&lang=zh-Hans
        GET /metric/trial.svg?{_WEEKS}
        GET /metric/trial/compare
        GET /metric/trial?value=age+1&by=week
        GET /api/v1/metrics/weekly_use
        GET /api/v1/metrics/weekly_use/estimate?{_WEEKS}
        GET /api/v1/metrics/weekly_use/comparison
        GET /api/v1/metrics/weekly_use/anomalies
        GET /api/v1/metrics/trial/trend?{_WEEKS}
    """,
    "releases": """
        deniable release list
        deniable release list --json
        deniable release browser --from 2026-09-21 --to 2026-11-01
        deniable release browser --from 2026-09-21 --to 2026-11-01 --out browser.csv
        deniable release verify browser.csv.manifest.json --table browser.csv
        cat browser.csv
        deniable release tabs --to 2026-11-08 --epsilon 1 --plan
        deniable release browser --to 2026-11-08 --epsilon 0.02 --noise gaussian --plan
        deniable release browser --to 2026-11-08 --epsilon 0.5 --form leader --plan
        deniable release dark_mode --to 2026-11-08 --epsilon 1 --form trend --plan
        deniable release load_time --to 2026-11-08 --epsilon 2 --plan
        deniable release dark_mode --from 2026-10-05 --to 2026-10-11 --form trend
        deniable release mode_by_channel --from 2026-11-07 --to 2026-11-12
        deniable release mode_by_channel --from 2026-11-07 --to 2026-11-12 --epsilon 1 --plan
        deniable release dark_mode --from 2026-11-07 --to 2026-11-12
        DENIABLE_RELEASE_BUDGET=0.1 deniable release browser --from 2026-09-21 --to 2026-09-27
        deniable release update_channel
        deniable release key release.pem
        deniable release browser --from 2026-09-21 --to 2026-11-01 --sign release.pem \\
            --out signed.json
        deniable release verify signed.json --key release.pem.pub
        deniable release verify signed.json
        GET /releases
        GET /releases?lang=zh-Hans
        GET /releases/RELEASE
        GET /releases/RELEASE.json
        GET /releases/RELEASE.csv
        GET /released/browser
        GET /released/browser.csv
        GET /api/v1/releases
        GET /api/v1/releases/RELEASE
        GET /api/v1/releases/RELEASE?format=csv
        GET /api/v1/releases?format=csv
        GET /api/v1/releases?metric=tabs&limit=1
    """,
    "boards": """
        GET /boards
        GET /boards/monday
        GET /boards/monday?lang=zh-Hans
        GET /boards?lang=zh-Hans
        GET /boards/kinds
        GET /boards/kinds?lang=zh-Hans
    """,
    "what devices reveal": """
        deniable plan privacy
        deniable plan privacy --json
        deniable plan privacy browser
        deniable plan privacy interface_language
        deniable plan privacy crash_site --household 3 --json
        deniable plan privacy crash_site --household 3
        deniable plan privacy --registry others.toml
        deniable plan privacy editor --registry others.toml
        deniable plan privacy language --registry others.toml --json
        deniable plan privacy language_by_editor --registry others.toml
        deniable plan privacy --report
        GET /api/v1/privacy
        GET /api/v1/metrics/browser/privacy
        GET /api/v1/metrics/browser/privacy?household=3
        GET /api/v1/privacy?household=3
        GET /api/v1/metrics/weekly_use/privacy
    """,
    "what published sums reveal": """
        deniable plan privacy browser --outsider
        deniable plan privacy --outsider
        deniable plan privacy --outsider --reports 50000 --delta 1e-6 --json
        deniable plan privacy load_time --outsider --reports 50000 --json
        deniable plan privacy --report --reports 50000 --delta 1e-6 --registry others.toml
        GET /api/v1/privacy/outsider
        GET /api/v1/metrics/browser/privacy/outsider?reports=1000
        GET /api/v1/metrics/load_time/privacy/outsider?reports=2000&delta=1e-7
    """,
    "what all mechanisms reveal": """
        deniable plan privacy --outsider --reports 3000 --registry mechanisms.toml --json
        deniable plan privacy --registry mechanisms.toml --json
    """,
    **{
        f"what each {kind} reveals": "\n".join(
            f"deniable plan privacy {name} --outsider --registry mechanisms.toml --json"
            for name, metric in _DECLARED.items()
            if metric["type"] == kind
        )
        for kind in _DRAWN
    },
    **{
        f"how each {kind} is estimated": "\n".join(
            f"deniable plan simulate {name} --registry mechanisms.toml --devices {devices} "
            f"--seed 7 --json {spread}"
            for name, metric in _DECLARED.items()
            if metric["type"] == kind
            for devices in (20, 4_000)
        )
        for kind, spread in _DRAWN.items()
    },
    **{f"days of each {kind}": _days_of(kind) for kind in _DRAWN},
    **{f"rare days of each {kind}": _rare_days_of(kind) for kind in _DRAWN if kind != "retention"},
    "watching": """
        deniable watch rules.toml --check
        deniable watch rules.toml --dry-run
        deniable watch rules.toml --dry-run --json
        deniable watch rules.toml --once
        deniable watch rules.toml --once
        deniable watch digest --candidates-dir lists --annotations annotations.toml
        deniable watch digest --language zh-Hans --dashboard https://deniable.acme.example
        deniable watch digest --weeks 4
        deniable watch digest --html digest.html
        cat digest.html
    """,
    "plans": """
        deniable plan --size 5 --epsilon 1 --devices 100000
        deniable plan --size 10 --epsilon 1 --devices 100000 --share 0.05 --sample-rate 0.1
        deniable plan --size 3000 --epsilon 1 --devices 100000 --lifetime-epsilon 8 --json
        deniable plan --size 5 --epsilon 1 --devices 100000 --lifetime-epsilon 4
        deniable plan --size 5 --epsilon 1 --devices 100000 --memoize --lifetime-epsilon 4
        deniable plan --size 20 --epsilon 1 --devices 100000 --mechanism magic
        deniable plan --size 5 --epsilon 1 --devices 100000 --segment-share 0.05
        deniable plan lifetime --size 2 --lifetime-epsilon 8 --years 2 --turnover 0.3
        deniable plan lifetime --size 2 --lifetime-epsilon 8 --years 2 --turnover 0.3 --json
        deniable plan lifetime --size 5 --lifetime-epsilon 8 --years 2
        deniable plan pair 3x4 --epsilon 1 --devices 100000
        deniable plan retention --epsilon 2 --lifetime-epsilon 4 --devices 50000
        deniable plan retention --asks cohorts --epsilon 2 --lifetime-epsilon 4 --devices 900 --json
        deniable plan pair 3x4 --epsilon 1 --devices 100000 --effect 0.2 --json
        deniable plan number --low 0 --high 20 --ask mean --epsilon 1 --devices 100000
        deniable plan number --low 0.1 --high 20 --scale log \\
            --ask distribution --epsilon 1 --devices 100000 --json
        deniable plan discovery --epsilon 4 --devices 1000000
        deniable plan discovery --max-length 8 --epsilon 4 --devices 1000000
        deniable plan discovery --epsilon 1 --devices 900 --sample-rate 0.5
        deniable plan --size 100 --epsilon 1 --devices 40
        deniable plan number --low 0 --high 20 --ask both --integer --epsilon 2 --devices 1000000
        deniable plan number --low 1 --high 90 --scale log --ask mean --epsilon 1 --devices 9
        deniable plan number --low 0 --high 10 --ask distribution --epsilon 0.5 --devices 20
        deniable plan number --low 0 --high 10 --ask distribution --epsilon 0.5 --devices 20000
        deniable plan number --low 0 --high 9 --ask both --epsilon 2 --devices 1000000000000 \\
            --half-width 0.001 --lifetime-epsilon 20 --segment-share 0.1
        deniable plan lifetime --ask mean --low 1 --high 50 --scale log \\
            --lifetime-epsilon 60 --years 5
        deniable plan lifetime --ask distribution --low 0 --high 9 \\
            --lifetime-epsilon 8 --years 0.5 --turnover 0.9 --window week --json
        deniable plan pair 2x2 --epsilon 6 --devices 900 --lifetime-epsilon 20 --segment-share 0.1
        deniable plan pair 30x2 --epsilon 0.01 --devices 2
        deniable plan --size 2000 --mechanism count_mean_sketch --epsilon 2 --devices 100000
        GET /plan
        GET /plan?lang=zh-Hans&size=40&memoize=on
        GET /plan?size=1
        GET /plan/number
        GET /plan/number?lang=zh-Hans
        GET /plan/number?low=0&high=10&ask=distribution&epsilon=2&devices=50000
        GET /plan/pair?devices=50000
        GET /plan/discovery
        GET /plan/retention?devices=20000
        GET /plan/lifetime?turnover=0.3&devices=50000
        GET /plan?size=6&epsilon=1&lifetime_epsilon=8&share=0.05&segment_share=0.1&sample_rate=1
        GET /plan/lifetime?ask=mean&low=0&high=20&lifetime_epsilon=8&years=1&devices=5000&epsilon=
        GET /plan/retention?asks=both&ages=6&epsilon=2&lifetime_epsilon=4&window=month
        GET /api/v1/plan?size=20&epsilon=1&devices=100000&lifetime_epsilon=8
        GET /api/v1/plan/number?low=0&high=10&ask=mean&epsilon=1&devices=100000
        GET /api/v1/plan/pair?rows=3&columns=4&effect=0.1&epsilon=2&devices=100000
        GET /api/v1/plan/discovery?epsilon=4&devices=1000000
        GET /api/v1/plan/discovery?max_length=8&epsilon=4&devices=1000000&lifetime_epsilon=8
        GET /api/v1/plan/pair?rows=3&columns=4&epsilon=2&devices=50000&segment_share=0.5
        GET /api/v1/plan/number?low=0&high=10&ask=both&integer=1&epsilon=2&devices=50000
        GET /api/v1/plan/retention?epsilon=2&lifetime_epsilon=4&devices=50000
        GET /api/v1/plan/lifetime?size=20&lifetime_epsilon=8&years=2&devices=100000
        GET /api/v1/plan/lifetime?size=20&lifetime_epsilon=8&years=2&mechanism=count_mean_sketch
        GET /api/v1/plan/lifetime?size=20&lifetime_epsilon=8&years=2&mechanism=magic
        GET /api/v1/plan/number?low=0&high=10&ask=mean&mechanism=magic&epsilon=1&devices=9
    """,
    "another level": "\n".join(
        f"GET /api/v1/metrics/{name}/{asked}"
        for name in _NAMES
        for asked in (
            "estimate?level=0.8&adjust=bonferroni",
            f"comparison?level=0.8&{_FIVE}&{_BEFORE}",
            f"trend?level=0.8&{_FIVE}",
        )
    ),
    **{
        title: "\n".join(f"GET {address.format(name)}" for name in _NAMES for address in addresses)
        for title, addresses in _OF_ANOTHER_KIND.items()
    },
    "plans of every size": "\n".join(_plans()),
    "all mechanisms": """
        deniable lint mechanisms.toml
        deniable lint mechanisms.toml --json
        deniable lint mechanisms.toml --explain
        deniable lint mechanisms.toml --notice
        deniable lint mechanisms.toml --notice --lang zh-Hans
        deniable compile mechanisms.toml
        deniable doctor mechanisms.toml
    """,
    "simulations": """
        deniable plan simulate browser --devices 50000 --seed 7
        deniable plan simulate browser --devices 50000 --seed 7 --json
        deniable plan simulate load_time --devices 50000 --seed 7 --lognormal 0.2,3
        deniable plan simulate tabs --devices 1000000000 --seed 7 --normal 45,10 --json
        deniable plan simulate mode_by_channel --devices 50000 --seed 7 --dependence 0.3
        deniable plan simulate crash_site --devices 50000 --seed 7 --candidates lists/crash_site.txt
        deniable plan simulate plugin --devices 50000 --seed 7 --candidates lists/plugins.txt
    """,
    "simulations of others": "\n".join(
        f"deniable plan simulate {each} --registry others.toml --seed 7"
        for each in (
            "back --devices 50000",
            "back --devices 50000 --lives .45,.85,.15,0,5 --json",
            "back --devices 3000 --lives .3,.6,.1,.05,12",
            "back --devices 200 --lives .3,.6,.1,-.05,6",
            "back --devices 200 --lives .3,.6,.1,-.05,4 --json",
            "growing --devices 50000",
            "growing --devices 1000 --lives .45,.85,.15,0,5 --json",
            "language --devices 100",
            "language_by_editor --devices 50000",
            "language_by_editor --devices 900000 --dependence 0.7",
            "language_by_editor --devices 900 --dependence 1",
            "language_by_editor --devices 20 --json",
            "delay_by_network --devices 5000 --dependence 0.5",
            "delay_by_network --devices 900 --json",
            "rows --devices 50000 --normal 97,30",
            "rows --devices 300 --normal 97,30 --json",
            "balance --devices 50000 --normal -4,3",
        )
    ),
    "the registry": """
        deniable init shop --yes
        deniable lint
        deniable lint --json
        deniable lint --explain
        deniable lint --since earlier.toml
        deniable lint broken.toml
        DENIABLE_BOARDS=drafts DENIABLE_DATA=. deniable lint metrics.toml
        deniable lint expected.toml
        deniable compile metrics.toml -o metrics.json
        deniable compile -o metrics.json --check
        deniable compile -o metrics.ts
        deniable add weather --type boolean --epsilon 1 --yes
        deniable lint --json
        deniable init notes --yes --metric plan --values free,paid
        cat notes/metrics.toml
        cat notes/app.py
        cat notes/compose.yml
        deniable init page --where web --metric wait --low 0.1 --high 60 --devices 900 --yes
        deniable add come_back --type retention --registry page/metrics.toml --yes
        deniable add waits --type number --low 0 --high 9 --ask mean \\
            --registry page/metrics.toml --yes
        deniable add words --type discovery --registry page/metrics.toml --yes
        deniable add kinds --type category --values a,b,c --registry page/metrics.toml --yes
        deniable add kinds_of_waits --type pair --of kinds,waits \\
            --registry page/metrics.toml --yes
        cat page/metrics.toml
        cat page/index.html
        deniable init words --metric word --type string --owner me@acme.example --yes
        cat words/app.py
        deniable annotate "Release 4.3" --date 2026-11-20 --metric browser
        cat annotations.toml
        deniable doctor metrics.toml
        deniable doctor edits/before.toml
        DENIABLE_DISABLED=1 DENIABLE_DEV=http://127.0.0.1:9 deniable doctor metrics.toml
        DO_NOT_TRACK=0 deniable doctor
        DO_NOT_TRACK=1 deniable doctor
        DENIABLE_DISABLED=1 deniable doctor --json
        DENIABLE_GATEWAY_KEYS=none.json DENIABLE_BIND=127.0.0.1:0 deniable collect
        DENIABLE_BIND=0.0.0.0:1 DENIABLE_DASHBOARD_BIND=0.0.0.0:8090 deniable doctor --operator
        DENIABLE_BIND=unix:/run/d DENIABLE_CORS_ORIGINS=https://acme.example DENIABLE_PORT=1 \\
            DENIABLE_DASHBOARD_TOKEN=pP3Zt8qXWc_kV7yLr2NfGh5sBd9mJa4uTe6 \\
            DENIABLE_DASHBOARD_BIND=0.0.0.0:8090 DENIABLE_PUBLIC_URL=https://t.acme.example \\
            DENIABLE_STORE=sqlite:///new.db deniable doctor --operator --json
        DENIABLE_BIND=127.0.0.1:1 DENIABLE_STORE=redis://127.0.0.1:1 deniable doctor --operator
        DENIABLE_SHARD=1 DENIABLE_QUEUE=1 DENIABLE_DASHBOARD_TOKEN=password1 \\
            deniable doctor --operator
    """,
    "an edited registry": """
        deniable lint edits/after.toml --explain
        deniable lint edits/after.toml --since edits/before.toml
        deniable lint earlier.toml --since edits/before.toml
        deniable lint --since missing.toml
        deniable lint --notice
        deniable lint broken.toml --notice
        deniable lint edits/after.toml --notice
        deniable lint edits/before.toml --notice --lang zh-Hans
    """,
    "what a device has reported": """
        deniable sent
        deniable sent --registry metrics.toml
        deniable sent --json
        deniable sent --html device.html --registry metrics.toml
        cat device.html
        deniable sent --html device.html --language zh-Hans
        cat device.html
        deniable sent --switch-off
        deniable doctor metrics.toml
        deniable sent --html device.html
        cat device.html
        deniable sent --switch-on
        deniable sent --switch-on --app notes
        deniable sent
        deniable sent --app editor --erase
        deniable sent
        deniable sent --json
        deniable sent --html device.html --registry metrics.toml
        cat device.html
    """,
    "a store": """
        deniable store info
        deniable store info --json
        deniable store drop --before 2026-10-01 --dry-run
        deniable store drop --before 2026-10-01 --yes
        deniable store export sums.jsonl --metric browser --since 2026-11-16
        deniable store import sums.jsonl --dry-run
        deniable store import sums.jsonl --store sqlite:///other.db
        deniable store info --store sqlite:///other.db
        deniable estimate browser --store sqlite:///other.db
    """,
    "google's RAPPOR": """
        deniable estimate rappor hash --params rappor/params.csv --candidates rappor/candidates.txt
        deniable estimate rappor decode --params rappor/params.csv --counts rappor/counts.csv \\
            --map rappor/map.csv
        deniable estimate rappor decode --params rappor/params.csv --counts rappor/counts.csv \\
            --map rappor/map.csv --json
        deniable estimate rappor decode --params rappor/params.csv --counts rappor/counts.csv \\
            --map rappor/map.csv --csv
    """,
    "people and links": """
        deniable dashboard token new --name grafana --scope read:metrics --metric "brow*"
        deniable dashboard people add Bob --role reader --file people.toml
        deniable dashboard people add Ana --role analyst
        deniable dashboard token new --name grafana --scope read:metrics
        GET /login
        GET /links
        GET /links?lang=zh-Hans
        GET /share?view=/metric/browser
        GET /share?view=/metric/browser&lang=zh-Hans
        GET /shared/unknown
        POST /share view=/metric/browser days=7 note=Bob
        GET LINK
        POST /share view=/metric/browser days=7 part=chart
        GET LINK
        POST /share view=/metric/theme/segments?by=platform days=7 unfinished=1
        GET LINK
        GET LINK/metric/theme/segments.csv
        GET /embed/metric/browser
        GET /embed/board/monday
        POST /share view=/metric/browser days=many
        POST /logout
    """,
    "mistakes of readers": f"""
        GET /metric/browsr
        GET /metric/browsr?lang=zh-Hans
        GET /metric/browser?from=soon&lang=zh-Hans
        GET /plan?size=two&epsilon=-1&lang=zh-Hans
        GET /api/v1/metrics/browsr/estimate
        GET /api/v1/metrics/browser/estimate?value=netscape
        GET /api/v1/metrics/browser/estimate?from=yesterday
        GET /api/v1/metrics/browser/estimate?colour=red
        GET /api/v1/metrics/browser/estimate?level=0.4
        GET /api/v1/metrics/browser/estimate?level=1
        GET /api/v1/metrics/load_time/estimate?value=p42
        GET /api/v1/metrics/tabs/trend?value=p50
        GET /api/v1/metrics/load_time/estimate?limit=3
        GET /api/v1/metrics/mode_by_channel/estimate?limit=3
        GET /api/v1/metrics/mode_by_channel/estimate?value=x
        GET /api/v1/metrics/load_time/estimate?below=nan
        GET /api/v1/metrics/load_time/estimate?below=101
        GET /api/v1/metrics/load_time/estimate?below=0.009
        GET /api/v1/metrics/browser/estimate?value=opera
        GET /api/v1/metrics/browser/trend?by=year
        GET /api/v1/metrics/theme/segments
        GET /api/v1/metrics/theme/segments?by=shoe
        GET /api/v1/metrics/theme/segments?by=platform&where=platform
        GET /api/v1/metrics/theme/segments?by=platform&where==web
        GET /api/v1/metrics/theme/segments?by=platform&against=platform=tv
        GET /api/v1/metrics/theme/estimate?where=platform=tv
        GET /api/v1/metrics/theme/estimate?where=platform=tablet&where=platform=laptop
        GET /api/v1/metrics/theme/trend?where=shoe=red
        GET /api/v1/metrics/plugin/finds?min_share=1
        GET /api/v1/metrics/plugin/finds/trend
        GET /api/v1/metrics/plugin/estimate
        GET /api/v1/metrics/plugin/trend
        GET /api/v1/metrics/plugin/anomalies
        GET /metric/dark_mode/compare?to=9999-12-31
        GET /api/v1/metrics/dark_mode/trend?from=0001-01-01&to=0001-01-02
        GET /api/v1/metrics/dark_mode/comparison?from=0001-01-01&to=0001-01-01
        GET /api/v1/metrics/dark_mode/estimate?from=0001-01-01&to=0001-01-01
        GET /api/v1/metrics/dark_mode/comparison?from=9998-12-31&to=9998-12-31
        GET /api/v1/metrics/dark_mode/comparison?to=9999-12-31
        GET /api/v1/metrics/dark_mode/trend?to=9999-12-31
        GET /api/v1/metrics/dark_mode/trend?from=2026-11-22
        GET /api/v1/metrics/browser/estimate?from=2026-11-20&to=2026-11-01
        GET /api/v1/metrics/browser/estimate?levle=0.9
        GET /api/v1/metrics/browser/estimate?$.Object=1
        GET /api/v1/metrics/browser/estimate?limit=0
        GET /api/v1/metrics/browser/estimate?without=2026-W46
        GET /api/v1/metrics/browser/estimate?level=0.9&level=0.8
        GET /api/v1/plan?size=10
        GET /api/v1/plan?size=10&epsilon=1&devices=9&memoize=true
        GET /api/v1/plan?size=10&epsilon=1&devices=9&memoize=maybe
        GET /api/v1/plan?size=10&epsilon=1&devices=9&mechanism=magic
        GET /api/v1/nowhere
        GET /api/v1/releases/unknown
        GET /api/v1/plan?size=1
        GET /boards/unknown
        GET /releases/unknown
        POST /api/v1/metrics/theme/segments < lists/two.txt
        POST /api/v1/metrics/browser/estimate < lists/two.txt
        POST /links/unknown/revoke
        POST /login
        GET /share
        POST /share
        GET /metric/dark_mode?from=2016-11-12&to=2026-11-20
        GET /metric/theme/segments?by=plan
        GET /metric/theme/segments?by=platform,platform
        GET /metric/theme/segments?where=plan=paid
        GET /metric/theme/segments?series=sepia
        GET /metric/theme/segments?period=hour
        GET /metric/theme/segments?colour=red
        GET /metric/theme/segments.csv?against=nowhere
        GET /metric/theme/segments.csv?where=plan=paid
        GET /metric/dark_mode/segments.csv
        GET /api/v1/annotations?metric=browsr
        GET /api/v1/annotations?from=soon
        GET /api/v1/annotations?from=2026-11-20&to=2026-11-18
        GET /api/v1/annotations?day=2026-11-20
        GET /?from=2016-11-13&to=2026-11-20&view=list
        GET /metric/silent?without={_DAYS[:1099]}
        GET /metric/silent?without={_DAYS}
        GET /?q={"a" * 200}
        GET /?q={"a" * 201}
        GET /metric/country?find={"a" * 200}
        GET /metric/country?find={"a" * 201}
    """,
    "what requests take": """
        GET /api/v1/openapi.json
        collector /v1/openapi.json
        collector /v1/registry
        collector /readyz
        collector /nowhere
    """,
    "files with mistakes": """
        deniable watch wrong/rules.toml --check
        deniable watch wrong/tables.toml --check
        deniable watch wrong/more.toml --check
        deniable watch wrong/channels.toml --check
        deniable watch wrong/limits.toml --check
        HOOK=secret deniable watch wrong/limits.toml --check
        deniable watch rules.toml --every 59s
        deniable watch rules.toml --every 604801s
        deniable watch rules.toml --every 8d
        deniable watch rules.toml --every 1
        deniable annotate x --file wrong/annotations.toml
        deniable annotate x --link javascript:alert(1)
        deniable annotate x --metric "a b"
        deniable annotate " "
        deniable annotate x --file absent/below/annotations.toml
        deniable annotate x --date yesterday
        deniable watch digest --annotations wrong/more.toml
        DENIABLE_DATA=wrong DENIABLE_BOARDS=missing deniable lint
    """,
    "mistakes with options": """
        deniable plan simulate dark_mode --devices 9 --dependence 0.5
        deniable plan simulate load_time --devices 9 --normal 1,1 --lives .3,.6,.1,.05,12
        deniable plan simulate browser --devices 9 --candidates lists/two.txt
        deniable plan simulate mode_by_channel --devices 9 --dependence 0.5 --shares x.csv
        deniable plan simulate back --devices 9 --registry others.toml --zipf 1
        deniable plan simulate back --devices 9 --registry others.toml --lives 1,2
        deniable plan simulate back --devices 9 --registry others.toml --lives .3,1,.1,.05,12
        deniable plan simulate back --devices 9 --registry others.toml --lives .3,.5,.1,.51,12
        deniable plan simulate back --devices 9 --registry others.toml --lives .3,.5,.1,.5,1
        deniable plan simulate back --devices 9 --registry others.toml --lives .3,.5,.1,.5,521
        deniable plan privacy browser --reports 900
        deniable plan privacy browser --report
        deniable plan privacy browser --outsider --household 2
        deniable estimate browser --without 2026-13
        deniable estimate browser --since 2026-11-09 --from 2026-11-16
        deniable estimate anomalies silent
        deniable watch digest --dashboard nowhere
        deniable watch digest --html missing/digest.html
        deniable watch digest --weeks 53
        deniable watch rules.toml --once --state missing/rules.state
        deniable annotate x --metric browser --date 2026-11-20T23:30:00-02:00 --json
        deniable annotate y --date 2026-11-20T23:30 --link https://acme.example/
        DENIABLE_RELEASES=none.sqlite deniable release list
        DENIABLE_RELEASES=none.sqlite deniable release browser --to 2026-11-08 --plan
        deniable release browser --to 2026-11-08 --epsilon 1/0
    """,
    "mistakes with commands": _mistakes(),
    "what commands take": _commands(),
}

_ODD = tomllib.loads((ODD / "metrics.toml").read_text(encoding="utf-8"))["metrics"]
_OF_ODD = {
    # Asked of each metric of the odd crowd.
    "odd answers": """
        deniable estimate {0}
        deniable estimate trend {0} --by week
        deniable estimate anomalies {0}
    """,
    "odd pages": """
        GET /metric/{0}
        GET /metric/{0}.svg
        GET /metric/{0}.csv
    """,
    "odd answers of programs": """
        GET /api/v1/metrics/{0}/estimate?level=0.7&adjust=bonferroni&limit=2
        GET /api/v1/metrics/{0}/trend?level=0.99&by=week
        GET /api/v1/metrics/{0}/comparison?since=2026-11-10&level=0.7
        GET /api/v1/metrics/{0}/anomalies
        GET /api/v1/metrics/{0}/segments?by=platform&level=0.7
        GET /api/v1/metrics/{0}/finds?level=0.7
        GET /api/v1/metrics/{0}/privacy?household=3
    """,
    "odd changes": """
        GET /metric/{0}/compare
        GET /metric/{0}/trend.svg?by=day&from=2026-11-14
        GET /metric/{0}?since=2026-11-10&lang=zh-Hans
    """,
}
# Asked of a small crowd to which everything happens that seldom does (`odd.py`).
ODDITIES = {
    **{name: "\n".join(map(asked.strip().format, _ODD)) for name, asked in _OF_ODD.items()},
    "odd segments": """
        deniable estimate segments by_two --by platform --by plan
        deniable estimate segments by_two --by plan --where platform=desktop
        deniable estimate segments sizes --by platform
        deniable estimate segments sizes --by platform --recent
        deniable estimate segments averages --by platform --recent
        deniable estimate trend by_two --by-segment platform
        deniable estimate trend sizes --by-segment platform
        deniable estimate trend sizes --by-segment platform --json
        GET /metric/by_two/segments?by=platform&by=plan
        GET /metric/by_two/segments?by=platform&period=day
        GET /metric/sizes/segments
        GET /metric/sizes/segments?series=p99
        GET /metric/sizes/segments?since=2026-11-10
        GET /metric/averages/segments
        GET /metric/averages/segments.svg
        GET /metric/by_two/segments?since=2026-11-10
        GET /metric/by_two/segments?by=platform&where=plan=free&since=2026-11-10
        GET /metric/by_two/segments?by=platform,plan&from=2026-11-03&to=2026-11-20
        GET /api/v1/metrics/by_two/segments?by=platform&by=plan
    """,
    "odd days": """
        deniable estimate kept --from 2026-08-10 --to 2026-09-10
        deniable estimate dropped --from 2026-10-01 --to 2026-10-09
        deniable estimate trend kept --by month
        deniable estimate trend kept --from 2026-07-01 --by month
        GET /metric/kept?from=2026-07-01&to=2026-10-31
        GET /metric/kept?from=2026-08-10&to=2026-09-10
        GET /metric/dropped?from=2026-10-01&to=2026-10-09
        GET /metric/dropped?from=2026-09-20&to=2026-11-20
        GET /metric/forged_often?without=2026-11-20,2026-11-19
        GET /metric/today?from=2026-11-21&to=2026-11-21
        GET /metric/today?from=2026-11-19&to=2026-11-20
        GET /metric/damaged?from=2026-11-16&to=2026-11-20
        GET /api/v1/metrics/damaged/trend?by=week
        GET /api/v1/metrics/kept/estimate?from=2026-08-10&to=2026-09-10
        GET /metric/changed?value=a&value=b&value=c&value=d&value=e&value=f&value=g
        GET /metric/changed/trend.svg
        GET /metric/changed/trend.svg?from=2026-11-20
        GET /metric/turns?shares=normalized&given=turns
        GET /metric/turns.svg?shares=normalized
        GET /metric/wide?given=changed
        GET /metric/rows?limit=50
        GET /metric/bits?limit=-5
        GET /metric/few_finds/strings
        GET /metric/few_finds?from=2026-11-19
    """,
    "odd overviews": """
        GET /
        GET /?view=list&sort=attention
        GET /?q=value
        GET /?q=git&state=attention
        GET /?page=2
        GET /?page=0
        GET /?page=1000000
        GET /?page=1234567
        GET /?sort=change&since=Release+5
        GET /?sort=reports&from=2026-11-18&to=2026-11-20&view=list
        GET /?sort=newest&state=waiting
        GET /?lang=zh-Hans
        GET /api/v1/overview
        GET /api/v1/overview?from=2026-08-10&to=2026-09-10
        GET /boards
        GET /boards/oddities
        GET /boards/oddities?lang=zh-Hans
        GET /boards/wrong
        GET /boards/empty
        GET /share?view=/boards/wrong
        DENIABLE_BOARDS=boards DENIABLE_DATA=. deniable lint
        deniable watch digest --annotations annotations.toml
        deniable watch rules.toml --dry-run
        deniable store info --store sqlite:///sums.db
    """,
}

QUESTIONS = {
    name: [" ".join(each.split()) for each in asked.replace("\\\n", "").strip().splitlines()]
    for name, asked in (_ASKED | ODDITIES).items()
}
