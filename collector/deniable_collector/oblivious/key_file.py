"""The gateway's file of private keys: its identity, and the keys that capsules are sealed for.

The newest key is told first, so clients use it. Older ones open what is still on its way, until
they are dropped. The file belongs to one user: whoever reads it can read every capsule that was
kept.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import stat
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from deniable import DeniableError
from deniable.protocol.oblivious.capsules import (
    KEMS,
    PrivateKey,
    new_private_key,
    write_configurations,
)
from deniable.protocol.oblivious.signed_keys import identity_of, sign

MOST_KEYS = 8
"""The most keys of one file; a client knows them by a number from 0 to 255."""

_NAMES = {number: name for name, number in KEMS.items()}
_FORMAT = "deniable-gateway-keys-1"


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
    def of(cls, path: str) -> KeyFile | None:
        """The keys in the file of this path; None for none.

        Raises:
            KeyFileError: as `read` does.
        """
        return cls.read(Path(path)) if path else None

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
            document = json.loads(text)
            if document["format"] != _FORMAT:
                raise ValueError
            found = cls(
                _bytes(document["identity"]),
                tuple(
                    PrivateKey(_whole(each["id"]), KEMS[each["kem"]], _bytes(each["secret"]))
                    for each in document["keys"]
                ),
            )
            numbers = {each.id for each in found.keys}
            if not 0 < len(found.keys) <= MOST_KEYS or len(numbers) != len(found.keys):
                raise ValueError
            # Loads each of them, so that a bad one is found now.
            found.document, found.identity  # noqa: B018
        except (ValueError, TypeError, KeyError, RecursionError):
            raise KeyFileError(
                path,
                f"{path} is no file of a gateway's keys, or is damaged: "
                "`deniable relay key new` makes one",
            ) from None
        return found

    def write(self, path: Path, *, replacing: bool = False) -> None:
        """Write the file for its user alone, whole or not at all.

        Raises:
            KeyFileError: it is there already, or the folder does not take it.
        """
        draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(json.dumps(self._text(), indent=2) + "\n")
                    file.flush()
                    os.fsync(file.fileno())
                if replacing:
                    old = path.stat()
                    if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                        os.chown(draft, old.st_uid, old.st_gid)
                    draft.chmod(stat.S_IMODE(old.st_mode))
                    draft.replace(path)
                else:
                    os.link(draft, path)
            finally:
                draft.unlink(missing_ok=True)
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

    def _text(self) -> dict[str, Any]:
        keys = [
            {"id": each.id, "kem": _NAMES[each.kem], "secret": _letters(each.secret)}
            for each in self.keys
        ]
        return {"format": _FORMAT, "identity": _letters(self.secret), "keys": keys}


def _letters(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _bytes(text: Any) -> bytes:
    raw = base64.b64decode(text, validate=True)
    if len(raw) != 32:
        raise ValueError
    return raw


def _whole(number: Any) -> int:
    if type(number) is not int or not 0 <= number <= 255:
        raise ValueError
    return number
