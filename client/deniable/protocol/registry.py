"""The registry: `metrics.toml` becomes frozen metrics, or a list of every mistake in it.

Metrics must be declared first: a metric outside the registry cannot be recorded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from deniable.protocol.errors import MetricError, Problem, RegistryError, Severity
from deniable.protocol.frozen import frozen
from deniable.protocol.metric import Metric
from deniable.protocol.segments import Segment

if TYPE_CHECKING:
    from pathlib import Path

_NONE: Mapping[Any, Any] = {}


@frozen
class Registry:
    """All metrics of one `metrics.toml`, or of the `metrics.json` that was compiled from it.

    `app` is the name of the app: a device keeps one state, with one ledger, for each app.
    `lifetime_epsilon`, if given, caps what all metrics together reveal about a device.
    """

    app: str
    metrics: Mapping[str, Metric]
    lifetime_epsilon: float | None = None
    source: str = "metrics.toml"
    lines: Mapping[tuple[str, ...], int] = _NONE
    """The line of each table and key of the source by its path, for messages
    (`deniable.protocol.toml_lines`); nothing of a compiled registry."""
    segments: Mapping[str, Segment] = _NONE
    """The declared segments, by name."""
    recipient: str | None = None
    """Who receives the reports and answers for them, as people know them."""
    contact: str | None = None
    """Where people ask about their data."""

    @classmethod
    def load(cls, path: str | Path) -> Registry:
        """Read a registry from a file: one that `deniable compile` wrote if its name ends in
        `.json`, else a `metrics.toml`.

        Raises:
            RegistryError: the file cannot be read, or holds mistakes (all of them are listed).
        """
        source = str(path)
        folder, name = os.path.split(path)
        compiled = os.path.splitext(name)[1] == ".json"
        try:
            with open(path, encoding="utf-8" if compiled else "utf-8-sig") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            problem = Problem(None, "", f"cannot be read: {reason}")
            raise RegistryError([problem], source) from error
        if compiled:
            from deniable.protocol.reading import parse_json

            return cls.from_document(parse_json(text, source), source)
        return cls.parse(text, source, folder)

    @classmethod
    def from_document(cls, document: Any, source: str = "metrics.json") -> Self:
        """The registry that `compile` describes. None of its claims is trusted.

        Raises:
            RegistryError: the document holds mistakes, reveals more than it declares, or is not
                what compiling its registry gives (everything that is wrong is listed).
        """
        from deniable.protocol.reading import differences, read_document

        registry = cls(**read_document(document, source))
        if wrong := [*differences(document, registry.compile(keep=True))]:
            raise RegistryError(wrong, source)
        return registry

    def compile(self, *, keep: bool = False) -> dict[str, Any]:
        """What a device needs of the registry, as `metrics.json` holds it, with its keys in the
        order of the format. It has each mechanism with its integers in force, so that an SDK
        designs nothing, and ships inside the app. `keep` adds how long windows are kept, for a
        collector. `compiled.schema.json` describes the form, and `client/vectors/compiled.json`
        holds test vectors.
        """
        from deniable.protocol.keys import FORMAT, PEOPLE_KEYS

        cap, segmented = self.lifetime_epsilon, bool(self.segments)
        segments = {
            each.name: {"values": list(each.values), "other": each.other}
            for each in self.segments.values()
        }
        return {
            "format": FORMAT,
            "app": self.app,
            **{key: told for key in PEOPLE_KEYS if (told := getattr(self, key)) is not None},
            "lifetime_epsilon": None if cap is None else float(cap),
            **({"segments": segments} if segmented else {}),
            "metrics": {each.name: each.compile(segmented=segmented, keep=keep) for each in self},
        }

    @classmethod
    def parse(cls, text: str, source: str = "metrics.toml", folder: str | Path = "") -> Self:
        """Read a registry from TOML text; a `values_file` is looked for in `folder`, by
        default the working directory.

        Raises:
            RegistryError: the text holds mistakes (all of them are listed).
        """
        from deniable.protocol.reading import read_toml

        return cls(**read_toml(text, source, folder))

    @cached_property
    def pairs(self) -> Mapping[str, tuple[Metric, ...]]:
        """The pairs that take the values of a metric, by its name, in the order of the registry."""
        found: dict[str, tuple[Metric, ...]] = {}
        for metric in self:
            for name in metric.type.of:
                found[name] = (*found.get(name, ()), metric)
        return found

    @cached_property
    def unasked(self) -> Mapping[str, Metric]:
        """The metrics that devices do not report by themselves, each with the pair that gives
        their shares (`forget = "marginals"`)."""
        return {
            name: pair
            for name, pairs in self.pairs.items()
            for pair in reversed(pairs)
            if pair.type.forget is not None
        }

    def about(self, metric: Metric) -> tuple[Metric, ...]:
        """All metrics whose reports of a window are about a value that `metric` reports; their
        epsilons add up."""
        names = {metric.name, *metric.type.of}
        return tuple(
            each
            for each in self
            if each.name not in self.unasked and names.intersection((each.name, *each.type.of))
        )

    def problem(
        self, metric: Metric, message: str, severity: Severity, key: str | None = None
    ) -> Problem:
        """A remark about a metric, or one of its keys, at its line."""
        from deniable.protocol.toml_lines import line_of

        path = ("metrics", metric.name) if key is None else ("metrics", metric.name, key)
        return Problem(line_of(self.lines, path), ".".join(path), message, severity)

    def __getitem__(self, name: str) -> Metric:
        """The metric of that name.

        Raises:
            MetricError: there is none.
        """
        try:
            return self.metrics[name]
        except (KeyError, TypeError):  # TypeError: a name that is not even a text
            raise MetricError(name, f"is not declared in {self.source}; declare it there") from None

    def __iter__(self) -> Iterator[Metric]:
        return iter(self.metrics.values())

    def __len__(self) -> int:
        return len(self.metrics)
