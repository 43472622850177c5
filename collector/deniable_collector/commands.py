"""`deniable collect` and `deniable relay`: check the settings, then become gunicorn."""

from __future__ import annotations

from contextlib import closing

import click

from deniable.tools.command_line import command
from deniable_collector.inherited import read_all
from deniable_collector.oblivious.relay_settings import RelaySettings
from deniable_collector.operation.events import announce
from deniable_collector.options import (
    bind_option,
    server_registry_option,
    store_option,
    workers_option,
)
from deniable_collector.serving.gunicorn import become, check_addresses, environment
from deniable_collector.settings import SettingsError
from deniable_collector.stores import StoreUnavailable, open_store


@command("deniable collect --registry metrics.toml --bind 127.0.0.1:8080")
@server_registry_option
@store_option
@bind_option("DENIABLE_BIND")
@workers_option
def collect(**options: str | None) -> None:
    """Run the collector. Settings come from the environment; options override it."""
    environ = environment(**options)
    found = read_all(environ)
    settings = found.settings
    check_addresses(settings.addresses)
    with closing(open_store(settings)) as store:
        try:
            # Now, so that a mistake is reported here once, and not by every worker.
            store.publish((metric.name, metric.scheme) for metric in found.registry)
        except StoreUnavailable as error:
            # Devices keep their batches meanwhile; the workers try again.
            announce(settings.log_format, "store-away", str(error), warning=True)
    become("deniable_collector.gunicorn_conf", "deniable_collector.collector:app()", environ)


@command("deniable relay --gateway https://t.acme.example --bind 127.0.0.1:8081")
@click.option("--gateway", metavar="URL", help="The gateway (DENIABLE_RELAY_GATEWAY).")
@bind_option("DENIABLE_BIND")
@workers_option
def relay(gateway: str | None, bind: str | None, workers: str | None) -> None:
    """Run a relay of Oblivious HTTP in front of the gateway of somebody else.

    It sees the addresses of devices and cannot read what they send; the gateway can read it and
    sees the relay's address. That is worth something only if different people run the two
    (docs/how-to/two-hops.md). Settings come from the environment; options override it.
    """
    environ = environment(relay_gateway=gateway, bind=bind, workers=workers)
    settings = RelaySettings.from_env(environ)
    if not settings.relay_gateway:
        raise SettingsError(
            ["DENIABLE_RELAY_GATEWAY must name the gateway, like https://t.acme.example"]
        )
    check_addresses(settings.addresses)
    become(
        "deniable_collector.oblivious.relay_conf",
        "deniable_collector.oblivious.relay:app()",
        environ,
    )
