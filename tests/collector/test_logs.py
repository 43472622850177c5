"""gunicorn's log lines."""

from __future__ import annotations

import logging

import pytest
from gunicorn.config import Config

from hearsay_collector.logs import DiscreetLogger


@pytest.fixture
def logger():
    yield DiscreetLogger(Config())
    logging.getLogger("gunicorn.error").handlers.clear()


def test_requests_are_not_described(logger, caplog):
    """Addresses, headers, paths and messages of failed requests stay out of the log."""
    logger.warning("Invalid request from ip=203.0.113.7: Invalid HTTP Header: 'marker'")
    for line, values in (
        ("Error handling request %s", ("/marker",)),
        ("Socket error in request", ()),
    ):
        try:
            raise RuntimeError("marker")
        except RuntimeError:
            logger.exception(line, *values)
    text = caplog.text
    assert "Invalid request" in text
    assert text.count("Error handling a request: RuntimeError") == 2
    assert "marker" not in text
    assert "203.0.113.7" not in text


def test_processes_are_described(logger, caplog):
    """What a worker failed of at its start is told in full."""
    logger.warning("Worker (pid:%s) was sent %s", 7, "SIGTERM")
    try:
        raise RuntimeError("the registry has mistakes")
    except RuntimeError:
        logger.exception("Exception in worker process")
    text = caplog.text
    assert "Worker (pid:7) was sent SIGTERM" in text
    assert "RuntimeError: the registry has mistakes" in text
