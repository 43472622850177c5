"""The files that `deniable init` writes; the words in capitals are filled in."""

from __future__ import annotations

HEAD = """\
# Every metric of the app. Nothing else is ever collected. All keys: docs/reference/metrics-toml.md
# `deniable lint` checks this file, and `deniable add NAME` adds a metric to it.
schema = 1
app = APP  # never change it: a device keeps one ledger for each app
# recipient = "Acme Ltd, Springfield"  # who receives the reports: people read it
# contact = "privacy@acme.example"  # where people ask; `deniable lint --notice` needs both

[defaults]
owner = OWNER  # who answers questions about a metric
expires = EXPIRES  # no metric is recorded after its last day
devices = DEVICES  # how many devices run the app, for the forecast of `deniable lint`

"""

SCRIPT = """\
\"\"\"Records one thing. What is true stays on the device; a noisy report of it leaves.\"\"\"

import deniable

# `deniable dev` shows the report: run this with DENIABLE_DEV=http://127.0.0.1:8099
telemetry = deniable.Client(
    "metrics.toml",
    endpoint=ENDPOINT,  # the collector; https:// outside this machine
    consent=True,  # ask the person first, and pass the answer
)
telemetry.CALL
telemetry.flush()  # WHEN
print("telemetry is", telemetry.status)
telemetry.close()
"""

PAGE = """\
<!doctype html>
<html lang="en">
  <meta charset="utf-8">
  <title>APP</title>
  <script src="deniable.min.js"></script>
  <script>
    const telemetry = new deniable.Client(deniable.metrics, {
      endpoint: ENDPOINT, // the collector; https:// outside this machine
      consent: true, // ask the person first, and pass the answer
      // development: "http://127.0.0.1:8099", // with `deniable dev`, and the development build
    });
    telemetry.CALL; // reported within ten seconds
    document.title = `APP: telemetry is ${telemetry.status}`;
  </script>
</html>
"""

COMPOSE = """\
# docker compose up: a collector on 127.0.0.1:8080, a dashboard on 127.0.0.1:8090, and Redis.
# The image is built once, in a clone of deniable: docker build -t deniable .
# Before real devices report: TLS in front, and docs/how-to/deploy.md.
x-deniable: &deniable
  image: deniable
  init: true
  restart: unless-stopped
  read_only: true
  tmpfs: [/tmp]
  cap_drop: [ALL]
  security_opt: ["no-new-privileges:true"]
  depends_on: {redis: {condition: service_healthy}}
  volumes: ["./metrics.toml:/etc/deniable/metrics.toml:ro"]

services:
  collector:
    <<: *deniable
    command: [deniable, collect, --bind, "0.0.0.0:8080"]
    environment:
      DENIABLE_STORE: redis://redis:6379/0
      DENIABLE_CORS_ORIGINS: ${DENIABLE_CORS_ORIGINS:-}  # origins of web pages that report
    ports: ["127.0.0.1:8080:8080"]
    stop_grace_period: 45s

  dashboard:
    <<: *deniable
    command: [deniable, dashboard, --bind, "0.0.0.0:8090"]
    environment:
      DENIABLE_STORE: redis://redis:6379/0
      DENIABLE_DASHBOARD_TOKEN: ${DENIABLE_DASHBOARD_TOKEN:-}  # else a new one, in its log
    ports: ["127.0.0.1:8090:8090"]
    healthcheck: {disable: true}  # the image's own asks a collector

  redis:
    image: redis:7-alpine
    command: [redis-server, --appendonly, "yes", --appendfsync, everysec, --save, "",
              --maxmemory-policy, noeviction, --slowlog-log-slower-than, "-1"]
    restart: unless-stopped
    read_only: true
    user: redis
    cap_drop: [ALL]
    security_opt: ["no-new-privileges:true"]
    volumes: ["tallies:/data"]
    healthcheck: {test: [CMD, redis-cli, ping], interval: 5s, timeout: 3s}

volumes:
  tallies:
"""
