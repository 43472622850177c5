"""Work that a process does again and again in a thread of its own, beside its requests."""

from __future__ import annotations

import random
import threading
from abc import ABC, abstractmethod


class Upkeep(ABC):
    """Work that says itself when it is due again."""

    name: str
    """Of the thread."""
    first_seconds = 300.0
    """It is done for the first time within so many seconds, at random, so that processes that start
    together do not work at the same time."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @abstractmethod
    def apply(self) -> float:
        """Do it once. Returns after how many seconds to do so again."""

    def start(self) -> None:
        """Run from now on until `stop`."""
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop, after waiting for what is being done, which needs the store."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        wait = random.uniform(0, self.first_seconds)  # noqa: S311  (nobody gains by guessing it)
        while not self._ended.wait(wait):
            wait = self.apply()
