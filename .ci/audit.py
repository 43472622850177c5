"""Look up known vulnerabilities of pinned packages with pip-audit, and say what was not looked up.

    python .ci/audit.py constraints.txt

Fails on a vulnerability. Where the service that knows of them cannot be reached, or does not know
a package, it says so and fails only with DENIABLE_REQUIRE_AUDIT=1.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

__all__ = ["main"]


def main(path: str) -> int:
    """The exit status: 0 if nothing is known against the packages listed in the file."""
    command = (sys.executable, "-m", "pip_audit", "--requirement", path, "--no-deps")
    options = ("--disable-pip", "--format", "json", "--progress-spinner", "off", "--timeout", "30")
    done = subprocess.run(  # noqa: S603  (this very interpreter, and arguments of ours alone)
        (*command, *options), capture_output=True, text=True, check=False
    )
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        reason = (done.stderr.strip() or "it said nothing").splitlines()[-1]
        return _unchecked(f"audit: the vulnerability service cannot be reached: {reason}")
    vulnerable = [each for each in packages if each.get("vulns")]
    for each in vulnerable:
        for found in each["vulns"]:
            fixed = ", ".join(found["fix_versions"]) or "nothing yet"
            print(f"{each['name']} {each['version']}: {found['id']}, fixed by {fixed}")
    skipped = [each["name"] for each in packages if "skip_reason" in each]
    checked = len(packages) - len(skipped)
    print(f"audit: {checked} of {len(packages)} packages checked, {len(vulnerable)} vulnerable")
    if vulnerable:
        return 1
    if skipped and not checked:
        return _unchecked("audit: the vulnerability service knows none of them: is it a mirror?")
    if skipped:
        return _unchecked(f"audit: not checked: {', '.join(skipped)}")
    return 0


def _unchecked(complaint: str) -> int:
    print(complaint)
    if os.environ.get("DENIABLE_REQUIRE_AUDIT") == "1":
        return 1
    print("audit: this is no failure without DENIABLE_REQUIRE_AUDIT=1")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
