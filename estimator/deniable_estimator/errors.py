"""The estimator's error, below `deniable.protocol.errors.DeniableError`."""

from __future__ import annotations

from deniable import DeniableError


class EstimateError(DeniableError):
    """The request cannot be estimated; the message says what to request instead."""


class OnlyLongerError(EstimateError):
    """Windows that are asked for were dropped, and only sums of longer periods have them."""
