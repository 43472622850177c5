"""What a release is: a wheel that anybody can build again, its parts, and who publishes it."""

import json
import os
import re
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

import pytest
import yaml
from cyclonedx.model.bom import Bom

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github/workflows/release.yml"


def parts(epoch):
    """The list of parts, as the script prints it."""
    done = subprocess.run(
        [sys.executable, ROOT / ".ci/sbom.py"],
        check=True,
        capture_output=True,
        env=os.environ | {"SOURCE_DATE_EPOCH": epoch},
    )
    return json.loads(done.stdout)


def test_the_list_of_parts_is_what_is_tested_with():
    """A reader of CycloneDX takes the list. It has every version of constraints.txt and no other,
    its references hold, and the same input gives the same list."""
    found = parts("1800000000")
    assert found == parts("1800000000")
    assert found["metadata"]["timestamp"] == "2027-01-15T08:00:00+00:00"
    read = Bom.from_json(found)
    pins = re.findall(r"^([\w.-]+==[^\s;#]+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert sorted(f"{each.name}=={each.version}" for each in read.components) == sorted(pins)
    references = {each["bom-ref"] for each in found["components"]}
    (needs,) = (each["dependsOn"] for each in found["dependencies"])
    assert references.issuperset(needs)
    assert any(each.startswith("pkg:pypi/mmh3@") for each in needs)
    assert not any("pytest" in each for each in needs)


def test_nothing_secret_publishes_a_release():
    """Each action has a version, the right to publish is in the job that publishes alone, with an
    environment of its own, and what is published is attested. The file names no address."""
    text = WORKFLOW.read_text()
    workflow = yaml.safe_load(text)
    assert "secrets." not in text
    assert "://" not in text
    assert workflow["permissions"] == {}
    used = re.findall(r"uses: (\S+)", text)
    assert used
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@v\d+(\.\d+\.\d+)?", each) for each in used)
    publish = workflow["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["environment"] == "release"
    assert publish["needs"] == "build"
    build = [each.get("uses", "").partition("@")[0] for each in workflow["jobs"]["build"]["steps"]]
    assert {"actions/attest-build-provenance", "actions/attest-sbom"} <= set(build)


@pytest.mark.campaign
def test_two_builds_are_the_same_bytes(tmp_path):
    """`make dist` of the same commit in two folders, with files of other ages, another umask."""
    made = []
    source = subprocess.run(
        ["git", "archive", "HEAD"], check=True, capture_output=True, cwd=ROOT
    ).stdout
    for number, umask in enumerate((0o022, 0o077)):
        folder = tmp_path / f"copy-{number}"
        with tarfile.open(fileobj=BytesIO(source)) as archive:
            archive.extractall(folder, filter="data")
        for path in folder.rglob("*"):
            if path.is_file():
                os.utime(path, (1e9 + number, 1e9 + number))
                path.chmod(path.stat().st_mode & ~umask)
        subprocess.run(
            ["make", "dist", f"VENV={Path(sys.executable).parents[1]}"],
            check=True,
            cwd=folder,
            umask=umask,
            env=os.environ | {"SOURCE_DATE_EPOCH": "1800000000"},
        )
        made.append({each.name: each.read_bytes() for each in (folder / "dist").iterdir()})
    assert len(made[0]) == 2
    assert made[0] == made[1]
