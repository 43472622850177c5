"""The one `deniable` command: its list of commands, its errors, and what it says where a package is
missing."""

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import click
import pytest

from deniable.tools.command_line import find

RUN = """
import atexit, importlib.metadata, sys
for name in {missing}:
    sys.modules[name] = None
points = importlib.metadata.entry_points
importlib.metadata.entry_points = lambda **named: [
    each for each in points(**named) if each.module.startswith({installed!r})
]
sys.argv = ["deniable", *{words}]
from deniable.cli import main
atexit.register(lambda: print("modules:", *sys.modules, file=sys.stderr))
main()
"""

WITHOUT_CLICK = "sys.modules['click'] = None"

NAMES = sorted(each.name for each in entry_points(group="deniable.commands"))


def deniable(*words, missing=(), installed="deniable"):
    """Run the command where only such packages are installed, and these modules are missing."""
    script = RUN.format(words=words, missing=missing, installed=installed)
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )


def told(done):
    """What stands on the standard error."""
    return done.stderr.partition("modules:")[0]


@pytest.mark.parametrize(
    ("unbuffered", "first", "word"),
    [("", "", "-h"), ("1", "", "-h"), ("", "", "sent"), ("", WITHOUT_CLICK, "sent")],
)
def test_a_full_disk_behind_the_output(unbuffered, first, word):
    """It is told in one line, however late it is met; by `sent` without click too."""
    script = f"import sys\n{first}\nfrom deniable.cli import main; main()"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", script, word, "-h"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "Error: the output cannot be written: No space left on device\n"


def test_a_closed_output_ends_no_command():
    """As under a daemon that closes it."""
    line = f"{sys.executable} -c 'from deniable.cli import main; main()' --help >&-"
    done = subprocess.run(line, shell=True, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_help_imports_no_command():
    """`deniable --help` lists at most 17 commands in three groups, each with a sentence, without
    the module of any."""
    done = deniable("--help")
    assert done.returncode == 0
    listed = re.split(r"^(\w+):\n", done.stdout, flags=re.MULTILINE)
    sections = dict(zip(listed[1::2], listed[2::2], strict=True))
    del sections["Options"]
    assert list(sections) == ["Apps", "Collector", "Numbers"]
    rows = re.split(r"^  (?=\S)", "".join(sections.values()), flags=re.MULTILINE)[1:]
    sentences = dict(row.split(maxsplit=1) for row in rows)
    assert len(rows) <= 17
    assert sentences.keys() == {name.partition(".")[0] for name in NAMES}
    assert all(text.rstrip().endswith(".") for text in sentences.values())
    modules = {each.module for each in entry_points(group="deniable.commands")}
    assert not modules & set(done.stderr.split())


def test_help_shows_what_is_installed():
    """With the SDK alone only the first group is left, and other commands are unknown."""
    shown = deniable("--help", installed="deniable.").stdout
    assert "Apps:\n" in shown
    assert "Collector:" not in shown
    assert "Numbers:" not in shown
    refused = deniable("collect", "--help", installed="deniable.")
    assert refused.returncode == 2
    assert "there is no `deniable collect`" in told(refused)


def test_a_command_below_another_is_imported_alone():
    """Neither the command above it nor those beside it are imported."""
    done = deniable("plan", "privacy", "browser", "--registry", "missing.toml")
    assert done.returncode == 1
    loaded = {each for each in done.stderr.split() if each.endswith("_command")}
    assert loaded == {"deniable_estimator.terminal.privacy_command"}


@pytest.mark.parametrize("name", NAMES)
def test_no_command_has_more_than_twelve_options(name):
    """Besides --help; each has an example and says what it does."""
    command = find(*name.split("."))
    assert sum(isinstance(each, click.Option) for each in command.params) <= 12
    assert command.example.startswith(f"deniable {name.replace('.', ' ')}")
    assert command.help


def test_a_group_with_a_plain_form_shows_it():
    """Its help begins with its example, and has the options of the plain form and the commands; a
    metric that is called like one of them stands after --."""
    done = deniable("estimate", "--help")
    assert done.stdout.startswith("Example: deniable estimate browser")
    for text in ("deniable estimate [OPTIONS] METRIC", "--since", "\n  trend ", "estimate -- "):
        assert text in done.stdout
    refused = deniable("estimate", "--registry", "missing.toml", "--", "trend")
    assert "missing.toml" in told(refused), "trend is the metric"


@pytest.mark.parametrize(
    ("words", "missing", "told_last"),
    [
        ("sent --state-dir missing", "click", "no state of deniable in missing"),
        ("lint", "click", "extra cli, which a clone does by pip install '.[cli]'"),
        ("estimate drink", "numpy", "install deniable with its extra estimator"),
        ("store info", "deniable_collector.stores", "its extra collector"),
        ("demo --once", "numpy", "its extra all"),
        ("dev", "prometheus_client", "its extra all"),
    ],
)
def test_a_command_names_the_missing_extra(words, missing, told_last):
    """A command whose package lacks a dependency says in one sentence what to install; `sent`
    needs none."""
    done = deniable(*words.split(), missing=(missing,))
    assert done.returncode == 1
    (line,) = told(done).splitlines()
    assert line.endswith(told_last)
