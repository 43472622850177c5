"""What the workers of a collector inherit from their master: settings and registry, as they were
when they last had no mistake.

A worker that read them for itself would not start if somebody has just saved a mistake, and
gunicorn ends when a worker does not start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from deniable import DeniableError, Registry, RegistryError
from deniable.protocol.coded_message import counted
from deniable_collector.oblivious.key_file import KeyFile, KeyFileError
from deniable_collector.operation.events import tell
from deniable_collector.settings import Settings, SettingsError


@dataclass(frozen=True)
class Inherited:
    """`mistakes` is what stands in the way of those that were to replace them. `keys` are the
    gateway's, if this is one."""

    settings: Settings
    registry: Registry
    mistakes: tuple[str, ...] = ()
    keys: KeyFile | None = None


_held: Inherited | None = None


def inherited() -> Inherited:
    """What the master holds; in a server that has none, what the environment and the file say now.

    Raises:
        SettingsError, RegistryError, KeyFileError: the latter have mistakes.
    """
    return _held or read_all()


def read() -> None:
    """Read both for the first time, in the master.

    Raises:
        SettingsError, RegistryError, KeyFileError: they have mistakes.
    """
    global _held
    _held = read_all()


def read_again() -> None:
    """Read both again, in the master. Where they have mistakes, those are told and what is held
    stays."""
    global _held
    try:
        _held = read_all()
    except Exception as error:
        # A bug too: an error that left here would end the master.
        mistakes = mistakes_of(error)
        if _held is not None:
            _held = replace(_held, mistakes=mistakes)
        tell(
            "error",
            "reload-refused",
            f"nothing was reloaded, and what was read before serves on: {'; '.join(mistakes)}",
            mistakes=list(mistakes),
        )
    else:
        told = f"the registry was reloaded: {counted(len(_held.registry), 'metric')}"
        tell("info", "reloaded", told, metrics=len(_held.registry))


def read_all(environ: Mapping[str, str] | None = None) -> Inherited:
    """What an environment says, by default that of this process.

    Raises:
        SettingsError, RegistryError, KeyFileError: they have mistakes.
    """
    settings = Settings.from_env(environ)
    registry = Registry.load(settings.registry)
    keys = KeyFile.read(Path(settings.gateway_keys)) if settings.gateway_keys else None
    return Inherited(settings, registry, keys=keys)


def mistakes_of(error: Exception) -> tuple[str, ...]:
    """What is wrong, in one sentence each."""
    if isinstance(error, RegistryError):
        # Without its folder: /readyz may be public.
        name = Path(error.source).name
        return tuple(each.describe(name) for each in error.problems)
    if isinstance(error, SettingsError):
        return error.problems
    if isinstance(error, KeyFileError):
        return (str(error).replace(str(error.path), error.path.name),)
    return (str(error) if isinstance(error, DeniableError) else type(error).__name__,)
