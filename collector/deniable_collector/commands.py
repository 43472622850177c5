"""`deniable collect`: check the settings, publish the schemes, then become gunicorn."""

from __future__ import annotations

import click

from deniable import DeniableError, Registry
from deniable_collector.listening import cannot_listen
from deniable_collector.oblivious.key_file import KeyFile
from deniable_collector.operation.events import announce
from deniable_collector.serving.gunicorn import become, environment
from deniable_collector.settings import Settings, SettingsError
from deniable_collector.stores import StoreUnavailable, store_of


@click.command()
@click.option("--registry", metavar="PATH", help="The registry (DENIABLE_REGISTRY).")
@click.option("--store", metavar="URL", help="Where the tallies are (DENIABLE_STORE).")
@click.option("--bind", metavar="HOST:PORT", help="Where to listen (DENIABLE_BIND).")
@click.option("--workers", metavar="N", help="Processes (DENIABLE_WORKERS).")
def collect(**options: str | None) -> None:
    """Run the collector. Settings come from the environment; options override it."""
    environ = environment(**options)
    try:
        _check(Settings.from_env(environ))
    except DeniableError as error:
        raise click.ClickException(str(error)) from error
    become("deniable_collector.gunicorn_conf", "deniable_collector.collector:app()", environ)


def _check(settings: Settings) -> None:
    """Publish now, so that a mistake is reported here once, and not by every worker."""
    registry = Registry.load(settings.registry)
    KeyFile.of(settings.gateway_keys)
    if problems := cannot_listen(settings.addresses):
        raise SettingsError(problems)
    store = store_of(settings)
    try:
        store.publish({metric.name: [metric.scheme] for metric in registry})
    except StoreUnavailable as error:
        # Devices keep their batches meanwhile; the workers try again.
        announce(settings.log_format, "store-away", str(error), warning=True)
    finally:
        store.close()
