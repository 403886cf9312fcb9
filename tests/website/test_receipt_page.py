"""Page that verifies a receipt: in a real browser, under its policy, without any request."""

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
    """API that signs receipts."""
    with (
        open_stub_facilitator() as stub,
        run_in_thread(build_settings(tmp_path_factory.mktemp("signing"), stub.url, receipt_key=KEY)) as url,
        httpx.Client(base_url=url, timeout=30) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def site(shop_api: httpx.Client) -> Generator[ServedSite]:
    """Website of an API that signs receipts."""
    with serve_site(str(shop_api.base_url).rstrip("/")) as site:
        yield site


@pytest.fixture(scope="module")
def receipt_page(chromium: Browser, site: ServedSite) -> Generator[tuple[Page, list[str]]]:
    """A tab with the loaded page, and the list of all later errors and requests."""
    with chromium.new_context(base_url=site.url) as context:
        page = context.new_page()
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text))
        page.goto("/receipt", wait_until="networkidle")
        page.on("request", lambda request: wrong.append(request.url))
        yield page, wrong


@pytest.fixture
def empty_form(receipt_page: tuple[Page, list[str]]) -> Generator[Page]:
    """The tab with an empty form; the test fails if it sends a request."""
    page, wrong = receipt_page
    page.locator("#check-form").evaluate("form => form.reset()")
    yield page
    # a browser may ask for the icon long after everything else
    assert [each for each in wrong if "/favicon." not in each] == []


def encode_header(message: Any) -> str:
    return b64encode(json.dumps(message).encode()).decode()


def verify_receipt(page: Page, receipt: str, *, body: bytes | None = None, signer: str | None = None) -> None:
    """Fill in the form and submit it, which sends no request."""
    page.locator("#check-header").fill(receipt)
    page.locator("#check-body").fill(body.decode() if body else "")
    if signer is not None:
        page.locator("#check-signer").fill(signer)
    page.get_by_role("button", name="Check the receipt").click()


def read_states(page: Page) -> list[str]:
    return page.locator("#check-list .state").all_inner_texts()


@pytest.mark.extended
def test_receipt_of_this_api_is_verified(empty_form: Page, shop_api: httpx.Client) -> None:
    response = pay(shop_api, sign_payment(shop_api, Buyer()))

    verify_receipt(empty_form, response.headers["PAYMENT-RESPONSE"], body=response.content)

    expect(empty_form.locator("#check-title")).to_have_text("No check failed")
    assert read_states(empty_form) == ["ok"] * 5
    signing_site = empty_form.locator("#check-told")
    expect(signing_site).to_contain_text(SIGNER.address.lower())
    expect(signing_site).to_contain_text(Buyer().address.lower())


def test_body_can_be_file(empty_form: Page) -> None:
    file = {"name": "body.json", "mimeType": "application/json", "buffer": BODY}
    empty_form.locator("#check-file").set_input_files([file])  # pyright: ignore[reportArgumentType]

    verify_receipt(
        empty_form, encode_header(signed_settle_response()), body=b"what is pasted does not count then"
    )

    expect(empty_form.locator("#check-title")).to_have_text("No check failed")
    expect(empty_form.locator("#check-list")).to_contain_text("the body is the one that was signed")


def test_any_change_fails_on_page(empty_form: Page) -> None:
    missed: list[str] = []
    for name, tampered in TAMPERED.items():
        verify_receipt(empty_form, json.dumps(tampered), body=BODY)
        expect(empty_form.locator("#check-verdict")).to_be_visible()
        if (
            "failed" not in read_states(empty_form)
            or "TypeError" in empty_form.locator("#check-list").inner_text()
        ):
            missed.append(name)

    assert missed == []


def test_other_body_fails_on_page(empty_form: Page) -> None:
    verify_receipt(empty_form, encode_header(signed_settle_response()), body=BODY + b" ")

    expect(empty_form.locator("#check-title")).to_have_text("The receipt is not valid")
    expect(empty_form.locator("#check-list")).to_contain_text("the body is not the one that was signed")


def test_receipt_signed_by_other_key_fails(empty_form: Page) -> None:
    verify_receipt(empty_form, encode_header(signed_settle_response(OTHER)), body=BODY)

    expect(empty_form.locator("#check-title")).to_have_text("The receipt is not valid")
    expect(empty_form.locator("#check-list")).to_contain_text(
        f"the receipt is not signed by {SIGNER.address}"
    )


def test_receipt_is_found_among_other_headers(empty_form: Page) -> None:
    verify_receipt(
        empty_form,
        f"HTTP/1.1 200 OK\npayment-response: {encode_header(signed_settle_response())}\nx-request-id: 1\n",
        signer="",
    )

    expect(empty_form.locator("#check-told")).to_contain_text(URL)
    expect(empty_form.locator("#check-told")).to_contain_text("Mon, 21 Sep 2026 14:13:20 GMT")
    assert read_states(empty_form) == ["ok", "ok", "ok", "not checked", "not checked"]


@pytest.mark.parametrize(
    ("receipt", "signer", "message"),
    [
        ("", None, "The input is neither a PAYMENT-RESPONSE header nor its JSON."),
        ("what?", None, "The input is neither a PAYMENT-RESPONSE header nor its JSON."),
        (
            encode_header(signed_settle_response()),
            "0x12",
            "The signer must be an address: 0x and 40 hex digits.",
        ),
    ],
    ids=["nothing", "text", "signer"],
)
def test_unverifiable_receipt_is_reported(
    empty_form: Page, receipt: str, signer: str | None, message: str
) -> None:
    verify_receipt(empty_form, receipt, signer=signer)

    expect(empty_form.locator("#check-problem")).to_have_text(message)
    expect(empty_form.locator("#check-problem")).to_be_focused()
    expect(empty_form.locator("#check-verdict")).to_be_hidden()


def test_untrusted_text_stays_text(empty_form: Page) -> None:
    verify_receipt(
        empty_form, encode_header(signed_settle_response(payer="<img src=x onerror=alert(1)>")), signer=""
    )

    expect(empty_form.locator("#check-told")).to_contain_text("<img src=x")
    assert empty_form.locator("main img").count() == 0


def test_page_may_not_connect(chromium: Browser, site: ServedSite) -> None:
    with chromium.new_context(base_url=site.url) as context:
        page = context.new_page()
        page.goto("/receipt")

        outcome = page.evaluate("fetch('/receipt.md').then(() => 'answered', () => 'refused')")

    assert outcome == "refused"


def test_scripts_of_page_are_small(site: ServedSite, chromium: Browser) -> None:
    loaded: list[str] = []
    with chromium.new_context(base_url=site.url) as context:
        page = context.new_page()
        page.on("request", lambda request: loaded.append(request.url))
        page.goto("/receipt", wait_until="networkidle")

    scripts = {url for url in loaded if url.endswith(".js")}
    assert len(scripts) == 3
    assert sum(len(httpx.get(url).content) for url in scripts) <= 18 * 1024


@pytest.fixture(scope="module", params=[SecretStr(KEY), None], ids=["signing", "not signing"])
def signing_site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Generator[SiteFixture]:
    """Website of an API that signs receipts, and of one that does not."""
    with open_site_fixture(tmp_path_factory.mktemp("signing_site"), receipt_key=request.param) as found:
        yield found


@pytest.mark.extended
def test_pages_name_signer_only_if_api_signs(signing_site: SiteFixture) -> None:
    signs = "receiptSigner" in signing_site.deployment.x402

    pages = {
        path: SIGNER.address in signing_site.text(path) for path in ("/receipt", "/receipt.md", "/trust.md")
    }

    assert pages == dict.fromkeys(pages, signs)
    assert ("does not sign receipts at the moment" in signing_site.text("/receipt.md")) is not signs
    assert (f"{signing_site.deployment.site}/receipt.md" in signing_site.text("/paying.md")) is signs


@pytest.mark.extended
def test_agents_find_command_and_types(signing_site: SiteFixture) -> None:
    text = signing_site.text("/receipt.md")

    assert "centgate receipt verify headers.txt --body body.json" in text
    assert "`Answer(bytes32 receipt,bytes32 bodySha256)`" in text
    assert f"{signing_site.deployment.site}/receipt.md" in signing_site.text("/llms.txt")
    assert xpath(signing_site.text("/receipt"), "//form[@id='check-form']")


@pytest.mark.parametrize("said", [{}, [], None, {"receiptSigner": "0x12"}, {"receiptSigner": ["0x"]}])
def test_signer_is_shown_only_if_it_is_address(said: Any) -> None:
    assert parse_signer(said) is None
