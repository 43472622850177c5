"""How long the reports of a crowd last in which devices come and go.

* At first all devices are new. In each window every device that has reports left reports with the
  same probability (sample_rate), whatever its value is.
* After each window every device is replaced by a new one with the same probability, and whether it
  has reported does not matter for that.

Both functions are exact in this model. Devices that have reports left are newer than the others,
and so are those that report.
"""

from __future__ import annotations

import math

import numpy as np

from deniable_estimator.statistics.intervals import FloatArray

__all__ = ["budget_left", "lasting_budget"]


def budget_left(reports: int, sample_rate: float, turnover: float, windows: int) -> FloatArray:
    """The share of the devices with reports left at each of so many windows, shape (windows + 1,).

    `turnover` is the chance that a device is replaced after a window. The state is how many reports
    a device has sent, up to `reports` - 1; those that have sent all leave it until they are
    replaced.
    """
    sent = np.zeros(reports)
    sent[0] = 1.0
    shares = np.empty(windows + 1)
    for window in range(windows + 1):
        shares[window] = sent.sum()
        step = (1 - turnover) * sample_rate * sent[:-1]
        sent *= (1 - turnover) * (1 - sample_rate)
        sent[1:] += step
        sent[0] += turnover
    return np.minimum(shares, 1.0)


def lasting_budget(reports: int, sample_rate: float, turnover: float) -> float:
    """What the share of the devices with reports left tends to.

    A device's next event is a report with probability rho, or its replacement. It has no reports
    left if `reports` reports come first ::

        1 - rho**reports,  rho = (1 - t) s / (t + (1 - t) s)

    with s the sample rate and t the chance of replacement after a window.
    """
    if turnover <= 0:
        return 0.0
    going = (1 - turnover) * sample_rate
    return -math.expm1(reports * math.log(going / (turnover + going)))
