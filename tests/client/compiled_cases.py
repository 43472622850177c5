"""Registries whose compiled form client/vectors/compiled.json has, and a forger."""

import copy
import functools
from pathlib import Path

from deniable import Registry, Scheme
from deniable.protocol.mechanisms import Memoizing, rebuild

REGISTRIES = Path(__file__).parent / "registries"
FILE = Path(__file__).parents[2] / "client" / "vectors" / "compiled.json"


REGISTRY = (REGISTRIES / "every_kind.toml").read_text(encoding="utf-8")

SEGMENTED = (REGISTRIES / "segments.toml").read_text(encoding="utf-8")


@functools.cache
def _whole():
    """All metrics in one document."""
    return Registry.parse(REGISTRY).compile()


def document(*names):
    """A document with these metrics alone."""
    whole = copy.deepcopy(_whole())
    return {**whole, "metrics": {name: whole["metrics"][name] for name in names}}


def consistent(metric):
    """Make a metric's figures and fingerprint those of its parameters, as a forger would."""
    mechanism = rebuild(metric["mechanism"], metric["parameters"])
    scheme = Scheme(metric["type"], mechanism, tuple(metric["values"] or ()))
    metric["scheme"] = scheme.fingerprint
    metric["reveals"]["report"] = mechanism.epsilon
    if isinstance(mechanism, Memoizing):
        metric["reveals"]["memo"] = mechanism.lifetime_epsilon
        metric["reveals"]["fresh"] = mechanism.fresh_epsilon
