"""Messages of the website's form for API failures and untrusted text in answers."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from browser_session import BrowserWallet, ServedSite, install_wallet, serve_site
from facilitators import StubFacilitator, build_settings, open_stub_facilitator, refuse_with, reply_with
from payments.failing_service import FAILING_SERVICE, ServiceFailures, install_failing_service
from playwright.sync_api import Page, expect

from centgate.errors import NoData, ProviderError
from centgate.server import run_in_thread
from centgate.website.payment_states import PAYMENT_STATES

pytestmark = pytest.mark.extended

HOSTILE = '<img src="x" onerror="document.title = \'broken in\'">'


@pytest.fixture(scope="module")
def stub() -> Generator[StubFacilitator]:
    """A stub facilitator with behaviour set by the test."""
    with open_stub_facilitator() as stub:
        yield stub


@pytest.fixture(scope="module")
def catalogue() -> Generator[ServiceFailures]:
    """An additional service, which fails as a test sets it."""
    with install_failing_service() as failures:
        yield failures


@pytest.fixture
def failures(catalogue: ServiceFailures, stub: StubFacilitator) -> ServiceFailures:
    """The failures of this service, all removed."""
    catalogue.reset()
    stub.next.clear()
    return catalogue


@pytest.fixture(scope="module")
def site(
    catalogue: ServiceFailures, stub: StubFacilitator, tmp_path_factory: pytest.TempPathFactory
) -> Generator[ServedSite]:
    """Website of an API with the failing service and the stub facilitator."""
    settings = build_settings(tmp_path_factory.mktemp("trouble"), stub.url)
    with run_in_thread(settings) as api, serve_site(api) as site:
        yield site


@pytest.fixture
def wallet(page: Page, failures: ServiceFailures) -> BrowserWallet:
    """The visitor's wallet."""
    wallet = BrowserWallet()
    install_wallet(page, wallet)
    return wallet


def buy(page: Page, site: ServedSite, question: str = "why") -> None:
    """Query the failing service, and pay."""
    page.goto(site.url + FAILING_SERVICE)
    page.locator("[name=question]").fill(question)
    page.get_by_role("button", name="See the price").click()
    page.get_by_role("button", name="Pay with wallet").click()
    page.get_by_role("button", name="Sign and pay 0.01 USDC").click()


def send_again(page: Page) -> None:
    """Send the waiting payment, as soon as the API accepts it."""
    page.get_by_role("button", name="Send the same payment again").click()


def test_service_that_failed_answers_same_payment_later(
    page: Page, site: ServedSite, wallet: BrowserWallet, failures: ServiceFailures
) -> None:
    failures.raise_next(lambda: ProviderError("moon", "it is dark there"))
    buy(page, site)
    expect(page.locator("#try-said")).to_contain_text("it is dark there")
    expect(page.locator("#try-said")).to_contain_text(PAYMENT_STATES["settled"][0])

    send_again(page)

    expect(page.locator("#try-drawn")).to_contain_text("why, the 2. time")
    assert len(wallet.signed) == 1


def test_open_settlement_is_sent_again_when_allowed(
    page: Page, site: ServedSite, wallet: BrowserWallet, stub: StubFacilitator
) -> None:
    stub.next.append(stub.move_then_reply(reply_with(502, "<h1>Bad Gateway</h1>")))
    buy(page, site)
    expect(page.locator("#try-said")).to_contain_text("send it again in 5 seconds")
    expect(page.get_by_role("button", name="Send the same payment again")).to_be_disabled()

    send_again(page)

    expect(page.locator("#try-drawn")).to_contain_text("why, the 1. time")
    assert len(wallet.signed) == 1
    assert stub.moved[wallet.address.lower(), wallet.signed[0]["message"]["nonce"].lower()] == 1


def test_waiting_payment_is_sent_again_after_reload(
    page: Page, site: ServedSite, wallet: BrowserWallet, failures: ServiceFailures
) -> None:
    failures.raise_next(lambda: ProviderError("moon", "it is dark there"))
    buy(page, site)
    expect(page.locator("#try-waiting")).to_be_visible()

    page.reload()
    send_again(page)

    expect(page.locator("#try-drawn")).to_contain_text("the 2. time")
    assert len(wallet.signed) == 1


def test_refused_payment_is_explained(
    page: Page, site: ServedSite, wallet: BrowserWallet, stub: StubFacilitator
) -> None:
    stub.next.append(refuse_with("insufficient_funds"))

    buy(page, site)

    expect(page.locator("#try-problem")).to_contain_text(PAYMENT_STATES["refused"][0])
    expect(page.locator("#try-issues")).to_have_text("Reason: insufficient_funds")
    expect(page.locator("#try-waiting")).to_be_hidden()


def test_no_data_is_a_paid_answer(
    page: Page, site: ServedSite, wallet: BrowserWallet, failures: ServiceFailures
) -> None:
    failures.raise_next(lambda: NoData("nobody knows why"))

    buy(page, site)

    expect(page.locator("#try-drawn .warnings")).to_have_text("nobody knows why")
    expect(page.locator("#try-transaction")).to_contain_text("0x")
    expect(page.locator("#try-said")).to_contain_text("Paid.")


def test_untrusted_text_stays_text(page: Page, site: ServedSite, wallet: BrowserWallet) -> None:
    buy(page, site, HOSTILE)

    expect(page.locator("#try-drawn")).to_contain_text(HOSTILE)
    expect(page.locator("#try-whole")).to_contain_text("onerror")
    expect(page.locator("#try img")).to_have_count(0)
    expect(page).not_to_have_title("broken in")


def test_unreachable_api_is_reported_before_signature(page: Page, site: ServedSite) -> None:
    page.goto(site.url + FAILING_SERVICE)
    page.route("**/services/**", lambda route: route.abort())

    page.get_by_role("button", name="See the price").click()

    expect(page.locator("#try-problem")).to_contain_text("The API did not return a readable response")


def test_transaction_of_development_chain_is_no_link(
    page: Page, site: ServedSite, wallet: BrowserWallet
) -> None:
    buy(page, site)

    expect(page.locator("#try-transaction")).to_contain_text("0x")
    assert wallet.signed
    expect(page.locator("#try-transaction a")).to_have_count(0)
