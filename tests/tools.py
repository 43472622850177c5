"""The programs that tests need besides Python: found, or the test is left out in words."""

import os
import shutil

import pytest

PACKAGES = {
    "chromedriver": "chromium-driver",
    "firefox": "firefox-esr",
    "node": "nodejs",
    "nginx": "nginx-light",
    "redis-cli": "redis-tools",
    "setpriv": "util-linux",
    "systemd-analyze": "systemd",
}
"""Debian's package of a program, where it has another name."""

LEFT_OUT = "not installed: "


def need(*programs):
    """Skip the test unless all of these programs are installed."""
    for program in programs:
        if shutil.which(program) is None:
            leave_out(PACKAGES.get(program, program))


def leave_out(package):
    """Skip the test for want of a package, or fail where everything is required (`.ci/run`)."""
    if os.environ.get("DENIABLE_REQUIRE_ALL") == "1":
        pytest.fail(f"{package} is required here (DENIABLE_REQUIRE_ALL=1)")
    pytest.skip(LEFT_OUT + package)
