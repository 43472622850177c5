"""Schemes: definitions, fingerprints and what is refused when one is read back."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from deniable import Scheme, SchemeError
from deniable.protocol.mechanisms.number_range import NumberRange
from deniable.protocol.mechanisms.sliding_window import SlidingWindow
from deniable.protocol.mechanisms.subset_selection import SubsetSelection

VECTORS = json.loads(
    (Path(__file__).parents[2] / "client" / "vectors" / "scheme.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("case", VECTORS["valid"], ids=lambda case: case["fingerprint"])
def test_vectors(case):
    """A definition read back has the published canonical form and fingerprint."""
    scheme = Scheme.from_definition(case["definition"])
    assert scheme.canonical().decode() == case["canonical"]
    assert scheme.fingerprint == case["fingerprint"]
    assert scheme.definition() == case["definition"]


@pytest.mark.parametrize("case", VECTORS["invalid"], ids=lambda case: case["why"])
def test_invalid_definitions(case):
    """A definition that cannot be a scheme is refused, never repaired."""
    with pytest.raises(SchemeError):
        Scheme.from_definition(case["definition"])


def test_every_part_changes_the_fingerprint():
    """Type, parameters, values and their order each make another scheme."""
    base = SubsetSelection.design(3, 1.0)
    schemes = [
        Scheme("category", base, ("a", "b", "c")),
        Scheme("category", base, ("b", "a", "c")),
        Scheme("category", base, ("a", "b", "d")),
        Scheme("other", base, ("a", "b", "c")),
        Scheme("category", SubsetSelection.design(3, 1.1), ("a", "b", "c")),
        Scheme("category", SubsetSelection.design(3, 1.0, k=2), ("a", "b", "c")),
    ]
    assert len({scheme.fingerprint for scheme in schemes}) == len(schemes)


@pytest.mark.parametrize(
    "change",
    [
        {"type": "category"},
        {"type": "string", "values": None},
        {"type": ["number"]},
        {"mechanism": ["sliding_window"]},
        {"parameters": None},
    ],
)
def test_a_definition_that_does_not_fit_is_refused(change):
    """A type whose values cannot be reported through the mechanism, and entries of another kind,
    are no scheme."""
    mechanism = SlidingWindow.design(NumberRange("0", "10"), 1.0)
    definition = Scheme("number", mechanism, ()).definition()
    assert Scheme.from_definition(definition).mechanism.parameters() == mechanism.parameters()
    with pytest.raises(SchemeError):
        Scheme.from_definition({**definition, **change})


def test_hashlib_takes_the_place_of_a_missing_digest():
    """An interpreter without its own module of SHA-256 gives the same digest by `hashlib`."""
    code = (
        "import sys\n"
        "for name in ('_sha2', '_sha256'): sys.modules[name] = None\n"
        "from deniable.protocol.scheme import sha256\n"
        "print(sha256.__name__, sha256(b'a').hexdigest())"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    name, digest = done.stdout.split()
    assert (name, digest) == ("openssl_sha256", hashlib.sha256(b"a").hexdigest())
