"""`deniable init`: a first metrics.toml, an example that records, and a compose file; and
`deniable add`: one more metric in it, after showing what the crowd will see."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from deniable.device.owner import certainty
from deniable.protocol.keys import APP
from deniable.protocol.lasting import lasting, today
from deniable.protocol.mechanisms import Memoizing
from deniable.protocol.metric import Metric
from deniable.protocol.registry import Registry
from deniable.protocol.toml_lines import line_of
from deniable.tools.command_line import MISSING, command, forecasts, writing
from deniable.tools.starting.new_metric import (
    Draft,
    asker,
    draft,
    example_call,
    expiry,
    is_interactive,
    metric_keys,
    metric_options,
    toml_value,
)
from deniable.whole_files import written

_DEVICES = 5_000
_BROWSERS = "firefox,chrome,safari,edge,other"

_NEXT = {
    "python": """\
While you write the app, to see each report within a second:
  deniable dev
  DENIABLE_DEV=http://127.0.0.1:8099 python3 app.py
Next:
  deniable collect
  python3 app.py
  deniable dashboard""",
    "web": """\
While you write the app, to see each report within a second:
  deniable dev
  deniable compile web metrics.toml --out . --development
Next:
  deniable compile web metrics.toml --out .
  DENIABLE_CORS_ORIGINS=http://127.0.0.1:8000 deniable collect
  python3 -m http.server 8000 --bind 127.0.0.1""",
}
"""What to run, by where the app runs; index.html has a line for `deniable dev`."""


@command("deniable init shop --yes")
@click.argument(
    "folder", default=".", type=click.Path(path_type=Path, file_okay=False), metavar="[FOLDER]"
)
@click.option("--app", help="The app's name; by default the folder's.")
@click.option("--metric", help="The first metric (browser).")
@click.option(
    "--where", type=click.Choice([*_NEXT]), help="What records it: a Python app or a page."
)
@click.option("--yes", is_flag=True, help="Ask nothing: defaults for what no option says.")
@click.option("--force", is_flag=True, help="Replace files that are there.")
@click.option("--devices", type=click.IntRange(1), help="How many devices run the app.")
@click.option("--owner", help="Who answers questions about the metrics.")
@metric_options
def init(folder: Path, yes: bool, force: bool, **given: Any) -> None:
    """Write metrics.toml, an example (app.py or index.html) and compose.yml into FOLDER.

    In a terminal it asks for what no option says. No file that is there is replaced without
    --force. The epsilons are the smallest with which the expected `devices` see enough.
    """
    ask = asker(given, interactive=is_interactive(yes=yes))
    if (app := ask("app", "The app's name", _name_of(folder))) is None:
        raise click.UsageError(
            "the folder's name has letters other than a to z, which an app's name cannot have: "
            "give one with --app"
        )
    where = ask("where", "What records", "python", click.Choice([*_NEXT]))
    example = "app.py" if where == "python" else "index.html"
    names = sorted((example, "compose.yml", "metrics.toml"))
    there = [each for each in names if (folder / each).exists()]
    if there and not force:
        raise click.ClickException(
            f"{', '.join(there)} {'is' if len(there) == 1 else 'are'} there already, and "
            "nothing was written: choose another folder, or replace with --force"
        )
    owner = ask("owner", "Who answers questions (a team or an address)", f"{app}@example.com")
    devices = ask("devices", "How many devices run it", _DEVICES, click.IntRange(1))
    name = ask("metric", "The first metric", "browser")
    if where == "web":
        given |= {"at_once": True, "platform": "web"}
    if name == "browser" and given["type"] is None and given["low"] is None:
        order = "first" if given["at_once"] else "last"
        given |= {"type": "category", "description": f"The browser that was used {order}."}
        given["values"] = given["values"] or _BROWSERS
    words = {"APP": app, "OWNER": owner, "EXPIRES": expiry(), "DEVICES": devices}
    head = _filled("metrics.toml", {word: toml_value(each) for word, each in words.items()})
    made = draft(head, name, metric_keys(name, given, ask), folder / "metrics.toml")
    show(made)
    files = {
        "metrics.toml": head + made.block,
        "compose.yml": _filled("compose.yml", {}),
        example: _example(where, app, made.metric),
    }
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            # A file that has come meanwhile is not replaced either.
            with written(folder / file, None, replacing=force) as opened:
                opened.write(text.encode())
            click.echo(f"wrote {folder / file}")
    if folder != Path():
        click.echo(f"cd {folder}")
    click.echo(_NEXT[where])


def _filled(template: str, words: Mapping[str, str]) -> str:
    """A file that is written: its template, with these words in capitals filled in."""
    text = Path(__file__).parent.joinpath("templates", template).read_text(encoding="utf-8")
    return re.sub("[A-Z]+", lambda found: words.get(found[0], found[0]), text)


def _name_of(folder: Path) -> str | None:
    """An app's name from a folder's; None if it has letters that an app's name cannot have."""
    name = folder.absolute().name.lower()
    if any(each.isalnum() and not each.isascii() for each in name):
        return None
    name = re.sub(r"[^a-z0-9_-]+", "-", name).strip("-")[:64]
    return name if APP.fullmatch(name) else "app"


def _example(where: str, app: str, metric: Metric) -> str:
    """What records the metric."""
    call = example_call(metric)
    if where == "web":
        return _filled("index.html", {"APP": app, "CALL": call.script})
    when = (
        "sends the report now"
        if metric.answer == "at_once"
        else f"on the disk now, and reported when the {metric.window} (UTC) is over"
    )
    return _filled("app.py.txt", {"CALL": call.python, "WHEN": when})


@command("deniable add weather --type boolean --epsilon 1 --yes")
@click.argument("metric")
@click.option(
    "--registry",
    "path",
    default="metrics.toml",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="The file (metrics.toml).",
)
@click.option("--dry-run", is_flag=True, help="Show the metric, and write nothing.")
@click.option("--yes", is_flag=True, help="Ask nothing.")
@metric_options
@click.option("--of", metavar="A,B", help="The two metrics of a pair.")
@click.option(
    "--ask", type=click.Choice(["mean", "distribution"]), help="What to know of a number."
)
@click.option("--epsilon", type=float, help="Limit on what one report reveals.")
@click.option(
    "--lifetime-epsilon",
    type=float,
    help="Limit on what all reveal. As large as --epsilon: a device reports once.",
)
def add(metric: str, path: Path, dry_run: bool, yes: bool, **given: Any) -> None:
    """Add METRIC to a metrics.toml: show what the crowd will and will not see, then write it.

    In a terminal it asks for what no option says. Epsilons that are not given are proposed: the
    smallest with which the expected `devices` see enough. Booleans, categories and strings are
    memoized if the lifetime epsilon has room for a memo of twice the epsilon; if not, and for other
    types, each report has new noise. What `deniable lint` refuses is not written. The rest of the
    file stays as it is, byte for byte.
    """
    if not path.exists():
        raise click.ClickException(f"there is no file {path}: `deniable init` writes one")
    registry = Registry.load(path)
    if metric in registry.metrics:
        line = line_of(registry.lines, ("metrics", metric))
        raise click.ClickException(
            f"{path}:{line}: the metric {metric} is declared already: choose another name, or "
            "edit it"
        )
    before = path.read_bytes()
    text = before.decode("utf-8-sig")
    gap = "\n" if text.endswith("\n") else "\n\n"  # an empty line before the table
    interactive = is_interactive(yes=yes)
    keys = metric_keys(metric, given, asker(given, interactive=interactive))
    made = draft(text + gap, metric, keys | _missing(text, registry), path)
    show(made)
    if dry_run:
        click.echo("Nothing was written (--dry-run).")
        return
    if interactive and not click.confirm(f"Add it to {path}?", default=True):
        click.echo("Nothing was written.")
        return
    if not os.access(path, os.W_OK):
        raise click.ClickException(f"{path} is read-only: let yourself write to it")
    addition = (gap + made.block).replace("\n", "\r\n" if "\r\n" in text else "\n")
    with writing(path), written(path) as file:
        if path.read_bytes() != before:
            raise click.ClickException(f"{path} has changed meanwhile: try again")
        file.write(before + addition.encode())
    click.echo(f"{metric} is in {path}. Give it to the collector first, and then to the app.")


def show(made: Draft) -> None:
    """The new metric as it will stand in the file, what the crowd sees, and lint's remarks."""
    click.echo(made.block)
    crowd = forecasts()
    seen = [f"{MISSING}."] if crowd is None else crowd.seen(made.metric)
    for sentence in (*seen, *_reveals(made.metric, made.registry)):
        click.echo(f"- {sentence}")
    for problem in made.problems:
        click.echo(f"- {problem.severity}: {problem.message}")
    click.echo()


def _reveals(metric: Metric, registry: Registry) -> Iterator[str]:
    """What one report of the metric reveals, what all of them do, and how long there are some."""
    mechanism = metric.scheme.mechanism
    epsilon = mechanism.epsilon
    yield (
        f"One report reveals at most epsilon {epsilon:.4g}: it makes a 50/50 guess between two "
        f"values right at most {certainty(Fraction(epsilon))}% of the time."
    )
    if isinstance(mechanism, Memoizing):
        yield (
            f"All reports of one value together reveal at most epsilon {metric.memo_limit:g}, "
            "however many they are. When the value changes is not hidden "
            "(docs/explanation/many-reports.md)."
        )
    else:
        yield (
            "All reports of a device together reveal at most epsilon "
            f"{metric.lifetime_epsilon:g}, whatever its values were."
        )
    if told := lasting(registry, today()).get(metric.name):
        yield f"{told.text.capitalize()}, if it uses the app every day."


def _missing(text: str, registry: Registry) -> dict[str, Any]:
    """The keys that a metric needs and [defaults] does not give."""
    defaults = tomllib.loads(text).get("defaults", {})
    keys: dict[str, Any] = {}
    if "owner" not in defaults:
        keys["owner"] = next(iter(registry)).owner
    if defaults.get("expires", date.min) < today():
        keys["expires"] = expiry()
    stated = [each.devices for each in registry if each.devices is not None]
    if stated and "devices" not in defaults:
        keys["devices"] = max(stated)  # one app runs on the same devices
    return keys
