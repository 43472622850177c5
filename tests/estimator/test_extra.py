"""What the extra `deniable[estimator]` brings is enough for the estimator."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.campaign

WITHOUT = """
import importlib, importlib.metadata, pkgutil, sys

sys.modules.update(dict.fromkeys({missing!r}))
import deniable_estimator
packages = pkgutil.walk_packages(deniable_estimator.__path__, "deniable_estimator.")
# `deniable dev` runs a collector too.
serves = "deniable_estimator.development."
found = [each.name for each in packages if not each.name.startswith(serves)]
for name in found:
    importlib.import_module(name)
for point in importlib.metadata.entry_points(group="deniable.commands"):
    if point.module.startswith("deniable_estimator") and not point.module.startswith(serves):
        point.load()
print(len(found))
"""


def test_it_needs_no_server_of_reports():
    """All of the estimator but `deniable dev` loads where the packages that only the collector
    asks for cannot be imported: its faster event loop, its relay's client and its metrics."""
    missing = {"uvloop", "aiohttp", "prometheus_client"}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(missing=missing)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 80
