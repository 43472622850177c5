"""Dates that people want to see beside a metric: a release, an outage, a campaign.

They stand in one TOML file. `annotation.py` is one of them, `file.py` reads the file, `editing.py`
adds an entry. An annotation is a neighbour in time and nothing more: nothing here says
that it caused a change.
"""

from __future__ import annotations

from deniable_estimator.annotations.annotation import Annotation, between
from deniable_estimator.annotations.file import load_annotations, parse_annotations

__all__ = ["Annotation", "between", "load_annotations", "parse_annotations"]
