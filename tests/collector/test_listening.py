"""An address that cannot be listened at is told at once, and why."""

import socket
from contextlib import closing

import pytest

from deniable_collector.serving.gunicorn import cannot_listen


@pytest.fixture
def port():
    """A port at which somebody listens."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("127.0.0.1:{port}", "another program listens"),
        ("0.0.0.0:{port}", "another program listens"),
        ("192.0.2.1:8080", "this machine does not have"),
        ("nowhere.invalid:8080", "host that is not known"),
        ("unix:/none/of/that.sock", "folder that is not there"),
    ],
)
def test_what_is_wrong_with_an_address(port, address, words):
    """Each way in which listening fails has its own words, and the name of the setting."""
    (told,) = cannot_listen({"DENIABLE_BIND": address.format(port=port)})
    assert told.startswith("DENIABLE_BIND ")
    assert words in told


def test_addresses_that_are_free(tmp_path, port, monkeypatch):
    """A free port, port 0, no address, a socket's path, and what systemd hands over are fine;
    looking leaves nothing behind."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        free = server.getsockname()[1]
    for address in (f"127.0.0.1:{free}", "127.0.0.1:0", "", f"unix:{tmp_path}/s"):
        for _ in range(2):
            assert cannot_listen({"DENIABLE_BIND": address}) == []
    monkeypatch.setenv("LISTEN_FDS", "1")
    assert cannot_listen({"DENIABLE_BIND": f"127.0.0.1:{port}"}) == []
