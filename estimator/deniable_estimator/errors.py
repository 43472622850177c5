"""The estimator's error, below `deniable.protocol.errors.DeniableError`."""

from __future__ import annotations

from deniable import DeniableError


class EstimateError(DeniableError):
    """What was asked for cannot be answered; the message says what can be, and `fields` by which
    inputs to ask for it."""

    def __init__(self, text: str, *fields: str) -> None:
        super().__init__(text)
        self.fields = fields


class OnlyLongerError(EstimateError):
    """Windows that are asked for were dropped, and only sums of longer periods have them."""
