"""Every metric there is: its name, type, labels and meaning. The page is made from it too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "histogram"]

QUICK = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5)
"""Seconds that a disk or an event loop takes."""
CALLS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30)
"""Seconds that somebody waits for an answer."""
GROUPS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


@dataclass(frozen=True, slots=True)
class Declared:
    """One metric; `name` is as Prometheus reads it, with `_total` where it is a counter."""

    name: str
    kind: Kind
    meaning: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    """Upper bounds of a histogram."""


PAYMENTS = Declared(
    "centgate_payments_total",
    "counter",
    "Payments entered in the journal, by the state they were entered in: `settling` (taken up; the "
    "facilitator is asked next), `settled` (the money is ours), `delivered` (the buyer has the answer), "
    "`refused` (nothing moved).",
    ("state", "service"),
)
EARNED = Declared(
    "centgate_settled_dollars_total",
    "counter",
    "Money that was settled, in US dollars. That of test networks is not among it.",
    ("service",),
)
EARNED_TEST = Declared(
    "centgate_settled_test_dollars_total",
    "counter",
    "Money of test networks that was settled, in dollars that are worth nothing.",
    ("service",),
)
REDEEMED = Declared(
    "centgate_redeemed_total",
    "counter",
    "Answers delivered for money that an earlier request had paid.",
    ("service",),
)
REPLAYED = Declared(
    "centgate_replayed_total",
    "counter",
    "Requests that repeated an earlier one and got its answer, for nothing.",
    ("service",),
)
SETTLE = Declared(
    "centgate_settle_duration_seconds",
    "histogram",
    "How long the facilitator took to answer, by what that said of the money: `settled`, `refused` (nothing "
    "moved), `unresolved` (it may have moved).",
    ("outcome",),
    CALLS,
)
PROVIDER_CALLS = Declared(
    "centgate_provider_calls_total",
    "counter",
    "Questions put to providers, by what came of them: `ok`, `no_data` (it knows nothing), `error`, "
    "`timeout`, `rate_limited`, `unread` (a page that cannot be read, which is the site's fault), "
    "`cancelled` (who asked has stopped waiting).",
    ("provider", "outcome"),
)
PROVIDER_SECONDS = Declared(
    "centgate_provider_call_duration_seconds",
    "histogram",
    "How long questions to providers took, with all the calls of one question.",
    ("provider",),
    CALLS,
)
BREAKERS = Declared(
    "centgate_provider_breakers_open",
    "gauge",
    "Breakers that are open: the provider failed many times in a row and is left alone. Each server process "
    "has its own.",
    ("provider",),
)
CACHE = Declared(
    "centgate_cache_lookups_total",
    "counter",
    "Answers looked for in the cache, by what came of it (`hit`, `miss`) and by which was asked: one that is "
    "`local` to a process, or with the `shared` one behind it. Services whose answers are never kept are not "
    "counted.",
    ("service", "cache", "result"),
)
CACHE_UP = Declared(
    "centgate_shared_cache_up",
    "gauge",
    "Whether the shared cache can be used: 1 or 0, the worst of all processes. Only where one is set up.",
)
CACHE_FAILURES = Declared(
    "centgate_shared_cache_failures_total",
    "counter",
    "Commands to the shared cache that failed or took too long. Only where one is set up.",
)
REQUESTS = Declared(
    "centgate_request_duration_seconds",
    "histogram",
    "How long requests took, by the class of their status (`2xx`). `service` is that of a paid call; `free` "
    "for all other routes, `unknown` for paths that are none.",
    ("service", "status"),
    CALLS,
)
LIMITED = Declared(
    "centgate_rate_limited_total",
    "counter",
    "Requests refused with `rate_limited`, by whose unpaid or refused requests were too many: those of the "
    "client's `address`, of one `payment` that came with other requests than its own, of a `payer`.",
    ("by",),
)
IN_FLIGHT = Declared("centgate_requests_in_flight", "gauge", "Requests that are being answered.")
COMMITS = Declared(
    "centgate_journal_commit_duration_seconds",
    "histogram",
    "How long the journal took to make a group of entries durable. On PostgreSQL: one piece of work, with "
    "the wait for a connection.",
    (),
    QUICK,
)
GROUPED = Declared(
    "centgate_journal_commit_entries",
    "histogram",
    "Pieces of work that shared a commit. On PostgreSQL always one: it groups them itself.",
    (),
    GROUPS,
)
LAG = Declared(
    "centgate_event_loop_lag_seconds",
    "histogram",
    "How much later than it should have run a timer of the event loop did run, tried twice a second.",
    (),
    QUICK,
)
COUNTED = (
    PAYMENTS,
    EARNED,
    EARNED_TEST,
    REDEEMED,
    REPLAYED,
    SETTLE,
    PROVIDER_CALLS,
    PROVIDER_SECONDS,
    BREAKERS,
    CACHE,
    CACHE_UP,
    CACHE_FAILURES,
    REQUESTS,
    LIMITED,
    IN_FLIGHT,
    COMMITS,
    GROUPED,
    LAG,
)
"""What server processes count; of several, the sum is shown."""

JOURNAL_UP = Declared(
    "centgate_journal_up",
    "gauge",
    "Whether the journal's database answered when this was read: 1 or 0. With 0 those below are absent.",
)
OPEN = Declared(
    "centgate_payments_open",
    "gauge",
    "Payments that are not at their end: `settling` (the outcome is not known, or not yet), `redeemable` "
    "(paid, not delivered, and still good for an answer).",
    ("state",),
)
OLDEST_UNRESOLVED = Declared(
    "centgate_payments_oldest_unresolved_seconds",
    "gauge",
    "Age of the oldest payment whose outcome is not known; 0 where there is none.",
)
OLDEST_REDEEMABLE = Declared(
    "centgate_payments_oldest_redeemable_seconds",
    "gauge",
    "How long the oldest redeemable payment has waited for its buyer; 0 where there is none.",
)
AUDIT_FINDINGS = Declared(
    "centgate_audit_findings",
    "gauge",
    "Payments over which the last audit found journal and chain to differ: `refused` (paid, and the buyer "
    "was told that no money moved), `open` (paid, and not settled here yet), `unknown` (paid, and not by a "
    "payment of this journal), `not_on_chain` (settled here, and not paid). Absent before the first audit.",
    ("kind",),
)
AUDITED_AT = Declared(
    "centgate_audit_completed_timestamp_seconds",
    "gauge",
    "When the last audit was completed, in seconds since 1970. Absent before the first.",
)
ASKED = (JOURNAL_UP, OPEN, OLDEST_UNRESOLVED, OLDEST_REDEEMABLE, AUDIT_FINDINGS, AUDITED_AT)
"""What is asked of the database. All replicas on one say the same: take their maximum, not the sum."""

BUILD = Declared("centgate_build_info", "gauge", "1, with what is running.", ("version", "python"))
CPU = Declared(
    "process_cpu_seconds_total", "counter", "Processor time that a server process has used.", ("worker",)
)
RESIDENT = Declared("process_resident_memory_bytes", "gauge", "Its resident memory.", ("worker",))
VIRTUAL = Declared("process_virtual_memory_bytes", "gauge", "Its virtual memory.", ("worker",))
STARTED = Declared(
    "process_start_time_seconds", "gauge", "When it started, in seconds since 1970.", ("worker",)
)
OPEN_FILES = Declared("process_open_fds", "gauge", "File descriptors that it has open.", ("worker",))
MOST_FILES = Declared("process_max_fds", "gauge", "File descriptors that it may have open.", ("worker",))
LOOKED_UP = (BUILD, CPU, RESIDENT, VIRTUAL, STARTED, OPEN_FILES, MOST_FILES)
"""What is looked up when it is read. A worker keeps its number when it is replaced. Processes: Linux only."""

ALL = (*COUNTED, *ASKED, *LOOKED_UP)
