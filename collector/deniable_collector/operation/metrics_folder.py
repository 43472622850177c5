"""The folder in which the processes of one collector share their metrics. It is created before the
first of them is forked, and removed after the last has ended.

prometheus_client looks for it once, when it is first imported. So this file imports it as late as
possible.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""The variable in which prometheus_client looks for the folder."""


def begin() -> None:
    """Create a new folder, and set its path in the environment of later processes.

    Raises:
        RuntimeError: prometheus_client was imported before, and would count only this process.
    """
    if "prometheus_client" in sys.modules:
        raise RuntimeError("metrics_folder.begin() must run before prometheus_client is imported")
    os.environ[VARIABLE] = tempfile.mkdtemp(prefix="deniable-metrics-")


def end_process(pid: int) -> None:
    """Remove the gauges of a process that has ended; its counters stay in the sums."""
    if VARIABLE in os.environ:
        from prometheus_client.multiprocess import mark_process_dead

        mark_process_dead(pid)  # type: ignore[no-untyped-call]


def end() -> None:
    """Remove the folder."""
    folder = os.environ.pop(VARIABLE, None)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
