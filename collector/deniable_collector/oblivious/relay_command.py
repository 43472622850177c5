"""`deniable relay`: check the settings, then become gunicorn."""

from __future__ import annotations

import click

from deniable import DeniableError
from deniable_collector.listening import cannot_listen
from deniable_collector.oblivious.relay_settings import RelaySettings
from deniable_collector.serving.gunicorn import become, environment
from deniable_collector.settings import SettingsError


@click.command()
@click.option("--gateway", metavar="URL", help="The gateway (DENIABLE_RELAY_GATEWAY).")
@click.option("--bind", metavar="HOST:PORT", help="Where to listen (DENIABLE_BIND).")
@click.option("--workers", metavar="N", help="Processes (DENIABLE_WORKERS).")
def relay(gateway: str | None, bind: str | None, workers: str | None) -> None:
    """Run a relay of Oblivious HTTP in front of the gateway of somebody else.

    It sees the addresses of devices and cannot read what they send; the gateway can read it and
    sees the relay's address. That is worth something only if different people run the two
    (docs/how-to/two-hops.md). Settings come from the environment; options override it.
    """
    environ = environment(relay_gateway=gateway, bind=bind, workers=workers)
    try:
        settings = RelaySettings.from_env(environ)
        if not settings.relay_gateway:
            raise SettingsError(
                ["DENIABLE_RELAY_GATEWAY must name the gateway, like https://t.acme.example"]
            )
        if problems := cannot_listen(settings.addresses):
            raise SettingsError(problems)
    except DeniableError as error:
        raise click.ClickException(str(error)) from error
    become(
        "deniable_collector.oblivious.relay_conf",
        "deniable_collector.oblivious.relay:app()",
        environ,
    )
