"""`deniable init` and `deniable add`: what they write is valid, and what was there stays."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deniable import Registry
from deniable.tools.commands import lint
from deniable.tools.starting.commands import add, init


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder to work in."""
    home = tmp_path / "My Editor"
    home.mkdir()
    monkeypatch.chdir(home)
    return home


def run(command, *words, code=0):
    done = CliRunner().invoke(command, [*map(str, words)])
    assert done.exit_code == code, done.output
    return done


def warnings(path="metrics.toml"):
    found = json.loads(run(lint, path, "--json").stdout)["problems"]
    return [each["message"] for each in found if each["severity"] != "note"]


def names():
    return {path.name for path in Path().iterdir()}


@pytest.mark.parametrize(
    "metric",
    [
        [],
        ["--metric", "dark_mode", "--type", "boolean"],
        ["--metric", "word", "--type", "string"],
        ["--metric", "wait", "--low", "0.1", "--high", "60"],
    ],
    ids=["category", "boolean", "string", "number"],
)
@pytest.mark.parametrize(("where", "devices"), [("python", 500), ("web", 100_000)])
def test_what_init_writes_has_no_warning(where, metric, devices):
    """For each type and place, `deniable lint` has no warning about what `init --yes` has written,
    from 500 devices on, and the file has comments."""
    done = run(init, "--yes", "--where", where, "--devices", devices, *metric)
    assert warnings() == []
    text = Path("metrics.toml").read_text()
    assert text.count("# ") > 6
    registry = Registry.load("metrics.toml")
    assert registry.app == "my-editor"
    (name,) = registry.metrics
    assert registry[name].devices == devices
    example = "app.py" if where == "python" else "index.html"
    assert names() == {"metrics.toml", "compose.yml", example}
    assert len(Path(example).read_text().splitlines()) <= 15
    assert len(done.stdout.partition("Next:\n")[2].splitlines()) == 3
    if where == "web":
        assert registry[name].answer == "at_once"


def test_the_first_metric_says_which_record_counts():
    """The description of the browser is that of its aggregate."""
    for words, order in ((), "last"), (["--at-once"], "first"), (["--where", "web"], "first"):
        run(init, "--yes", "--force", *words)
        metric = Registry.load("metrics.toml")["browser"]
        assert (metric.aggregate, metric.description) == (
            order,
            f"The browser that was used {order}.",
        )


def test_a_folder_whose_name_is_no_apps():
    """Letters that an app's name cannot have are not dropped: `init` wants a name."""
    assert "--app" in run(init, "\u00e9t\u00e9", "--yes", code=2).output
    assert names() == set()
    run(init, "\u00e9t\u00e9", "--yes", "--app", "summer")
    assert Registry.load("\u00e9t\u00e9/metrics.toml").app == "summer"


def test_a_crowd_that_is_too_small_is_told():
    """Ten devices see nothing rare at any epsilon that is proposed: the words say so with lint's
    own warning, and three devices have no signal at all."""
    done = run(init, "--yes", "--devices", 10)
    (warning,) = warnings()
    assert f"- warning: {warning}" in done.stdout
    done = run(init, "--yes", "--force", "--devices", 3)
    assert "no usable signal with 3 devices" in done.stdout


def test_init_replaces_nothing():
    """If one of the files is there, none is written, unless --force says so."""
    for name in ("metrics.toml", "app.py", "compose.yml"):
        Path(name).write_text("mine")
        done = run(init, "--yes", code=1)
        assert f"{name} is there already" in done.output
        assert names() == {name}
        assert Path(name).read_text() == "mine"
        Path(name).unlink()
    Path("app.py").write_text("mine")
    run(init, "--yes", "--where", "web")  # which writes no app.py
    assert Path("app.py").read_text() == "mine"
    run(init, "--yes", "--force")
    assert Path("app.py").read_text() != "mine"


def test_init_refuses_what_lint_refuses():
    """A mistake in an option is told, and nothing is written."""
    for words in (["--app", "My App"], ["--metric", "Bad"], ["--values", "a"]):
        done = run(init, "--yes", *words, code=1)
        assert "Nothing was written" in done.output
        assert names() == set()


OWNER = 'a = DEVICES "\n'


def test_init_takes_hostile_texts():
    """Names and values with quotes, tags and line ends stay texts in each file, and so does what
    stands in a template for something else."""
    value = "</script>\"'$&{x}"
    run(init, "new/folder", "--yes", "--where", "web", "--values", f"{value},b", "--owner", OWNER)
    registry = Registry.load("new/folder/metrics.toml")
    assert registry["browser"].values == (value, "b")
    assert registry["browser"].owner == OWNER
    page = Path("new/folder/index.html").read_text()
    assert page.count("</script>") == 2
    run(init, "python", "--yes", "--values", f"{value},b")
    compile(Path("python/app.py").read_text(), "app.py", "exec")


def test_the_example_runs(tmp_path):
    """app.py of `init` records its value without a collector: it waits for its window to end."""
    run(init, "--yes")
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "DO_NOT_TRACK": "0"}
    done = subprocess.run(
        [sys.executable, "app.py"], capture_output=True, text=True, env=environ, check=True
    )
    assert (done.stdout, done.stderr) == ("telemetry is on\n", "")


def test_the_compose_file():
    """It is YAML with the three services, whose published ports are on loopback, and every
    setting in it is one of the collector's or the dashboard's."""
    from deniable_estimator.dashboard.settings import DashboardSettings

    run(init, "--yes")
    services = yaml.safe_load(Path("compose.yml").read_text())["services"]
    assert set(services) == {"collector", "dashboard", "redis"}
    known = {name for name, _, _ in DashboardSettings.table()}
    for service in services.values():
        assert set(service.get("environment", {})) <= known
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
        assert service["cap_drop"] == ["ALL"]


def test_questions_in_a_terminal(monkeypatch):
    """In a terminal, init asks for what no option says, and add asks before it writes."""
    monkeypatch.setattr("deniable.tools.starting.commands.is_interactive", lambda yes: not yes)

    def ask(command, *words, typed):
        done = CliRunner().invoke(command, words, input=typed)
        assert done.exit_code == 0, done.output
        return done.stdout

    answers = "notes\nweb\nteam@acme.example\n9000\nplan\ncategory\nWhich plan.\nfree,paid\n"
    assert "The app's name [my-editor]" in ask(init, typed=answers)
    registry = Registry.load("metrics.toml")
    assert (registry.app, registry["plan"].values) == ("notes", ("free", "paid"))
    assert registry["plan"].devices == 9000
    before = Path("metrics.toml").read_bytes()
    number = "number\nHow long.\n0.5\n20\nmean\n"
    assert "Nothing was written" in ask(add, "wait", typed=number + "n\n")
    assert Path("metrics.toml").read_bytes() == before
    ask(add, "wait", typed=number + "y\n")
    assert Registry.load("metrics.toml")["wait"].description == "How long."


# ---- add


FILE = """\
# my own words
schema = 1
app = "editor"   # and a comment
[defaults]
owner = "a@acme.example"
expires = 2999-01-01
[metrics.one]
type = "boolean"
description = "One."
epsilon = 1.0
lifetime_epsilon = 2.0
devices = 8000
"""


@pytest.mark.parametrize("text", [FILE, FILE.rstrip(), FILE.replace("\n", "\r\n"), FILE + "\n\n#x"])
def test_add_keeps_the_rest(text):
    """The old bytes come first, and behind them the new table, with the file's own line ends."""
    Path("metrics.toml").write_bytes(text.encode())
    done = run(add, "two", "--type", "category", "--values", "a, b,c")
    written = Path("metrics.toml").read_bytes()
    assert written.startswith(text.encode())
    if "\r\n" in text:
        assert written.count(b"\n") == written.count(b"\r\n")
    registry = Registry.load("metrics.toml")
    assert list(registry.metrics) == ["one", "two"]
    assert registry["two"].values == ("a", "b", "c")
    assert registry["two"].devices == 8000, "one app runs on the same devices"
    assert registry["two"].owner == "a@acme.example"
    assert "With 8,000 reports in a day it shows shares from" in done.stdout


def test_a_dry_run_writes_nothing():
    """--dry-run shows the table and leaves the file."""
    Path("metrics.toml").write_text(FILE)
    done = run(add, "two", "--dry-run")
    assert "[metrics.two]" in done.stdout
    assert Path("metrics.toml").read_text() == FILE


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["one"], "is declared already"),
        (["Two"], "a metric's name"),
        (["two", "--type", "category", "--values", "a,a"], "values"),
        (["two", "--epsilon", "20"], "epsilon"),
        (["two", "--epsilon", "2", "--lifetime-epsilon", "1"], "lifetime_epsilon"),
        (["two", "--low", "3", "--high", "2"], "high"),
        (["two", "--type", "boolean", "--values", "a,b"], "values"),
    ],
)
def test_add_refuses_what_lint_refuses(words, told):
    """Each mistake is told with the key, exit 1, and the file stays as it was."""
    Path("metrics.toml").write_text(FILE)
    done = run(add, *words, code=1)
    assert told in done.output
    assert Path("metrics.toml").read_text() == FILE


def test_a_byte_order_mark_is_no_mistake():
    """An editor may put one in front of UTF-8: it stays there, and the file is read."""
    before = b"\xef\xbb\xbf" + FILE.encode()
    Path("metrics.toml").write_bytes(before)
    run(add, "two", "--yes")
    assert Path("metrics.toml").read_bytes().startswith(before)
    assert "two" in Registry.load("metrics.toml").metrics


def test_add_needs_a_good_file():
    """No file, one that is no text, and one with mistakes are refused and left."""
    assert "deniable init" in run(add, "two", code=1).output
    Path("metrics.toml").write_bytes(b"\xff")
    assert "UTF-8" in run(add, "two", code=1).output
    Path("metrics.toml").write_text("schema = 3\n")
    assert "schema" in run(add, "two", code=1).output
    assert Path("metrics.toml").read_text() == "schema = 3\n"


def test_what_was_given_is_what_is_written():
    """Each option becomes its key."""
    Path("metrics.toml").write_text(FILE)
    run(
        add, "two", "--low", "1", "--high", "9.5", "--ask", "distribution", "--epsilon", "2",
        "--lifetime-epsilon", "6", "--at-once",
    )  # fmt: skip
    metric = Registry.load("metrics.toml")["two"]
    assert (metric.epsilon, metric.lifetime_epsilon, metric.answer) == (2.0, 6.0, "at_once")
    assert metric.type.domain == "1 to 9.5"


@pytest.mark.parametrize(
    ("words", "noise", "told"),
    [
        ("--epsilon 1 --lifetime-epsilon 8", ("memoize", 1.0, 2.0, 8.0), "memos of later edits"),
        ("--lifetime-epsilon 3", ("memoize", 1.0, 2.0, 3.0), "memos of later edits"),
        (
            "--epsilon 2 --lifetime-epsilon 2",
            ("fresh", 2.0, None, 2.0),
            "of a device reveal",
        ),
        ("--lifetime-epsilon 0.5", ("fresh", 0.5, None, 0.5), "of a device reveal"),
        (
            "--type retention --epsilon 2 --lifetime-epsilon 3",
            ("memoize", 2.0, None, 3.0),
            "of one value reveal",
        ),
    ],
)
def test_a_lifetime_that_was_given_has_a_memo_if_there_is_room(words, noise, told):
    """With room, memo_epsilon is proposed; without, noise is fresh where a type has that."""
    Path("metrics.toml").write_text(FILE)
    run(add, "two", *words.split())
    metric = Registry.load("metrics.toml")["two"]
    found = metric.longitudinal, metric.epsilon, metric.memo_epsilon, metric.lifetime_epsilon
    assert found == noise
    lines = Path("metrics.toml").read_text().splitlines()
    assert next(each for each in reversed(lines) if "lifetime_epsilon" in each).endswith(told)


def test_a_file_that_changed_meanwhile(monkeypatch):
    """What somebody else wrote between reading and writing is not lost."""
    from deniable.tools.starting import commands

    Path("metrics.toml").write_text(FILE)
    other = FILE + "# another hand\n"
    monkeypatch.setattr(commands, "show", lambda made: Path("metrics.toml").write_text(other))
    assert "has changed" in run(add, "two", code=1).output
    assert Path("metrics.toml").read_text() == other


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
VALUES = st.text("abc'\"\\ #=[]é😀", min_size=1, max_size=8)


@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(owner=TEXTS, values=st.lists(VALUES, min_size=1))
def test_any_text_is_kept_or_refused(owner, values):
    """Whatever is typed, either the file says exactly that, or it is as it was."""
    Path("metrics.toml").write_text(FILE, encoding="utf-8")
    words = ["--owner", owner, "--values", ",".join(values)]
    done = CliRunner().invoke(init, ["--yes", "--force", *words])
    assert done.exception is None or isinstance(done.exception, SystemExit)
    if done.exit_code:
        assert Path("metrics.toml").read_text(encoding="utf-8") == FILE
    else:
        metric = Registry.load("metrics.toml")["browser"]
        assert metric.owner == owner
        assert list(metric.values) == [each.strip() for each in values if each.strip()]
