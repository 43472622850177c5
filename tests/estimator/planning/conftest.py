"""Plans as data: what `--json` and the read API have, before it is text."""

from deniable_estimator.kinds import PLANS, make_plan


def plan(kind, **given):
    """The plan for what is given; the rest is what a form begins with."""
    inputs = PLANS[kind].inputs
    asked = {each.name: each.parse(each.start) if each.needed else each.default for each in inputs}
    document = make_plan(kind, asked | given).document
    return {**document.about, **{each.key: each.value for each in document.facts}}
