"""Each warning appears when it is due, and only then."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from deniable import Scheme
from deniable_estimator.answers.caveats import caveats
from deniable_estimator.statistics.intervals import Noise


@pytest.fixture
def warn(make_scheme: Callable[..., Scheme]) -> Callable[..., str]:
    """The warnings, as one text, for n reports over so many values."""

    def say(
        n: int, size: int = 4, epsilon: float = 1.0, k: int | None = None, **more: object
    ) -> str:
        mechanism = make_scheme(size, epsilon, k).mechanism
        noise = Noise.of(mechanism.p, mechanism.q, n, size)
        settings = {"windows": ("2026-11-16",), "complete": True, "devices": n, **more}
        windows = settings.pop("windows")
        return "; ".join(caveats(n, windows, noise, 0.95, **settings))  # type: ignore[arg-type]

    return say


def test_enough_reports_need_no_warning(warn: Callable[..., str]) -> None:
    """100,000 devices, one window, a whole domain: nothing to warn of."""
    assert warn(100_000) == ""


def test_no_usable_signal(warn: Callable[..., str]) -> None:
    """Noise that can look like half of the crowd is called no usable signal, from there on only.

    Four values at epsilon 1: critical value 2.24, null error 1.26 / sqrt(n): the line is n = 32.
    """
    assert "no usable signal" in warn(30)
    assert "no usable signal" not in warn(34)


def test_few_reports(warn: Callable[..., str]) -> None:
    """A handful of reports is called that, even where their noise is small."""
    assert "too few reports (only 29)" in warn(29, 2, 6.0)
    assert "too few" not in warn(30, 2, 6.0)


def test_rough_approximations(warn: Callable[..., str]) -> None:
    """With fewer than four chance supporters of a value the numbers are called rough."""
    assert "rough" in warn(350, 100, 1.0, 1)
    assert "rough" not in warn(450, 100, 1.0, 1)
    assert "rough" not in warn(350, 100, 1.0)
