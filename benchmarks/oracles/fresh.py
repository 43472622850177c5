"""One estimate of a whole domain in a process of its own, so that its memory can be told.

Arguments: size, epsilon, file of the cells, reports. Prints JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.answers.shares import estimate
from oracles.accuracy import category
from oracles.timing import cpu_seconds


def peak() -> float:
    """The largest resident set so far, in megabytes.

    Linux's own record of this program: `getrusage` also counts the parent that started it.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def main() -> None:
    size, epsilon, cells, reports = sys.argv[1:]
    scheme = category(int(size), float(epsilon))
    rows = (TallyRow(int(reports), np.load(cells)),)
    tally = Tally("metric", scheme.fingerprint, ("simulated",), rows)
    before = peak()
    seconds = cpu_seconds(lambda: estimate(tally, scheme), rounds=1)
    first = peak()
    again = cpu_seconds(lambda: estimate(tally, scheme), rounds=2)
    print(
        json.dumps(
            {
                "seconds": seconds,
                "again_seconds": again,
                "megabytes_before": before,
                "peak_megabytes": first,
            }
        )
    )


if __name__ == "__main__":
    main()
