"""Website of a deployment whose services have different prices, and its refund policy."""

from __future__ import annotations

import re
from collections.abc import Generator
from decimal import Decimal

import pytest
from browser_session import serve_site
from playwright.sync_api import Browser, expect
from site_fixtures import SITE, SiteFixture, open_site_fixture

from centgate.catalog import all_services
from centgate.devchain.devnet import DevChain
from centgate.devchain.environment import devchain_settings
from centgate.server import run_in_thread
from centgate.settings import Settings
from centgate.website.validation import parse_redeem_hours

PRICES = {"token-risk": Decimal("0.05"), "phishing-check": Decimal("0.005")}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Generator[SiteFixture]:
    changes = {
        "price": Decimal("0.02"),
        "service_prices": PRICES,
        "redeem_hours": 36.0,
        "operator": "mailto:desk@shop.example",
        "site_url": SITE,
    }
    with open_site_fixture(tmp_path_factory.mktemp("prices"), **changes) as site:
        yield site


@pytest.mark.extended
def test_no_page_names_default_price(site: SiteFixture) -> None:
    for path, file in site.files.items():
        if b"\0" in file.content or "changelog" in path:
            continue
        text = file.content.decode()
        if path == "/llms-full.txt":
            text = text.partition("\n# Changelog\n")[0]
        assert not re.search(r"one cent|\$0\.01(?![0-9])", text), path


def test_prices_of_all_services_are_shown(site: SiteFixture) -> None:
    home, pricing = site.text("/index.md"), site.text("/pricing.md")

    assert "$0.005 to $0.05 a call" in home
    assert "# Facts for software agents at $0.005 to $0.05 a call" in home
    for service in all_services():
        price = f"${PRICES.get(service.slug, Decimal('0.02'))}"
        assert f"| [{service.title}]({SITE}/services/{service.slug}.md) | {price} |" in pricing
        assert f"{price} a call" in site.text(f"/services/{service.slug}.md")
        assert f"`POST {service.path} {price}`" in site.text("/llms.txt")
    assert "| $0.005 | 10 | $0.05 | $1.50 |" in pricing
    assert "| $0.05 | 100,000 | $5,000.00 | $150,000.00 |" in pricing
    assert "Some calls here cost more" in pricing


def test_form_has_terms_with_service_price(site: SiteFixture) -> None:
    assert '"5000"' in site.text("/services/phishing-check")
    assert '"50000"' in site.text("/services/token-risk")


def test_program_of_agent_allows_price_of_its_service(site: SiteFixture) -> None:
    program = site.text("/agents.md").partition("### A program that pays over HTTP")[2]

    assert 'TOOL = "phishing-check"\n' in program
    assert "PRICE = 5_000  # $0.005 in" in program


def test_guides_have_matching_terms_and_price(site: SiteFixture) -> None:
    assert "50000 of them are $0.05" in site.text("/paying.md")  # those of the first service
    assert "The terms of all services differ only in their amount." in site.text("/trust.md")


def test_samples_raise_caps_that_price_exceeds(site: SiteFixture) -> None:
    dear, cheap = site.text("/services/token-risk.md"), site.text("/services/phishing-check.md")

    assert "CENTGATE_CAP_PER_CALL=0.05 centgate call token-risk" in dear
    assert 'caps=Caps(per_call=Decimal("0.05"))' in dear
    assert 'caps: { perCall: "0.05" }' in dear
    assert "CENTGATE_CAP_PER_CALL=" not in cheap
    assert "caps" not in cheap
    assert '"CENTGATE_CAP_PER_CALL": "0.05"' in cheap  # of the MCP server, which calls all services


def test_refund_policy_is_that_of_deployment(site: SiteFixture) -> None:
    pricing = site.text("/pricing.md")

    assert "## Refunds" in pricing
    assert "the same payment with the same request gets it, for 36 hours" in pricing
    assert "<mailto:desk@shop.example>" in pricing
    assert 'id="refunds"' in site.text("/pricing")
    assert "36 hours" in site.text("/paying.md")
    assert "unless the operator has set another period" not in site.text("/trust.md")


def test_preview_image_with_default_price_is_not_offered(site: SiteFixture) -> None:
    assert "og:image" not in site.text("/")


@pytest.mark.parametrize("terms", [None, {}, {"redeemableHours": True}, {"redeemableHours": "24"}, [], 24])
def test_malformed_terms_are_ignored(terms: object) -> None:
    assert parse_redeem_hours({"x-delivery-terms": terms}) is None
    assert parse_redeem_hours({"x-delivery-terms": {"redeemableHours": float("inf")}}) is None


def test_calculator_uses_price_of_chosen_service(
    chromium: Browser, devchain: DevChain, tmp_path_factory: pytest.TempPathFactory
) -> None:
    settings = devchain_settings(devchain, Settings(port=0), tmp_path_factory.mktemp("shop"))
    settings = settings.model_copy(update={"service_prices": PRICES})
    with run_in_thread(settings) as api, serve_site(api) as site:
        page = chromium.new_page(base_url=site.url)
        page.goto("/pricing")
        page.get_by_label("Service", exact=True).select_option(label="Phishing check: $0.005")

        expect(page.locator("#cost")).to_have_text("1,000 calls a day: $5.00 a day, $150.00 a month.")
        page.close()
