"""Two public libraries, in an environment of their own that is made where it is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

REQUIREMENTS = (
    *("pure-ldp==1.2.0", "multi-freq-ldpy==0.2.5"),
    # What these two need and do not ask for, or ask for too loosely.
    *("xxhash==3.8.2", "scikit-learn"),
    # The lists of strings with their frequencies.
    *("wordfreq==3.1.1", "disposable-email-domains==0.0.293"),
)

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "deniable"
SIDE = Path(__file__).with_name("peer_side.py")


class Request(NamedTuple):
    """Let a library's oracle do `repetitions` rounds of `reports` reports, or fewer if they take
    more CPU seconds than `seconds`; devices have values by Zipf's law with exponent `zipf`.
    """

    library: str
    oracle: str
    size: int
    epsilon: float
    reports: int
    repetitions: int
    seconds: float
    seed: int
    zipf: float


def python() -> Path:
    """The Python of the peers' environment."""
    place = CACHE / "peers"
    binary = place / "bin" / "python"
    if not binary.exists():
        print(f"Making the peers' environment in {place} ...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        subprocess.run([binary, "-m", "pip", "install", "--quiet", *REQUIREMENTS], check=True)
    return binary


def wordlists() -> Path:
    """The folder with the lists that `wordlists.py` makes."""
    place = CACHE / "wordlists"
    if not place.exists():
        subprocess.run([python(), SIDE.with_name("wordlists.py"), place], check=True)
    return place


@cache
def side() -> subprocess.Popen[str]:
    """The process in the peers' environment that answers; it ends with its input."""
    return subprocess.Popen(
        [python(), SIDE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def ask(request: Request) -> dict[str, Any]:
    """Its answer: see `peer_side.run` for the keys.

    Raises:
        RuntimeError: the peers' side ended before it had answered.
    """
    process = side()
    assert process.stdin is not None
    assert process.stdout is not None
    print(json.dumps(request._asdict()), file=process.stdin, flush=True)
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"the peers' side failed at {request}: run {SIDE} by hand")
    answer: dict[str, Any] = json.loads(line)
    return answer
