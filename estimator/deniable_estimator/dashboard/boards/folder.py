"""The boards of a folder, each read anew when its file has changed."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from deniable import Registry
from deniable_estimator.dashboard.boards.board import Board
from deniable_estimator.dashboard.boards.file import load_board
from deniable_estimator.files import CheckedFileError, LastGood, nearest

MOST_BOARDS = 100
"""The most files of a folder: the first by name are taken."""

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
"""A board's name, which is in its address."""


class BoardFolder:
    """Name of a board -> the board, from NAME.toml in a folder. Threads may share it."""

    def __init__(self, folder: Path | None, registry: Registry) -> None:
        self._folder = folder
        self._registry = registry
        self._files: dict[str, LastGood[Board | None]] = {}

    @property
    def names(self) -> list[str]:
        """The names of all files, sorted; empty if the folder is gone."""
        if self._folder is None:
            return []
        try:
            found = [each.stem for each in self._folder.iterdir() if each.suffix == ".toml"]
        except OSError:
            return []
        return sorted(each for each in found if NAME.fullmatch(each))[:MOST_BOARDS]

    @property
    def refused(self) -> list[str]:
        """Files of boards that have no address: their name is none, or they are too many."""
        names = set(self.names)
        found = [] if self._folder is None else self._folder.glob("*.toml")
        return sorted(each.name for each in found if each.stem not in names)

    def get(self, name: str) -> tuple[Board | None, CheckedFileError | None]:
        """The board in force, and what is wrong with its file.

        Raises:
            KeyError: there is no such file; the message names the nearest board.
        """
        known = self.names
        if self._folder is None or name not in known:
            self._files.pop(name, None)
            raise KeyError(nearest(name, known))
        if name not in self._files:
            read = partial(load_board, registry=self._registry)
            self._files[name] = LastGood(self._folder / f"{name}.toml", read, None)
        file = self._files[name]
        return file.value, file.mistakes

    def all(self) -> list[tuple[str, Board | None, CheckedFileError | None]]:
        """Every board with its name, by title."""
        found = [(name, *self.get(name)) for name in self.names]
        return sorted(found, key=lambda each: (each[1].title if each[1] else each[0]).casefold())
