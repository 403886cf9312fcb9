"""Definitions of all metrics: name, type, labels and meaning. docs/metrics.md is generated from them."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

MetricType = Literal["counter", "gauge", "histogram"]

FAST_BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5)
"""Histogram bounds in seconds for a disk or the event loop."""
CALL_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30)
"""Histogram bounds in seconds for requests and calls."""
GROUP_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class MetricDefinition(Struct, frozen=True):
    """One metric; `name` is its name in Prometheus, with `_total` if it is a counter."""

    name: str
    kind: MetricType
    meaning: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    """Upper bounds of a histogram."""


PAYMENTS = MetricDefinition(
    "centgate_payments_total",
    "counter",
    "State changes of payments in the journal, by the new state: `settling` (claimed; the "
    "facilitator is called next), `settled` (the money was received), `delivered` (the answer was "
    "delivered), `refused` (no money moved), `unused` (never sent to the facilitator).",
    ("state", "service"),
)
REVENUE = MetricDefinition(
    "centgate_settled_dollars_total",
    "counter",
    "Settled payments in US dollars, without test networks.",
    ("service", "network"),
)
TEST_REVENUE = MetricDefinition(
    "centgate_settled_test_dollars_total",
    "counter",
    "Settled payments on test networks, in test dollars without value.",
    ("service", "network"),
)
REDEEMED = MetricDefinition(
    "centgate_redeemed_total",
    "counter",
    "Answers delivered for a payment that an earlier request settled.",
    ("service",),
)
REPLAYED = MetricDefinition(
    "centgate_replayed_total",
    "counter",
    "Requests that repeated an earlier one and received its stored answer without a new charge.",
    ("service",),
)
SETTLEMENTS = MetricDefinition(
    "centgate_settle_duration_seconds",
    "histogram",
    "Duration of settlements by a facilitator, by outcome: `settled`, `refused` (no money "
    "moved), `unsent` (the payment was never sent), `unresolved` (the money may have moved). `facilitator` "
    "is `first` or `second`.",
    ("outcome", "facilitator"),
    CALL_BUCKETS,
)
FALLBACKS = MetricDefinition(
    "centgate_facilitator_fallbacks_total",
    "counter",
    "Payments that went to the second facilitator, by cause: no `connection` to the first, its `rate_limit` "
    "(status 429), or its circuit `breaker`, which is open after ten of these in a row. Whether it is open: "
    "`centgate_provider_breakers_open`, provider `facilitator`.",
    ("cause",),
)
DIRECTORY_RESPONSES = MetricDefinition(
    "centgate_directory_responses_total",
    "counter",
    "Responses of the facilitator's directory to settled payments (`EXTENSION-RESPONSES`), by status: "
    "`success`, `processing`, `rejected` (the log has the reason), `other`.",
    ("service", "status"),
)
PROVIDER_CALLS = MetricDefinition(
    "centgate_provider_calls_total",
    "counter",
    "Calls to providers, by outcome: `ok`, `no_data` (it has no data), `error`, "
    "`timeout`, `rate_limited`, `unread` (a page that cannot be read, which is the site's fault), "
    "`cancelled` (the caller stopped waiting).",
    ("provider", "outcome"),
)
PROVIDER_SECONDS = MetricDefinition(
    "centgate_provider_call_duration_seconds",
    "histogram",
    "Duration of calls to providers, with all HTTP requests of a call.",
    ("provider",),
    CALL_BUCKETS,
)
BREAKERS = MetricDefinition(
    "centgate_provider_breakers_open",
    "gauge",
    "Open circuit breakers: the provider failed many times in a row and is not called for a while. Each "
    "server process has its own.",
    ("provider",),
)
CACHE = MetricDefinition(
    "centgate_cache_lookups_total",
    "counter",
    "Cache lookups, by result (`hit`, `miss`) and cache: `local` to a process, or with the `shared` one "
    "behind it. Services without caching are not counted.",
    ("service", "cache", "result"),
)
CACHE_UP = MetricDefinition(
    "centgate_shared_cache_up",
    "gauge",
    "1 if the shared cache is available, else 0; the minimum of all processes. Only if one is configured.",
)
CACHE_FAILURES = MetricDefinition(
    "centgate_shared_cache_failures_total",
    "counter",
    "Commands to the shared cache that failed or timed out. Only if one is configured.",
)
REQUESTS = MetricDefinition(
    "centgate_request_duration_seconds",
    "histogram",
    "Duration of requests, by status class (`2xx`). `service` is that of a paid call; `free` "
    "for all other routes, `unknown` for paths without a route.",
    ("service", "status"),
    CALL_BUCKETS,
)
LIMITED = MetricDefinition(
    "centgate_rate_limited_total",
    "counter",
    "Requests refused with `rate_limited`, by the limit: too many unpaid or refused requests of a "
    "client's `address`, of one `payment` presented with other requests than its own "
    "or for a service that keeps failing, of a `payer`.",
    ("by",),
)
WEBHOOKS = MetricDefinition(
    "centgate_webhook_attempts_total",
    "counter",
    "Attempts to send a webhook, by outcome: `sent` (accepted), `failed` (it is sent again), `abandoned` (it "
    "was the last attempt).",
    ("outcome",),
)
IN_FLIGHT = MetricDefinition("centgate_requests_in_flight", "gauge", "Requests in progress.")
COMMITS = MetricDefinition(
    "centgate_journal_commit_duration_seconds",
    "histogram",
    "Duration of a journal commit for a group of entries. On PostgreSQL: of a group of statements or of one, "
    "with the wait for a connection.",
    (),
    FAST_BUCKETS,
)
COMMIT_ENTRIES = MetricDefinition(
    "centgate_journal_commit_entries",
    "histogram",
    "Units of work in one commit. On PostgreSQL statements: claims and deliveries are grouped.",
    (),
    GROUP_BUCKETS,
)
LAG = MetricDefinition(
    "centgate_event_loop_lag_seconds",
    "histogram",
    "Delay of a timer in the event loop, measured twice a second.",
    (),
    FAST_BUCKETS,
)
COUNTED_METRICS = (
    PAYMENTS,
    REVENUE,
    TEST_REVENUE,
    REDEEMED,
    REPLAYED,
    SETTLEMENTS,
    FALLBACKS,
    DIRECTORY_RESPONSES,
    PROVIDER_CALLS,
    PROVIDER_SECONDS,
    BREAKERS,
    CACHE,
    CACHE_UP,
    CACHE_FAILURES,
    REQUESTS,
    LIMITED,
    WEBHOOKS,
    IN_FLIGHT,
    COMMITS,
    COMMIT_ENTRIES,
    LAG,
)
"""Counted by server processes; for several processes, the sum is published."""

JOURNAL_UP = MetricDefinition(
    "centgate_journal_up",
    "gauge",
    "1 if the journal's database responded during this scrape, else 0. With 0 the metrics below are absent.",
)
OPEN_PAYMENTS = MetricDefinition(
    "centgate_payments_open",
    "gauge",
    "Payments that are not final: `settling` (the outcome is not known yet), `redeemable` "
    "(paid, not delivered, and the answer can still be fetched).",
    ("state",),
)
OPEN_BY_CAUSE = MetricDefinition(
    "centgate_payments_open_after_check",
    "gauge",
    "Payments that were still open after the last attempt to reconcile them, by cause: `no_node` (no node of "
    "the network is configured), `no_answer` (no usable answer of the nodes), `not_final` (nothing final). "
    "Those of the first two stay open until a node answers.",
    ("cause",),
)
OLDEST_UNRESOLVED = MetricDefinition(
    "centgate_payments_oldest_unresolved_seconds",
    "gauge",
    "Age of the oldest payment whose outcome is not known; 0 without one.",
)
OLDEST_REDEEMABLE = MetricDefinition(
    "centgate_payments_oldest_redeemable_seconds",
    "gauge",
    "Time since the settlement of the oldest redeemable payment; 0 without one.",
)
AUDIT_FINDINGS = MetricDefinition(
    "centgate_audit_findings",
    "gauge",
    "Differences between journal and chain in the last audit: `refused` (paid on chain, but refused in "
    "the journal), `open` (paid, but not settled in the journal yet), `unknown` (paid, but not in the "
    "journal), `not_on_chain` (settled in the journal, but not paid). Absent before the first audit.",
    ("kind",),
)
AUDITED_AT = MetricDefinition(
    "centgate_audit_completed_timestamp_seconds",
    "gauge",
    "Unix time of the last completed audit, in seconds. Absent before the first.",
)
WEBHOOK_EVENTS = MetricDefinition(
    "centgate_webhook_events",
    "gauge",
    "Webhooks in the outbox that were not sent: `pending` (they will be), `failed` (all attempts failed; "
    "`centgate payments webhooks resend` sends them).",
    ("state",),
)
OLDEST_WEBHOOK = MetricDefinition(
    "centgate_webhook_oldest_pending_seconds",
    "gauge",
    "Age of the oldest webhook that waits to be sent; 0 without one.",
)
DATABASE_METRICS = (
    JOURNAL_UP,
    OPEN_PAYMENTS,
    OPEN_BY_CAUSE,
    OLDEST_UNRESOLVED,
    OLDEST_REDEEMABLE,
    AUDIT_FINDINGS,
    AUDITED_AT,
    WEBHOOK_EVENTS,
    OLDEST_WEBHOOK,
)
"""Read from the database. All replicas on one database report the same: use their maximum, not the sum."""

BUILD = MetricDefinition(
    "centgate_build_info", "gauge", "1, with the versions as labels.", ("version", "python")
)
CPU = MetricDefinition(
    "process_cpu_seconds_total", "counter", "Processor time that a server process has used.", ("worker",)
)
RESIDENT = MetricDefinition("process_resident_memory_bytes", "gauge", "Its resident memory.", ("worker",))
VIRTUAL = MetricDefinition("process_virtual_memory_bytes", "gauge", "Its virtual memory.", ("worker",))
STARTED = MetricDefinition(
    "process_start_time_seconds", "gauge", "Unix time of its start, in seconds.", ("worker",)
)
OPEN_FILES = MetricDefinition("process_open_fds", "gauge", "Its open file descriptors.", ("worker",))
MAX_FILES = MetricDefinition(
    "process_max_fds", "gauge", "Its maximum number of open file descriptors.", ("worker",)
)
PROCESS_METRICS = (BUILD, CPU, RESIDENT, VIRTUAL, STARTED, OPEN_FILES, MAX_FILES)
"""Looked up at each scrape. A replaced worker process keeps its number. Process metrics: Linux only."""

ALL_METRICS = (*COUNTED_METRICS, *DATABASE_METRICS, *PROCESS_METRICS)
