"""The folder in which a dashboard keeps what people have entered: one setting, four files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

SETTING = "DENIABLE_DATA"
FOLDER = "deniable-data"
"""In the working directory, unless the setting names another."""

ANNOTATIONS = "annotations.toml"
PEOPLE = "people.toml"
LINKS = "links.db"
SESSIONS = "sessions.db"


def file_in_folder(name: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Where a dashboard with this environment keeps a file."""
    return Path(environ.get(SETTING) or FOLDER) / name
