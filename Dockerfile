# One image, three uses: collector (the default), dashboard, and the `hearsay` command.
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md CHANGELOG.md LICENSE ./
COPY client client
COPY collector collector
COPY estimator estimator
COPY demo demo
RUN python -m venv /opt/hearsay \
 && /opt/hearsay/bin/pip install --no-cache-dir -c constraints.txt '.[all]'

FROM python:3.13-slim
RUN useradd --system --uid 10001 --home-dir /var/lib/hearsay --create-home hearsay
COPY --from=build /opt/hearsay /opt/hearsay
COPY demo/hearsay_demo/metrics.toml /etc/hearsay/metrics.toml
ENV PATH=/opt/hearsay/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    HEARSAY_REGISTRY=/etc/hearsay/metrics.toml \
    HEARSAY_STORE=sqlite:////var/lib/hearsay/tallies.db
USER hearsay
WORKDIR /var/lib/hearsay
VOLUME /var/lib/hearsay
EXPOSE 8080 8090
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
  CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8080/readyz', timeout=2)"]
CMD ["hearsay", "collect", "--bind", "0.0.0.0:8080"]
