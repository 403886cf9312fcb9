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

HOSTILE = '<img src="x" onerror="document.title = \'broken in\'">'


@pytest.fixture(scope="module")
def stub() -> Generator[StubFacilitator]:
    """A facilitator that does what a test says."""
    with open_stub_facilitator() as stub:
        yield stub


@pytest.fixture(scope="module")
def catalogue() -> Generator[ServiceFailures]:
    """A service more, which fails when a test says so."""
    with install_failing_service() as moods:
        yield moods


@pytest.fixture
def moods(catalogue: ServiceFailures, stub: StubFacilitator) -> ServiceFailures:
    """The same, in no mood yet."""
    catalogue.reset()
    stub.next.clear()
    return catalogue


@pytest.fixture(scope="module")
def site(
    catalogue: ServiceFailures, stub: StubFacilitator, tmp_path_factory: pytest.TempPathFactory
) -> Generator[ServedSite]:
    """The website of an API with the moody service and that facilitator."""
    settings = build_settings(tmp_path_factory.mktemp("trouble"), stub.url)
    with run_in_thread(settings) as api, serve_site(api) as site:
        yield site


@pytest.fixture
def wallet(page: Page, moods: ServiceFailures) -> BrowserWallet:
    """The visitor's wallet."""
    wallet = BrowserWallet()
    install_wallet(page, wallet)
    return wallet


def buy(page: Page, site: ServedSite, question: str = "why") -> None:
    """Ask the moody service, and pay."""
    page.goto(site.url + FAILING_SERVICE)
    page.locator("[name=question]").fill(question)
    page.get_by_role("button", name="See the price").click()
    page.get_by_role("button", name="Pay with wallet").click()
    page.get_by_role("button", name="Sign and pay 0.01 USDC").click()


def send_again(page: Page) -> None:
    """Send the payment that waits, as soon as the API wants it."""
    page.get_by_role("button", name="Send the same payment again").click()


def test_a_service_that_fails_after_the_payment_answers_the_same_payment_later(
    page: Page, site: ServedSite, wallet: BrowserWallet, moods: ServiceFailures
) -> None:
    moods.raise_next(lambda: ProviderError("moon", "it is dark there"))
    buy(page, site)
    expect(page.locator("#try-said")).to_contain_text("it is dark there")
    expect(page.locator("#try-said")).to_contain_text(PAYMENT_STATES["settled"][0])

    send_again(page)

    expect(page.locator("#try-drawn")).to_contain_text("why, the 2. time")
    assert len(wallet.signed) == 1


def test_an_open_settlement_is_sent_again_when_the_api_wants_it(
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


def test_a_payment_that_waits_is_sent_again_after_a_reload(
    page: Page, site: ServedSite, wallet: BrowserWallet, moods: ServiceFailures
) -> None:
    moods.raise_next(lambda: ProviderError("moon", "it is dark there"))
    buy(page, site)
    expect(page.locator("#try-waiting")).to_be_visible()

    page.reload()
    send_again(page)

    expect(page.locator("#try-drawn")).to_contain_text("the 2. time")
    assert len(wallet.signed) == 1


def test_a_refused_payment_is_explained(
    page: Page, site: ServedSite, wallet: BrowserWallet, stub: StubFacilitator
) -> None:
    stub.next.append(refuse_with("insufficient_funds"))

    buy(page, site)

    expect(page.locator("#try-problem")).to_contain_text(PAYMENT_STATES["refused"][0])
    expect(page.locator("#try-issues")).to_have_text("Reason: insufficient_funds")
    expect(page.locator("#try-waiting")).to_be_hidden()


def test_that_nothing_is_known_is_a_paid_answer(
    page: Page, site: ServedSite, wallet: BrowserWallet, moods: ServiceFailures
) -> None:
    moods.raise_next(lambda: NoData("nobody knows why"))

    buy(page, site)

    expect(page.locator("#try-drawn .warnings")).to_have_text("nobody knows why")
    expect(page.locator("#try-transaction")).to_contain_text("0x")
    expect(page.locator("#try-said")).to_contain_text("Paid.")


def test_text_of_strangers_stays_text(page: Page, site: ServedSite, wallet: BrowserWallet) -> None:
    buy(page, site, HOSTILE)

    expect(page.locator("#try-drawn")).to_contain_text(HOSTILE)
    expect(page.locator("#try-whole")).to_contain_text("onerror")
    expect(page.locator("#try img")).to_have_count(0)
    expect(page).not_to_have_title("broken in")


def test_an_api_that_cannot_be_reached_is_told_before_anything_is_signed(
    page: Page, site: ServedSite
) -> None:
    page.goto(site.url + FAILING_SERVICE)
    page.route("**/services/**", lambda route: route.abort())

    page.get_by_role("button", name="See the price").click()

    expect(page.locator("#try-problem")).to_contain_text("The API did not return a readable response")


def test_a_transaction_of_a_development_chain_is_no_link(
    page: Page, site: ServedSite, wallet: BrowserWallet
) -> None:
    buy(page, site)

    expect(page.locator("#try-transaction")).to_contain_text("0x")
    assert wallet.signed
    expect(page.locator("#try-transaction a")).to_have_count(0)
