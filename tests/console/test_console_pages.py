"""Pages of the console, on both databases."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Generator
from decimal import Decimal
from html import unescape
from pathlib import Path

import pytest
from console_session import PAGES, Operator, ServedConsole, serve_console
from databases import create_sqlite
from journal_rows import insert_rows, payment_row, refund_row
from pydantic import SecretStr

from centgate.console.formats import show_origin
from centgate.console.overview import CHART_DAYS, TODAY_TTL
from centgate.console.provider_metrics import MetricsHistory, MetricsReading, parse_metrics
from centgate.payments.reports.daily_totals import DAY_SECONDS
from centgate.settings import ProviderSettings, Settings

REAL = {"network": "eip155:8453", "asset": "0x" + "83" * 20}
TEST = {"network": "eip155:84532", "asset": "0x" + "03" * 20}
HOSTILE = "<script>alert('x')</script>\u202e\x07"


def time_today(seconds: float = 60) -> float:
    """Return a time of today (UTC) that is not in the future."""
    start = time.time() // DAY_SECONDS * DAY_SECONDS
    return max(start, time.time() - seconds)


def list_cells(html: str) -> list[str]:
    """Return the texts of a page's table cells."""
    return [
        unescape(re.sub(r"<[^>]+>", "", each)).strip() for each in re.findall(r"<td[^>]*>(.*?)</td>", html)
    ]


def read_figure(html: str, label: str) -> str:
    """Return a figure of the overview."""
    found = re.search(rf"<dt>(?:<a[^>]*>)?{label}(?:</a>)?</dt>\s*<dd>([^<]*)", html)
    assert found, label
    return found[1]


@pytest.fixture
def database_settings(database_url: str) -> Settings:
    return Settings(pay_to="0x" + "ce" * 20, database_url=database_url)


@pytest.fixture
def seeded_settings(database_settings: Settings) -> Settings:
    """A journal with a payment of each kind."""
    now = time.time()
    rows = [
        payment_row(1, "delivered", created_at=time_today(), **REAL),
        payment_row(2, "delivered", created_at=time_today(), amount="250000", service="token-risk", **REAL),
        payment_row(3, "refused", created_at=time_today(), reason=HOSTILE, service=HOSTILE, **REAL),
        payment_row(4, "settled", created_at=now - 3 * DAY_SECONDS, **REAL),
        payment_row(5, "settled", created_at=now - 60, **REAL),
        payment_row(6, "settling", created_at=now - 600, identifier=HOSTILE, **REAL),
        payment_row(7, "delivered", created_at=time_today(), amount="9000000", **TEST),
    ]
    asyncio.run(insert_rows(database_settings.database_url, payments=rows))
    return database_settings


@pytest.fixture
def pages(seeded_settings: Settings) -> Generator[Operator]:
    with serve_console(seeded_settings) as served:
        yield served.log_in()


def test_every_page_escapes_untrusted_markup(pages: Operator) -> None:
    payment_pages = set(re.findall(r'href="(/payments/[^"]+)"', pages.get("/payments").text))
    answers = {path: pages.get(path) for path in (*PAGES, *payment_pages)}

    assert len(payment_pages) == 7
    assert {each.status_code for each in answers.values()} == {200}
    assert all("<script" not in each.text for each in answers.values())
    assert all("\u202e" not in each.text and "\x07" not in each.text for each in answers.values())
    assert all("script-src" not in each.headers["Content-Security-Policy"] for each in answers.values())
    assert {each.headers["Content-Security-Policy"].partition(";")[0] for each in answers.values()} == {
        "default-src 'none'"
    }
    assert {each.headers["Cache-Control"] for each in answers.values()} == {"no-store"}


def test_overview_totals_real_and_test_money_apart(pages: Operator) -> None:
    real, _, test = pages.get("/").text.partition("Test money, which has no value")

    assert read_figure(real, "Revenue today") in ("$0.26", "$0.27")  # one was settled a minute ago
    assert read_figure(real, "Refusals today") == "1"
    assert read_figure(real, "Open") == "$0.01"
    assert read_figure(real, "Redeemable") == "$0.01"
    assert read_figure(real, "Refundable") == "$0.01"
    assert read_figure(test, "Revenue today") == "$9.00"
    assert read_figure(test, "Open") == "$0.00"
    assert real.count("<tr><th") >= CHART_DAYS


@pytest.mark.extended
def test_overview_shows_refunds(database_settings: Settings) -> None:
    rows = [payment_row(number, "settled", created_at=time_today(), **REAL) for number in (1, 2, 3)]
    asyncio.run(insert_rows(database_settings.database_url, payments=rows))
    with serve_console(database_settings) as served:
        operator = served.log_in()
        assert "refunded" not in operator.get("/").text
    asyncio.run(insert_rows(database_settings.database_url, refunds=[refund_row(rows[0])]))

    with serve_console(database_settings) as served:
        html = served.log_in().get("/").text

    assert read_figure(html, "Revenue this month") == "$0.03"
    assert "$0.01 of it refunded, $0.02 kept" in html


@pytest.mark.extended
def test_figures_are_read_once_for_many_views(seeded_settings: Settings) -> None:
    now = 1000.0
    with serve_console(seeded_settings, lambda: now) as served:
        operator = served.log_in()
        before = read_figure(operator.get("/").text, "Refusals today")
        refusal = payment_row(99, "refused", created_at=time_today(), **REAL)
        asyncio.run(insert_rows(seeded_settings.database_url, payments=[refusal]))
        same = read_figure(operator.get("/").text, "Refusals today")
        now += TODAY_TTL + 1
        after = read_figure(operator.get("/").text, "Refusals today")

    assert (before, same, after) == ("1", "1", "2")


FOUND = {
    "": "1234567",
    "state=refundable": "4",
    "state=open": "6",
    "service=token-risk": "2",
    "since=24h&state=delivered": "127",
    "until=2d": "4",
    "q=0x0000000000000000000000000000000000000002": "27",
    "q=0x0000000000000000000000000000000000000002:0x" + "0" * 63 + "7": "7",
    "q=0x" + "0" * 63 + "5": "5",
    "q=nothing": "",
}
"""Queries and the payments that they find."""


def test_payments_are_found(pages: Operator) -> None:
    found: dict[str, str] = {}
    for query in FOUND:
        html = pages.get(f"/payments?{query}").text
        found[query] = "".join(sorted(re.findall(r'href="/payments/0x[0-9a-f]{40}:0x0*([0-9a-f]+)"', html)))

    assert found == FOUND


@pytest.mark.parametrize(
    ("query", "is_said"),
    [
        ("q=nothing&state=open", True),
        ("q=nothing", False),
        ("q=0x0000000000000000000000000000000000000002&state=open", False),
    ],
)
def test_search_without_filters_says_so(pages: Operator, query: str, is_said: bool) -> None:  # noqa: FBT001
    assert ("covers all payments" in pages.get(f"/payments?{query}").text) is is_said


def test_bad_filter_is_explained(pages: Operator) -> None:
    for query in ("state=lost", "since=yesterday", "after=%00", "after=WzFd"):
        answer = pages.get(f"/payments?{query}")

        assert answer.status_code == 400, query
        assert 'role="alert"' in answer.text


def test_payment_has_history_and_next_step(pages: Operator) -> None:
    paths = re.findall(r'href="(/payments/0x[^"]+)"', pages.get("/payments?state=refundable").text)
    refundable = pages.get(paths[0]).text
    opened = pages.get(re.findall(r'href="(/payments/0x[^"]+)"', pages.get("/payments?state=open").text)[0])

    assert "Enter a refund" in refundable
    assert "It settled in 0x" in refundable
    assert "the answer can no longer be fetched" in refundable
    assert "centgate payments reconcile" in opened.text
    assert "Enter a refund" not in opened.text
    assert "&lt;script&gt;" in opened.text
    assert "Refresh" in opened.headers
    assert pages.get("/payments/0x1:0x2").status_code == 404


def test_pages_contain_each_payment_once(tmp_path: Path) -> None:
    settings = Settings(database_url=create_sqlite(tmp_path))
    at = time.time() - 1000
    rows = [payment_row(each, created_at=at + each // 3) for each in range(120)]
    asyncio.run(insert_rows(settings.database_url, payments=rows))
    path, seen = "/payments?state=delivered", list[str]()
    with serve_console(settings) as served:
        operator = served.log_in()
        while path:
            html = operator.get(path).text
            seen += re.findall(r'href="/payments/0x[0-9a-f]{40}:0x0*([0-9a-f]*)"', html)
            older = re.search(r'href="([^"]+)">Older', html)
            path = unescape(older[1]) if older else ""

    assert sorted(int(each or "0", 16) for each in seen) == list(range(120))


def test_settings_page_shows_sources_and_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "s3cr3t-value-123"
    monkeypatch.setenv("CENTGATE_EXA_KEY", secret)
    monkeypatch.setenv("CENTGATE_FACILITATOR_TOKEN", secret)
    monkeypatch.setenv("CENTGATE_ALERT_WEBHOOK", f"https://hooks.example/{secret}")
    monkeypatch.setenv("CENTGATE_RPC_8453_URL", f"https://node.example/v2/{secret}")
    monkeypatch.setenv("CENTGATE_PHISHING_LIST_URL", f"metamask=https://lists.example/{secret}")
    monkeypatch.setenv("CENTGATE_REDEEM_HOURS", "48")
    monkeypatch.setenv("CENTGATE_DATABASE_URL", create_sqlite(tmp_path))
    Path(".env").write_text(f"CENTGATE_RECEIPT_KEY=0x{'42' * 32}\nCENTGATE_OPERATOR=me@shop.example\n")
    with serve_console(Settings()) as served:
        operator = served.log_in()
        pages = {path: operator.get(path).text for path in PAGES}

    assert [path for path, html in pages.items() if secret in html or "4242" in html] == []
    assert "https://node.example" in pages["/settings"]
    rows = dict(re.findall(r"<code>(CENTGATE_\w+)</code>.*?<td>.*?</td><td>(.*?)</td>", pages["/settings"]))
    sources = {name: re.sub(r"<[^>]+>", "", source) for name, source in rows.items()}
    assert sources["CENTGATE_REDEEM_HOURS"] == "environment"
    assert sources["CENTGATE_OPERATOR"] == sources["CENTGATE_RECEIPT_KEY"] == ".env"
    assert sources["CENTGATE_EXA_KEY"] == "environment"
    assert sources["CENTGATE_PORT"] == "default"


METRICS = """# HELP centgate_provider_calls_total Calls
# TYPE centgate_provider_calls_total counter
centgate_provider_calls_total{{outcome="ok",provider="exa"}} {ok}
centgate_provider_calls_total{{outcome="error",provider="exa"}} {error}
centgate_provider_calls_total{{outcome="cancelled",provider="exa"}} 7.0
# HELP centgate_provider_call_duration_seconds Duration
# TYPE centgate_provider_call_duration_seconds histogram
centgate_provider_call_duration_seconds_bucket{{le="0.1",provider="exa"}} {fast}
centgate_provider_call_duration_seconds_bucket{{le="1.0",provider="exa"}} {all}
centgate_provider_call_duration_seconds_bucket{{le="+Inf",provider="exa"}} {all}
centgate_provider_call_duration_seconds_count{{provider="exa"}} {all}
centgate_provider_call_duration_seconds_sum{{provider="exa"}} {sum}
# HELP centgate_provider_breakers_open Breakers
# TYPE centgate_provider_breakers_open gauge
centgate_provider_breakers_open{{provider="exa"}} {breakers}
"""


def read_metrics(at: float, **values: float) -> MetricsReading:
    return MetricsReading(at, *parse_metrics(METRICS.format(**values)))


def test_activity_is_difference_of_two_readings() -> None:
    history = MetricsHistory("http://127.0.0.1:1/metrics")
    history.add_reading(read_metrics(0, ok=100, error=50, fast=150, all=150, sum=1.5, breakers=0))
    history.add_reading(read_metrics(60, ok=108, error=52, fast=158, all=160, sum=2.5, breakers=1))

    activity = history.find_activity("exa", 3600)

    assert activity is not None
    assert (activity.calls, activity.failures, activity.open_breakers) == (10, 2, 1)
    assert activity.mean == pytest.approx(0.1)
    assert activity.p95 == 1.0
    quiet = history.find_activity("brave", 3600)
    assert quiet is not None
    assert (quiet.calls, quiet.p95) == (0, None)


def test_restarted_server_starts_new_figures() -> None:
    history = MetricsHistory("http://127.0.0.1:1/metrics")
    history.add_reading(read_metrics(0, ok=100, error=50, fast=150, all=150, sum=1.5, breakers=0))
    history.add_reading(read_metrics(60, ok=3, error=0, fast=3, all=3, sum=0.1, breakers=0))

    activity = history.find_activity("exa", 3600)

    assert activity is not None
    assert activity.calls == 3


def test_providers_page_shows_state_key_and_limit(console_settings: Settings) -> None:
    key = ProviderSettings(key=SecretStr("k3y-of-exa"), per_minute=30)
    settings = console_settings.model_copy(update={"providers": {"exa": key}})
    with serve_console(settings) as served:
        operator = served.log_in()
        unknown = operator.get("/providers").text
        metrics = served.console.metrics
        metrics.problem = None
        metrics.add_reading(read_metrics(0, ok=100, error=0, fast=100, all=100, sum=1, breakers=0))
        metrics.add_reading(read_metrics(60, ok=104, error=6, fast=110, all=110, sum=2, breakers=0))
        known = operator.get("/providers").text
        metrics.problem = "the server's metrics cannot be read: refused"
        stopped = operator.get("/providers").text

    def find_row(html: str) -> list[str]:
        return list_cells(html.partition("<code>exa</code>")[2].partition("</tr>")[0])

    assert "not known: the server publishes no metrics" in unknown
    assert find_row(unknown)[:2] == find_row(stopped)[:2] == ["not known", "not known"]
    assert find_row(known) == [
        *("failing", "10", "6", "100 ms", "100 ms", "0", "1 in 2 s", "20", "present", "unstated")
    ]


def test_directories_page_shows_facilitators_response(console: ServedConsole) -> None:
    text = """# TYPE centgate_directory_responses_total counter
centgate_directory_responses_total{service="token-risk",status="rejected"} 2.0
centgate_directory_responses_total{service="token-risk",status="success"} 0.0
"""
    operator = console.log_in()
    unknown = operator.get("/directories").text
    console.console.metrics.problem = None
    console.console.metrics.add_reading(MetricsReading(0, *parse_metrics(text)))
    known = operator.get("/directories").text
    console.console.metrics.problem = "the server's metrics cannot be read: refused"
    stopped = operator.get("/directories").text

    def find_row(html: str, slug: str) -> str:
        found = re.search(rf'<th scope="row">{slug}<br>.*?</tr>', html, re.DOTALL)
        assert found, slug
        return found[0]

    assert "rejected" not in unknown.partition("<table>")[2]
    assert "not known" in find_row(unknown, "token-risk")
    assert "rejected: 2" in find_row(known, "token-risk")
    assert "not known" in find_row(stopped, "token-risk")
    assert "not known" in find_row(known, "wallet-brief")


def test_directories_page_shows_offers(console_settings: Settings) -> None:
    settings = console_settings.model_copy(
        update={"public_url": "https://api.shop.example", "receipt_key": SecretStr("0x" + "42" * 32)}
    )
    with serve_console(settings) as served:
        html = served.log_in().get("/directories").text

    assert "https://api.shop.example/" in html
    assert html.count(" UTC</td>") == len(served.console.routes)  # each signed offer has an end


def test_origin_of_ipv6_address_has_brackets() -> None:
    assert show_origin("https://user:key@[::1]:8545/key") == "https://[::1]:8545"


def test_unknown_page_is_404(console: ServedConsole) -> None:
    answer = console.log_in().get("/nothing")

    assert (answer.status_code, "<h1>Not found</h1>" in answer.text) == (404, True)


def test_refused_method_names_those_of_its_page(console: ServedConsole) -> None:
    answers = [console.log_in().http.put(path) for path in ("/payments", "/logout", "/login")]

    assert [each.status_code for each in answers] == [405, 405, 405]
    assert [each.headers["allow"] for each in answers] == ["GET, HEAD", "POST", "GET, HEAD, POST"]
    assert all("<h1>Method not allowed</h1>" in each.text for each in answers)
    assert all("does not accept the method PUT." in each.text for each in answers)


def test_failure_is_named_so(console: ServedConsole) -> None:
    operator = console.log_in()
    console.console.metrics = None  # pyright: ignore[reportAttributeAccessIssue] - a defect

    answer = operator.get("/providers")

    assert (answer.status_code, "<h1>Failure</h1>" in answer.text) == (500, True)


def test_totals_are_grouped_by_payer_service_day_and_network(
    pages: Operator, seeded_settings: Settings
) -> None:
    rows = [payment_row(90, created_at=time_today(), amount="35000", payer="0x" + "9a" * 20, **REAL)]
    asyncio.run(insert_rows(seeded_settings.database_url, payments=rows))

    by_payer = pages.get("/totals").text
    by_service = pages.get("/totals?by=service&since=7d").text
    by_network = pages.get("/totals?by=network").text
    by_day = pages.get("/totals?by=day").text

    assert "$0.035" in list_cells(by_payer)
    assert f"/payments?q=0x{'9a' * 20}&amp;since=30d" in by_payer
    assert "/payments?service=token-risk&amp;since=7d" in by_service
    # the command gives the figures of the page
    assert "centgate payments totals --by service --since '7d' --format csv" in by_service
    assert "eip155:84532 (test money)" in list_cells(by_network)
    assert time.strftime("%Y-%m-%d", time.gmtime(time_today())) in by_day


@pytest.mark.parametrize("query", ["by=nonce", "since=yesterday", "until=%3Cb%3E"])
def test_wrong_inputs_of_totals_are_explained(pages: Operator, query: str) -> None:
    response = pages.get(f"/totals?{query}")

    assert response.status_code == 400
    assert 'role="alert"' in response.text
    assert "<b>" not in response.text


def test_settings_page_shows_prices_of_services(console_settings: Settings) -> None:
    priced = console_settings.model_copy(update={"service_prices": {"token-risk": Decimal("0.035")}})
    with serve_console(priced) as served:
        html = served.log_in().get("/settings").text

    assert "CENTGATE_PRICE_TOKEN_RISK" in html
    assert "0.035" in list_cells(html)
    assert "CENTGATE_SERVICE_PRICES" not in html
