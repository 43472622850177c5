"""A bucket of object storage that speaks S3, with all blocks under one prefix.

The client is boto3: it reads endpoint, region and credentials from the environment, from its
files and from the machine's role as everywhere else, signs, checks checksums and retries.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

try:
    import boto3
    from botocore.config import Config
    from botocore.exceptions import (
        BotoCoreError,
        ClientError,
        ConnectionError,
        HTTPClientError,
        IncompleteReadError,
        NoCredentialsError,
        NoRegionError,
        PartialCredentialsError,
        ProfileNotFound,
        ReadTimeoutError,
    )
    from urllib3.exceptions import HTTPError
except ImportError as missing:
    from deniable_collector.stores.errors import StoreError

    raise StoreError(
        "DENIABLE_ARCHIVE names a bucket, which needs boto3: pip install 'deniable[s3]'"
    ) from missing

from deniable_collector.stores.errors import StoreError
from deniable_collector.stores.sealed.places import MARKER, Away, NotThere, Place, PlaceTrouble

__all__ = ["Bucket"]

_ADDRESS = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.*))?")
_LONGEST_PREFIX = 512
"""Bytes of a prefix: a key has 1,024 at most, and a block's name up to 300."""

_CONNECT_SECONDS, _READ_SECONDS, _ATTEMPTS = 5, 20, 3
"""How long boto3 waits for a connection and for the next bytes, and how often it tries, unless
its own settings (AWS_MAX_ATTEMPTS) say otherwise."""

_PROBE = ".probe"
"""No block has this name: whoever may write and delete it may do so with the others."""

_LOGIN = "its credentials are refused: check those that boto3 finds (AWS_ACCESS_KEY_ID, a profile "
"or the machine's role)"
_HELP = {
    "NoSuchBucket": "there is no such bucket: create it, or correct the name",
    "AccessDenied": "its credentials may not do this: docs/operating-stores.md lists the rights",
    "InvalidAccessKeyId": _LOGIN,
    "SignatureDoesNotMatch": _LOGIN,
    "ExpiredToken": _LOGIN,
    "RequestTimeTooSkewed": "the clock of this machine is wrong",
    "PermanentRedirect": "the bucket is in another region: set AWS_REGION",
    "AuthorizationHeaderMalformed": "the bucket is in another region: set AWS_REGION",
    "IllegalLocationConstraintException": "the bucket is in another region: set AWS_REGION",
    "SlowDown": "it asks to be asked less often; this is tried again",
    "403": "its credentials may not do this: docs/operating-stores.md lists the rights",
}
"""What is wrong and what to do, by the code of the server."""

_TAKEN = ("PreconditionFailed", "ConditionalRequestConflict", "412")
"""What a server answers if an object has the name already."""

_UNKNOWN = ("NotImplemented", "501")
"""What a server answers that does not know If-None-Match."""

_NO_CONDITIONS = (
    "its server ignores conditional writes (If-None-Match), so two stores could take it at the "
    f"same moment: put an object {MARKER} there by hand, as docs/operating-stores.md says"
)

_CODE = re.compile(r"[A-Za-z0-9]{1,60}")


class Bucket(Place):
    """The objects under a prefix; nothing is connected before it is used.

    Raises:
        StoreError: the address cannot be read.
    """

    what = "the bucket of DENIABLE_ARCHIVE"
    advice = (
        "correct the bucket or the prefix of DENIABLE_ARCHIVE, or AWS_ENDPOINT_URL. To use another "
        "one, `deniable store move` brings the blocks there"
    )

    def __init__(self, address: str) -> None:
        found = _ADDRESS.fullmatch(address)
        prefix = (found[2] or "").strip("/") if found else ""
        if found is None or len(prefix.encode()) > _LONGEST_PREFIX:
            raise StoreError(
                "DENIABLE_ARCHIVE must be s3://bucket/prefix: the name of the bucket in small "
                f"letters, digits, dots and dashes, and at most {_LONGEST_PREFIX} bytes of prefix"
            )
        self._bucket = found[1]
        self._prefix = f"{prefix}/" if prefix else ""
        self._client: tuple[int, Any] | None = None

    def write(self, name: str, block: bytes) -> None:
        with _told():
            self._s3.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=block)

    def read(self, name: str) -> bytes:
        with _told():
            found = self._s3.get_object(Bucket=self._bucket, Key=self._prefix + name)
            content: bytes = found["Body"].read()
            return content

    def delete(self, name: str) -> None:
        with _told():
            self._s3.delete_object(Bucket=self._bucket, Key=self._prefix + name)

    def check_deleting(self) -> None:
        try:
            self.delete(_PROBE)
        except PlaceTrouble as error:
            raise type(error)(f"lets this process delete no objects ({error})") from error

    def check_writing(self) -> None:
        self.write(_PROBE, b"")
        self.delete(_PROBE)

    def names(self) -> list[str]:
        with _told():
            pages = self._s3.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=self._prefix
            )
            keys = [each["Key"] for page in pages for each in page.get("Contents", ())]
        names = (key.removeprefix(self._prefix) for key in keys)
        return sorted(name for name in names if name.endswith(".block") and "/" not in name)

    def make(self, identity: str) -> str:
        if (there := self.mark()) is not None:
            return there
        # Two processes may do this at the same moment: the first one's id stands. A server that
        # ignores the condition would let each believe that its own does.
        probe = f".probe-{identity}"
        try:
            # False may be the answer to a second try of the client, whose first one got through.
            self._write_new(probe, identity)
            if self._write_new(probe, identity):
                raise PlaceTrouble(_NO_CONDITIONS)
        finally:
            with suppress(PlaceTrouble):
                self.delete(probe)
        self._write_new(MARKER, identity)
        if (there := self.mark()) is None:
            raise PlaceTrouble(f"the object {MARKER} did not read back")
        return there

    def _write_new(self, name: str, identity: str) -> bool:
        """Write a file unless there is one of this name, and return whether it was written."""
        with _told():
            try:
                self._s3.put_object(
                    Bucket=self._bucket,
                    Key=self._prefix + name,
                    Body=f"{identity}\n".encode(),
                    IfNoneMatch="*",
                )
            except ClientError as error:
                if _code(error) in _TAKEN:
                    return False
                if _code(error) in _UNKNOWN:
                    raise PlaceTrouble(_NO_CONDITIONS) from error
                raise
        return True

    @property
    def _s3(self) -> Any:
        # A process that was forked makes its own connections.
        if self._client is None or self._client[0] != os.getpid():
            config = Config(
                connect_timeout=_CONNECT_SECONDS,
                read_timeout=_READ_SECONDS,
                retries=None
                if os.environ.get("AWS_MAX_ATTEMPTS")
                else {"total_max_attempts": _ATTEMPTS, "mode": "standard"},
            )
            # A session of our own: the default one must not be shared between threads.
            client = boto3.session.Session().client("s3", config=config)
            self._client = os.getpid(), client
        return self._client[1]


def _code(error: ClientError) -> str:
    code = str(error.response.get("Error", {}).get("Code", ""))
    return code if _CODE.fullmatch(code) else "an unknown error"


@contextmanager
def _told() -> Iterator[None]:
    """Turns the client's errors into ours: their own words may hold the address or a key."""
    try:
        yield
    except ClientError as error:
        code = _code(error)
        if code in ("NoSuchKey", "404"):
            raise NotThere("it is not there") from error
        raise PlaceTrouble(f"{code}: {_HELP[code]}" if code in _HELP else code) from error
    except (NoCredentialsError, PartialCredentialsError, ProfileNotFound) as error:
        raise Away(
            f"{type(error).__name__}: give boto3 credentials, by AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, a profile or the machine's role"
        ) from error
    except NoRegionError as error:
        raise Away("NoRegionError: set AWS_REGION") from error
    except (ConnectionError, ReadTimeoutError) as error:
        raise Away(
            f"{type(error).__name__}: it does not answer, or too slowly; check AWS_ENDPOINT_URL, "
            "AWS_REGION and the network"
        ) from error
    except (HTTPClientError, HTTPError, IncompleteReadError) as error:
        raise PlaceTrouble(
            f"{type(error).__name__}: its answer is not whole; check the network, and what is "
            "between here and the server"
        ) from error
    except (BotoCoreError, ValueError) as error:
        raise Away(
            f"{type(error).__name__}: check the settings of boto3 (AWS_ENDPOINT_URL, AWS_REGION)"
        ) from error
