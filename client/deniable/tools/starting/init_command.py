"""`deniable init`: a first metrics.toml, an example that records, and a compose file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from deniable.protocol.keys import APP
from deniable.protocol.metric import Metric
from deniable.tools.command_line import command, writing
from deniable.tools.starting.add_command import show
from deniable.tools.starting.example import example_call
from deniable.tools.starting.new_metric import (
    asker,
    draft,
    expiry,
    is_interactive,
    metric_keys,
    metric_options,
    refusing,
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
    interactive = is_interactive(yes=yes)
    ask = asker(given, interactive=interactive)
    app = ask("app", "The app's name", _name_of(folder))
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
    if name == "browser" and given.get("type") is None and given.get("low") is None:
        given["type"] = "category"
        given["description"] = given.get("description") or "The browser that was used last."
        given["values"] = given.get("values") or _BROWSERS
    if where == "web":
        given |= {"at_once": True, "platform": "web"}
    words = {"APP": app, "OWNER": owner, "EXPIRES": expiry(), "DEVICES": devices}
    head = _filled("metrics.toml", {word: toml_value(each) for word, each in words.items()})
    keys = metric_keys(name, given, interactive=interactive)
    with refusing("metrics.toml"):
        made = draft(head, name, keys, folder / "metrics.toml")
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


def _name_of(folder: Path) -> str:
    """An app's name from a folder's."""
    name = re.sub(r"[^a-z0-9_-]+", "-", folder.absolute().name.lower()).strip("-")[:64]
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
