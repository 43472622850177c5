"""Registries for tests: what a metric does not say is as usual."""

import json

HEAD = """schema = 1
app = "example"
[defaults]
owner = "growth@acme.example"
expires = 2999-06-30
"""
USUAL = {"description": "Which?", "epsilon": 2.0, "lifetime_epsilon": 8.0}


def tables(**metrics):
    """The tables of metrics, each with these keys and the usual ones."""
    return "".join(
        f"[metrics.{name}]\n"
        + "".join(
            f"{key} = {json.dumps(value, ensure_ascii=False)}\n"
            for key, value in {**USUAL, **keys}.items()
        )
        for name, keys in metrics.items()
    )


def declared(segments=None, **metrics):
    """A registry of these segments and metrics."""
    of = "".join(
        f"[segments.{name}]\nvalues = {json.dumps(values)}\n"
        for name, values in (segments or {}).items()
    )
    return HEAD + of + tables(**metrics)
