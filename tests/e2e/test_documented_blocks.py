"""Every fenced block of every page is run, or read by what reads it, or has a reason why not."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from deniable import Registry
from deniable.cli import _group
from deniable_estimator.annotations import parse_annotations
from deniable_estimator.dashboard.boards.file import parse_board
from deniable_estimator.watching.rules_file import parse_rules

from .test_documented_commands import LINES, PAGES, PROGRAMS, SNIPPETS

ROOT = Path(__file__).parents[2]


class Block(NamedTuple):
    """A fenced block: its page, its language ("" for none), and its text."""

    page: str
    language: str
    text: str

    @property
    def first(self) -> str:
        return self.text.strip().splitlines()[0].strip()


ALL_PAGES = [*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "CHANGELOG.md"]
BLOCKS = [
    Block(str(page.relative_to(ROOT)), language, text)
    for page in ALL_PAGES
    for language, text in re.findall(
        r"^```(\S*)[^\n]*\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S
    )
]

REASONS = {
    ("ARCHITECTURE.md", 'app: record("browser", "firefox")'): "a drawing of the way of a value",
    ("README.md", "share   95% interval"): (
        "an answer; tests/estimator/test_render.py reads such answers"
    ),
    ("docs/discovering.md", "search_terms  300,000 devices"): (
        "an answer; tests/estimator/discovery/test_discover_command.py reads such answers"
    ),
    ("docs/operating-stores.md", "ACL SETUSER deniable-collector on"): (
        "commands of Redis; tests/collector/test_stores_access.py gives a Redis these rights"
    ),
    ("docs/operating-stores.md", '{"line":"head","format":"deniable-tallies","version":'): (
        "an excerpt with an ellipsis; tests/collector/test_archive.py reads whole files"
    ),
    ("docs/operating-stores.md", "keep = {"): (
        "one key of a metric, which tests/client/test_registry_page.py finds in the registry's page"
    ),
    ("docs/protocol.md", "POST /v1/reports HTTP/1.1"): (
        "a request as it travels; tests/collector/test_app.py sends such batches"
    ),
    ("docs/two-hops.md", "device --- capsule"): "a drawing of the way of a batch",
    ("docs/two-hops.md", "DENIABLE_RELAY_GATEWAY="): (
        "tests/collector/test_two_hops.py runs a relay with these settings"
    ),
    ("docs/two-hops.md", "import deniable"): (
        "tests/collector/test_two_hops.py sends with this transport"
    ),
    ("docs/two-hops.md", "import { Client }"): (
        "tests/collector/test_two_hops_web.py sends with this bundle"
    ),
    ("docs/web.md", "Content-Security-Policy:"): (
        "a header; tests/web/test_docs.py compares it with that of the browser tests"
    ),
}
"""Blocks that no test runs: page and beginning of the first line -> why."""

SETTINGS = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")

LINE_REASONS = {
    "systemctl reload deniable-collector": (
        "needs systemd; tests/collector/test_deploy.py checks the unit and its signal"
    ),
    "openssl rand -hex 16 | aws s3 cp - s3://tallies/prod/deniable-archive": (
        "needs a bucket of Amazon; tests/collector/test_archive_bucket.py marks one of its own"
    ),
    "export DENIABLE_DEV=http://127.0.0.1:8099": (
        "tests/e2e/test_first_hour.py sets the address that `deniable dev` prints"
    ),
    "python3 app.py": "tests/e2e/test_first_hour.py runs the app that `deniable init` writes",
    "cd hello": "tests/e2e/test_first_hour.py runs what follows in that folder",
    "docker compose up": "needs Docker; tests/collector/test_deploy.py reads the compose files",
}
"""Single commands that no test runs."""


def reason(block: Block) -> str | None:
    return next(
        (
            why
            for (page, start), why in REASONS.items()
            if page == block.page and block.first.startswith(start)
        ),
        None,
    )


def test_every_reason_is_of_one_block() -> None:
    """No reason is left over from a block that has gone, and none covers two."""
    for page, start in REASONS:
        found = [each for each in BLOCKS if each.page == page and each.first.startswith(start)]
        assert len(found) == 1, (page, start)
    text = "".join(block.text for block in BLOCKS)
    assert all(f"\n{line}" in f"\n{text}" for line in LINE_REASONS)


def check_toml(block: Block) -> None:
    """A registry, whole or a part of one, which other tests put under `deniable lint`; rules;
    annotations; or a board."""
    declared = tomllib.loads(block.text)
    if "dashboard" in declared:
        environ = dict.fromkeys(re.findall(r"\$\{?(\w+)", block.text), "x")
        parse_rules(block.text, tuple(declared.get("metrics", ())), environ)
        return
    if "items" in declared:
        names = dict.fromkeys(each["metric"] for each in declared["items"] if "metric" in each)
        known = "".join(
            f'[metrics.{name}]\ntype = "category"\nvalues = ["firefox", "chrome", "safari"]\n'
            'description = "D?"\nepsilon = 1.0\nlifetime_epsilon = 8.0\n'
            for name in names
        )
        head = 'schema = 1\napp = "editor"\n[defaults]\nowner = "a"\nexpires = 2030-01-01\n'
        parse_board(block.text, "example", Registry.parse(head + known))
        return
    if "annotations" in declared:
        parse_annotations(block.text)
        return
    head = "" if "schema" in declared else 'schema = 1\napp = "editor"\n'
    owner = "" if "owner =" in block.text else '[defaults]\nowner = "a"\nexpires = 2030-01-01\n'
    text = head + ("" if "schema" in declared else owner) + block.text
    if "metrics" in declared and "epsilon =" not in block.text:
        text = re.sub(
            r"^(type = .*)$", r"\1\nepsilon = 1.0\nlifetime_epsilon = 8.0", text, flags=re.M
        )
    if "values_file" not in block.text:
        Registry.parse(text)


def check_python(block: Block) -> None:
    """`test_documented_commands` runs it as a program."""
    assert (Path(block.page).name, block.text) in SNIPPETS


def check_json(block: Block) -> None:
    json.loads(block.text)


def check_web(block: Block) -> None:
    """tests/web/test_docs.py compiles or runs the blocks of these pages, and refuses others."""
    assert block.page in ("README.md", "docs/web.md")


def check_bash(block: Block) -> None:
    """tests/collector/test_backup_page.py runs the blocks of this page, one after the other."""
    assert block.page == "docs/backup.md"


def check_directive(block: Block) -> None:
    """Only the site's references, which `make site` fills, may have directives."""
    assert block.page.startswith("docs/reference/")


def check_ini(block: Block) -> None:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.read_string(block.text)
    for section in parser.sections():
        for key, command in parser[section].items():
            if key.startswith("exec") and "deniable " in command:
                check_options(command[command.index("deniable ") :])


def check_crontab(block: Block) -> None:
    """Each line sets a variable, or has five fields and a command of ours with known options."""
    for line in filter(None, block.text.splitlines()):
        if not re.match(r"\w+=", line):
            fields = line.split(maxsplit=5)
            assert all(re.fullmatch(r"[\d*,/-]+", field) for field in fields[:5]), line
            check_options(fields[5])


def check_options(line: str) -> None:
    """The command exists, and so do its options."""
    words = shlex.split(line)
    command: click.Command | None = _group()
    context = click.Context(_group())
    for word in words[1:]:
        if not isinstance(command, click.Group):
            break
        command = command.get_command(context, word)
    assert command is not None, line
    known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    assert {word for word in words if word.startswith("--")} <= known, line


def check_shell(block: Block) -> None:
    """Each line is a command that `test_documented_commands` runs or looks up, or is run here, or
    gives a setting that exists."""
    if block.first.startswith("[metrics."):
        check_toml(block)
        return
    page = Path(block.page).name
    listed = {line.command for line in LINES if line.page == page}
    for line in filter(str.strip, block.text.replace("\\\n", " ").splitlines()):
        command = re.sub(r"\s+", " ", re.split(r"\s{3,}|\s+# ", line)[0].strip())
        if command.startswith("python3 -c "):
            run = ["bash", "-c", command.replace("python3", sys.executable, 1)]
            assert subprocess.run(run, capture_output=True, timeout=30, check=True).stdout
        elif setting := re.match(r"(DENIABLE_\w+)=", command):
            assert f"| `{setting[1].removesuffix('_FILE')}` |" in SETTINGS, line
        elif command not in LINE_REASONS:
            assert command.split()[0] in PROGRAMS, line
            whole = re.sub(r"\s+", " ", line.strip())
            assert command in listed or whole in listed, line


CHECKS: dict[str, Callable[[Block], None]] = {
    "": check_shell,
    "sh": check_shell,
    "bash": check_bash,
    "toml": check_toml,
    "python": check_python,
    "json": check_json,
    "html": check_web,
    "js": check_web,
    "ts": check_web,
    "ini": check_ini,
    "crontab": check_crontab,
    "{eval-rst}": check_directive,
    "{include}": check_directive,
}
"""How the blocks of each language are checked."""


@pytest.mark.parametrize("page", sorted({block.page for block in BLOCKS}))
def test_every_block_is_checked(page: str) -> None:
    """Each block of the page has a check for its language and passes it, or a stated reason."""
    for block in BLOCKS:
        if block.page == page and reason(block) is None:
            assert block.language in CHECKS, f"{page}: {block.first}"
            CHECKS[block.language](block)


def test_no_block_is_missed() -> None:
    """Each fence of a page opens or closes a block that was found, also where it is indented."""
    for page in ALL_PAGES:
        text = page.read_text(encoding="utf-8")
        name = str(page.relative_to(ROOT))
        fences = re.findall(r"^\s*(?:`{3,}|~{3,})", text, re.M)
        assert len(fences) == 2 * sum(block.page == name for block in BLOCKS), name


def test_every_page_is_in_the_site() -> None:
    """docs/index.md names each page that these tests read, once."""
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    named = re.findall(r"^- \[[^\]]+\]\(([^)#]+\.md)\)", index, re.M)
    assert len(named) == len(set(named))
    pages = {(ROOT / "docs" / name).resolve() for name in named}
    assert pages == {page.resolve() for page in ALL_PAGES} - {ROOT / "docs" / "index.md"}
