"""What a developer is told of a mistake, and what to do."""

import pytest
from tests.registries import declared

from deniable import Registry
from deniable_estimator.development.gate import Mistake
from deniable_estimator.development.mistakes import advice_on

REGISTRY = Registry.parse(
    declared(
        yes={"type": "boolean"},
        few={"type": "category", "values": ["a", "b"]},
        many={"type": "category", "values": [f"v{number}" for number in range(30)]},
        word={"type": "string"},
        found={"type": "discovery", "max_length": 4, "lifetime_epsilon": 40.0, "epsilon": 4.0},
        whole={"type": "number", "low": 0, "high": 9, "integer": True, "ask": "mean"},
        two={"type": "pair", "of": ["yes", "few"]},
    )
)


@pytest.mark.parametrize(
    ("code", "metric", "told", "advice"),
    [
        ("unknown_metric", "yess", "There is no metric “yess”.", "Did you mean “yes”?"),
        ("unknown_metric", "Zoom!", "no metric “Zoom!”", "small letters, digits and underscores"),
        ("unknown_metric", "zoom", "no metric “zoom”", "Declare it: deniable add zoom"),
        ("refused_value", "yes", "“yes” cannot take a value", "true and false alone"),
        ("refused_value", "few", "“few” cannot take", "It takes one of a, b."),
        ("refused_value", "many", "“many” cannot take", "It takes one of its 30 values, like v0, "),
        ("refused_value", "word", "“word” cannot take", "text"),
        ("refused_value", "found", "“found” cannot take", "half of a surrogate pair"),
        ("refused_value", "whole", "“whole” cannot take", "number"),
        ("refused_value", "two", "“two” cannot take", "Record yes, few: the device joins them."),
        ("undeclared_value", "few", "“few” does not list", "add it to `values`"),
        ("expired_metric", "few", "“few” has expired", "Set `expires`"),
        ("missing_segment", None, "has not told a segment", "Pass `segments`"),
        ("no_consent", None, "without consent", "consent=True"),
        ("disabled", None, "switched off", "DO_NOT_TRACK"),
        ("unknown_scheme", "few", "“few” was made with other parameters", "Restart the app"),
        ("not_development", None, "without the mark of development", "DENIABLE_DEV"),
        ("origin", None, "A page of <detail> wanted", "--origin"),
        ("batch", None, "refused as a whole: <detail>.", "docs/reference/protocol.md"),
        ("window_too_old", "few", "“few” was left out (window_too_old): <detail>.", "the clock"),
    ],
)
def test_each_mistake_has_its_advice(code, metric, told, advice):
    """The words name the metric, and the advice fits what it takes."""
    found = advice_on(Mistake(code, metric, "<detail>", 0.0), REGISTRY)
    assert told in str(found[0])
    assert advice in str(found[1])
