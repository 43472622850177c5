"""`deniable rappor`: the three commands, from files to answers."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from deniable_estimator.rappor.commands import rappor

PARAMS = "k,h,m,p,q,f\n32,2,16,0.5,0.75,0\n"
VALUES = ["firefox"] * 3_000 + ["chrome"] * 2_000 + ["secret"] * 1_000
CANDIDATES = ["firefox", "chrome", "edge", "safari"]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(rappor, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """params.csv, counts.csv and map.csv of 6,000 simulated clients."""
    folder = tmp_path_factory.mktemp("rappor")
    (folder / "params.csv").write_text(PARAMS)
    (folder / "values.txt").write_text("\n".join(VALUES))
    (folder / "candidates.txt").write_text("\n".join(CANDIDATES))
    params = folder / "params.csv"
    made = run("encode", "--params", params, "--values", folder / "values.txt", "--counts")
    (folder / "counts.csv").write_text(made.stdout)
    made = run("hash", "--params", params, "--candidates", folder / "candidates.txt")
    (folder / "map.csv").write_text(made.stdout)
    return folder


def decode(folder: Path, *more: str, **files: Path) -> Result:
    """Run the command; unless told otherwise, finding a string that nobody has takes a p-value
    that does not occur, as the clients are drawn anew each time."""
    chosen = {name: files.get(name, folder / f"{name}.csv") for name in ("params", "counts", "map")}
    options = [part for name, path in chosen.items() for part in (f"--{name}", str(path))]
    return run("decode", *options, "--fdr", "1e-9", *more)


def test_json_has_a_row_for_every_candidate(folder: Path) -> None:
    """The answer is n, explained_share and the candidates in the map's order, and nothing else.

    Shares lie within 6 standard errors of the truth: alpha < 1e-8 for the four comparisons.
    """
    result = decode(folder, "--json")
    assert result.exit_code == 0
    answer = json.loads(result.stdout)
    assert list(answer) == ["n", "explained_share", "candidates"]
    assert answer["n"] == 6_000
    assert [row["string"] for row in answer["candidates"]] == CANDIDATES
    for row, truth in zip(answer["candidates"], (1 / 2, 1 / 3, 0.0, 0.0), strict=True):
        assert list(row) == ["string", "share", "std_error", "low", "high", "p_value", "detected"]
        assert abs(row["share"] - truth) < 6 * row["std_error"]
        assert row["low"] < row["share"] < row["high"]
        assert row["detected"] is (truth > 0)
    detected = [row["share"] for row in answer["candidates"] if row["detected"]]
    assert answer["explained_share"] == pytest.approx(sum(detected))


def test_csv_has_the_same_numbers(folder: Path) -> None:
    """--csv prints the rows of --json under a header."""
    table = list(csv.DictReader(io.StringIO(decode(folder, "--csv").stdout)))
    rows = json.loads(decode(folder, "--json").stdout)["candidates"]
    assert [row["string"] for row in table] == CANDIDATES
    assert [float(row["share"]) for row in table] == [row["share"] for row in rows]
    assert [row["detected"] for row in table] == ["true", "true", "false", "false"]


def test_the_table_shows_what_is_left(folder: Path) -> None:
    """Without a flag it is a table, detected first, that says how much nobody explains."""
    result = decode(folder)
    assert result.exit_code == 0
    assert "6,000 reports" in result.stdout
    assert "2 detected" in result.stdout
    assert result.stdout.index("firefox") < result.stdout.index("chrome")
    assert result.stdout.index("chrome") < result.stdout.index("edge")
    assert "too rare to be distinguished from noise" in " ".join(result.stdout.split())


def test_the_level_widens_intervals(folder: Path) -> None:
    """A higher level has the same shares and wider intervals."""
    rows = [
        json.loads(decode(folder, "--json", "--level", level).stdout)["candidates"][0]
        for level in ("0.5", "0.99")
    ]
    assert rows[0]["share"] == rows[1]["share"]
    assert rows[1]["low"] < rows[0]["low"] < rows[0]["high"] < rows[1]["high"]


@pytest.mark.parametrize("option", ["--fdr", "--level"])
def test_levels_lie_between_0_and_1(folder: Path, option: str) -> None:
    """A level of 0 or 1 makes no sense, and is a usage error."""
    assert decode(folder, option, "0").exit_code == 2
    assert decode(folder, option, "1").exit_code == 2


def test_a_wrong_file_is_a_message(folder: Path, tmp_path: Path) -> None:
    """A mistake in a file is exit 1 with its place, and no traceback."""
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("1,2\n")
    result = decode(folder, counts=wrong)
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert result.stderr.startswith(f"Error: {wrong}, line 1: has 2 columns")
    assert result.stdout == ""


def small(folder: Path, params: str, counts: str, candidates: str) -> dict[str, Path]:
    texts = {"params": params, "counts": counts, "map": candidates}
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text)
    return {name: folder / f"{name}.csv" for name in texts}


def answer_of(result: Result) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def test_one_cohort_of_basic_rappor(tmp_path: Path) -> None:
    """With m = 1 and the identity map, each share is the debiased count of its bit."""
    files = small(
        tmp_path, "k,h,m,p,q,f\n3,1,1,0.25,0.75,0\n", "1000,500,350,250\n", "a,1\nb,2\nc,3\n"
    )
    rows = answer_of(decode(tmp_path, "--json", "--fdr", "0.05", **files))["candidates"]
    assert [row["share"] for row in rows] == pytest.approx([0.5, 0.2, 0.0])
    assert [row["detected"] for row in rows] == [True, True, False]


def test_no_reports_at_all_is_an_answer(tmp_path: Path) -> None:
    """Empty counts give unknown shares, a note, and exit 3; the table says it too."""
    files = small(tmp_path, "k,h,m,p,q,f\n4,1,2,.25,.75,0\n", "0,0,0,0,0\n" * 2, "a,1,6\nb,2,5\n")
    result = decode(tmp_path, "--json", **files)
    assert result.exit_code == 3
    answer = answer_of(result)
    assert answer["n"] == answer["explained_share"] == 0
    assert [row["share"] for row in answer["candidates"]] == [None, None]
    assert "nothing can be estimated yet" in result.stderr
    table = decode(tmp_path, **files)
    assert table.exit_code == 3
    assert "nothing can be estimated yet" in " ".join(table.stdout.split())


def test_no_signal_is_an_answer(tmp_path: Path) -> None:
    """Counts of pure noise detect nothing, with exit 0 and a note on standard error."""
    counts = "1600,650,650,650,650\n" * 4
    lines = "a,1,5,9,13\nb,2,5,10,14\n"
    files = small(tmp_path, "k,h,m,p,q,f\n4,1,4,.25,.75,0\n", counts, lines)
    result = decode(tmp_path, "--json", "--fdr", "0.05", **files)
    assert result.exit_code == 0
    assert not any(row["detected"] for row in answer_of(result)["candidates"])
    assert "no candidate is distinguishable" in result.stderr


def test_candidates_that_hash_alike_are_named(tmp_path: Path) -> None:
    """They share one estimate, and a note says which they are."""
    counts = "4000,3000,1000,1000,1000\n" * 4
    lines = "a,1,5,9,13\nb,2,6,11,16\ntwin,1,5,9,13\n"
    files = small(tmp_path, "k,h,m,p,q,f\n4,1,4,.25,.75,0\n", counts, lines)
    result = decode(tmp_path, "--json", **files)
    rows = answer_of(result)["candidates"]
    assert rows[0]["share"] == rows[2]["share"]
    assert rows[0]["detected"]
    assert rows[2]["detected"]
    assert "'twin' like 'a'" in result.stderr


def test_one_crowded_cohort_is_warned_of(tmp_path: Path) -> None:
    """More hashed candidates than bits in a single cohort come with a warning."""
    rng = np.random.default_rng(1)
    lines = "".join(
        f"s{at},{a + 1},{b + 1}\n" for at, (a, b) in enumerate(rng.integers(0, 8, (20, 2)))
    )
    files = small(tmp_path, "k,h,m,p,q,f\n8,2,1,.25,.75,0\n", "800" + ",300" * 8 + "\n", lines)
    assert "one cohort cannot distinguish" in decode(tmp_path, "--json", **files).stderr


def test_steering_characters_stay_out_of_the_terminal(tmp_path: Path) -> None:
    """An escape sequence in a candidate is shown, not obeyed."""
    files = small(
        tmp_path, "k,h,m,p,q,f\n2,1,1,.25,.75,0\n", "900,600,300\n", "\x1b[31mred,1\nblue,2\n"
    )
    result = decode(tmp_path, **files)
    assert "\x1b[31m" not in result.stdout
    assert "red" in result.stdout


def test_reports_are_the_default_of_encode(folder: Path) -> None:
    """encode prints one report for each value, as CSV with a header."""
    result = run("encode", "--params", folder / "params.csv", "--values", folder / "values.txt")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert len(rows) == len(VALUES)
    assert {len(row["irr"]) for row in rows} == {32}
    assert {int(row["cohort"]) for row in rows} == set(range(16))
