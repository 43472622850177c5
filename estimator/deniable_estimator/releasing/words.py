"""What a release rests on and costs, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from deniable_estimator.messages import message
from deniable_estimator.privacy.outsider import MAY_FAIL, OPERATOR
from deniable_estimator.privacy.words import rounded_up

if TYPE_CHECKING:
    from deniable_estimator.releasing.prepared import Prepared

_METHODS = {
    "exact": message("none: sums as they are"),
    "laplace": message("Laplace noise"),
    "gaussian": message("Gaussian noise"),
    "exponential": message("drawn at random"),
}
_FORMS = {
    "table": message("one table"),
    "trend": message("one table for each window"),
    "leader": message("the leader alone"),
}

_CHEAP, _DEAR = 0.01, 1.0
"""Noise that adds less than this part of the devices' own variance changes little; noise that adds
more than that costs more accuracy than theirs."""


def statement(manifest: Mapping[str, Any]) -> str:
    """A line that stands beneath published numbers."""
    epsilon = manifest["epsilon"]
    assert isinstance(epsilon, float)
    told = {"epsilon": figure(epsilon), "delta": manifest["delta"], "reports": manifest["reports"]}
    if manifest["method"] == "exact":
        return message(
            "Sums without further noise. To readers of sums they reveal of one device at most "
            "epsilon {epsilon} at delta {delta:g}; {reports:,} reports.",
            **told,
        )
    return message(
        "Released with noise: epsilon {epsilon}, delta {delta:g} for one device, also against "
        "readers who know all other reports; {reports:,} reports.",
        **told,
    )


def method_name(method: str) -> str:
    """How a release was made private, in a few words."""
    return _METHODS[method]


def form_name(form: str) -> str:
    """What was published, in a few words."""
    return _FORMS[form]


def pair_part(manifest: Mapping[str, Any]) -> str | None:
    """Of which pair the released numbers are, in a few words; None if devices reported no pair."""
    pair = manifest["pair"]
    if pair is None:
        return None
    if pair["name"] != manifest["metric"]:
        return message("reported as a part of {pair}", pair=pair["name"])
    one, two = pair["of"]
    return message("the pair of {one} and {two}", one=one, two=two)


def holds_against(method: str) -> str:
    """Against whom the epsilon of a release holds."""
    if method == "exact":
        return message("readers of sums")
    return message("readers who know all other reports")


def added_noise(noise: Mapping[str, Any] | None) -> str | None:
    """How large the noise of a manifest is; None where there is none that adds to numbers."""
    if noise is None or noise.get("variance_added") is None:
        return None
    return message(
        "standard deviation {deviation:.3g} on each count; adds {part} to the variance of the "
        "devices' own noise",
        deviation=noise["std_dev"],
        part=_part(noise["variance_added"]),
    )


def _part(added: float) -> str:
    return f"{added:.1%}" if added >= 0.001 else message("less than 0.1%")


def verdict(prepared: Prepared) -> str:
    """What the noise of a release buys, and whether it is worth its price."""
    if prepared.kind == "exact":
        return (
            "No noise is added. Noise would protect only against readers who know the other "
            "reports: it is dear for few reports, and pointless for many."
        )
    if prepared.kind == "exponential":
        return (
            "Only the name of one value is published. It is the largest with high probability if "
            "it leads by many reports."
        )
    added = prepared.added()
    if added > _DEAR:
        price = (
            "It is dear: it costs more accuracy than the noise of the devices themselves. Release "
            "more reports together, or with a larger epsilon."
        )
    elif added < _CHEAP:
        price = "It is cheap here, because there are many reports."
    else:
        price = "It costs some accuracy."
    return (
        f"The noise adds {_part(added)} to the variance of the devices' own noise. {price} It "
        "protects against readers who know the other reports, and against nobody else: to readers "
        "of sums the sums without it reveal epsilon "
        f"{figure(prepared.outsider.epsilon.epsilon)} at most."
    )


def assumed(method: str, reports: int) -> Iterator[str]:
    """What must hold for the guarantee of a release, one sentence or two each; `reports` are those
    of one device at most."""
    yield message(
        "Two devices are compared that gave other reports in all of these windows, {count} at "
        "most. How many reports there are, in which rows and segments, counts as known.",
        count=reports,
    )
    if method == "exact":
        yield message(
            "The reader sees nothing but sums, and may know the values of all other devices. "
            "Whoever also knows the other reports, or sent them, learns what the device's own "
            "report reveals."
        )
    else:
        yield message(
            "The reader may know all other reports, and the values of all other devices. Numbers "
            "of the same windows that are published elsewhere without noise undo the noise."
        )
    yield OPERATOR
    if method in ("exact", "gaussian"):
        yield MAY_FAIL


def figure(epsilon: float) -> str:
    """An epsilon, rounded up in its third digit or later.

    What is beyond its twelfth decimal is the rounding of floats: 0.1 is not shown as 0.101.
    """
    return rounded_up(Fraction(f"{epsilon:.12f}"), 4 if epsilon < 0.1 else 3)


def of_shares(manifest: Mapping[str, Any]) -> bool:
    """Whether the estimates are shares, and no numbers in a unit."""
    return bool(manifest["estimates"] == "shares")
