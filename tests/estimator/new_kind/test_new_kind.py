"""A kind of answer is a folder: with `coin` in the lists of kinds and of plans, everything that
asks, shows or sends answers has coins."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

LEANS, DRAWN = "The coin leans by 0.", "<svg"
DAYS = "from=2026-11-19&to=2026-11-20"
PERIODS = f"{DAYS}&before_from=2026-11-13&before_to=2026-11-14"
PAGES = {
    "/": '<p class="figure">0.300</p>',
    "/?view=list": "lean",
    f"/metric/flip?{DAYS}": LEANS,
    f"/metric/flip.json?{DAYS}": '"kind": "coin"',
    f"/metric/flip.csv?{DAYS}": "lean",
    f"/metric/flip.svg?{DAYS}": DRAWN,
    f"/metric/flip/trend.csv?{DAYS}": "lean",
    f"/metric/flip/trend.svg?{DAYS}": DRAWN,
    f"/metric/flip/compare?{PERIODS}": "lean",
    f"/metric/flip/segments?{DAYS}&by=platform": "lean",
    "/boards/coins": 'aria-label="A coin"',
    "/plan/coin?epsilon=1&devices=10000": "A lean of 0.065 is seen.",
}
API = {
    f"/api/v1/metrics/flip/estimate?{DAYS}": '"kind": "coin"',
    f"/api/v1/metrics/flip/trend?{DAYS}": '"lean"',
    f"/api/v1/metrics/flip/comparison?{PERIODS}": '"lean"',
    f"/api/v1/metrics/flip/segments?{DAYS}&by=platform": '"lean"',
    "/api/v1/plan/coin?epsilon=1&devices=10000": '"std_error"',
}
BETWEEN = "flip --from 2026-11-19 --to 2026-11-20"
COMMANDS = {
    f"estimate {BETWEEN}": LEANS,
    f"estimate {BETWEEN} --json": '"kind": "coin"',
    f"estimate {BETWEEN} --csv": "lean",
    f"estimate trend {BETWEEN}": "lean",
    "estimate flip --since 2026-11-19": "lean",
    f"estimate segments {BETWEEN} --by platform": "web",
}
TOLD = {**PAGES, **API, **COMMANDS, "link": LEANS}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What each address and each command says, from a process that knows coins."""
    asked = {"pages": [*PAGES], "api": [*API, "/api/v1/openapi.json"], "commands": [*COMMANDS]}
    folder = tmp_path_factory.mktemp("coins")
    done = subprocess.run(
        [sys.executable, "-m", "tests.estimator.new_kind.with_coins"],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        cwd=folder,
        env={
            "PYTHONPATH": str(Path(__file__).parents[3]),
            "DENIABLE_STORE": f"sqlite:///{folder}/tallies.db",
            "DENIABLE_DATA": str(folder),
        },
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("asked", TOLD)
def test_everything_has_the_new_kind(told, asked):
    """Each page, file, address of the API, link and command says what only the folder knows."""
    assert TOLD[asked] in told[asked]


def test_the_api_describes_it(told):
    """The OpenAPI has what its folder says of its answer and its plan."""
    document = json.loads(told["/api/v1/openapi.json"])
    schemas = document["components"]["schemas"]
    assert {"$ref": "#/components/schemas/Coin"} in schemas["Estimate"]["anyOf"]
    assert "std_error" in schemas["CoinPlan"]["required"]
    assert "/api/v1/plan/coin" in document["paths"]
