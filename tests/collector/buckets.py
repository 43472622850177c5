"""A server that speaks S3 (moto), in this process, whose answers a test can spoil."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import boto3
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server
from werkzeug.wrappers import Request, Response

Spoil = Callable[[Request, Callable[[], Response]], Response | None]

SECRET = "a-secret-that-no-error-may-show"


@dataclass
class Server:
    """The server at `url`. `spoil` is asked for each request; None lets it pass."""

    url: str = ""
    spoil: Spoil | None = None
    seen: list[tuple[str, str]] = field(default_factory=list)
    """Method and path of each request."""

    @property
    def environ(self) -> dict[str, str]:
        """The settings of boto3."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "tests",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        }

    @cached_property
    def client(self) -> Any:
        """A client of its own, to look at what is there."""
        return boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id="tests",
            aws_secret_access_key=SECRET,
        )

    def keys(self, bucket: str) -> list[str]:
        """All keys of a bucket."""
        found = self.client.list_objects_v2(Bucket=bucket).get("Contents", [])
        return [each["Key"] for each in found]


@contextmanager
def running() -> Iterator[Server]:
    """A server on a free port of this machine."""
    moto = DomainDispatcherApplication(create_backend_app)
    server = Server()

    def app(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        request = Request(environ, populate_request=False)
        server.seen.append((request.method, request.path))
        answer = None
        if server.spoil is not None:
            answer = server.spoil(request, lambda: Response.from_app(moto, environ))
        return moto(environ, start) if answer is None else answer(environ, start)

    found = make_server("127.0.0.1", 0, app, threaded=True)
    server.url = f"http://127.0.0.1:{found.port}"
    thread = threading.Thread(target=found.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        found.shutdown()
        thread.join()
        found.server_close()


def refusal(code: str, status: int = 403) -> Response:
    """What a server answers that refuses."""
    text = f"<Error><Code>{code}</Code><Message>{SECRET}</Message></Error>"
    return Response(text, status, content_type="application/xml")
