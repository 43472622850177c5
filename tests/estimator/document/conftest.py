"""What is drawn or laid out stays as it is kept in a file."""

from pathlib import Path

import pytest


@pytest.fixture
def stays(request):
    """Compare lines with those of a file beside the tests, which `--take` writes anew."""

    def compare(name, lines):
        file = Path(__file__).with_name(name)
        found = "".join(f"{each}\n" for each in lines)
        if request.config.getoption("--take"):
            file.write_text(found, encoding="utf-8")
        assert found.splitlines() == file.read_text(encoding="utf-8").splitlines()

    return compare
