"""What `deniable plan` refuses."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from deniable_estimator.terminal import plan


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
