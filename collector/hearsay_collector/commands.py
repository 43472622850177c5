"""`hearsay collect`: check the settings, publish the schemes, then become gunicorn."""

from __future__ import annotations

import os
import sys

import click

from hearsay import HearsayError, Registry
from hearsay_collector.operation.events import announce
from hearsay_collector.settings import Settings
from hearsay_collector.stores import StoreUnavailable, store_of

__all__ = ["collect"]


@click.command()
@click.option("--registry", metavar="PATH", help="The registry (HEARSAY_REGISTRY).")
@click.option("--store", metavar="URL", help="Where the tallies are (HEARSAY_STORE).")
@click.option("--bind", metavar="HOST:PORT", help="Where to listen (HEARSAY_BIND).")
@click.option("--workers", metavar="N", help="Processes (HEARSAY_WORKERS).")
@click.option("--threads", metavar="N", help="Threads of each process (HEARSAY_THREADS).")
def collect(**options: str | None) -> None:
    """Run the collector. Settings come from the environment; options win over it."""
    environ = dict(os.environ)
    for name, value in options.items():
        if value is not None:
            variable = f"HEARSAY_{name.upper()}"
            environ[variable] = value
            environ.pop(f"{variable}_FILE", None)
    try:
        _check(Settings.from_env(environ))
    except HearsayError as error:
        raise click.ClickException(str(error)) from error
    sys.stdout.flush()
    os.execve(  # noqa: S606  (this very interpreter, and arguments of ours alone)
        sys.executable,
        [
            *(sys.executable, "-m", "gunicorn"),
            *("-c", "python:hearsay_collector.gunicorn_conf", "hearsay_collector.asgi:app()"),
        ],
        environ,
    )


def _check(settings: Settings) -> None:
    """Publish now, so that a mistake is told here and not by every worker in turn."""
    registry = Registry.load(settings.registry)
    store = store_of(settings)
    try:
        store.publish({metric.name: [metric.scheme] for metric in registry})
    except StoreUnavailable as error:
        # The devices keep their batches meanwhile; the workers go on trying.
        announce(settings.log_format, "store-away", str(error), warning=True)
    finally:
        store.close()
