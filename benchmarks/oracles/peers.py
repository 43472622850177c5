"""The peers' environment, made when it is missing, and requests to the peers in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["LIBRARIES", "Request", "ask", "default_place", "prepare"]

LIBRARIES = ("pure-ldp", "multi-freq-ldpy")

REQUIREMENTS = ("pure-ldp==1.2.0", "multi-freq-ldpy==0.2.5", "xxhash==3.8.2", "scikit-learn")
"""The last two are what the first two need and do not ask for, or ask for too loosely."""

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


def default_place() -> Path:
    """Where the environment is kept unless the caller says otherwise."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "deniable" / "peers"


def prepare(place: Path) -> Path:
    """The Python of the peers' environment, which is made if it is not there."""
    python = place / "bin" / "python"
    if not python.exists():
        print(f"Making the peers' environment in {place} ...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *REQUIREMENTS], check=True)
    return python


def ask(python: Path, requests: Sequence[Request]) -> Iterator[dict[str, Any]]:
    """The answer to each request, in order: see `peer_side.run` for its keys.

    Raises:
        RuntimeError: the peers' side ended before it had answered all of them.
    """
    with subprocess.Popen(
        [python, SIDE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as side:
        assert side.stdin is not None
        assert side.stdout is not None
        for request in requests:
            print(json.dumps(request._asdict()), file=side.stdin, flush=True)
            line = side.stdout.readline()
            if not line:
                raise RuntimeError(f"the peers' side failed at {request}: run {SIDE} by hand")
            yield json.loads(line)
        side.stdin.close()
