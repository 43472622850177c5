"""deploy/nginx.dashboard.conf: the real nginx asks for passwords, and names people to a real
dashboard."""

import base64
import http.client
import os
import socket
import ssl
import subprocess
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from tests.collector.certificates import make_certificates
from tests.collector.test_deploy import replaced
from tests.ports import free_port, until
from tests.tools import need

from deniable_estimator.dashboard.sharing.links import SharedLink, SharedLinks

from .conftest import REGISTRY, TOKEN, running_dashboard

pytestmark = pytest.mark.campaign

DEPLOY = Path(__file__).parents[3] / "deploy"


@pytest.fixture
def ask(tmp_path, store):
    """Asks nginx in front of a dashboard for a path; ana is an analyst there, and bob a reader."""
    need("nginx")
    (tmp_path / "metrics.toml").write_text(REGISTRY)
    (tmp_path / "people.toml").write_text(
        'schema = 1\n[people.ana]\nrole = "analyst"\n[people.bob]\nrole = "reader"\n'
    )
    (tmp_path / "htpasswd").write_text(
        "".join(f"{each}:{{PLAIN}}secret\n" for each in ("ana", "bob", "eve"))
    )
    certificates = make_certificates(tmp_path)
    services = yaml.safe_load((DEPLOY / "compose.dashboard.yml").read_text())["services"]
    shipped = services["dashboard"]["environment"]
    environ = shipped | {
        "DENIABLE_DASHBOARD_PROXIES": "127.0.0.1",
        "DENIABLE_DATA": str(tmp_path),
    }
    port = free_port()
    with running_dashboard(tmp_path, **environ) as (address, _):
        text = replaced(
            (DEPLOY / "nginx.dashboard.conf").read_text(encoding="utf-8"),
            ("dashboard:8090", address.removeprefix("http://")),
            ("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;"),
            ("/etc/nginx/tls/fullchain.pem", str(certificates / "server.pem")),
            ("/etc/nginx/tls/privkey.pem", str(certificates / "server.key")),
            ("/etc/nginx/people/htpasswd", str(tmp_path / "htpasswd")),
        )
        user = "user root;\n" if os.geteuid() == 0 else ""
        conf = tmp_path / "nginx.conf"
        conf.write_text(user + text.replace("/tmp/nginx", f"{tmp_path}/n"))
        with (tmp_path / "nginx.log").open("w") as log:
            nginx = subprocess.Popen(
                ["nginx", "-p", tmp_path, "-c", conf, "-g", "daemon off;"], stdout=log, stderr=log
            )
        try:

            def listens():
                assert nginx.poll() is None, (tmp_path / "nginx.log").read_text()
                with suppress(OSError):
                    socket.create_connection(("127.0.0.1", port), timeout=5).close()
                    return True

            until(listens)
            context = ssl.create_default_context(cafile=certificates / "ca.pem")

            def get(path, name="", method="GET", **headers):
                shown = {each.replace("_", "-"): value for each, value in headers.items()}
                if name:
                    password = base64.b64encode(f"{name}:secret".encode()).decode()
                    shown["Authorization"] = f"Basic {password}"
                connection = http.client.HTTPSConnection(
                    "localhost", port, timeout=120, context=context
                )
                with closing(connection):
                    connection.request(method, path, headers={"Accept": "text/html, */*", **shown})
                    with connection.getresponse() as answer:
                        return answer.status, answer.read().decode()

            yield get
        finally:
            nginx.terminate()
            nginx.wait(120)
    assert (tmp_path / "nginx.log").read_text() == ""


def test_nginx_names_people(ask):
    """Who has given nginx a password has the role of the file of people; nobody can send a name of
    their own; who is not in the file has no role; forms of other sites are refused."""
    assert ask("/")[0] == 401
    status, page = ask("/", "ana")
    assert status == 200
    assert "<bdi>ana</bdi> <small>analyst</small>" in page
    assert ask("/plan", "ana")[0] == 200
    assert ask("/plan", "bob")[0] == 403
    assert ask("/", "eve")[0] == 403
    assert "<bdi>bob</bdi>" in ask("/", "bob", X_Forwarded_User="ana")[1]
    assert ask("/", X_Forwarded_User="ana")[0] == 401
    assert ask("/metric/browser", "ana", "POST")[0] == 403
    assert ask("/metric/browser", "ana", "POST", Sec_Fetch_Site="same-origin")[0] == 400


def test_shared_links_open_without_a_password(ask, tmp_path):
    """A link, its files and its style need no password; whoever claims a name there has none;
    another process revokes it at once."""
    links = SharedLinks(str(tmp_path / "links.db"))
    today = datetime.now(UTC).date()
    link = links.make(SharedLink("/metric/browser", today, today + timedelta(1), maker="ana"))
    secret = link.secret
    # A part of the page is calculated after it, and then stands there.
    until(lambda: "being calculated" not in ask(f"/shared/{secret}")[1], "it is never done")
    status, page = ask(f"/shared/{secret}")
    assert status == 200
    assert "Read-only link" in page
    assert ask("/static/dashboard.css")[0] == 200
    wrong = base64.b64encode(b"ana:wrong").decode()
    for headers in ({"Authorization": f"Basic {wrong}"}, {"X_Forwarded_User": "ana"}):
        assert ask(f"/shared/{secret}", **headers) == (200, page)
    for path in ("/shared/x", f"/shared/{secret}/metric/dark_mode.csv"):
        assert ask(path)[0] == 404
    assert ask("/links")[0] == 401
    links.revoke(link.id)
    assert ask(f"/shared/{secret}")[0] == 404, "revoked by another process"


def test_the_api_takes_tokens_alone(ask):
    """There nginx asks for nothing: a name without its password, and a header of the client's, are
    worth nothing."""
    assert ask("/api/v1/metrics", Authorization=f"Bearer {TOKEN}")[0] == 200
    for headers in ({"X_Forwarded_User": "ana"}, {}):
        assert ask("/api/v1/metrics", **headers)[0] == 401
    wrong = base64.b64encode(b"ana:wrong").decode()
    assert ask("/api/v1/metrics", Authorization=f"Basic {wrong}")[0] == 401
