"""`deniable lint` and `deniable sent`: what they print and how they exit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from deniable import Client, Registry, compiled
from deniable.commands import lint, sent
from deniable.mechanisms import choice

MakeClient = Callable[..., Client]
REGISTRIES = Path(__file__).parent / "registries"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs a command on a wide terminal."""
    monkeypatch.setenv("COLUMNS", "200")

    def invoke(command: Any, *arguments: object) -> Any:
        return CliRunner().invoke(command, [str(each) for each in arguments])

    return invoke


def test_lint_shows_what_each_metric_reveals(run: Callable[..., Any]) -> None:
    """A good registry gives a table with every metric and its scheme, and exit code 0."""
    result = run(lint, REGISTRIES / "good.toml")
    listed = json.loads(run(lint, REGISTRIES / "good.toml", "--json").stdout)
    assert result.exit_code == 0
    assert listed["metrics"]
    for facts in listed["metrics"]:
        assert facts["name"] in result.stdout
        assert facts["scheme"] in result.stdout
        assert facts["lifetime_reports"] * facts["epsilon"] <= facts["lifetime_epsilon"]


def test_lint_prints_every_mistake_with_its_line(run: Callable[..., Any]) -> None:
    """A bad registry gives one line for each problem, as file:line, and exit code 1."""
    path = REGISTRIES / "every_mistake.toml"
    result = run(lint, path)
    listed = run(lint, path, "--json")
    problems = json.loads(listed.stdout)["problems"]
    assert result.exit_code == listed.exit_code == 1
    lines = result.stderr.splitlines()
    assert len(lines) == len(problems) > 20
    for line, problem in zip(lines, problems, strict=True):
        place = path if problem["line"] is None else f"{path}:{problem['line']}"
        assert line.startswith(f"{place}: error: ")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("", []),
        ("platform = 'python'", []),
        ("platform = 'web'", ["bounds one life of a browser's storage", "never reports"]),
        ("platform = ['python', 'web']", ["bounds one life", "never reports"]),
        (
            "platform = 'web'\nanswer = 'at_once'\naggregate = 'first'\nwindow = 'month'",
            ["lifetime_epsilon bounds one life"],
        ),
        (
            "platform = 'web'\nlongitudinal = 'memoize'\nmemo_epsilon = 2.0",
            ["a second memo", "never reports"],
        ),
    ],
)
def test_lint_notes_what_the_web_changes(
    run: Callable[..., Any], tmp_path: Path, keys: str, said: list[str]
) -> None:
    """A metric of the web gets a note on the storage of browsers, and one on visitors who do not
    come back unless it is answered at once; no other metric gets any."""
    path = tmp_path / "metrics.toml"
    path.write_text(
        "schema = 1\napp = 'example'\n"
        "[metrics.m]\ntype = 'boolean'\ndescription = 'd'\nowner = 'o'\n"
        f"expires = 2099-01-01\nepsilon = 1.0\nlifetime_epsilon = 4.0\n{keys}\n"
    )
    found = json.loads(run(lint, path, "--json").stdout)["problems"]
    web = [each for each in found if "on the web" in each["message"]]
    assert len(web) == len(said)
    for problem, words in zip(web, said, strict=True):
        assert problem["severity"] == "note"
        assert problem["line"] == 3
        assert words in problem["message"]


def test_an_edit_of_the_platform_costs_nothing(run: Callable[..., Any], tmp_path: Path) -> None:
    """Another platform is the same scheme and the same ledger: `--since` says nothing of it."""
    text = (REGISTRIES / "good.toml").read_text(encoding="utf-8")
    before, after = tmp_path / "before.toml", tmp_path / "after.toml"
    before.write_text(text, encoding="utf-8")
    after.write_text(text.replace("type = ", 'platform = "python"\ntype = '), encoding="utf-8")
    for path, since in ((after, before), (before, after)):
        found = json.loads(run(lint, path, "--since", since, "--json").stdout)["problems"]
        assert found == json.loads(run(lint, path, "--since", path, "--json").stdout)["problems"]


def test_lint_reads_a_compiled_registry(run: Callable[..., Any], tmp_path: Path) -> None:
    """What is shown of metrics.json is what is shown of its metrics.toml, but why `auto` chose."""
    shown = []
    registry = Registry.load(REGISTRIES / "good.toml")
    path = tmp_path / "metrics.json"
    path.write_text(compiled.to_text(compiled.to_document(registry)), encoding="utf-8")
    for each in (REGISTRIES / "good.toml", path):
        metrics = json.loads(run(lint, each, "--json").stdout)["metrics"]
        shown.append([{**facts, "explanation": None} for facts in metrics])
    assert shown[0] == shown[1]


def test_lint_warns_of_what_cannot_work(run: Callable[..., Any], tmp_path: Path) -> None:
    """Too small a crowd and an expired metric are warnings at their line, with exit code 0."""
    path = tmp_path / "metrics.toml"
    path.write_text(
        "schema = 1\napp = 'example'\n"
        "[metrics.m]\ntype = 'boolean'\ndescription = 'd'\nowner = 'o'\n"
        "expires = 2020-01-01\nepsilon = 0.1\nlifetime_epsilon = 0.1\ndevices = 500\n"
    )
    result = run(lint, path)
    assert result.exit_code == 0
    assert f"{path}:3: warning: metrics.m: no usable signal with 500 devices" in result.stderr
    assert f"{path}:3: warning: metrics.m: expired on 2020-01-01" in result.stderr
    warned = json.loads(run(lint, path, "--json").stdout)["problems"]
    assert [problem["severity"] for problem in warned] == ["warning", "warning"]


@pytest.mark.parametrize(
    ("devices", "severity"), [(400, "warning"), (1_000, "note"), (20_000, None)]
)
def test_lint_warns_of_crowds_that_see_no_large_share(
    run: Callable[..., Any], tmp_path: Path, devices: int, severity: str | None
) -> None:
    """A crowd that cannot see a share of 5% is a warning, one that cannot see 1% a note. At
    epsilon 2 a boolean's crowd of 400, 1,000 and 20,000 sees 6.3%, 4% and 0.9%."""
    path = tmp_path / "metrics.toml"
    path.write_text(
        "schema = 1\napp = 'example'\n"
        "[metrics.m]\ntype = 'boolean'\ndescription = 'd'\nowner = 'o'\n"
        f"expires = 2099-01-01\nepsilon = 2\nlifetime_epsilon = 8\ndevices = {devices}\n"
    )
    found = json.loads(run(lint, path, "--json").stdout)["problems"]
    assert [each["severity"] for each in found] == ([severity] if severity else [])


def test_lint_explains_each_mechanism(run: Callable[..., Any]) -> None:
    """--explain says for each metric why it has its mechanism and what that loses."""
    result = run(lint, REGISTRIES / "good.toml", "--explain")
    assert result.exit_code == 0
    assert "dark_mode: subset selection has the least possible error" in result.stdout
    assert "drink: randomized response is named in the registry. Its variance is" in result.stdout
    assert "homepage: hashed projective geometry takes any string" in result.stdout


def test_lint_says_what_a_lifetime_bounds(run: Callable[..., Any], tmp_path: Path) -> None:
    """Of a metric with memory the lifetime is a memo's, so no number of reports is given; the
    reason for its mechanism is that of a mechanism with memory."""
    keys = "description = 'd'\nowner = 'o'\nexpires = 2037-01-01\nlongitudinal = 'memoize'\n"
    (tmp_path / "metrics.toml").write_text(
        "schema = 1\napp = 'example'\n"
        f"[metrics.a]\ntype = 'boolean'\n{keys}epsilon = 1.0\nlifetime_epsilon = 2.0\n"
        f"[metrics.b]\ntype = 'string'\n{keys}epsilon = 1.0\nlifetime_epsilon = 2.0\n"
    )
    result = run(lint, tmp_path / "metrics.toml", "--explain")
    listed = json.loads(run(lint, tmp_path / "metrics.toml", "--json").stdout)["metrics"]
    assert result.exit_code == 0
    assert "a memo" in result.stdout
    assert "reports" not in result.stdout
    assert [each["lifetime_reports"] for each in listed] == [None, None]
    assert [each["longitudinal"] for each in listed] == ["memoize", "memoize"]
    assert "subset selection of a memo has 1 times the least" in listed[0]["explanation"]
    assert "cohort local hashing of a memo" in listed[1]["explanation"]


EDITED = """
schema = 1
app = "editor"
[defaults]
owner = "a"
expires = 2037-06-30
[metrics.kept]
type = "category"
values = ["x", "y", "z"]
description = "With memory."
longitudinal = "memoize"
epsilon = 1.0
memo_epsilon = 3.0
lifetime_epsilon = 7.0
[metrics.fresh]
type = "boolean"
description = "Without memory."
epsilon = 1.0
lifetime_epsilon = 3.0
"""


@pytest.mark.parametrize(
    ("memo", "lifetime", "words"),
    [
        (3.0, 7.0, "has room for 2 of them, so a device stops for good at change 2"),
        (2.0, 7.0, "has room for 3 of them, so a device stops for good at change 3"),
        (4.0, 7.0, "has room for one, so devices that have reported would stop for good"),
    ],
)
def test_lint_says_how_often_memory_may_change(
    run: Callable[..., Any], tmp_path: Path, memo: float, lifetime: float, words: str
) -> None:
    """A note beside every metric with memory, and beside no other, says what a change costs; the
    reason for its mechanism is that of the memo in force."""
    path = tmp_path / "metrics.toml"
    path.write_text(EDITED.replace("memo_epsilon = 3.0", f"memo_epsilon = {memo}"))
    result = run(lint, path)
    assert result.exit_code == 0
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"{path}:7: note: metrics.kept: a change of its values, epsilon, memo_")
    assert words in line
    explained = run(lint, path, "--explain").stdout
    mechanism = Registry.load(path)["kept"].scheme.mechanism
    told = choice.explain_memoized(3, "kept", 1.0, memo)
    assert told.mechanism.parameters() == mechanism.parameters()
    assert f"kept: {told.reason}" in explained


def test_lint_takes_a_lifetime_above_that_of_a_memo(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    """Where memo_epsilon is declared, the lifetime may be longer than any memo's."""
    path = tmp_path / "metrics.toml"
    path.write_text(EDITED.replace("lifetime_epsilon = 7.0", "lifetime_epsilon = 300.0"))
    for options in ((), ("--explain",), ("--json",)):
        assert run(lint, path, *options).exit_code == 0


def test_lint_warns_of_a_cap_that_no_report_fits_into(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    """The registry's own lifetime below the cost of one report is told at each such metric."""
    path = tmp_path / "metrics.toml"
    path.write_text(EDITED.replace('app = "editor"', 'app = "editor"\nlifetime_epsilon = 0.5'))
    result = run(lint, path)
    warned = [line for line in result.stderr.splitlines() if "warning" in line]
    assert len(warned) == 2
    assert all("no device can ever report" in line for line in warned)


@pytest.mark.parametrize(
    ("old", "new", "where", "words"),
    [
        ('"z"]', '"z", "w"]', "kept", "3 for the memos before and 3 for these fit into"),
        ("memo_epsilon = 3.0", "memo_epsilon = 5.0", "kept", "are more than lifetime_epsilon 7"),
        ("memo_epsilon = 3.0", "memo_epsilon = 5.0", "kept", "lifetime_epsilon of at least 8"),
        ("longitudinal = \"memoize\"\nepsilon = 1.0\nmemo_epsilon = 3.0", "epsilon = 1.0", "kept",
         "gives up its memos"),
        ("lifetime_epsilon = 3.0", "lifetime_epsilon = 3.0\nlongitudinal = 'memoize'", "fresh",
         "begins to memoize: a memo is charged 3"),
        ("epsilon = 1.0\nlifetime_epsilon = 3.0", "epsilon = 1.5\nlifetime_epsilon = 3.0", "fresh",
         "is a new scheme: devices continue with the ledger"),
        ('app = "editor"', 'app = "viewer"', "app", "devices start again"),
        ('app = "editor"', 'app = "editor"\nlifetime_epsilon = 9', "lifetime_epsilon",
         "was no limit"),
        ("[metrics.fresh]", "[metrics.renamed]", "metrics.fresh", "is gone: devices delete"),
        ("epsilon = 1.0\nlifetime_epsilon = 3.0", "epsilon = 1.0\nlifetime_epsilon = 1.0", "fresh",
         "has room for 1 reports, and had room for 3"),
        ("lifetime_epsilon = 7.0", "lifetime_epsilon = 3.0", "kept",
         "has room for 1 schemes with memos, and had room for 2"),
        ('"With memory."', '"Described anew."', None, ""),
    ],
)  # fmt: skip
def test_lint_compares_with_an_earlier_registry(
    run: Callable[..., Any], tmp_path: Path, old: str, new: str, where: str | None, words: str
) -> None:
    """`--since` names each metric whose scheme changed, with what that costs on devices, and
    nothing else; what lint says without it is left aside."""
    before, after = tmp_path / "old.toml", tmp_path / "metrics.toml"
    before.write_text(EDITED)
    assert old in EDITED
    after.write_text(EDITED.replace(old, new))
    result = run(lint, after, "--since", before)
    assert result.exit_code == 0
    lines = [each for each in result.stderr.splitlines() if "within the same" not in each]
    assert len(lines) == (where is not None)
    if where is not None:
        assert words in lines[0]
        assert where in lines[0]
    assert run(lint, after, "--since", tmp_path / "none.toml").exit_code == 1


NUMBERS = """
schema = 1
app = "example"
[defaults]
owner = "o@acme.example"
expires = 2099-01-01

[metrics.startup]
type = "number"
description = "How long the app takes to start."
low = 0.05
high = 20
unit = "s"
ask = "distribution"
epsilon = 1.0
lifetime_epsilon = 1.0
devices = 20_000

[metrics.memory]
type = "number"
description = "How much memory is in use."
low = 1
high = 64
unit = "GB"
scale = "log"
ask = ["mean", "distribution"]
epsilon = 1.0
lifetime_epsilon = 1.0

[metrics.starts]
type = "number"
description = "How often the app starts."
low = 0
high = 100
ask = "mean"
aggregate = "count"
epsilon = 6.0
lifetime_epsilon = 8.0
"""


def test_lint_shows_numbers(run: Callable[..., Any], tmp_path: Path) -> None:
    """The table has their ranges, --explain their mechanisms, and notes say which quantiles the
    crowd will never bound and which range wastes cells."""
    path = tmp_path / "metrics.toml"
    path.write_text(NUMBERS)
    result = run(lint, path, "--explain")
    assert result.exit_code == 0
    for text in ("0.05 to 20 s", "1 to 64 GB", "0 to 100", "hierarchical histogram"):
        assert text in result.stdout
    assert "memory: a hierarchical histogram tells shares of ranges" in result.stdout
    assert "1 of 4 devices reports for the mean" in result.stdout
    assert "starts: a sliding window has close to the least error" in result.stdout
    notes = result.stderr.splitlines()
    assert len(notes) == 2
    assert "8: note: metrics.startup: with 20,000 devices at sample_rate 1 p95, p99 wi" in notes[0]
    assert "high is 400 times low on a linear scale" in notes[1]
    path.write_text(NUMBERS.replace("20_000", "100"))
    assert "warning: metrics.startup: with 100 devices" in run(lint, path).stderr
    path.write_text(NUMBERS.replace("epsilon = 6.0", "epsilon = 5.0"))
    assert (
        "starts: the variance of a sliding window is within 2%"
        in run(lint, path, "--explain").stdout
    )


def test_lint_tells_what_an_edit_of_a_number_costs(run: Callable[..., Any], tmp_path: Path) -> None:
    """Another range is another scheme; another unit is the same one, and numbers of both are
    added up."""
    before, after = tmp_path / "before.toml", tmp_path / "after.toml"
    before.write_text(NUMBERS)
    after.write_text(
        NUMBERS.replace("high = 20", "high = 30")
        .replace('"GB"', '"MB"')
        .replace("20_000", "10_000_000")
    )
    notes = [
        line
        for line in run(lint, after, "--since", before).stderr.splitlines()
        if "linear scale" not in line
    ]
    assert len(notes) == 2
    assert "metrics.startup: is a new scheme: devices continue with the ledger" in notes[0]
    assert "metrics.memory: had the unit 'GB' and has 'MB': the scheme is the same" in notes[1]
    before.write_text(NUMBERS.replace('unit = "GB"\n', ""))
    assert "had the unit none and has 'MB'" in run(lint, after, "--since", before).stderr


@pytest.mark.parametrize(
    ("was", "becomes", "told"),
    [
        ('ask = "distribution"', 'ask = "mean"', "cannot combine a mean with a distribution"),
        ("high = 100", "high = 200", "over days of both tell those of the larger part"),
        ('scale = "log"', 'scale = "linear"', "cannot combine another scale"),
        ("epsilon = 1.0", "epsilon = 0.5", "combine both schemes"),
        ('aggregate = "last"', 'aggregate = "sum"', "had the aggregate last and has sum"),
    ],
)
def test_lint_tells_whether_estimates_go_on(
    run: Callable[..., Any], tmp_path: Path, was: str, becomes: str, told: str
) -> None:
    """An edit of a number says what estimates over days before and after it will do."""
    text = """schema = 1
app = "example"
[metrics.startup]
type = "number"
description = "How long does it take?"
owner = "me"
expires = 2099-01-01
low = 1
high = 100
scale = "log"
aggregate = "last"
ask = "distribution"
epsilon = 1.0
lifetime_epsilon = 8.0
"""
    before, after = tmp_path / "before.toml", tmp_path / "after.toml"
    before.write_text(text)
    after.write_text(text.replace(was, becomes))
    assert told in run(lint, after, "--since", before).stderr


def test_lint_tells_what_the_time_of_an_answer_shows(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    """A metric that is answered at once has a note; a change of `answer` says what it means, in
    both directions, and keeps the scheme."""
    close = """schema = 1
app = "example"
[metrics.startup]
type = "boolean"
description = "Was it slow?"
owner = "me"
expires = 2099-01-01
window = "week"
aggregate = "first"
epsilon = 1.0
lifetime_epsilon = 1.0
"""
    at_close, at_once = tmp_path / "close.toml", tmp_path / "once.toml"
    at_close.write_text(close)
    at_once.write_text(close + 'answer = "at_once"\n')
    seen = "within ten seconds, when a device that takes part first records it in a week"
    assert seen in run(lint, at_once).stderr
    assert run(lint, at_close).stderr == ""
    there = run(lint, at_once, "--since", at_close).stderr
    assert "was answered at_close and is answered at_once" in there
    assert "Give the collector this registry before the app" in there
    back = run(lint, at_close, "--since", at_once).stderr
    assert "was answered at_once and is answered at_close" in back
    assert "new scheme" not in there + back
    assert "answered" not in run(lint, at_once, "--since", at_once).stderr.replace(
        seen, ""
    ).replace("is answered at_once, so", "")


def test_lint_without_a_file_says_so(run: Callable[..., Any], tmp_path: Path) -> None:
    """A file that is not there is a problem like others."""
    result = run(lint, tmp_path / "none.toml")
    assert result.exit_code == 1
    assert "cannot be read" in result.stderr


@pytest.fixture
def state_dir(make_client: MakeClient, clock: Any, tmp_path: Path) -> Path:
    """The state of a device that has sent one report."""
    client = make_client()
    client.record("browser", "chrome")
    clock.days(1)
    assert client.flush()
    client.close()
    return tmp_path / "state"


def test_sent_speaks_in_words(run: Callable[..., Any], state_dir: Path) -> None:
    """The text and the JSON have the report, its status and its sentence."""
    result = run(sent, "--state-dir", state_dir)
    assert result.exit_code == 0
    document = json.loads(run(sent, "--state-dir", state_dir, "--json").stdout)
    assert document["erased"] is None
    (report,) = document["reports"]
    assert report["metric"] == "browser"
    assert report["status"] == "sent"
    assert report["window"] == "2027-01-04"
    assert len(report["likelihoods"]) == 5
    flat = " ".join(result.stdout.split())
    assert flat.startswith("2027-01-04, browser (sent): your device said “")
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_sent_finds_the_only_state(
    run: Callable[..., Any], state_dir: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without a name the user's only state is shown; none or several ask for a choice."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    none = run(sent)
    assert none.exit_code == 1
    assert "--state-dir" in none.output
    root = tmp_path / "xdg" / "deniable"
    root.mkdir(parents=True)
    state_dir.rename(root / "one")
    assert len(json.loads(run(sent, "--json").stdout)["reports"]) == 1
    (root / "two").mkdir()
    (root / "two" / "state.sqlite3").touch()
    several = run(sent)
    assert several.exit_code == 1
    assert "--app two" in several.output
    assert len(json.loads(run(sent, "--app", "one", "--json").stdout)["reports"]) == 1
    assert "no state of deniable in" in run(sent, "--app", "three").output


def test_sent_says_that_reports_were_erased(
    run: Callable[..., Any], state_dir: Path, tmp_path: Path
) -> None:
    """After an erasure text, JSON and page give its day, and do not claim that nothing was ever
    reported."""
    before = run(sent, "--state-dir", state_dir)
    assert "erased" not in before.output
    erased = run(sent, "--state-dir", state_dir, "--erase")
    assert erased.exit_code == 0, erased.output
    today = datetime.now(UTC).date().isoformat()
    text = run(sent, "--state-dir", state_dir).output
    assert f"What was reported before was erased on {today}" in " ".join(text.split())
    assert "not reported anything" not in text
    document = json.loads(run(sent, "--state-dir", state_dir, "--json").stdout)
    assert document == {"erased": today, "reports": []}
    run(sent, "--state-dir", state_dir, "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"was erased on {today}" in page
    assert "not reported anything" not in page


def test_sent_switches_off_an_app_that_has_not_reported(
    run: Callable[..., Any], tmp_path: Path, make_client: Any
) -> None:
    """An owner may say no before the first record; the app then keeps nothing."""
    assert run(sent, "--state-dir", tmp_path / "state", "--switch-off").exit_code == 0
    client = make_client()
    client.record("browser", "chrome")
    assert client.flush()
    assert client.status == "no_consent"
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["switched-off"]


def test_sent_says_where_no_app_has_kept_anything(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An owner who mistypes a name learns it, because the app with the right name goes on; what
    can be no name changes nothing."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    done = run(sent, "--app", "edtior", "--switch-off")
    assert "No app has kept anything in" in done.output
    assert "edtior" in done.output
    for name in ("../elsewhere", "Editor", ""):
        done = run(sent, "--app", name, "--switch-off")
        assert done.exit_code == 1
        assert "no app can be named" in done.output
    assert [path.name for path in (tmp_path / "deniable").iterdir()] == ["edtior"]


def test_sent_needs_no_home(state_dir: Path, tmp_path: Path) -> None:
    """With --state-dir it runs for a user without a home, in a terminal that knows ASCII alone."""
    script = (
        "import pathlib\n"
        "def no_home(): raise RuntimeError\n"
        "pathlib.Path.home = no_home\n"
        "from deniable.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "sent", "--state-dir", state_dir],
        env={"PATH": os.environ["PATH"], "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"your device said ?" in done.stdout


def test_sent_has_a_help_text(run: Callable[..., Any]) -> None:
    """`--help` lists every option, and an unknown one is an error of usage."""
    text = run(sent, "--help").output
    for option in ("--app", "--state-dir", "--html", "--switch-off", "--erase", "--json"):
        assert option in text
    assert run(sent, "--colour").exit_code == 2


def test_sent_creates_nothing(run: Callable[..., Any], tmp_path: Path) -> None:
    """Asking about a device that does not exist is an error and leaves no file."""
    result = run(sent, "--state-dir", tmp_path)
    assert result.exit_code == 1
    assert "no state" in result.output
    assert list(tmp_path.iterdir()) == []


def test_sent_names_damage(run: Callable[..., Any], state_dir: Path) -> None:
    """A damaged state is an error in words, not a traceback."""
    (state_dir / "state.sqlite3").write_bytes(b"x" * 10_000)
    result = run(sent, "--state-dir", state_dir)
    assert result.exit_code == 1
    assert "damaged" in result.output


def test_sent_before_the_first_report(
    run: Callable[..., Any], make_client: MakeClient, tmp_path: Path
) -> None:
    """A device that has sent nothing says so."""
    client = make_client()
    client.record("browser", "chrome")
    client.close()
    result = run(sent, "--state-dir", tmp_path / "state")
    assert result.exit_code == 0
    assert "not reported anything" in result.output
