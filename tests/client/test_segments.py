"""Segments: what may be declared, what a device tells, and what it says about it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable import Registry, RegistryError, Scheme, SchemeError, SegmentError
from deniable.protocol.mechanisms import MAX_CELLS, Packing, Row
from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable.protocol.segments import Segment, combinations, labels, place
from deniable.testing import MemoryClient
from deniable_estimator.planning.crowd_limits import segment_forecast

from .conftest import metrics_toml

SEGMENTS = """
[segments.platform]
values = ["ios", "android", "web"]
other = "other"
[segments.plan]
values = ["free", "paid"]
"""
BOTH = metrics_toml(
    SEGMENTS, dark_mode={"segments": ["platform"]}, both={"segments": ["plan", "platform"]}
)


def mistakes(text):
    """The mistakes of a registry: where -> what."""
    try:
        Registry.parse(text)
    except RegistryError as error:
        return {each.where: str(each.message) for each in error.problems}
    return {}


def test_a_reason_lets_a_segment_pass():
    """With `why` neither the look of a segment nor the number of devices is refused."""
    plans = '[segments.plan]\nvalues = ["x", "2026-11-22"]\n'
    mode = {"segments": ["plan"], "devices": 10, "lifetime_epsilon": 8.0}
    found = mistakes(metrics_toml(plans, dark_mode=mode))
    assert set(found) == {"segments.plan", "metrics.dark_mode.segments"}
    why = 'why = "The plans are called so."\n'
    assert mistakes(metrics_toml(plans + why, dark_mode=mode)) == {}


def test_a_tally_keeps_its_limit():
    """Segments that would give a tally more than the most cells are refused."""
    fits, too_wide = (MAX_CELLS // 8, MAX_CELLS // 8 + 1)
    segments = (Segment("a", ("x", "y", "z", "w")), Segment("b", ("x", "y")))
    for width in (fits, too_wide):
        mechanism = SubsetSelection.design(3, 1.0)
        mechanism.rows = (Row(width, Packing.BITMAP),)
        if width == fits:
            Scheme("category", mechanism, ("p", "q", "r"), segments)
            continue
        with pytest.raises(SchemeError, match="above the limit of 8,388,608"):
            Scheme("category", mechanism, ("p", "q", "r"), segments)


def test_rows_are_combinations_first():
    """A tally has the mechanism's rows for each combination, the last segment fastest, and the
    fingerprint covers names, values and order."""
    registry = Registry.parse(BOTH)
    scheme = registry["both"].scheme
    assert len(scheme.rows) == 8 == combinations(scheme.segments)
    assert scheme.combinations[:5] == [
        *({"plan": "free", "platform": each} for each in ("ios", "android", "web", "other")),
        {"plan": "paid", "platform": "ios"},
    ]
    changed = [
        BOTH,
        BOTH.replace('"ios", "android"', '"android", "ios"'),
        BOTH.replace('"free"', '"gratis"'),
        BOTH.replace("plan", "offer"),
        BOTH.replace('["plan", "platform"]', '["platform", "plan"]'),
    ]
    assert len({Registry.parse(each)["both"].scheme.fingerprint for each in changed}) == 5
    # `other` says what a value becomes, and not what a tally means.
    same = BOTH.replace('"web"]\nother = "other"', '"web", "other"]\nother = "web"')
    assert Registry.parse(same)["both"].scheme.fingerprint == scheme.fingerprint


@given(st.lists(st.integers(2, 6), min_size=1, max_size=2, unique=True), st.data())
def test_every_combination_has_its_place(sizes, data):
    """The place of a combination is that of its labels; what is not listed is `other`, and nothing
    where there is no `other`."""
    segments = [
        Segment(f"s{size}", tuple(f"v{number}" for number in range(size)), "v1") for size in sizes
    ]
    found = labels(segments)
    assert [place(segments, each) for each in found] == list(range(combinations(segments)))
    given_ = data.draw(st.sampled_from(found))
    name = data.draw(st.sampled_from(segments)).name
    assert place(segments, {**given_, name: "?"}) == place(segments, {**given_, name: "v1"})
    strict = [Segment(each.name, each.values) for each in segments]
    assert place(strict, {**given_, name: "?"}) is None


def test_a_segment_that_was_not_told(make_client):
    """Without an `other` the record is ignored, counted and passed on, with the
    segment's name and no value."""
    troubles = []
    client = make_client(registry=Registry.parse(BOTH), on_trouble=troubles.append)
    client.record("dark_mode", True)
    client.record("both", True)
    assert client.counters == {"segment": 1}
    (trouble,) = troubles
    assert isinstance(trouble, SegmentError)
    assert trouble.segment == "plan"
    assert str(trouble) == (
        "segment 'plan': is not known, so both is not recorded: tell the client, or declare an "
        '"other"'
    )


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"plan": "paid", "shoe": "red"}, "'shoe': is not declared in metrics.toml"),
        ({"plan": "secret"}, "'plan': the value is not one of its declared values"),
        ({"platform": 3}, "'platform': takes a string, not int"),
        ({3: "x"}, "'3': is not declared"),
    ],
)
def test_segments_that_cannot_be_told(make_client, told, message):
    """In production nothing raises: an unknown segment counts as a mistake, and a value that does
    not fit as refused. What is passed on names no value. The other segments are told."""
    troubles = []
    client = make_client(registry=Registry.parse(BOTH), segments=told, on_trouble=troubles.append)
    (trouble,) = troubles
    assert isinstance(trouble, SegmentError)
    assert message in str(trouble)
    assert "secret" not in str(trouble)
    kind = "mistake" if "is not declared in" in message or "'3'" in message else "refused"
    assert client.counters == {kind: 1}


def test_a_segment_that_does_not_fit_is_not_known_any_more():
    """A record does not count for the segment of before; a new value is taken as ever."""
    client = MemoryClient(Registry.parse(BOTH), segments={"plan": "free"})
    for value in ("secret", "paid"):
        client.set_segments({"plan": value})
        client.record("both", True)
    assert [each.segments for each in client.records] == [("paid", "other")]
    assert client.counters == {"refused": 1, "segment": 1}
    with pytest.raises(SegmentError, match="'shoe': is not declared"):
        client.set_segments({"shoe": "red"})


def test_sent_says_what_was_told_in_clear(make_client, clock):
    """The owner reads the segments beside what the noisy part reveals, in both languages."""
    client = make_client(
        registry=Registry.parse(BOTH), segments={"platform": "web", "plan": "paid"}
    )
    client.record("both", True)
    clock.days(1)
    client.flush()
    (report,) = client.sent()
    assert report.words.endswith(
        "; without noise your device also told plan = “paid” and platform = “web”"
    )
    assert [*map(str, report.likelihoods.values())]
    assert "不加噪声地告知了plan = “paid”和platform = “web”" in client.owner_page(
        language="zh-Hans"
    )


@pytest.mark.parametrize(
    ("devices", "told"),
    [
        (10_000_000, None),
        (4_000, "over 7 windows"),
        (420, "not even over 28"),
    ],
)
def test_lint_says_what_a_segment_can_tell(devices, told):
    """With few devices lint notes that an average segment is blind in a window, over how many
    windows it is not, and how many devices it takes in one."""

    def forecast(devices):
        keys = {"segments": ["platform"], "devices": devices, "lifetime_epsilon": 8.0}
        return segment_forecast(Registry.parse(metrics_toml(SEGMENTS, m=keys))["m"])

    found = forecast(devices)
    assert (found is None) == (told is None)
    if found is not None and told is not None:
        assert told in str(found)
        needed = found.arguments["devices"]
        assert forecast(needed) is None
        assert forecast(needed * 99 // 100) is not None


def test_segments_have_names():
    """A value without its segment's name is a mistake that is named."""
    with pytest.raises(TypeError, match="segments must map names to values"):
        MemoryClient(Registry.parse(BOTH), segments="ios")
