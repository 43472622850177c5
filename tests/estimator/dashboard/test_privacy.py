"""The privacy label."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import pytest
from flask.testing import FlaskClient

from deniable import Metric, Registry
from deniable_estimator.dashboard.privacy import label_of


def declared(epsilon: float, lifetime: float, extra: str = "") -> Metric:
    return Registry.parse(
        f"""
        schema = 1
        app = "example"
        [metrics.m]
        type = "category"
        description = "What?"
        owner = "me"
        expires = 2027-06-30
        values = ["a", "b", "c"]
        epsilon = {epsilon}
        lifetime_epsilon = {lifetime}
        {extra}
        """
    )["m"]


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 2.0, 4.0, 7.3, 10.0])
def test_no_figure_is_below_the_truth(epsilon: float) -> None:
    """Each figure is at least what the integers in force give, and less than a hundredth more."""
    metric = declared(epsilon, 3 * epsilon)
    label = label_of(metric)
    odds = metric.scheme.mechanism.odds

    def figure(text: str) -> Fraction:
        return Fraction(text.replace(",", ""))

    assert odds <= figure(label.one.factor) < odds + (Fraction(1, 100) if odds < 100 else 1)
    chance = 100 * odds / (odds + 1)
    assert chance <= figure(label.one.guess) < chance + Fraction(1, 10)
    assert label.lifetime_reports is not None
    assert label.lifetime is not None
    whole = math.exp(label.lifetime_reports * metric.scheme.mechanism.epsilon)
    if whole < 1_000_000:
        assert whole <= figure(label.lifetime.factor) * Fraction(1_000_001, 1_000_000)
    else:
        assert label.lifetime.factor.startswith("10^")
        assert math.log10(whole) <= int(label.lifetime.factor[3:]) < math.log10(whole) + 1
    assert chance < figure(label.lifetime.guess) <= 100


def test_the_lifetime_is_counted_in_reports() -> None:
    """The budget allows as many reports as the ledger will, no more."""
    assert label_of(declared(1.0, 8.0)).lifetime_reports == 8
    assert label_of(declared(1.0, 7.99)).lifetime_reports == 7
    assert label_of(declared(2.0, 2.0)).lifetime_reports == 1


@pytest.mark.parametrize(
    ("extra", "pace"),
    [
        ("", "every day stops after 8 days"),
        ('window = "week"', "every week stops after 8 weeks"),
        ("sample_rate = 0.02", "2% of its days, so its budget lasts about 400 days"),
        ("sample_rate = 0.002", "0.2% of its days, so its budget lasts about 11 years"),
    ],
)
def test_the_pace_follows_window_and_sample_rate(extra: str, pace: str) -> None:
    """The label says how long the budget lasts."""
    assert pace in label_of(declared(1.0, 8.0, extra)).pace


def test_memory_has_a_bound_for_each_value_and_no_lifetime() -> None:
    """With memory the label gives the memo's bound and that of every further report."""
    metric = declared(1.0, 4.0, 'longitudinal = "memoize"')
    label = label_of(metric)
    assert label.memo is not None
    assert label.memo.epsilon == "4.00"
    assert label.lifetime_reports is None
    assert label.lifetime is None
    assert float(label.each.factor) > float(label.one.factor)
    assert label.pace == "A device reports every day until the metric expires."


def test_the_cap_of_the_registry_ends_reports() -> None:
    """A cap on all metrics bounds each of them, with memory and without."""
    assert label_of(declared(1.0, 8.0), 3.0).lifetime_reports == 3
    capped = label_of(declared(1.0, 4.0, 'longitudinal = "memoize"'), 3.0)
    assert capped.lifetime_reports == 2
    assert capped.lifetime is not None


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 6.0])
def test_beliefs_follow_the_bound(epsilon: float) -> None:
    """What any belief can become is Bayes' rule with the odds in force, rounded up by less than
    a tenth of a point."""
    metric = declared(epsilon, 3 * epsilon)
    odds = metric.scheme.mechanism.odds
    for before, after in label_of(metric).beliefs:
        share = Fraction(before, 100)
        exact = 100 * odds * share / (odds * share + 1 - share)
        assert exact <= Fraction(after) < exact + Fraction(11, 100)
    assert dict(label_of(metric).beliefs)[50] == label_of(metric).one.guess


def test_the_exact_numbers_are_those_in_force() -> None:
    """Odds, p and q are the mechanism's own fractions, and epsilon its float."""
    metric = declared(1.0, 8.0)
    mechanism, exact = metric.scheme.mechanism, label_of(metric).exact
    assert Fraction(exact.odds) == mechanism.odds
    assert exact.support is not None
    assert (Fraction(exact.support.p), Fraction(exact.support.q)) == (mechanism.p, mechanism.q)
    assert float(exact.epsilon) == mechanism.epsilon


@pytest.mark.parametrize("ask", ["mean", "distribution"])
def test_a_number_has_neither_p_nor_q(ask: str) -> None:
    """The label of a number has odds and epsilon, and speaks of numbers."""
    metric = Registry.parse(
        f"""
        schema = 1
        app = "example"
        [metrics.m]
        type = "number"
        description = "How many?"
        owner = "me"
        expires = 2027-06-30
        low = 0
        high = 10
        ask = "{ask}"
        epsilon = 1.0
        lifetime_epsilon = 8.0
        """
    )["m"]
    label = label_of(metric)
    assert label.numeric
    assert label.exact.support is None
    assert Fraction(label.exact.odds) == metric.scheme.mechanism.odds
    assert label.lifetime_reports == 8
    assert not label_of(declared(1.0, 8.0)).numeric


def test_a_year_lies_between_a_report_and_a_lifetime() -> None:
    """A typical year reveals no more than the worst one, and that no more than a lifetime."""
    label = label_of(declared(1.0, 20.0, "sample_rate = 0.02"))
    assert label.lifetime is not None
    assert (label.year_reports, label.most_reports, label.lifetime_reports) == ("7.4", 20, 20)
    figures = [label.one, label.year, label.worst_year, label.lifetime]
    epsilons = [float(each.epsilon) for each in figures]
    assert epsilons == sorted(epsilons)


def test_pages_picture_the_change_of_a_belief(browser: FlaskClient) -> None:
    """The metric's page draws one report, one year and a lifetime, each labelled and told in
    words for those who hear it, says who learns what, and has the exact numbers folded away."""
    page = browser.get("/metric/browser").text
    pictures = re.findall(r'<svg class="belief".*?</svg>', page, re.DOTALL)
    assert len(pictures) == 3
    for picture, what in zip(
        pictures, ("One report", "One typical year", "A lifetime"), strict=True
    ):
        found = re.search(r'role="img"[^>]*aria-label="([^"]*)"', picture)
        assert found is not None
        assert found[1].startswith(f"{what}: a 50/50 guess is right 50 times in 100 before")
        assert "before: 50</text>" in picture
        assert "after: at most " in picture
    assert 'width="23.2%"' in pictures[0]
    for who in ("The network", "The collector's operator", "The analyst"):
        assert f"<dt>{who}</dt>" in page
    folded = page[page.index('<details class="exact">') :]
    assert "The exact numbers" in folded
    assert "subset selection" in folded


def test_every_page_of_a_metric_says_what_a_report_risks(browser: FlaskClient) -> None:
    """Cards and comparisons carry the label in a sentence."""
    told = "One report: a 50/50 guess becomes right at most 73.2% of the time."
    assert browser.get("/").text.count(told) == 4
    assert browser.get("/metric/browser/compare").text.count(told) == 1


def test_the_label_of_a_web_metric_speaks_of_storage(browser: FlaskClient) -> None:
    """The page of a metric that browsers record says that bounds for several reports hold for one
    life of their storage, in the reader's language; no other page does."""
    told = {"en": "hold for one life of the browser", "zh-Hans": "浏览器存储的一个存续期"}
    for language, words in told.items():
        headers = {"Accept-Language": language}
        assert browser.get("/metric/silent", headers=headers).text.count(words) == 1
        assert words not in browser.get("/metric/browser", headers=headers).text
