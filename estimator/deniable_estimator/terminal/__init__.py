"""The commands that plan a metric, and estimate it."""

from deniable_estimator.terminal.declared import plan, privacy
from deniable_estimator.terminal.simulated import simulate
from deniable_estimator.terminal.stored import ALARM, NO_DATA, anomalies, estimate, trend

__all__ = ["ALARM", "NO_DATA", "anomalies", "estimate", "plan", "privacy", "simulate", "trend"]
