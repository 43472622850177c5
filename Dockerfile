# One image, three uses: collector (the default), dashboard, and the `deniable` command.
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md CHANGELOG.md LICENSE ./
COPY client client
COPY collector collector
COPY estimator estimator
COPY demo demo
RUN python -m venv /opt/deniable \
 && /opt/deniable/bin/pip install --no-cache-dir -c constraints.txt '.[all]'

FROM python:3.13-slim
RUN useradd --system --uid 10001 --home-dir /var/lib/deniable --create-home deniable
COPY --from=build /opt/deniable /opt/deniable
COPY demo/deniable_demo/metrics.toml /etc/deniable/metrics.toml
ENV PATH=/opt/deniable/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    DENIABLE_REGISTRY=/etc/deniable/metrics.toml \
    DENIABLE_STORE=sqlite:////var/lib/deniable/tallies.db
USER deniable
WORKDIR /var/lib/deniable
VOLUME /var/lib/deniable
EXPOSE 8080 8090
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
  CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8080/readyz', timeout=2)"]
CMD ["deniable", "collect", "--bind", "0.0.0.0:8080"]
