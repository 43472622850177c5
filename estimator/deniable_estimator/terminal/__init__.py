"""The commands that plan a metric, and estimate it."""

from deniable_estimator.terminal.anomalies_command import ALARM, anomalies
from deniable_estimator.terminal.estimate_command import estimate
from deniable_estimator.terminal.options import NO_DATA
from deniable_estimator.terminal.plan_command import plan
from deniable_estimator.terminal.privacy_command import privacy
from deniable_estimator.terminal.simulated import simulate
from deniable_estimator.terminal.trend_command import trend

__all__ = ["ALARM", "NO_DATA", "anomalies", "estimate", "plan", "privacy", "simulate", "trend"]
