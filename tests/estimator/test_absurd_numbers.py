"""Numbers that make no sense, as every option of every command meets them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from deniable import Registry, Scheme
from deniable_collector.tally import Tally
from deniable_estimator.terminal import NO_DATA

NUMBERS = ["0", "1", "-1", "nan", "inf", "-inf", "1e308", "5e-324", "9" * 5_000, ""]
pytestmark = pytest.mark.campaign

DATES = ["0001-01-01", "9999-12-31", "2026-02-30", "nan", ""]

CALLS = {
    "plan": "--size 5 --epsilon 1 --devices 1000",
    "plan --memoize": "--size 5 --epsilon 1 --devices 1000 --lifetime-epsilon 4",
    "estimate": "browser --registry {registry} --store {store}",
    "trend": "browser --registry {registry} --store {store}",
    "annotate": "--list --file {folder}/annotations.toml --registry {registry}",
    "anomalies": "browser --registry {registry} --store {store}",
    "simulate": "browser --registry {registry} --devices 100 --seed 1",
    "privacy": "browser --registry {registry}",
    "rappor decode": "--params {folder}/params.csv --counts {folder}/counts.csv "
    "--map {folder}/map.csv",
    "digest": "--registry {registry} --store {store} --text {folder}/digest.txt",
    "init": "{folder}/new --yes --force",
    "add": "speed --registry {registry} --dry-run --yes --type number --low 1 --high 9 "
    "--ask mean --description d --owner o --epsilon 1 --lifetime-epsilon 8 --devices 100000",
    "discover": "words --registry {folder}/words.toml --store {store}",
    "gateway-key rotate": "{folder}/gateway.keys",
    "release make": "browser --registry {registry} --store {store} "
    "--ledger {folder}/releases.sqlite",
    "release list": "--ledger {folder}/none.sqlite",
    "store drop": "--before 2026-01-01 --yes --store {store}",
    "store export": "{folder}/tallies --force --store {store}",
    "store import": "{folder}/nothing --store {store}",
}
"""A call of each command that takes numbers or dates, which makes sense as it is."""

WORDS = """
schema = 1
app = "example"
[metrics.words]
type = "discovery"
description = "The last search."
owner = "growth@acme.example"
expires = 2099-01-01
epsilon = 4.0
lifetime_epsilon = 8.0
"""

NOT_OURS = {"demo", "dev"}
"""Commands that serve until they are stopped."""


def leaves(command: click.Command, *path: str) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            yield from leaves(each, *path, name)
    else:
        yield " ".join(path), command


COMMANDS = {
    name: command
    for entry in entry_points(group="deniable.commands")
    if entry.name not in NOT_OURS
    for name, command in leaves(entry.load(), entry.name)
}


def measured(command: click.Command) -> Iterator[click.Option]:
    """The options of a command that take a number or a date."""
    for option in command.params:
        number = isinstance(option.type, click.types.IntParamType | click.types.FloatParamType)
        if isinstance(option, click.Option) and (number or isinstance(option.type, click.DateTime)):
            yield option


CASES = [
    (call, option.opts[0])
    for call in CALLS
    for option in measured(COMMANDS[call.partition(" --")[0]])
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a small RAPPOR collection, a registry with a discovery, a gateway's keys."""
    folder = tmp_path_factory.mktemp("absurd")
    (folder / "words.toml").write_text(WORDS)
    made = CliRunner().invoke(COMMANDS["gateway-key new"], [str(folder / "gateway.keys")])
    assert made.exit_code == 0, made.output
    (folder / "params.csv").write_text("k,h,m,p,q,f\n3,1,1,0.25,0.75,0\n")
    (folder / "counts.csv").write_text("100,50,35,25\n")
    (folder / "map.csv").write_text("a,1\nb,2\nc,3\n")
    return folder


def test_every_command_that_takes_numbers_is_called() -> None:
    """A command with an option for a number or a date has its call above."""
    called = {call.partition(" --")[0] for call in CALLS}
    assert called == {name for name, each in COMMANDS.items() if any(measured(each))}


@pytest.mark.parametrize(("call", "option"), CASES)
def test_an_absurd_number_is_answered_in_words(
    call: str,
    option: str,
    registry: Registry,
    registry_file: Path,
    store_url: str,
    folder: Path,
    fill: Callable[[Tally, Scheme], None],
    make_tally: Callable[..., Tally],
) -> None:
    """No number ends in a traceback: it is taken, or the message names the option."""
    scheme = registry["browser"].scheme
    fill(make_tally(scheme, 1000, [500, 300, 100, 100]), scheme)
    name, *flags = call.split(" --")
    given = CALLS[call].format(registry=registry_file, store=store_url, folder=folder)
    base = [*given.split(), *(f"--{flag}" for flag in flags)]
    plain = CliRunner().invoke(COMMANDS[name], base)
    dates = any(isinstance(each.type, click.DateTime) and option in each.opts
                for each in measured(COMMANDS[name]))  # fmt: skip
    for text in DATES if dates else NUMBERS:
        result = CliRunner().invoke(COMMANDS[name], [*base, option, text])
        told = f"{call} {option} {text[:40]}: {result.output}"
        assert isinstance(result.exception, SystemExit | None), (told, result.exception)
        assert result.output, told
        if result.exit_code not in (0, plain.exit_code):
            subject = option.removeprefix("--").replace("-", "_")
            named = (option, subject, "that range", "shorter range", f"'{text}'", ": metrics.")
            assert any(each in result.output for each in named), told
            assert result.exit_code in (1, 2, NO_DATA), told
            assert len(result.output) < 1_000 + 2 * len(text), told
