"""Generate docs/metrics.md from the metric definitions."""

from __future__ import annotations

from collections.abc import Iterable

from centgate.metrics.definitions import COUNTED_METRICS, DATABASE_METRICS, PROCESS_METRICS, MetricDefinition

_INTRO = """# Metrics

With `CENTGATE_METRICS_PORT` set, Prometheus reads `/metrics` on that port, at `CENTGATE_METRICS_HOST`; it is
never served on the API's own port. OpenMetrics and gzip are supported. No metric contains a buyer,
a URL or a request.

```yaml
scrape_configs:
  - job_name: centgate
    static_configs:
      - targets: ["127.0.0.1:9402"]
```

With several workers (`CENTGATE_WORKERS`) one port publishes the sums of all workers; they share
their values in a temporary folder, which must be writable (set by `TMPDIR`).

Rules for alerts are in `deploy/alerts.yml`, what to do about each in
[alerts.md](alerts.md#rules-for-prometheus), a dashboard for Grafana in `deploy/grafana-dashboard.json`.

This page is written by `make docs`.
"""
_COUNTED_SECTION = """
## Counted by the servers

They start at zero with the server. Each server counts its own work, so add up all replicas.
"""
_DATABASE_SECTION = """
## Read from the database

Read at each scrape, independent of payments. All replicas on one database report the same: use their
maximum (`max by (state) (centgate_payments_open)`), not the sum.
"""
_PROCESS_SECTION = """
## Processes

`worker` is the index of a process in its server; a replacement process keeps it.
The metrics that begin with `process_` exist on Linux only.
"""
_TABLE_HEADER = """
| name | type | labels | meaning |
| --- | --- | --- | --- |
"""


def render_markdown() -> str:
    """Return the page as Markdown."""
    return _INTRO + "".join(
        part + _TABLE_HEADER + "".join(map(_format_row, metrics)) for part, metrics in _list_sections()
    )


def _list_sections() -> Iterable[tuple[str, Iterable[MetricDefinition]]]:
    return (
        (_COUNTED_SECTION, COUNTED_METRICS),
        (_DATABASE_SECTION, DATABASE_METRICS),
        (_PROCESS_SECTION, PROCESS_METRICS),
    )


def _format_row(metric: MetricDefinition) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    return f"| `{metric.name}` | {metric.kind} | {labels} | {metric.meaning}{_format_buckets(metric)} |\n"


def _format_buckets(metric: MetricDefinition) -> str:
    bounds = ", ".join(f"{bound:g}" for bound in metric.buckets)
    return f" Buckets up to {bounds}." if bounds else ""


if __name__ == "__main__":
    print(render_markdown(), end="")
