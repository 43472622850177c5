"""Pairs on pages and in the API: bad addresses, and the ranges of a number."""

from tests.registries import declared

from deniable import Registry

from .conftest import YESTERDAY, dashboard_of, fill_drawn, program_of

CELLS = dict(enumerate((900, 600, 300, 1_050, 63, 87)))


def test_the_api_names_the_ranges_of_a_forgotten_number(empty_store):
    """`value=` takes the ranges whose shares the answer has, and a wrong one is refused with
    them."""
    text = declared(
        plan={"type": "category", "values": ["free", "pro", "trial"]},
        minutes={"type": "number", "low": 0, "high": 60, "unit": "min", "ask": "mean"},
        both={"type": "pair", "of": ["plan", "minutes"], "forget": "marginals"},
    )
    registry = Registry.parse(f"{text}[metrics.both.bins]\nminutes = [15]\n")
    empty_store.publish([("both", registry["both"].scheme)])
    for day in ("2026-11-13", "2026-11-18", "2026-11-19", YESTERDAY):
        fill_drawn(empty_store, registry, "both", CELLS, day)
    ask = program_of(dashboard_of(empty_store, registry))
    base = "/api/v1/metrics/minutes"
    for path in ("estimate", "trend", "comparison"):
        found = ask.get(f"{base}/{path}", query_string={"value": "below 15"})
        assert found.status_code == 200, path
        assert "below 15" in found.text
        assert "15 or more" not in found.text
    refused = ask.get(f"{base}/estimate", query_string={"value": "15"})
    assert refused.status_code == 400
    assert "below 15, 15 or more, mean" in refused.get_json()["detail"]
