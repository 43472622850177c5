"""The list of parts of a release, as CycloneDX 1.6 JSON (https://cyclonedx.org/docs/1.6/json/).

It has the packages of constraints.txt, in the versions that deniable is tested with, and marks as
required those that `deniable[all]` names itself; the others are what these need, and tools.

Run: python .ci/sbom.py > deniable.cdx.json. It reads two files of the tree and needs no network;
the same commit has the same list.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
import uuid
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]


def named(requirement: str) -> str:
    """The normalized name of the package that a requirement asks for (PEP 503)."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\s\[<>=!~;]", requirement, maxsplit=1)[0]).lower()


def document() -> dict[str, object]:
    """The list as a JSON object."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    asked = {named(each) for each in sum(extras, project["dependencies"])} - {"deniable"}
    components = []
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        pin = line.partition("#")[0].partition(";")[0].strip()
        if pin:
            name, version = pin.split("==")
            components.append(
                {
                    "type": "library",
                    "bom-ref": f"pkg:pypi/{named(name)}@{version}",
                    "name": name,
                    "version": version,
                    "purl": f"pkg:pypi/{named(name)}@{version}",
                    "scope": "required" if named(name) in asked else "optional",
                }
            )
    lacking = asked - {named(str(each["name"])) for each in components}
    if lacking:
        sys.exit(f"constraints.txt lacks {', '.join(sorted(lacking))}")
    reference = f"pkg:pypi/{project['name']}@{project['version']}"
    needs = [each["bom-ref"] for each in components if each["scope"] == "required"]
    made = int(os.environ.get("SOURCE_DATE_EPOCH") or 0)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{reference} {components}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(made, UTC).isoformat(),
            "component": {
                "type": "library",
                "bom-ref": reference,
                "name": project["name"],
                "version": project["version"],
                "purl": reference,
                "licenses": [{"license": {"id": project["license"]}}],
            },
        },
        "components": components,
        "dependencies": [{"ref": reference, "dependsOn": needs}],
    }


if __name__ == "__main__":
    print(json.dumps(document(), indent=2))
