"""The commands as people and programs call them: output, errors and exit codes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from deniable import Registry, Scheme
from deniable_collector.tally import Tally
from deniable_estimator.terminal import NO_DATA, estimate, plan


@pytest.fixture
def ask(registry_file: Path, store_url: str) -> Callable[..., Result]:
    """Run `deniable estimate` against the test's registry and store."""

    def run(*arguments: str) -> Result:
        common = ["--registry", str(registry_file), "--store", store_url]
        return CliRunner().invoke(estimate, [*arguments, *common])

    return run


@pytest.fixture
def reported(
    registry: Registry, fill: Callable[[Tally, Scheme], None], make_tally: Callable[..., Tally]
) -> Scheme:
    """1,000 reports of browsers on one day."""
    scheme = registry["browser"].scheme
    fill(make_tally(scheme, 1000, [500, 300, 100, 100]), scheme)
    return scheme


@pytest.mark.usefixtures("reported")
def test_estimate_without_a_window(ask: Callable[..., Result]) -> None:
    """A window that is left out counts nothing, and one that is none is refused."""
    assert ask("browser", "--without", "2026-11-16").exit_code == NO_DATA
    assert ask("browser", "--without", "2026-11-17", "--without", "2026-11-18").exit_code == 0
    assert ask("browser", "--without", "16 November").exit_code == 2


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--size", "1"),
        ("--epsilon", "0"),
        ("--epsilon", "-1"),
        ("--epsilon", "inf"),
        ("--epsilon", "1000"),
        ("--epsilon", "nan"),
        ("--devices", "0"),
        ("--share", "1.5"),
        ("--sample-rate", "0"),
        ("--mechanism", "magic"),
    ],
)
def test_impossible_plans(option: str, value: str) -> None:
    """What cannot be planned is refused by name, without a traceback."""
    arguments = {"--size": "10", "--epsilon": "1", "--devices": "1000", option: value}
    flat = [text for pair in arguments.items() for text in pair]
    result = CliRunner().invoke(plan, flat)
    assert result.exit_code in (1, 2)
    assert option.lstrip("-") in result.stderr
    assert "Traceback" not in result.output
