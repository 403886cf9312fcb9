"""Form of a service page in a real browser, paid on the development chain."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

import pytest
from browser_session import BrowserWallet, EmptyWallet, ServedSite, axe_violations, install_wallet, serve_site
from buyer import decode_header, encode_header
from playwright.sync_api import Browser, Page, Route, expect

from centgate.devchain.devnet import DevChain
from centgate.devchain.environment import DEFAULT_PAYEE
from centgate.website.payment_states import PAYMENT_STATES

PHISHING = "/services/phishing-check"


def request_price(page: Page, path: str = PHISHING, **fields: str) -> None:
    """Open a service's page, fill in its form, and request the price."""
    page.goto(path)
    for name, value in fields.items():
        page.locator(f"[name={name}]").fill(value)
    page.get_by_role("button", name="See the price").click()


def pay(page: Page, wallet: str = "wallet") -> None:
    """Continue from the price to a signature."""
    page.get_by_role("button", name=f"Pay with {wallet}").click()
    page.get_by_role("button", name="Sign and pay 0.01 USDC").click()


def find_receipt(page: Page) -> dict[str, str]:
    """Return the shown receipt."""
    expect(page.locator("#try-answer")).to_be_visible()
    return {name: page.locator(f"#try-{name}").inner_text() for name in ("transaction", "payer", "request")}


def expect_announcement(page: Page, text: str) -> None:
    """Assert that the page announces this text to screen readers."""
    expect(page.locator("#try-said")).to_contain_text(text)


@pytest.mark.extended
@pytest.mark.smoke
def test_visitor_finds_reads_and_buys_a_service(page: Page, devchain: DevChain) -> None:
    wallet = BrowserWallet(1)
    before = devchain.token_balance(DEFAULT_PAYEE), devchain.token_balance(wallet.address)
    install_wallet(page, wallet)

    page.goto("/")
    page.get_by_role("main").get_by_role("link", name=re.compile("phishing", re.IGNORECASE)).first.click()
    expect(page).to_have_url(re.compile(f"{PHISHING}$"))
    page.locator("[name=url]").fill("https://myetherwallet.cx/login")
    page.get_by_role("button", name="See the price").click()
    expect(page.locator("#try-accepted")).to_contain_text("0.01 USDC")
    expect(page.locator("#try-accepted")).to_contain_text(DEFAULT_PAYEE)
    page.get_by_role("button", name="Pay with wallet").click()
    expect(page.locator("#try-next")).to_contain_text(f"from {wallet.address} to {DEFAULT_PAYEE}")
    assert wallet.signed == []
    page.get_by_role("button", name="Sign and pay 0.01 USDC").click()

    paid = find_receipt(page)
    expect(page.locator("#try-drawn")).to_contain_text("myetherwallet.cx")
    expect(page.locator("#try-drawn")).to_contain_text("ok")
    assert re.fullmatch("0x[0-9a-f]{64}", paid["transaction"])
    assert paid["payer"].lower() == wallet.address.lower()
    assert paid["request"].startswith("req_")
    assert len(wallet.signed) == 1
    assert devchain.token_balance(DEFAULT_PAYEE) - before[0] == 10_000
    assert before[1] - devchain.token_balance(wallet.address) == 10_000


def test_api_issues_are_shown_at_their_fields(page: Page) -> None:
    request_price(page, "/services/token-risk", tokenAddress="0x12")

    field = page.locator("[name=tokenAddress]")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_be_focused()
    expect(field).to_have_accessible_description(re.compile("must be an EVM address"))
    expect(page.get_by_role("alert").first).to_contain_text("Nothing was signed")
    expect(page.locator("#try-issues")).to_contain_text("tokenAddress")


def test_issue_without_field_is_in_summary(page: Page) -> None:
    page.goto("/services/token-risk")
    page.locator("[name=chain]").select_option("")
    page.get_by_role("button", name="See the price").click()

    expect(page.locator("#try-issues")).to_contain_text("one of chain or chainId is required")
    expect(page.locator("#try-problem")).to_be_focused()
    expect(page.locator("[aria-invalid]")).to_have_count(0)


def test_issue_of_a_line_names_the_line(page: Page) -> None:
    request_price(page, "/services/neuralweb-contents", urls="https://example.com/\nnowhere")

    expect(page.locator("#try-field-urls-issue")).to_contain_text("Line 2: ")


def test_option_beyond_one_cent_is_reported(page: Page) -> None:
    page.goto("/services/crawler-search")
    more = '{"query": "asyncio", "scrapeOptions": {}}'
    page.route("**/services/**", lambda route: route.continue_(post_data=more))

    page.get_by_role("button", name="See the price").click()

    expect(page.locator("#try-issues")).to_contain_text("scrapeOptions: not included in the price of a call")


def test_corrected_input_removes_message(page: Page) -> None:
    request_price(page, url="x")
    expect(page.locator("[aria-invalid]")).to_have_count(1)

    page.locator("[name=url]").fill("https://example.com/")
    page.get_by_role("button", name="See the price").click()

    expect(page.locator("#try-offer")).to_be_visible()
    expect(page.locator("[aria-invalid]")).to_have_count(0)
    expect(page.locator("#try-problem")).to_be_empty()


def test_price_is_hidden_after_a_change(page: Page) -> None:
    request_price(page)
    expect(page.locator("#try-offer")).to_be_visible()

    page.locator("[name=url]").fill("https://other.example/")

    expect(page.locator("#try-offer")).to_be_hidden()


def test_empty_fields_are_not_sent(page: Page) -> None:
    page.goto("/services/crawler-search")
    page.locator("[name=limit]").fill("")
    with page.expect_request(lambda request: request.method == "POST") as sent:
        page.get_by_role("button", name="See the price").click()

    assert sent.value.post_data_json == {"query": "EIP-3009 transferWithAuthorization"}


def test_values_are_sent_with_schema_types(page: Page) -> None:
    page.goto("/services/crawler-scrape")
    page.locator("[name=onlyMainContent]").uncheck()
    with page.expect_request(lambda request: request.method == "POST") as scrape:
        page.get_by_role("button", name="See the price").click()
    page.goto("/services/wallet-brief")
    page.locator("[name=chainId]").select_option("10")
    wallet = page.locator("[name=walletAddress]").input_value()
    with page.expect_request(lambda request: request.method == "POST") as brief:
        page.get_by_role("button", name="See the price").click()

    assert scrape.value.post_data_json == {"url": "https://example.com/", "onlyMainContent": False}
    assert brief.value.post_data_json == {"chainId": 10, "walletAddress": wallet}


def test_declined_signature_costs_nothing_and_can_be_repeated(page: Page, devchain: DevChain) -> None:
    wallet = BrowserWallet(2, refuses={"eth_signTypedData_v4"})
    before = devchain.token_balance(wallet.address)
    install_wallet(page, wallet)
    request_price(page)
    pay(page)
    expect_announcement(page, "You declined in your wallet. Nothing was signed or paid")

    wallet.refuses.clear()
    page.get_by_role("button", name="Sign and pay 0.01 USDC").click()

    find_receipt(page)
    assert len(wallet.signed) == 1
    assert before - devchain.token_balance(wallet.address) == 10_000


def test_wallet_on_other_chain_is_switched(page: Page) -> None:
    wallet = BrowserWallet(3, chain=1)
    install_wallet(page, wallet)
    request_price(page)
    page.get_by_role("button", name="Pay with wallet").click()
    expect(page.locator("#try-next")).to_contain_text(
        "Your wallet is on chain 1. The payment must be on Base Sepolia"
    )
    assert "wallet_switchEthereumChain" not in wallet.methods

    page.get_by_role("button", name="Switch the wallet to Base Sepolia").click()
    page.get_by_role("button", name="Sign and pay 0.01 USDC").click()

    find_receipt(page)
    assert wallet.chain == 84532


def test_unknown_chain_is_added_to_wallet(page: Page) -> None:
    wallet = BrowserWallet(3, chain=1, knows={1})
    install_wallet(page, wallet)
    request_price(page)
    page.get_by_role("button", name="Pay with wallet").click()

    page.get_by_role("button", name="Switch the wallet to Base Sepolia").click()

    expect(page.get_by_role("button", name="Sign and pay 0.01 USDC")).to_be_focused()
    assert "wallet_addEthereumChain" in wallet.methods


def test_wrong_chain_is_never_signed(page: Page) -> None:
    wallet = BrowserWallet(3, chain=1, refuses={"wallet_switchEthereumChain"})
    install_wallet(page, wallet)
    request_price(page)
    page.get_by_role("button", name="Pay with wallet").click()

    page.get_by_role("button", name="Switch the wallet to Base Sepolia").click()

    expect_announcement(page, "You declined in your wallet. Nothing was signed or paid")
    assert wallet.signed == []
    assert "wallet_addEthereumChain" not in wallet.methods


def test_chain_change_before_signature_signs_nothing(page: Page) -> None:
    wallet = BrowserWallet(3)
    install_wallet(page, wallet)
    request_price(page)
    page.get_by_role("button", name="Pay with wallet").click()
    expect(page.get_by_role("button", name="Sign and pay 0.01 USDC")).to_be_visible()

    wallet.chain = 1
    page.get_by_role("button", name="Sign and pay 0.01 USDC").click()

    expect(page.get_by_role("button", name="Switch the wallet to Base Sepolia")).to_be_visible()
    assert wallet.signed == []


def test_announced_wallet_is_called_by_name(page: Page) -> None:
    wallet = BrowserWallet(3)
    install_wallet(page, wallet, announced_as="Fox <b>& Co</b>")
    request_price(page)

    pay(page, "Fox <b>& Co</b>")

    find_receipt(page)
    assert len(wallet.signed) == 1


def test_missing_wallet_is_explained(page: Page) -> None:
    request_price(page)

    needed = page.locator("#try-no-wallet")
    expect(needed).to_contain_text("you need a wallet extension that holds 0.01 USDC on Base Sepolia")
    expect(needed).to_contain_text("curl")
    expect(needed).to_contain_text("centgate call phishing-check")
    expect(page.get_by_role("button", name="Pay with")).to_have_count(0)


def test_signed_payment_is_as_shown(page: Page, shop: ServedSite) -> None:
    wallet = BrowserWallet(4)
    install_wallet(page, wallet)
    request_price(page)
    pay(page)
    find_receipt(page)

    signed = wallet.signed[0]
    assert shop.deployment.terms is not None
    assert signed["message"]["to"] == DEFAULT_PAYEE
    assert signed["message"]["value"] == "10000"
    assert signed["message"]["validAfter"] == "0"
    assert len(signed["message"]["nonce"]) == 66
    assert signed["domain"]["verifyingContract"] == shop.deployment.terms.asset


def test_two_clicks_give_one_signature(page: Page) -> None:
    wallet = BrowserWallet(4)
    install_wallet(page, wallet)
    request_price(page)
    page.get_by_role("button", name="Pay with wallet").click()

    page.get_by_role("button", name="Sign and pay 0.01 USDC").dblclick()

    find_receipt(page)
    assert len(wallet.signed) == 1


def test_lost_connection_after_signature_loses_no_money(page: Page, devchain: DevChain) -> None:
    wallet = BrowserWallet(5)
    before = devchain.token_balance(wallet.address)
    install_wallet(page, wallet)
    lost = drop_first_answer(page)
    request_price(page)
    pay(page)
    expect_announcement(page, "Your payment is still valid: send it again")
    assert lost == [200]

    page.get_by_role("button", name="Send the same payment again").click()

    find_receipt(page)
    assert len(wallet.signed) == 1
    assert before - devchain.token_balance(wallet.address) == 10_000


def test_payment_survives_page_reload(page: Page, devchain: DevChain) -> None:
    wallet = BrowserWallet(6)
    before = devchain.token_balance(wallet.address)
    install_wallet(page, wallet)
    drop_first_answer(page)
    request_price(page)
    pay(page)
    expect_announcement(page, "Your payment is still valid")

    page.reload()
    expect(page.locator("#try-waiting")).to_contain_text("https://myetherwallet.cx/login")
    page.get_by_role("button", name="Send the same payment again").click()

    find_receipt(page)
    assert len(wallet.signed) == 1
    assert before - devchain.token_balance(wallet.address) == 10_000


def test_payment_is_sent_with_full_storage(page: Page) -> None:
    wallet = BrowserWallet(6)
    install_wallet(page, wallet)
    request_price(page)
    page.evaluate(
        """() => {
            for (let size = 1 << 23, count = 0; size; ) {
                try {
                    sessionStorage.setItem(`filler${count++}`, "x".repeat(size));
                } catch {
                    size >>= 1;
                }
            }
        }"""
    )

    pay(page)

    find_receipt(page)
    assert len(wallet.signed) == 1


def test_waiting_payment_blocks_other_payments(page: Page) -> None:
    wallet = BrowserWallet(6)
    install_wallet(page, wallet)
    drop_first_answer(page)
    request_price(page)
    pay(page)
    expect_announcement(page, "Your payment is still valid")

    page.get_by_role("button", name="See the price").click()
    expect(page.locator("#try-waiting-title")).to_be_focused()
    expect(page.locator("#try-offer")).to_be_hidden()
    page.get_by_role("button", name="Discard this payment").click()
    page.get_by_role("button", name="See the price").click()

    expect(page.locator("#try-offer")).to_be_visible()
    expect(page.locator("#try-waiting")).to_be_hidden()


def test_payer_without_money_is_informed_and_can_retry(page: Page, devchain: DevChain) -> None:
    poor = EmptyWallet()
    install_wallet(page, poor)
    request_price(page)
    pay(page)

    expect(page.locator("#try-problem")).to_contain_text(PAYMENT_STATES["refused"][0])
    expect(page.locator("#try-problem")).to_contain_text("See the price again")
    expect(page.locator("#try-issues")).to_contain_text("Reason: ")
    expect(page.locator("#try-waiting")).to_be_hidden()
    assert devchain.token_balance(poor.address) == 0


def test_unavailable_service_takes_nothing(page: Page, shop: ServedSite, devchain: DevChain) -> None:
    down = next(each for each in shop.deployment.services if not shop.deployment.is_up(each))
    wallet = BrowserWallet(7)
    before = devchain.token_balance(wallet.address)
    install_wallet(page, wallet)
    request_price(page, f"/services/{down.slug}")
    expect(page.locator("#try")).to_contain_text("This service is down at the moment.")

    pay(page)

    expect(page.locator("#try-problem")).to_contain_text(PAYMENT_STATES["unused"][0])
    expect(page.locator("#try-waiting")).to_be_hidden()
    assert devchain.token_balance(wallet.address) == before


@pytest.mark.parametrize(
    ("promise", "sentence"),
    [
        ({"pay_to": "0x" + "11" * 20}, f"The payee is {DEFAULT_PAYEE}, not 0x{'11' * 20}."),
        ({"price": "$0.001"}, "The price in base units is 10000, not 1000."),
        ({"max_timeout_seconds": 60}, "The validity in seconds is 120, not 60."),
    ],
    ids=["another payee", "another price", "another time"],
)
def test_unpromised_terms_are_not_signed(
    page: Page, shop: ServedSite, promise: dict[str, Any], sentence: str
) -> None:
    install_wallet(page, BrowserWallet(7))
    with serve_site(shop.deployment.api, **promise) as other:
        request_price(page, other.url + PHISHING)

        expect(page.locator("#try-refused")).to_contain_text("so nothing is signed")
        expect(page.locator("#try-wrong")).to_have_text(sentence)
        expect(page.get_by_role("button", name="Pay with wallet")).to_have_count(0)


def test_command_replaces_form_without_scripts(chromium: Browser, shop: ServedSite) -> None:
    context = chromium.new_context(base_url=shop.url, java_script_enabled=False)
    page = context.new_page()
    page.goto(PHISHING)

    expect(page.locator("#try-form")).to_be_hidden()
    expect(page.locator("#try")).to_contain_text("curl")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    context.close()


def test_purchase_works_by_keyboard_alone(page: Page) -> None:
    wallet = BrowserWallet(8)
    install_wallet(page, wallet)
    page.goto(PHISHING)

    page.locator("[name=url]").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#try-offer-title")).to_be_focused()
    press_until_focused(page, "Pay with wallet")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Sign and pay 0.01 USDC")).to_be_focused()
    page.keyboard.press("Space")

    expect(page.locator("#try-answer-title")).to_be_focused()
    assert len(wallet.signed) == 1


def press_until_focused(page: Page, name: str) -> None:
    """Press Tab until a button has the focus."""
    button = page.get_by_role("button", name=name)
    for _ in range(10):
        if button.evaluate("each => each === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{name} cannot be reached")


def drop_first_answer(page: Page) -> list[int]:
    """Let the first paid request reach the API, and drop its response; returns the dropped statuses."""
    lost: list[int] = []

    def lose(route: Route) -> None:
        if "payment-signature" in route.request.headers and not lost:
            lost.append(route.fetch().status)
            route.abort("connectionreset")
        else:
            route.continue_()

    page.route("**/services/**", lose)
    return lost


def test_terms_with_hidden_price_are_not_signed(page: Page) -> None:
    install_wallet(page, BrowserWallet(7))

    def dearer(route: Route) -> None:
        response = route.fetch()
        terms = decode_header(response.headers["payment-required"])
        terms["accepts"][0] |= {"amount": "9000000"}
        terms["accepts"][0]["extra"] |= {"amount": "10000"}
        route.fulfill(
            response=response, headers={**response.headers, "payment-required": encode_header(terms)}
        )

    page.goto(PHISHING)
    page.route("**/services/**", dearer)
    page.get_by_role("button", name="See the price").click()

    expect(page.locator("#try-wrong")).to_have_text("The price in base units is 9000000, not 10000.")
    expect(page.get_by_role("button", name="Pay with wallet")).to_have_count(0)


def test_request_changed_during_quote_has_no_price(page: Page) -> None:
    def changing(route: Route) -> None:
        page.locator("[name=url]").fill("https://other.example/")
        route.continue_()

    page.goto(PHISHING)
    page.route("**/services/**", changing)
    page.get_by_role("button", name="See the price").click()

    expect_announcement(page, "The request has changed")
    expect(page.locator("#try-offer")).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation_in_any_form_state(
    chromium: Browser, shop: ServedSite, axe: Path, scheme: Literal["light", "dark"]
) -> None:
    context = chromium.new_context(base_url=shop.url, bypass_csp=True, color_scheme=scheme)
    page = context.new_page()
    install_wallet(page, BrowserWallet(9))
    found: list[str] = []

    def look() -> None:
        page.add_script_tag(path=axe)
        found.extend(axe_violations(page))

    request_price(page, url="x")
    expect(page.locator("[aria-invalid]")).to_have_count(1)
    look()
    drop_first_answer(page)
    page.locator("[name=url]").fill("https://example.com/")
    page.get_by_role("button", name="See the price").click()
    page.get_by_role("button", name="Pay with wallet").click()
    expect(page.get_by_role("button", name="Sign and pay")).to_be_visible()
    look()
    page.get_by_role("button", name="Sign and pay").click()
    expect_announcement(page, "Your payment is still valid")
    look()
    page.get_by_role("button", name="Send the same payment again").click()
    find_receipt(page)
    look()
    context.close()

    assert found == []


def test_form_states_fit_smallest_phone(page: Page) -> None:
    page.set_viewport_size({"width": 320, "height": 640})
    install_wallet(page, BrowserWallet(9))
    request_price(page)
    page.get_by_role("button", name="Pay with wallet").click()
    expect(page.get_by_role("button", name="Sign and pay")).to_be_visible()
    page.locator("#try-offer summary").click()
    offered = page.evaluate("document.documentElement.scrollWidth")
    page.get_by_role("button", name="Sign and pay").click()
    find_receipt(page)
    for each in page.locator("#try-answer summary").all():
        each.click()
    answered = page.evaluate("document.documentElement.scrollWidth")

    assert (offered, answered) == (320, 320)
