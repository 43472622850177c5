"""The document of a release: its numbers, and a manifest that says what they reveal.

A document is a JSON object of `data` (columns and rows), `manifest`, and, if a key is given,
`signature`: Ed25519 (RFC 8032) over the manifest as canonical JSON (sorted keys, no spaces, UTF-8).
The manifest holds the SHA-256 of the data in the same form, and that of the table as CSV, so a
signature covers the numbers in either form.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deniable import DeniableError
from deniable.protocol.wire import strict_json
from deniable.whole_files import written

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

FORMAT = 1
"""The version of the document, `manifest.deniable_release`."""

MOST_BYTES = 64 << 20
"""The largest document that is verified."""


class ManifestError(DeniableError):
    """A key or a document is not what it must be; the message says why."""


def canonical(value: Any) -> bytes:
    """JSON with sorted keys and without spaces, in UTF-8."""
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode()


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def document(manifest: Mapping[str, Any], data: Mapping[str, Any], csv: str) -> str:
    """The text of a document without a signature; the same for the same arguments."""
    told = {**manifest, "data_sha256": digest(canonical(data)), "csv_sha256": digest(csv.encode())}
    return _text_of({"manifest": told, "data": data})


def signed(text: str, key: Ed25519PrivateKey) -> str:
    """The document with a signature of its manifest; the same for the same key."""
    whole = json.loads(text)
    signature = {
        "algorithm": "Ed25519",
        "public_key": _text(key.public_key().public_bytes_raw()),
        "value": _text(key.sign(canonical(whole["manifest"]))),
    }
    return _text_of({**whole, "signature": signature})


def _text_of(whole: Mapping[str, Any]) -> str:
    # ASCII: a stranger's letters must not reach a terminal, whatever reads the JSON.
    return json.dumps(whole, allow_nan=False, indent=1) + "\n"


def verify(text: bytes, csv: bytes | None, key: Ed25519PublicKey | None) -> Mapping[str, Any]:
    """The manifest of a document, if its numbers are those that the manifest is about.

    Args:
        csv: the table as CSV, if it is to be checked too.
        key: who must have signed the manifest; without it a signature must fit its own key.

    Raises:
        ManifestError: it is no document of a release, was changed, or is not signed as asked.
    """
    whole = _read(text)
    manifest: dict[str, Any] = whole["manifest"]
    signature = whole.get("signature")
    if digest(canonical(whole["data"])) != manifest.get("data_sha256"):
        raise ManifestError("the numbers are not those that the manifest is about")
    if csv is not None and digest(csv) != manifest.get("csv_sha256"):
        raise ManifestError("the CSV is not the table that the manifest is about")
    if signature is None:
        if key is not None:
            raise ManifestError("the release is not signed")
        return manifest
    _check_signature(manifest, signature, key)
    return manifest


def make_key(path: Path) -> Path:
    """Write a new private key, for its owner alone, and its public key beside it as PATH.pub.

    Returns the path of the public key.

    Raises:
        ManifestError: one of the files exists or cannot be written.
    """
    serialization, ed25519 = _cryptography()
    key = ed25519.Ed25519PrivateKey.generate()
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    beside = path.with_name(f"{path.name}.pub")
    for file, text, mode in ((path, private, 0o600), (beside, public, 0o644)):
        try:
            with written(file, mode, replacing=False) as opened:
                opened.write(text)
        except FileExistsError:
            raise ManifestError(
                f"{file} exists: name another file, so that no key is lost"
            ) from None
        except OSError as error:
            raise ManifestError(f"{file} cannot be written: {error.strerror}") from None
    return beside


def private_key(path: Path) -> Ed25519PrivateKey:
    """The key in a file, as PEM without a password.

    Raises:
        ManifestError: it cannot be read, or is another kind of key.
    """
    serialization, ed25519 = _cryptography()
    found: Ed25519PrivateKey = _loaded(
        path,
        lambda text: serialization.load_pem_private_key(text, None),
        ed25519.Ed25519PrivateKey,
        "private key of Ed25519 in PEM without a password: `deniable release key release.pem` "
        "makes one",
    )
    return found


def public_key(path: Path) -> Ed25519PublicKey:
    """The public key in a file, as PEM.

    Raises:
        ManifestError: it cannot be read, or is another kind of key.
    """
    serialization, ed25519 = _cryptography()
    found: Ed25519PublicKey = _loaded(
        path,
        serialization.load_pem_public_key,
        ed25519.Ed25519PublicKey,
        "public key of Ed25519 in PEM: `deniable release key release.pem` makes one, "
        "release.pem.pub",
    )
    return found


def _loaded(path: Path, load: Callable[[bytes], Any], kind: type[Any], what: str) -> Any:
    """The key of that kind in a file."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ManifestError(f"{path}: {error}") from None
    # cryptography's UnsupportedAlgorithm is no ValueError.
    with suppress(Exception):
        if isinstance(found := load(text), kind):
            return found
    raise ManifestError(f"{path} is no {what}")


def _read(text: bytes) -> dict[str, Any]:
    if len(text) > MOST_BYTES:
        raise ManifestError("no document of a release is larger than 64 MiB")
    try:
        whole = strict_json(text)
        canonical(whole)
    except (ValueError, RecursionError):
        whole = None
    if (
        not isinstance(whole, dict)
        or not isinstance(whole.get("manifest"), dict)
        or not isinstance(whole.get("data"), dict)
        or not isinstance(whole.get("signature", {}), dict)
        or not whole.keys() <= {"manifest", "data", "signature"}
        or whole["manifest"].get("deniable_release") != FORMAT
    ):
        raise ManifestError(
            "this is no document of a release: `deniable release METRIC --out FILE` writes one"
        )
    return whole


def _check_signature(
    manifest: Mapping[str, Any], signature: Mapping[str, Any], key: Ed25519PublicKey | None
) -> None:
    from cryptography.exceptions import InvalidSignature

    _, ed25519 = _cryptography()
    try:
        named = base64.b64decode(signature["public_key"], validate=True)
        value = base64.b64decode(signature["value"], validate=True)
        if key is not None and key.public_bytes_raw() != named:
            raise ManifestError("the release is signed with another key")
        ed25519.Ed25519PublicKey.from_public_bytes(named).verify(value, canonical(manifest))
    except (InvalidSignature, ValueError, TypeError, KeyError):
        raise ManifestError("the signature does not fit the manifest") from None


def _cryptography() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ModuleNotFoundError:
        raise ManifestError("signatures need a library: pip install 'deniable[release]'") from None
    return serialization, ed25519


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
