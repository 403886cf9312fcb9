"""Prints the page of all metrics, from their declarations."""

from __future__ import annotations

from collections.abc import Iterable

from centgate.metrics.declared import ASKED, COUNTED, LOOKED_UP, Declared

_INTRO = """# Metrics

With `CENTGATE_METRICS_PORT` set, Prometheus reads `/metrics` on that port, at `CENTGATE_METRICS_HOST`; the
API's own port never has it. OpenMetrics and gzip are given to who asks for them. Nothing there names a buyer,
a URL or a request.

```yaml
scrape_configs:
  - job_name: centgate
    static_configs:
      - targets: ["127.0.0.1:9402"]
```

With several workers (`CENTGATE_WORKERS`) there is one port, with the numbers of all of them together; they
share these in a folder for temporary files, which must be writable (`TMPDIR` says where).

Rules for alerts are in `deploy/alerts.yml`, a dashboard for Grafana in `deploy/grafana-dashboard.json`.

This page is written by `make docs`.
"""
_COUNTED = """
## Counted by the servers

They begin at zero with the server. Each server counts what it did itself, so add up those of all replicas.
"""
_ASKED = """
## Asked of the database

When metrics are read; payments do not wait for it. All replicas on one database say the same: take the
maximum of them (`max by (state) (centgate_payments_open)`), not the sum.
"""
_LOOKED_UP = """
## Of the processes

`worker` is a process's place among those of its server, which a new process takes over from one that died.
Those that begin with `process_` are there on Linux only.
"""
_HEAD = """
| name | type | labels | meaning |
| --- | --- | --- | --- |
"""


def markdown() -> str:
    """The page."""
    return _INTRO + "".join(part + _HEAD + "".join(map(_row, metrics)) for part, metrics in _parts())


def _parts() -> Iterable[tuple[str, Iterable[Declared]]]:
    return (_COUNTED, COUNTED), (_ASKED, ASKED), (_LOOKED_UP, LOOKED_UP)


def _row(metric: Declared) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    return f"| `{metric.name}` | {metric.kind} | {labels} | {metric.meaning}{_buckets(metric)} |\n"


def _buckets(metric: Declared) -> str:
    bounds = ", ".join(f"{bound:g}" for bound in metric.buckets)
    return f" Buckets up to {bounds}." if bounds else ""


if __name__ == "__main__":
    print(markdown(), end="")  # noqa: T201 - it is what the program is for
