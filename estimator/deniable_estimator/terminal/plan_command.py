"""`deniable plan`: what a metric will detect, computed before it is declared.

Exit codes: 0 for a result, 1 for an error, 2 for a wrong call.
"""

from __future__ import annotations

import re
from typing import Any

import click

from deniable.tools.command_line import Command, command
from deniable_estimator.document.document import to_data
from deniable_estimator.inputs import InputError
from deniable_estimator.kinds import PLANS, make
from deniable_estimator.terminal.options import as_json, assumed_fakes, click_options, say

# numpy and rich take longer to import than `deniable --help` should.


def _command(kind: str, example: str, told: str) -> Command:
    """The command of a kind of plan."""

    @command(example, help=told)
    @click_options(PLANS[kind].inputs)
    @as_json
    def run(form: str | None, **asked: Any) -> None:
        _show(kind, form, asked)

    return run


def _show(kind: str, form: str | None, asked: dict[str, Any]) -> None:
    given = {each.name: each.default for each in PLANS[kind].inputs} | asked
    try:
        document = make(kind, given, fakes=assumed_fakes()).document
    except InputError as error:
        option = f"--{error.name.replace('_', '-')}"
        raise click.BadParameter(str(error), param_hint=f"'{option}'") from error
    say(form, lambda: to_data(document), lambda: document)


plan = _command(
    "values",
    "deniable plan --size 5 --epsilon 1 --devices 100000",
    "Compute what a metric of --size values can detect, before it is declared.\n\n"
    "The commands below do so for numbers, pairs and strings that nobody listed.",
)
number = _command(
    "number",
    "deniable plan number --low 0 --high 20 --ask mean --epsilon 1 --devices 100000",
    "Compute what a number of new noise in each report can detect.\n\n"
    "docs/how-to/numbers.md says how many reports a distribution with memos takes.",
)
discovery = _command(
    "discovery",
    "deniable plan discovery --epsilon 4 --devices 1000000",
    "Compute how common a string that nobody listed must be to be found.",
)
retention = _command(
    "retention",
    "deniable plan retention --epsilon 2 --lifetime-epsilon 4 --devices 50000",
    "Compute how well it can be told who is new, who stays and who comes back.",
)
lifetime = _command(
    "lifetime",
    "deniable plan lifetime --size 5 --lifetime-epsilon 8 --years 2",
    "List the ways to divide a lifetime epsilon: few reports with a large epsilon each, or many "
    "with a small one.",
)


@command("deniable plan pair 3x4 --epsilon 1 --devices 100000")
@click.argument("shape", metavar="ROWSxCOLUMNS")
@click_options(PLANS["pair"].inputs)
@as_json
def pair(shape: str, form: str | None, **asked: Any) -> None:
    """Compute which dependence between two lists of so many values can be detected."""
    found = re.fullmatch(r"([0-9]{1,4}) *[x×] *([0-9]{1,4})", shape)
    if found is None:
        raise click.UsageError("the shape says how many values both lists have: write it like 6x4")
    _show("pair", form, {**asked, "rows": int(found[1]), "columns": int(found[2])})
