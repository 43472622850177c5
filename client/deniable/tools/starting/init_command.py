"""`deniable init`: a first metrics.toml, an example that records, and a compose file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click

from deniable.protocol.keys import APP
from deniable.protocol.metric import Metric
from deniable.tools.command_line import command, writing
from deniable.tools.starting.add_command import show
from deniable.tools.starting.example import example_call
from deniable.tools.starting.new_metric import (
    Draft,
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

ENDPOINT = "http://127.0.0.1:8080"
"""Where `deniable collect` listens by default."""

_DEVICES = 5_000
_BROWSERS = "firefox,chrome,safari,edge,other"

_WHERE = ("python", "web")

_WHILE_WRITING = {
    "python": ("deniable dev", "DENIABLE_DEV=http://127.0.0.1:8099 python3 app.py"),
    "web": ("deniable dev", "deniable compile web metrics.toml --out . --development"),
}
"""To see each report at once; index.html has a line for it."""

_NEXT = {
    "python": ("deniable collect", "python3 app.py", "deniable dashboard"),
    "web": (
        "deniable compile web metrics.toml --out .",
        "DENIABLE_CORS_ORIGINS=http://127.0.0.1:8000 deniable collect",
        "python3 -m http.server 8000 --bind 127.0.0.1",
    ),
}


@command("deniable init shop --yes")
@click.argument(
    "folder", default=".", type=click.Path(path_type=Path, file_okay=False), metavar="[FOLDER]"
)
@click.option("--app", help="The app's name; by default the folder's.")
@click.option("--metric", help="The first metric (browser).")
@click.option("--where", type=click.Choice(_WHERE), help="What records it: a Python app or a page.")
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
    where = ask("where", "What records", "python", click.Choice(_WHERE))
    files = {"metrics.toml", "compose.yml", "app.py" if where == "python" else "index.html"}
    _refuse_to_replace(folder, files, force=force)
    owner = ask("owner", "Who answers questions (a team or an address)", f"{app}@example.com")
    devices = ask("devices", "How many devices run it", _DEVICES, click.IntRange(1))
    name = ask("metric", "The first metric", "browser")
    if name == "browser" and given.get("type") is None and given.get("low") is None:
        given["type"] = "category"
        given["description"] = given.get("description") or "The browser that was used last."
        given["values"] = given.get("values") or _BROWSERS
    if where == "web":
        given |= {"at_once": True, "platform": "web"}
    head = _template("metrics.toml")
    for word, value in (
        ("APP", app), ("OWNER", owner), ("EXPIRES", expiry()), ("DEVICES", devices)
    ):  # fmt: skip
        head = head.replace(f"= {word} ", f"= {toml_value(value)} ")
    keys = metric_keys(name, given, interactive=interactive)
    with refusing("metrics.toml"):
        made = draft(head, name, keys, folder / "metrics.toml")
    show(made, name)
    _write(folder, _files(app, where, head, made, made.registry[name]), force=force)
    if folder != Path():
        click.echo(f"cd {folder}")
    click.echo("While you write the app, to see each report within a second:")
    for line in _WHILE_WRITING[where]:
        click.echo(f"  {line}")
    click.echo("Next:")
    for line in _NEXT[where]:
        click.echo(f"  {line}")


def _template(name: str) -> str:
    """A file that is written, with words in capitals to fill in."""
    return (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")


def _name_of(folder: Path) -> str:
    """An app's name from a folder's."""
    name = re.sub(r"[^a-z0-9_-]+", "-", folder.absolute().name.lower()).strip("-")[:64]
    return name if APP.fullmatch(name) else "app"


def _files(app: str, where: str, head: str, made: Draft, metric: Metric) -> dict[str, str]:
    """The name and the text of each file."""
    call = example_call(metric)
    files = {"metrics.toml": head + made.block, "compose.yml": _template("compose.yml")}
    if where == "web":
        page = _template("index.html").replace("APP", app).replace("ENDPOINT", json.dumps(ENDPOINT))
        files["index.html"] = page.replace("CALL", call.script)
        return files
    when = (
        "sends the report now"
        if metric.answer == "at_once"
        else f"on the disk now, and reported when the {metric.window} (UTC) is over"
    )
    script = _template("app.py.txt").replace("ENDPOINT", json.dumps(ENDPOINT))
    files["app.py"] = script.replace("WHEN", when).replace("CALL", call.python)
    return files


def _refuse_to_replace(folder: Path, names: set[str], *, force: bool) -> None:
    there = sorted(name for name in names if (folder / name).exists())
    if there and not force:
        raise click.ClickException(
            f"{', '.join(there)} {'is' if len(there) == 1 else 'are'} there already, and nothing "
            "was written: choose another folder, or replace with --force"
        )


def _write(folder: Path, files: dict[str, str], *, force: bool) -> None:
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            # A file that has come meanwhile is not replaced either.
            with written(folder / name, None, replacing=force) as file:
                file.write(text.encode())
            click.echo(f"wrote {folder / name}")
