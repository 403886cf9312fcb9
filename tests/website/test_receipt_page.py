"""The page that checks a receipt: in a real browser, under its policy, asking nobody."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Generator
from typing import Any

import httpx
import pytest
from browser_session import ServedSite, serve_site
from buyer import Buyer, pay, sign_payment
from facilitators import build_settings, open_stub_facilitator
from playwright.sync_api import Browser, Page, expect
from pydantic import SecretStr
from signed_receipts import BODY, OTHER, SIGNER, TAMPERED, URL, signed_settle_response
from site_fixtures import SiteFixture, open_site_fixture, xpath

from centgate.server import run_in_thread
from centgate.website.validation import parse_signer

KEY = "5e" * 32


@pytest.fixture(scope="module")
def shop_api(tmp_path_factory: pytest.TempPathFactory) -> Generator[httpx.Client]:
    """An API that signs."""
    with (
        open_stub_facilitator() as stub,
        run_in_thread(build_settings(tmp_path_factory.mktemp("signing"), stub.url, receipt_key=KEY)) as url,
        httpx.Client(base_url=url, timeout=30) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def site(shop_api: httpx.Client) -> Generator[ServedSite]:
    """The website of an API that signs."""
    with serve_site(str(shop_api.base_url).rstrip("/")) as site:
        yield site


@pytest.fixture(scope="module")
def opened(chromium: Browser, site: ServedSite) -> Generator[tuple[Page, list[str]]]:
    """A tab with the page, which has been loaded, and all that goes wrong or is asked for after that."""
    with chromium.new_context(base_url=site.url) as context:
        page = context.new_page()
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text))
        page.goto("/receipt", wait_until="networkidle")
        page.on("request", lambda request: wrong.append(request.url))
        yield page, wrong


@pytest.fixture
def visitor(opened: tuple[Page, list[str]]) -> Generator[Page]:
    """The tab with an empty form; nobody may be asked for anything."""
    page, wrong = opened
    page.locator("#check-form").evaluate("form => form.reset()")
    yield page
    assert wrong == []


def header(message: Any) -> str:
    return b64encode(json.dumps(message).encode()).decode()


def check(page: Page, receipt: str, *, body: bytes | None = None, signer: str | None = None) -> None:
    """Fill the form in and send it, which goes nowhere."""
    page.locator("#check-header").fill(receipt)
    page.locator("#check-body").fill(body.decode() if body else "")
    if signer is not None:
        page.locator("#check-signer").fill(signer)
    page.get_by_role("button", name="Check the receipt").click()


def states(page: Page) -> list[str]:
    return page.locator("#check-list .state").all_inner_texts()


@pytest.mark.extended
def test_a_receipt_of_this_api_is_checked(visitor: Page, shop_api: httpx.Client) -> None:
    response = pay(shop_api, sign_payment(shop_api, Buyer()))

    check(visitor, response.headers["PAYMENT-RESPONSE"], body=response.content)

    expect(visitor.locator("#check-title")).to_have_text("No check failed")
    assert states(visitor) == ["ok"] * 5
    told = visitor.locator("#check-told")
    expect(told).to_contain_text(SIGNER.address.lower())
    expect(told).to_contain_text(Buyer().address.lower())


def test_the_body_can_be_a_file(visitor: Page) -> None:
    file = {"name": "body.json", "mimeType": "application/json", "buffer": BODY}
    visitor.locator("#check-file").set_input_files([file])  # pyright: ignore[reportArgumentType]

    check(visitor, header(signed_settle_response()), body=b"what is pasted does not count then")

    expect(visitor.locator("#check-title")).to_have_text("No check failed")
    expect(visitor.locator("#check-list")).to_contain_text("the body is the one that was signed")


def test_whatever_was_changed_is_noticed_on_the_page(visitor: Page) -> None:
    missed: list[str] = []
    for name, tampered in TAMPERED.items():
        check(visitor, json.dumps(tampered), body=BODY)
        expect(visitor.locator("#check-verdict")).to_be_visible()
        if "failed" not in states(visitor) or "TypeError" in visitor.locator("#check-list").inner_text():
            missed.append(name)

    assert missed == []


def test_another_body_is_noticed_on_the_page(visitor: Page) -> None:
    check(visitor, header(signed_settle_response()), body=BODY + b" ")

    expect(visitor.locator("#check-title")).to_have_text("The receipt is not valid")
    expect(visitor.locator("#check-list")).to_contain_text("the body is not the one that was signed")


def test_a_receipt_that_another_key_signed_does_not_hold(visitor: Page) -> None:
    check(visitor, header(signed_settle_response(OTHER)), body=BODY)

    expect(visitor.locator("#check-title")).to_have_text("The receipt is not valid")
    expect(visitor.locator("#check-list")).to_contain_text(f"the receipt is not signed by {SIGNER.address}")


def test_a_receipt_is_read_from_among_other_headers(visitor: Page) -> None:
    check(
        visitor,
        f"HTTP/1.1 200 OK\npayment-response: {header(signed_settle_response())}\nx-request-id: 1\n",
        signer="",
    )

    expect(visitor.locator("#check-told")).to_contain_text(URL)
    expect(visitor.locator("#check-told")).to_contain_text("Mon, 21 Sep 2026 14:13:20 GMT")
    assert states(visitor) == ["ok", "ok", "ok", "not checked", "not checked"]


@pytest.mark.parametrize(
    ("receipt", "signer", "said"),
    [
        ("", None, "The input is neither a PAYMENT-RESPONSE header nor its JSON."),
        ("what?", None, "The input is neither a PAYMENT-RESPONSE header nor its JSON."),
        (header(signed_settle_response()), "0x12", "The signer must be an address: 0x and 40 hex digits."),
    ],
    ids=["nothing", "text", "signer"],
)
def test_what_cannot_be_checked_is_said(visitor: Page, receipt: str, signer: str | None, said: str) -> None:
    check(visitor, receipt, signer=signer)

    expect(visitor.locator("#check-problem")).to_have_text(said)
    expect(visitor.locator("#check-problem")).to_be_focused()
    expect(visitor.locator("#check-verdict")).to_be_hidden()


def test_text_of_strangers_stays_text(visitor: Page) -> None:
    check(visitor, header(signed_settle_response(payer="<img src=x onerror=alert(1)>")), signer="")

    expect(visitor.locator("#check-told")).to_contain_text("<img src=x")
    assert visitor.locator("main img").count() == 0


def test_the_page_may_connect_to_nobody(chromium: Browser, site: ServedSite) -> None:
    with chromium.new_context(base_url=site.url) as context:
        page = context.new_page()
        page.goto("/receipt")

        asked = page.evaluate("fetch('/receipt.md').then(() => 'answered', () => 'refused')")

    assert asked == "refused"


def test_all_scripts_of_the_page_are_small(site: ServedSite, chromium: Browser) -> None:
    loaded: list[str] = []
    with chromium.new_context(base_url=site.url) as context:
        page = context.new_page()
        page.on("request", lambda request: loaded.append(request.url))
        page.goto("/receipt", wait_until="networkidle")

    scripts = {url for url in loaded if url.endswith(".js")}
    assert len(scripts) == 3
    assert sum(len(httpx.get(url).content) for url in scripts) <= 18 * 1024


@pytest.fixture(scope="module", params=[SecretStr(KEY), None], ids=["signing", "not signing"])
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[SiteFixture]:
    """The website of an API that signs, and of one that does not."""
    with open_site_fixture(tmp_path_factory.mktemp("told"), receipt_key=request.param) as found:
        yield found


@pytest.mark.extended
def test_pages_say_who_signs_only_where_somebody_does(told: SiteFixture) -> None:
    signs = "receiptSigner" in told.deployment.x402

    pages = {path: SIGNER.address in told.text(path) for path in ("/receipt", "/receipt.md", "/trust.md")}

    assert pages == dict.fromkeys(pages, signs)
    assert ("does not sign receipts at the moment" in told.text("/receipt.md")) is not signs
    assert (f"{told.deployment.site}/receipt.md" in told.text("/paying.md")) is signs


def test_agents_find_the_command_and_the_types(told: SiteFixture) -> None:
    text = told.text("/receipt.md")

    assert "centgate receipt verify headers.txt --body body.json" in text
    assert "`Answer(bytes32 receipt,bytes32 bodySha256)`" in text
    assert f"{told.deployment.site}/receipt.md" in told.text("/llms.txt")
    assert xpath(told.text("/receipt"), "//form[@id='check-form']")


@pytest.mark.parametrize("said", [{}, [], None, {"receiptSigner": "0x12"}, {"receiptSigner": ["0x"]}])
def test_what_an_api_says_of_its_signer_is_shown_only_when_it_is_an_address(said: Any) -> None:
    assert parse_signer(said) is None
