"""What simulated devices have of each metric, before anyone has a real value."""

from pathlib import Path

from deniable import Registry
from deniable_estimator.planning.population import made_up

REGISTRIES = Path(__file__).parents[2] / "contract" / "crowd"


def told(metric):
    """The words, and the commonest values with their shares."""
    found = made_up(metric)
    commonest = sorted(zip(found.shares.tolist(), found.values, strict=True), reverse=True)[:3]
    some = ", ".join(f"{value} {share:.9g}" for share, value in commonest)
    return f"{metric.name}: {found.words}; {some}; {len(found.values)} in all"


def test_what_devices_have_stays(stays):
    """Values, shares and words of each kind of metric stay as they are."""
    declared = [
        metric
        for name in ("metrics.toml", "mechanisms.toml", "others.toml")
        for metric in Registry.load(REGISTRIES / name)
        if metric.type.name != "retention"
    ]
    stays("made_up.txt", map(told, declared))
