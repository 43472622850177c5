"""The gateway's file of private keys: its identity, and the keys that capsules are sealed for.

The newest key is told first, so clients use it. Older ones open what is still on its way, until
they are dropped. The file belongs to one user: whoever reads it can read every capsule that was
kept.
"""

from __future__ import annotations

import secrets
import stat
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from deniable import DeniableError
from deniable.protocol.oblivious.capsules import (
    KEMS,
    PrivateKey,
    new_private_key,
    write_configurations,
)
from deniable.protocol.oblivious.signed_keys import identity_of, sign
from deniable.whole_files import written

MOST_KEYS = 8
"""The most keys of one file; a client knows them by a number from 0 to 255."""

_NAMES = {number: name for name, number in KEMS.items()}
_FORMAT: Final = "deniable-gateway-keys-1"

_Secret: TypeAlias = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
"""In base64."""


class _Key(msgspec.Struct):
    id: Annotated[int, msgspec.Meta(ge=0, le=255)]
    kem: str
    secret: _Secret


class _KeyDocument(msgspec.Struct):
    """The file, as JSON."""

    format: Literal["deniable-gateway-keys-1"]
    identity: _Secret
    keys: Annotated[list[_Key], msgspec.Meta(min_length=1, max_length=MOST_KEYS)]


class KeyFileError(DeniableError):
    """The file of the gateway's keys cannot be used; `path` is where it should be."""

    def __init__(self, path: Path, message: str) -> None:
        self.path = path
        super().__init__(message)


@dataclass(frozen=True)
class KeyFile:
    """The private identity (32 bytes) and the keys, the newest first."""

    secret: bytes
    keys: tuple[PrivateKey, ...]

    @classmethod
    def new(cls, kem: str) -> KeyFile:
        """A new identity with one key."""
        from cryptography.hazmat.primitives.asymmetric import ec

        private = ec.generate_private_key(ec.SECP256R1())
        number = private.private_numbers().private_value
        return cls(number.to_bytes(32, "big"), (new_private_key(secrets.randbelow(256), kem),))

    @classmethod
    def read(cls, path: Path) -> KeyFile:
        """The file's keys.

        Raises:
            KeyFileError: it cannot be read, others may read it, or it is no such file.
        """
        try:
            mode = path.stat().st_mode
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise KeyFileError(
                path, f"the gateway's keys cannot be read from {path}: {why}"
            ) from None
        if mode & (stat.S_IRWXO | stat.S_IWGRP):
            raise KeyFileError(
                path,
                f"other users may read or write the gateway's keys in {path}: run chmod 600 {path}",
            )
        try:
            found = msgspec.json.decode(text, type=_KeyDocument)
            keys = tuple(PrivateKey(each.id, KEMS[each.kem], each.secret) for each in found.keys)
            if len({each.id for each in keys}) != len(keys):
                raise ValueError
            made = cls(found.identity, keys)
            # Loads each of them, so that a bad one is found now.
            made.document, made.identity  # noqa: B018
        except (ValueError, KeyError, RecursionError):
            raise KeyFileError(
                path,
                f"{path} is no file of a gateway's keys, or is damaged: restore it from a backup. "
                "New keys (`deniable relay key new`) shut out every app that carries the old "
                "identity",
            ) from None
        return made

    def write(self, path: Path, *, replacing: bool = False) -> None:
        """Write the file for its user alone, whole or not at all.

        Raises:
            KeyFileError: it is there already, or the folder does not take it.
        """
        keys = [_Key(each.id, _NAMES[each.kem], each.secret) for each in self.keys]
        text = msgspec.json.encode(_KeyDocument(_FORMAT, self.secret, keys))
        try:
            with written(path, replacing=replacing) as file:
                file.write(msgspec.json.format(text, indent=2) + b"\n")
        except FileExistsError:
            raise KeyFileError(
                path,
                f"{path} is there already: a new identity would shut out every app that carries "
                "the old one; `deniable relay key rotate` changes the key and keeps the identity",
            ) from None
        except OSError as error:
            raise KeyFileError(path, f"{path} cannot be written: {error.strerror}") from None

    def rotated(self, kem: str, keep: int) -> KeyFile:
        """With a new key in front, and `keep` of the older ones behind it."""
        used = {each.id for each in self.keys}
        number = next(n % 256 for n in range(self.keys[0].id + 1, 512) if n % 256 not in used)
        return replace(self, keys=(new_private_key(number, kem), *self.keys[:keep]))

    @cached_property
    def document(self) -> bytes:
        """The public keys, as clients read them (`application/ohttp-keys`)."""
        return write_configurations(each.configuration for each in self.keys)

    @cached_property
    def identity(self) -> str:
        """What apps carry to know this gateway's lists of keys."""
        return identity_of(self._private())

    @cached_property
    def signature(self) -> str:
        """The signature of `document`."""
        return sign(self._private(), self.document)

    def described(self) -> Sequence[dict[str, Any]]:
        """Number and kind of each key, the newest first; nothing of it is secret."""
        return [{"id": each.id, "kem": _NAMES[each.kem]} for each in self.keys]

    def _private(self) -> Any:
        from cryptography.hazmat.primitives.asymmetric import ec

        return ec.derive_private_key(int.from_bytes(self.secret, "big"), ec.SECP256R1())
