"""What a declaration becomes: the integers on devices are a contract, wherever the design is made.

`designs.txt` has the mechanism and the parameters of some hundred declarations, or why they are
refused. Where another design is meant, take it anew: `pytest tests/client/test_designs.py --take`.
"""

from __future__ import annotations

from deniable import DeniableError, Registry

EPSILONS = (0.05, 0.3, 0.7, 1.0, 1.6, 2.0, 3.0, 4.0, 5.0, 6.5, 8.0, 10.0)
HEAD = 'schema = 1\napp = "a"\n[defaults]\nowner = "a"\nexpires = 2027-06-30\n'
PLATFORM = '[segments.platform]\nvalues = ["desktop", "laptop", "tablet"]\n'
CHOICE = (
    "subset_selection",
    "optimized_unary_encoding",
    "hadamard_response",
    "projective_geometry",
)
HASHED = ("count_mean_sketch", "hadamard_count_mean_sketch", "cohort_local_hashing")
HASHED += ("one_time_rappor", "hashed_projective_geometry")
KEPT = ("memoized_subset_selection", "basic_rappor")
ASKED = (("mean", "sliding_window"), ("mean", "duchi"))
ASKED += (("distribution", "hierarchical_histogram"), ("mean", "hierarchical_histogram"))
KEPT_STRINGS = ("memoized_local_hashing", "rappor", "rappor_chromium")


def values(size):
    """So many values of a category."""
    return f"values = {[f'v{number}' for number in range(size)]}"


def declarations():
    """The lines of a metric, without its epsilons, and the epsilons that it is tried with."""
    few = (0.3, 1.0, 2.0, 4.0, 8.0)
    yield 'type = "boolean"', EPSILONS
    for size in (2, 3, 7, 30, 300):
        yield f'type = "category"\n{values(size)}', EPSILONS
        for mechanism in CHOICE:
            yield f'type = "category"\n{values(size)}\nmechanism = "{mechanism}"', few
    yield f'type = "category"\nother = "v4"\n{values(5)}', few
    yield 'type = "string"', EPSILONS
    for mechanism in HASHED:
        yield f'type = "string"\nmechanism = "{mechanism}"', few
    for words in ('ask = "mean"', 'ask = "distribution"', 'ask = ["mean", "distribution"]'):
        grid = [each / 10 for each in range(1, 101, 3)] if words == 'ask = "mean"' else EPSILONS
        yield f'type = "number"\nlow = 0\nhigh = 10\n{words}', grid
        yield f'type = "number"\nlow = 0.1\nhigh = 1000\nscale = "log"\n{words}', few
        yield f'type = "number"\nlow = 0\nhigh = 20\ninteger = true\n{words}', few
    yield 'type = "number"\nlow = -5\nhigh = 5\nask = "distribution"\ncells = 16', few
    for ask, mechanism in ASKED:
        yield f'type = "number"\nlow = 0\nhigh = 10\nask = "{ask}"\nmechanism = "{mechanism}"', few
    for alphabet in ("bytes", "hex", "host"):
        yield f'type = "discovery"\nalphabet = "{alphabet}"', EPSILONS
    for length in (2, 6, 16):
        yield f'type = "discovery"\nmax_length = {length}', few


def kept_declarations():
    """Of metrics whose devices remember what they answered."""
    kept = 'longitudinal = "memoize"'
    for size in (2, 7, 60):
        yield f'type = "category"\n{kept}\n{values(size)}'
        for mechanism in KEPT:
            yield f'type = "category"\n{kept}\n{values(size)}\nmechanism = "{mechanism}"'
    for mechanism in KEPT_STRINGS:
        yield f'type = "string"\n{kept}\nmechanism = "{mechanism}"'
    yield f'type = "string"\n{kept}'
    for cells in (16, 64, 256):
        yield f'type = "number"\nlow = 0\nhigh = 10\nask = "distribution"\n{kept}\ncells = {cells}'
    yield f'type = "number"\nlow = 0\nhigh = 10\nask = "mean"\n{kept}'
    for high, more in (
        (1, "integer = true"),
        (10, "integer = true"),
        (10, 'mechanism = "dbitflip"'),
    ):
        yield f'type = "number"\nlow = 0\nhigh = {high}\nask = "distribution"\n{kept}\n{more}'
    for words in ("ages = 3", "ages = 12", 'asks = ["lifecycle"]', 'ages = 3\nwindow = "month"'):
        yield f'type = "retention"\n{words}'


def tried():
    """Each declaration with its epsilons."""
    for segments in ("", 'segments = ["platform"]'):
        for lines, epsilons in declarations():
            for epsilon in epsilons if not segments else (1.0, 4.0):
                yield f"{lines}\n{segments}\nepsilon = {epsilon}\nlifetime_epsilon = {8 * epsilon}"
        for lines in kept_declarations():
            for epsilon, memo in ((0.1, 1.0), (0.5, 2.0), (1.0, 2.5), (2.0, 8.0), (2.05, 5.0)):
                yield f"{lines}\n{segments}\nepsilon = {epsilon}\nlifetime_epsilon = {memo}"


def designed(lines):
    """What becomes of a declaration, in a line."""
    try:
        registry = Registry.parse(f"{HEAD}{PLATFORM}[metrics.m]\ndescription = '?'\n{lines}\n")
    except DeniableError as error:
        return " ".join(str(error).split())
    found = registry.compile()["metrics"]["m"]
    return f"{found['mechanism']} {found['parameters']} of {found['epsilon']}"


def test_designs(stays):
    """Each declaration becomes what it did."""
    told = []
    for lines in tried():
        asked = lines if len(lines) < 300 else f"{lines[:60]}...{lines[-60:]}"
        told.append(f"{' '.join(asked.split())}: {designed(lines)}")
    stays("designs.txt", told)
