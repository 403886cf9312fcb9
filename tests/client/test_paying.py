"""Purchases on the development chain, and the money's state in each error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import httpx
import pytest
from buyer import PHISHING, QUESTION, ApiFactory
from facilitators import StubFacilitator, refuse_with, reply_with
from fake_upstreams import FakeUpstreams, configure_providers
from hostile import SLUG, Fault, HostileApi, PlannedResponse, ReceivedRequest
from shopping import OpenClient

from centgate.client.caps import Caps
from centgate.client.errors import (
    AddressRefused,
    BuyerError,
    InsufficientBalance,
    InvalidInput,
    NoData,
    NotFound,
    PaymentRefused,
    ServiceFailed,
    Unavailable,
    Unreachable,
    UnsupportedOptions,
)
from centgate.client.ledger import Ledger
from centgate.client.wallet import Wallet
from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.devchain.devnet import DevChain
from centgate.settings import ProviderSettings, Settings

pytestmark = pytest.mark.extended

CHECK = PHISHING.rpartition("/")[2]
CENT = 10_000
TOKEN = "0x" + "ab" * 20
PAIRS = f"/token-pairs/v1/base/{TOKEN}"
POOL = ("pool-snapshot", {"chain": "base", "tokenAddress": TOKEN})


def use_dexscreener(settings: Settings, upstreams: FakeUpstreams) -> Settings:
    """Return a deployment with DexScreener as the only source of pool-snapshot."""
    off = {name: ProviderSettings(enabled=False) for name in ("geckoterminal", "rpc_8453")}
    return configure_providers(settings, {**upstreams.provider_settings("dexscreener"), **off})


def get_url(client: httpx.Client) -> str:
    return str(client.base_url).rstrip("/")


@pytest.fixture
def read_spent(devchain: DevChain) -> Callable[[], int]:
    """Function that returns the base units which the first buyer has spent since."""
    before = devchain.token_balance(BUYER_ACCOUNTS[0].address)
    return lambda: before - devchain.token_balance(BUYER_ACCOUNTS[0].address)


def forward_reply(behind: httpx.Client) -> Callable[[ReceivedRequest], PlannedResponse]:
    """Return a reply that forwards to the real API."""

    def forward(request: ReceivedRequest) -> PlannedResponse:
        headers = {"Content-Type": "application/json"}
        headers |= {"PAYMENT-SIGNATURE": request.payment} if request.payment else {}
        response = behind.post(PHISHING, content=request.body, headers=headers)
        names = ("payment-required", "payment-response", "idempotent-replayed")
        told = {name: response.headers[name] for name in names if name in response.headers}
        return PlannedResponse(response.status_code, response.content, told)

    return forward


async def test_answer_costs_one_cent(
    shop: OpenClient, api: ApiFactory, chain_settings: Settings, read_spent: Callable[[], int]
) -> None:
    url = get_url(api(chain_settings))

    answer = await shop(url).call(CHECK, QUESTION)

    assert answer.receipt
    assert (answer.data["status"], answer.receipt.amount, read_spent()) == ("blocked", Decimal("0.01"), CENT)
    assert (answer.notes, answer.envelope["data"]) == ((), answer.data)


async def test_two_calls_are_two_payments(
    shop: OpenClient, api: ApiFactory, chain_settings: Settings, read_spent: Callable[[], int]
) -> None:
    client = shop(get_url(api(chain_settings)))

    first = await client.call(CHECK, QUESTION)
    second = await client.call(CHECK, QUESTION)

    assert first.request_id != second.request_id
    assert read_spent() == 2 * CENT


async def test_dry_run_costs_nothing(
    shop: OpenClient, api: ApiFactory, chain_settings: Settings, read_spent: Callable[[], int]
) -> None:
    quote = await shop(get_url(api(chain_settings)), wallet=None).terms(CHECK, QUESTION)

    assert (quote.usd, quote.objections, read_spent()) == (Decimal("0.01"), (), 0)


async def test_catalogue_can_be_read(shop: OpenClient, client: httpx.Client) -> None:
    buyer = shop(get_url(client), wallet=None)

    slugs = [listed.slug for listed in await buyer.services()]

    assert (await buyer.service(slugs[-1])).slug == slugs[-1]
    assert CHECK in slugs


async def test_invalid_input_is_reported_in_full(shop: OpenClient, client: httpx.Client) -> None:
    ledger = Ledger()

    with pytest.raises(InvalidInput) as error:
        await shop(get_url(client), ledger=ledger).call("token-risk", {"chain": 5, "tokenAddress": "x"})

    assert {issue.path for issue in error.value.issues} >= {"tokenAddress"}
    assert (error.value.money, ledger.records()) == ("not_moved", [])
    assert error.value.request_id


async def test_empty_object_is_not_paid(shop: OpenClient, client: httpx.Client) -> None:
    ledger = Ledger()
    buyer = shop(get_url(client), ledger=ledger)

    with pytest.raises(InvalidInput) as error:
        await buyer.call("token-risk", {})
    with pytest.raises(InvalidInput):
        await buyer.terms("token-risk", {})

    assert "tokenAddress" in {issue.path for issue in error.value.issues}
    assert "tokenAddress: " in str(error.value)
    assert (error.value.money, ledger.records()) == ("not_moved", [])
    assert error.value.request_id


@pytest.mark.parametrize(
    "body", [{"a": {1, 2}}, {"a": float("nan")}, {"a": "\ud800"}, ["a"], "a", None], ids=str
)
async def test_non_json_value_is_not_sent(shop: OpenClient, client: httpx.Client, body: object) -> None:
    with pytest.raises(InvalidInput) as error:
        await shop(get_url(client)).call(CHECK, body)  # pyright: ignore[reportArgumentType]

    assert error.value.issues[0].path == ""


async def test_options_over_one_cent_are_named(shop: OpenClient, client: httpx.Client) -> None:
    with pytest.raises(UnsupportedOptions) as error:
        await shop(get_url(client)).call("crawler-scrape", {"url": "https://a.example", "actions": []})

    assert error.value.options == ("actions",)


@pytest.mark.parametrize("slug", ["no-such", "../health", "", "a b", "x" * 200])
async def test_unknown_service_is_not_found(shop: OpenClient, client: httpx.Client, slug: str) -> None:
    with pytest.raises(NotFound, match="no service"):
        await shop(get_url(client)).call(slug, {})


async def test_empty_wallet_is_reported(shop: OpenClient, api: ApiFactory, chain_settings: Settings) -> None:
    poor = Wallet.from_key("0x" + "17" * 32)

    with pytest.raises(InsufficientBalance, match=f"{poor.address} holds less than") as error:
        await shop(get_url(api(chain_settings)), wallet=poor).call(CHECK, QUESTION)

    assert error.value.money == "reported_not_moved"


async def test_no_data_is_charged_answer(
    shop: OpenClient,
    api: ApiFactory,
    chain_settings: Settings,
    upstreams: FakeUpstreams,
    read_spent: Callable[[], int],
) -> None:
    upstreams.set_response("dexscreener", PAIRS, [])
    ledger = Ledger()

    with pytest.raises(NoData, match="it was charged") as error:
        await shop(get_url(api(use_dexscreener(chain_settings, upstreams))), ledger=ledger).call(*POOL)

    assert error.value.receipt
    assert (error.value.money, read_spent()) == ("moved", CENT)
    assert [record.event for record in ledger.records()] == ["signed", "delivered"]


async def test_payment_for_failed_service_buys_answer_later(
    shop: OpenClient,
    api: ApiFactory,
    chain_settings: Settings,
    upstreams: FakeUpstreams,
    read_spent: Callable[[], int],
) -> None:
    upstreams.set_response("dexscreener", PAIRS, "oops", status=500)
    buyer = shop(get_url(api(use_dexscreener(chain_settings, upstreams))))
    with pytest.raises(ServiceFailed, match="for free") as error:
        await buyer.call(*POOL)
    upstreams.set_response("dexscreener", PAIRS, [])

    with pytest.raises(NoData):
        await buyer.call(*POOL)

    failed = error.value
    assert (failed.money, failed.code, failed.provider, failed.retry) == (
        "moved",
        "provider_error",
        "dexscreener",
        "same_payment",
    )
    assert read_spent() == CENT


async def test_api_without_payments_is_unavailable(
    shop: OpenClient, api: ApiFactory, settings: Settings
) -> None:
    url = get_url(api(settings.model_copy(update={"pay_to": None})))

    with pytest.raises(Unavailable) as error:
        await shop(url).call(CHECK, QUESTION)

    assert error.value.money == "not_moved"


async def test_service_without_source_is_unavailable_and_free(
    shop: OpenClient, client: httpx.Client, facilitator: StubFacilitator
) -> None:
    with pytest.raises(Unavailable, match="another deployment may serve it") as error:
        await shop(get_url(client)).call("crawler-search", {"query": "x402"})

    assert (error.value.money, facilitator.settle_calls) == ("not_moved", 0)


async def test_refused_payment_is_not_charged_or_resent(
    shop: OpenClient, client: httpx.Client, facilitator: StubFacilitator
) -> None:
    facilitator.next = [refuse_with("invalid_exact_evm_transaction_simulation_failed")]
    buyer = shop(get_url(client))

    with pytest.raises(PaymentRefused, match=r"the API .* reports that no money moved") as error:
        await buyer.call(CHECK, QUESTION)
    answer = await buyer.call(CHECK, QUESTION)

    assert (error.value.money, error.value.reason) == (
        "reported_not_moved",
        "invalid_exact_evm_transaction_simulation_failed",
    )
    assert (answer.money, facilitator.settle_calls, len(facilitator.moved)) == ("moved", 2, 1)


async def test_unknown_outcome_is_resolved_by_same_payment(
    shop: OpenClient, client: httpx.Client, facilitator: StubFacilitator
) -> None:
    facilitator.next = [facilitator.move_then_reply(reply_with(200, "<html>"))]

    answer = await shop(get_url(client)).call(CHECK, QUESTION)

    assert (answer.money, sum(facilitator.moved.values())) == ("moved", 1)


async def test_stopped_api_is_unreachable(shop: OpenClient) -> None:
    with pytest.raises(Unreachable, match="cannot be reached") as error:
        await shop("http://127.0.0.1:9").call(CHECK, QUESTION)

    assert error.value.money == "not_moved"


async def test_public_host_needs_tls(shop: OpenClient) -> None:
    with pytest.raises(AddressRefused, match="public host without TLS"):
        shop("http://api.example.com")


async def test_caps_hold_over_all_calls(
    shop: OpenClient, client: httpx.Client, facilitator: StubFacilitator
) -> None:
    buyer = shop(get_url(client), caps=Caps(total=Decimal("0.02")))

    for _ in range(2):
        await buyer.call(CHECK, QUESTION)
    with pytest.raises(BuyerError, match=r"\$0.02 of \$0.02 is already committed"):
        await buyer.call(CHECK, QUESTION)

    assert sum(facilitator.moved.values()) == 2


@pytest.mark.parametrize("fault", ["no_response", "cut_headers", "cut_body", "reset"])
async def test_lost_answer_costs_one_transfer(
    shop: OpenClient,
    api: ApiFactory,
    chain_settings: Settings,
    hostile: HostileApi,
    read_spent: Callable[[], int],
    fault: Fault,
) -> None:
    behind = api(chain_settings)
    passed = forward_reply(behind)
    hostile.service_response = PlannedResponse(200, behind.get(PHISHING).json() | {"slug": SLUG})
    hostile.unpaid, hostile.paid = [passed], [lambda request: replace(passed(request), fault=fault), passed]

    answer = await shop(hostile.url).call(SLUG, QUESTION)

    assert answer.receipt
    assert (answer.receipt.replayed, read_spent()) == (True, CENT)
    assert (len(hostile.payments), len(set(hostile.payments))) == (2, 1)
