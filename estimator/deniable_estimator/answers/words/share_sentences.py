"""Shares in a sentence: which value leads, and which shares are impossible."""

from __future__ import annotations

from deniable_estimator.answers.shares import Shares
from deniable_estimator.answers.words.texts import percent, series_text
from deniable_estimator.messages import listed, message, sentence

_NAMED = 3


def headline(estimate: Shares) -> str:
    """The estimate in a sentence: which value leads, and whether the lead is significant.

    Where shares are impossible, none leads.

    Two intervals that do not overlap at `level` differ by more than the noise; the check
    errs on the cautious side.
    """
    if estimate.impossible.any():
        return impossible(estimate)
    order = estimate.order
    first = order[0]
    spread = float(estimate.high[first] - estimate.low[first]) / 2
    if estimate.values == ("true", "false"):
        text = series_text(estimate.unit, *estimate.series.at("true"))
        return message(
            "{share} say yes; the {level:.0%} interval is {low} to {high}.",
            share=text.estimate,
            level=estimate.level,
            low=text.low,
            high=text.high,
        )
    if not estimate.detected[first]:
        return message(
            "No value can be told from noise yet: it takes more reports, or a longer range."
        )
    name, share = (
        estimate.unit.label(estimate.values[first]),
        percent(float(estimate.share[first]), spread),
    )
    if len(order) == 1:
        return message("{name} has {share}.", name=name, share=share)
    second = order[1]
    other = estimate.unit.label(estimate.values[second])
    if estimate.low[first] > estimate.high[second]:
        return message(
            "{name} leads with {share}, ahead of {other} by more than the noise.",
            name=name,
            share=share,
            other=other,
        )
    return message(
        "{name} has {share}, too close to {other} to say which one leads.",
        name=name,
        share=share,
        other=other,
    )


def impossible(estimate: Shares) -> str:
    """Which shares of an estimate are impossible, in a sentence; there must be some."""
    told = []
    boolean = estimate.values == ("true", "false")
    for place in (0,) if boolean else estimate.strange[:_NAMED]:
        spread = float(estimate.high[place] - estimate.low[place]) / 2
        share = percent(float(estimate.share[place]), spread)
        template = sentence("{share} say yes") if boolean else sentence("{share} for {value}")
        told.append(
            message(template, share=share, value=estimate.unit.label(estimate.values[place]))
        )
    return message("Impossible: {which}. Do not rely on these shares.", which=listed(told))
