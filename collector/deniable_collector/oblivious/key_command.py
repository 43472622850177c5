"""`deniable relay key`: make, rotate and show the keys of a gateway (docs/how-to/two-hops.md)."""

from __future__ import annotations

from pathlib import Path

import click

from deniable.protocol.oblivious.capsules import KEMS
from deniable.tools.command_line import command, json_option, print_json
from deniable_collector.oblivious.key_file import MOST_KEYS, KeyFile

_path = click.argument("path", type=click.Path(path_type=Path, dir_okay=False))
_kem = click.option(
    "--kem",
    type=click.Choice([*KEMS]),
    default="x25519",
    show_default=True,
    help="The key exchange. p256 is for web pages in browsers of before 2025, which lack X25519.",
)


@command("deniable relay key new gateway-keys.json")
@_path
@_kem
@json_option
def new(path: Path, kem: str, as_json: bool) -> None:
    """Make PATH with a new identity and one key. It is readable by its user alone.

    The collector of the gateway reads PATH if DENIABLE_GATEWAY_KEYS names it. Apps carry the
    identity, which never changes.
    """
    made = KeyFile.new(kem)
    made.write(path)
    _show(made, path, as_json)


@command("deniable relay key rotate gateway-keys.json")
@_path
@_kem
@click.option(
    "--keep",
    type=click.IntRange(0, MOST_KEYS - 1),
    default=1,
    show_default=True,
    help="Older keys that still open what was sealed before; 0: none.",
)
@json_option
def rotate(path: Path, kem: str, keep: int, as_json: bool) -> None:
    """Put a new key in front of those of PATH, and drop the oldest.

    Send the collector SIGHUP afterwards (systemctl reload); apps find the new key by themselves. A
    batch that was sealed for a key that is gone is refused, sealed for the new key by its device,
    and sent again; it is counted once.
    """
    changed = KeyFile.read(path).rotated(kem, keep)
    changed.write(path, replacing=True)
    _show(changed, path, as_json)


@command("deniable relay key show gateway-keys.json")
@_path
@json_option
def show(path: Path, as_json: bool) -> None:
    """Print the identity for apps, and number and kind of each key in PATH. Nothing secret."""
    _show(KeyFile.read(path), path, as_json)


def _show(keys: KeyFile, path: Path, as_json: bool) -> None:
    if as_json:
        print_json({"identity": keys.identity, "keys": keys.described()})
        return
    click.echo(f"identity for apps: {keys.identity}")
    for place, each in enumerate(keys.described()):
        role = "new capsules are sealed for it" if place == 0 else "still opens earlier capsules"
        click.echo(f"key {each['id']} ({each['kem']}): {role}")
    click.echo(f"the collector reads them with DENIABLE_GATEWAY_KEYS={path}")
