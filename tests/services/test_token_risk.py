"""token-risk through the paid API: sources that answer, fail, or contradict each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from buyer import ApiFactory
from fake_upstreams import (
    FAULTS,
    FakeUpstreams,
    Fault,
    configure_providers,
    load_body,
    recorded_case,
    send_paid,
)
from jsonschema import Draft202012Validator
from pydantic import SecretStr

from centgate.chains import CHAINS, Chain
from centgate.providers import dexscreener, geckoterminal
from centgate.providers.goplus import GoPlus
from centgate.services.token_risk import token_risk
from centgate.settings import ProviderSettings, Settings

PATH = "/services/token-risk"
NAMES = ("goplus", "honeypotis", "dexscreener", "geckoterminal")
NODES_OFF = {f"rpc_{chain.id}": ProviderSettings(enabled=False) for chain in CHAINS}
"""The chain has separate tests."""
TOKEN, OTHER = "0x" + "ab" * 20, "0x" + "cd" * 20
ADDRESS = "0x" + "AB" * 20
ETHEREUM = CHAINS[0]
HONEST = dict.fromkeys(
    (
        *("is_proxy", "is_mintable", "can_take_back_ownership", "owner_change_balance", "hidden_owner"),
        *("selfdestruct", "external_call", "cannot_buy", "cannot_sell_all", "slippage_modifiable"),
        *("is_honeypot", "transfer_pausable", "is_blacklisted", "is_whitelisted", "is_anti_whale"),
        *("anti_whale_modifiable", "trading_cooldown", "personal_slippage_modifiable"),
        *("honeypot_with_same_creator", "buy_tax", "sell_tax", "owner_percent", "creator_percent"),
    ),
    "0",
) | {"is_open_source": "1", "is_in_dex": "1", "owner_address": "", "holder_count": "5000"}

SOME_FAULTS: tuple[Fault, ...] = ("timeout", "500", "429", "reset", "wrong types")
"""Each fault is tested with each provider separately."""

Body = dict[str, Any]
OpenFailing = Callable[[str], httpx.Client]


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GoPlus, "RETRY_PAUSE", 0.0)


@pytest.fixture
def client(api: ApiFactory, settings: Settings, upstreams: FakeUpstreams) -> httpx.Client:
    """An API with fake upstreams of its four sources."""
    return api(configure_providers(settings, NODES_OFF | upstreams.provider_settings(*NAMES)))


@pytest.fixture
def fail_source(api: ApiFactory, settings: Settings, upstreams: FakeUpstreams, fault: Fault) -> OpenFailing:
    """Function that opens an API one of whose sources fails: `fail_source("goplus")`."""

    def open_failing(name: str) -> httpx.Client:
        upstreams.faults[name] = fault
        return api(configure_providers(settings, NODES_OFF | upstreams.provider_settings(*NAMES)))

    return open_failing


class Market:
    """Responses of the four sources about the token; by default all are favourable."""

    def __init__(self, upstreams: FakeUpstreams, chain: Chain = ETHEREUM) -> None:
        self._upstreams, self.chain = upstreams, chain
        self.goplus()
        self.honeypotis()
        self.dexscreener()
        self.geckoterminal()

    def goplus(self, **fields: Any) -> None:
        self.set_goplus_body({"code": 1, "message": "OK", "result": {TOKEN: HONEST | fields}})

    def set_goplus_body(self, body: Any) -> None:
        self._upstreams.set_response("goplus", f"/api/v1/token_security/{self.chain.id}", body)

    def honeypotis(self, *, honeypot: bool = False, **more: Any) -> None:
        body: Body = {
            "token": {"address": ADDRESS},
            "summary": {"risk": "low", "riskLevel": 1, "flags": []},
            "simulationSuccess": True,
            "honeypotResult": {"isHoneypot": honeypot},
            "simulationResult": {"buyTax": 0, "sellTax": 100 if honeypot else 0, "transferTax": 0},
            "contractCode": {"openSource": True, "isProxy": False},
            "pair": {"liquidity": 500_000},
            "chain": {"id": str(self.chain.id)},
        }
        self._upstreams.set_response("honeypotis", "/v2/IsHoneypot", body | more)

    def remove_simulation(self) -> None:
        body = {"code": 404, "error": "No pairs found"}
        self._upstreams.set_response("honeypotis", "/v2/IsHoneypot", body, status=404)

    def dexscreener(self, *usd: float) -> None:
        name = dexscreener.CHAIN_NAMES[self.chain.id]
        rows = [self._pair(name, number, each) for number, each in enumerate(usd or (400_000, 100_000))]
        self._upstreams.set_response("dexscreener", f"/token-pairs/v1/{name}/{TOKEN}", rows)

    def remove_pairs(self) -> None:
        name = dexscreener.CHAIN_NAMES[self.chain.id]
        self._upstreams.set_response("dexscreener", f"/token-pairs/v1/{name}/{TOKEN}", [])

    @staticmethod
    def _pair(chain: str, number: int, usd: float) -> Body:
        return {
            "chainId": chain,
            "dexId": "uniswap",
            "pairAddress": f"0x{number:040x}",
            "baseToken": {"address": ADDRESS, "symbol": "AB"},
            "quoteToken": {"address": OTHER, "symbol": "USDC"},
            "priceUsd": "1",
            "priceNative": "1",
            "liquidity": {"usd": usd, "base": usd / 2, "quote": usd / 2},
            "pairCreatedAt": 1_600_000_000_000,
        }

    @property
    def _pools(self) -> str:
        return f"/api/v2/networks/{geckoterminal.CHAIN_NAMES[self.chain.id]}/tokens/{TOKEN}/pools"

    def geckoterminal(self, usd: str = "300000.5") -> None:
        network = geckoterminal.CHAIN_NAMES[self.chain.id]
        tokens = {"base_token": TOKEN, "quote_token": OTHER}
        row = {
            "id": f"{network}_{OTHER}",
            "type": "pool",
            "attributes": {
                "address": OTHER,
                "reserve_in_usd": usd,
                "base_token_price_usd": "1",
                "quote_token_price_usd": "1",
                "pool_created_at": "2023-01-01T00:00:00Z",
            },
            "relationships": {
                side: {"data": {"id": f"{network}_{address}"}} for side, address in tokens.items()
            }
            | {"dex": {"data": {"id": "uniswap"}}},
        }
        self._upstreams.set_response("geckoterminal", self._pools, {"data": [row]})

    def remove_pools(self) -> None:
        body = {"errors": [{"status": "404", "title": "Not Found"}]}
        self._upstreams.set_response("geckoterminal", self._pools, body, status=404)


def send_request(client: httpx.Client, **named: Any) -> httpx.Response:
    return send_paid(client, PATH, {"tokenAddress": ADDRESS, **(named or {"chain": "ethereum"})})


def buy_report(client: httpx.Client, **named: Any) -> Body:
    """Buy an answer, validate its data by the published schema, and return its envelope."""
    response = send_request(client, **named)
    assert response.status_code == 200, response.text
    Draft202012Validator(token_risk.output_schema).validate(  # pyright: ignore[reportUnknownMemberType]
        response.json()["data"]
    )
    return response.json()


def provider_statuses(envelope: Body) -> dict[str, str]:
    return {each["name"]: each["status"] for each in envelope["providers"]}


def flag_severities(envelope: Body) -> dict[str, str]:
    return {flag["id"]: flag["severity"] for flag in envelope["data"]["riskFlags"]}


def test_honest_token_is_low_without_degradation(client: httpx.Client, upstreams: FakeUpstreams):
    Market(upstreams)

    envelope = buy_report(client)
    data = envelope["data"]

    assert (data["tokenAddress"], data["riskLevel"]) == (TOKEN, "low")
    assert envelope["warnings"] == []
    unused = ("geckoterminal", "rpc", "bytecode", "sourcify", "blockscout")
    assert provider_statuses(envelope) == (
        dict.fromkeys(NAMES, "ok") | dict.fromkeys(unused, "skipped") | {"etherscan": "unconfigured"}
    )
    assert flag_severities(envelope) == {}
    assert data["honeypot"]["isHoneypot"] is False
    assert data["honeypot"]["sourcesAgree"] is True
    assert (data["liquidity"]["totalUsd"], data["liquidity"]["source"]) == (500_000, "dexscreener")
    assert data["liquidity"]["topPair"]["createdAt"] == "2020-09-13T12:26:40Z"
    assert data["taxes"]["sell"]["percent"] == 0
    assert data["ownership"]["state"] == "none"


@pytest.mark.extended
@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain.slug)
def test_chains_are_accepted_by_slug_and_id(client: httpx.Client, upstreams: FakeUpstreams, chain: Chain):
    Market(upstreams, chain)
    simulated = chain.id in (1, 8453, 56)

    by_slug, by_id = buy_report(client, chain=chain.slug), buy_report(client, chainId=chain.id)

    assert by_slug["data"] == by_id["data"]
    assert by_id["cache"]["hit"] is True
    assert by_slug["data"]["riskLevel"] == "low"
    assert by_slug["data"]["honeypot"]["simulated"] is simulated
    assert bool(upstreams.requests_of("honeypotis")) is simulated


def test_chain_without_simulation_names_missing_checks(client: httpx.Client, upstreams: FakeUpstreams):
    Market(upstreams, CHAINS[3])

    envelope = buy_report(client, chain="polygon")
    (warning,) = [each for each in envelope["data"]["warnings"] if "does not cover this chain" in each]

    assert "honeypot.is simulated no trade" in warning
    assert "whether it can be sold" in warning
    assert envelope["warnings"] == []
    assert provider_statuses(envelope)["honeypotis"] == "skipped"
    assert envelope["data"]["honeypot"]["notSimulated"] == "chain_not_covered"


@pytest.mark.extended
@pytest.mark.parametrize("fault", FAULTS)
def test_flags_are_required(fail_source: OpenFailing, upstreams: FakeUpstreams, fault: Fault):
    Market(upstreams)

    response = send_request(fail_source("goplus"))

    assert (response.status_code, response.json()["error"]["code"]) == FAULTS[fault]
    assert response.json()["error"]["provider"] == "goplus"


@pytest.mark.extended
def test_rate_limit_with_status_200_is_recognised(client: httpx.Client, upstreams: FakeUpstreams):
    Market(upstreams).set_goplus_body({"code": 4029, "message": "too many requests"})

    response = send_request(client)

    assert (response.status_code, response.json()["error"]["code"]) == (429, "provider_rate_limited")


@pytest.mark.extended
@pytest.mark.parametrize("fault", SOME_FAULTS)
def test_flags_decide_without_simulation(fail_source: OpenFailing, upstreams: FakeUpstreams):
    Market(upstreams)

    envelope = buy_report(fail_source("honeypotis"))

    assert provider_statuses(envelope)["honeypotis"] in ("error", "timeout", "rate_limited")
    assert any("honeypot.is" in warning for warning in envelope["warnings"])
    assert any("whether it can be sold" in warning for warning in envelope["data"]["warnings"])
    assert set(envelope["warnings"]) <= set(envelope["data"]["warnings"])
    assert envelope["data"]["honeypot"]["notSimulated"] == "source_unavailable"
    assert envelope["data"]["riskLevel"] == "medium"


@pytest.mark.extended
@pytest.mark.parametrize("fault", SOME_FAULTS)
def test_liquidity_comes_from_next_index(fail_source: OpenFailing, upstreams: FakeUpstreams):
    Market(upstreams)

    envelope = buy_report(fail_source("dexscreener"))

    assert envelope["data"]["liquidity"]["source"] == "geckoterminal"
    assert envelope["data"]["liquidity"]["totalUsd"] == 300_000.5
    assert any("from GeckoTerminal" in warning for warning in envelope["warnings"])
    assert envelope["data"]["riskLevel"] == "low"


def test_next_index_is_queried_if_first_has_no_data(client: httpx.Client, upstreams: FakeUpstreams):
    Market(upstreams).remove_pairs()

    envelope = buy_report(client)

    assert envelope["data"]["liquidity"]["source"] == "geckoterminal"
    assert provider_statuses(envelope)["dexscreener"] == "no_data"
    assert envelope["warnings"] == []


def test_flags_give_liquidity_as_last_resort(client: httpx.Client, upstreams: FakeUpstreams):
    pools = [
        {"name": "UniswapV2", "liquidity": "20000.5", "pair": OTHER},
        {"name": "UniswapV3", "liquidity": "1000", "pair": "0x" + "ef" * 20},
    ]
    Market(upstreams).goplus(dex=pools)
    upstreams.faults |= {"dexscreener": "500", "geckoterminal": "500"}

    envelope = buy_report(client)
    liquidity = envelope["data"]["liquidity"]

    assert (liquidity["source"], liquidity["totalUsd"], liquidity["pairCount"]) == ("goplus", 21000.5, 2)
    assert liquidity["topPair"]["pairAddress"] == OTHER
    assert any("GoPlus Security lists" in warning for warning in envelope["warnings"])


def test_unknown_liquidity_is_reported(client: httpx.Client, upstreams: FakeUpstreams):
    Market(upstreams)
    upstreams.faults |= {"dexscreener": "500", "geckoterminal": "500"}

    envelope = buy_report(client)

    assert envelope["data"]["liquidity"]["totalUsd"] is None
    assert envelope["data"]["liquidity"]["source"] is None
    assert any(each.startswith("not checked, as no source") for each in envelope["data"]["warnings"])
    assert "no_pair" not in flag_severities(envelope)


def test_token_without_pair_cannot_be_sold(client: httpx.Client, upstreams: FakeUpstreams):
    market = Market(upstreams)
    market.goplus(is_in_dex="0")
    market.remove_simulation()
    market.remove_pairs()
    market.remove_pools()

    envelope = buy_report(client)

    assert flag_severities(envelope)["no_pair"] == "high"
    assert envelope["data"]["riskLevel"] == "high"
    assert envelope["data"]["liquidity"]["pairCount"] == 0
    assert envelope["data"]["honeypot"]["notSimulated"] == "no_pair"


def test_answer_fails_if_all_sources_fail(client: httpx.Client, upstreams: FakeUpstreams):
    upstreams.faults |= dict.fromkeys(NAMES, "500")

    response = send_request(client)

    assert (response.status_code, response.json()["error"]["provider"]) == (502, "goplus")
    assert response.json()["error"]["details"]["payment"]["retry"] == "same_payment"


NOTHING: Body = {"code": 1, "message": "OK", "result": {}}


def test_token_without_flags_is_assessed_by_simulation(client: httpx.Client, upstreams: FakeUpstreams):
    market = Market(upstreams)
    market.set_goplus_body(NOTHING)
    market.honeypotis(honeypot=True)

    envelope = buy_report(client)

    assert envelope["data"]["riskLevel"] == "critical"
    assert provider_statuses(envelope)["goplus"] == "no_data"
    assert any("not checked by GoPlus Security" in warning for warning in envelope["data"]["warnings"])


@pytest.mark.extended
@pytest.mark.parametrize("failing", [True, False])
def test_token_with_only_liquidity_is_unknown(client: httpx.Client, upstreams: FakeUpstreams, failing: Any):
    market = Market(upstreams)
    market.set_goplus_body(NOTHING)
    market.remove_simulation()
    if failing:
        upstreams.faults["honeypotis"] = "503"

    data = buy_report(client)["data"]

    assert data["riskLevel"] == "unknown"
    assert data["honeypot"]["isHoneypot"] is None
    assert data["ownership"]["state"] == "unknown"


def test_unknown_token_is_no_data(client: httpx.Client, upstreams: FakeUpstreams):
    market = Market(upstreams)
    market.set_goplus_body(NOTHING)
    market.remove_simulation()
    market.remove_pairs()
    market.remove_pools()

    response = send_request(client)

    assert (response.status_code, response.json()["error"]["code"]) == (404, "no_data")


@pytest.mark.parametrize("failing", ["honeypotis", "geckoterminal"])
def test_no_data_beside_failure_is_retryable(client: httpx.Client, upstreams: FakeUpstreams, failing: str):
    market = Market(upstreams)
    market.set_goplus_body(NOTHING)
    market.remove_simulation()
    market.remove_pairs()
    market.remove_pools()
    upstreams.faults[failing] = "503"

    response = send_request(client)

    assert (response.status_code, response.json()["error"]["provider"]) == (502, failing)


@pytest.mark.extended
def test_disabled_simulation_is_reported(api: ApiFactory, settings: Settings, upstreams: FakeUpstreams):
    Market(upstreams)
    off = upstreams.provider_settings(*NAMES) | upstreams.provider_settings("honeypotis", enabled=False)

    envelope = buy_report(api(configure_providers(settings, NODES_OFF | off)))

    assert provider_statuses(envelope)["honeypotis"] == "unconfigured"
    assert any("honeypot.is simulated no trade" in warning for warning in envelope["data"]["warnings"])
    assert upstreams.requests_of("honeypotis") == []


def test_disabled_source_is_no_failure_of_unknown_token(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
):
    market = Market(upstreams)
    market.set_goplus_body(NOTHING)
    market.remove_pairs()
    market.remove_pools()
    off = upstreams.provider_settings(*NAMES) | upstreams.provider_settings("honeypotis", enabled=False)

    assert send_request(api(configure_providers(settings, NODES_OFF | off))).status_code == 404


def test_nothing_is_charged_without_configured_flags(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
):
    off = upstreams.provider_settings(*NAMES) | upstreams.provider_settings("goplus", enabled=False)

    response = send_request(api(configure_providers(settings, NODES_OFF | off)))

    assert (response.status_code, response.json()["error"]["code"]) == (503, "provider_unconfigured")
    assert response.json()["error"]["details"]["payment"]["charged"] is False


def test_flags_do_not_cover_development_chain(client: httpx.Client):
    response = send_request(client, chainId=84532)

    assert (response.status_code, response.json()["error"]["code"]) == (503, "provider_unconfigured")


def test_key_is_sent_and_never_returned(api: ApiFactory, settings: Settings, upstreams: FakeUpstreams):
    Market(upstreams)
    upstreams.faults["goplus"] = "403 page"
    keyed = upstreams.provider_settings(*NAMES) | upstreams.provider_settings(
        "goplus", key=SecretStr("s3cret")
    )

    response = send_request(api(configure_providers(settings, NODES_OFF | keyed)))

    assert upstreams.requests_of("goplus")[0].headers["authorization"] == "s3cret"
    assert "s3cret" not in response.text


REFUSED: list[tuple[Body, str]] = [
    ({"chain": "ethereum"}, "tokenAddress"),
    ({"tokenAddress": TOKEN}, ""),
    ({"chain": "Solana", "tokenAddress": TOKEN}, "chain"),
    ({"chainId": 5, "tokenAddress": TOKEN}, "chainId"),
    *(
        ({"chain": "base", "tokenAddress": address}, "tokenAddress")
        for address in ("0x12", "0x" + "0" * 40, "0x" + "Ee" * 20)
    ),
]


def test_invalid_body_is_refused_before_payment(client: httpx.Client, upstreams: FakeUpstreams):
    for body, path in REFUSED:
        response = client.post(PATH, json=body)

        assert (response.status_code, response.json()["error"]["code"]) == (400, "validation_error"), body
        assert path in [issue["path"] for issue in response.json()["error"]["details"]["issues"]], body
    assert upstreams.requests == []


def test_address_similar_to_invalid_one_is_accepted(client: httpx.Client):
    polygon_coin = "0x0000000000000000000000000000000000001010"
    for address in (polygon_coin, "0x" + "0" * 39 + "1", "0x" + "0" * 36 + "FfFf", "0x" + "e" * 39 + "f"):
        assert client.post(PATH, json={"chain": "polygon", "tokenAddress": address}).status_code == 402


@pytest.mark.extended
def test_started_analysis_is_retryable(client: httpx.Client, upstreams: FakeUpstreams):
    market = Market(upstreams)
    market.set_goplus_body({"code": 2, "message": "pending sync", "result": {}})
    market.remove_simulation()
    market.remove_pairs()
    market.remove_pools()

    response = send_request(client)

    assert (response.status_code, response.json()["error"]["code"]) == (502, "provider_error")
    assert response.json()["error"]["provider"] == "goplus"


def test_simulation_answers_beside_started_analysis(client: httpx.Client, upstreams: FakeUpstreams):
    Market(upstreams).set_goplus_body({"code": 2, "message": "pending sync", "result": {}})

    envelope = buy_report(client)

    assert envelope["data"]["riskLevel"] == "medium"
    assert any("not finished its analysis" in each for each in envelope["warnings"])
    assert any("not checked by GoPlus Security" in each for each in envelope["data"]["warnings"])


@pytest.mark.extended
def test_failed_index_after_empty_one_is_reported(client: httpx.Client, upstreams: FakeUpstreams):
    Market(upstreams).remove_pairs()
    upstreams.faults["geckoterminal"] = "500"

    data = buy_report(client)["data"]

    (unmade,) = [each for each in data["warnings"] if each.startswith("not checked, as no source")]
    assert "liquidity, how long it has been traded" in unmade


def test_missing_other_side_is_null(client: httpx.Client, upstreams: FakeUpstreams):
    Market(upstreams).remove_pairs()

    data = buy_report(client)["data"]

    assert data["liquidity"]["otherSideUsd"] is None
    assert any("one-sided" in each for each in data["warnings"])


def test_empty_pair_of_simulation_is_ignored_beside_deep_ones(client: httpx.Client, upstreams: FakeUpstreams):
    Market(upstreams).honeypotis(pair={"liquidity": 0})

    envelope = buy_report(client)

    assert "no_liquidity" not in flag_severities(envelope)
    assert envelope["data"]["riskLevel"] == "medium"


def test_untrusted_text_is_bounded(client: httpx.Client, upstreams: FakeUpstreams):
    market = Market(upstreams)
    long = "0x" + "a" * 500_000
    rows = [{"address": long, "percent": "0.9"}]
    market.goplus(holders=rows, lp_holders=rows, dex=[{"pair": long, "liquidity": "9"}], owner_address=long)
    market.honeypotis(flags=[f"flag{number}" for number in range(40_000)])

    response = send_request(client)

    assert response.status_code == 200
    assert len(response.content) < 20_000


@pytest.mark.extended
def test_taxes_of_both_sources_are_in_percent(client: httpx.Client, upstreams: FakeUpstreams):
    market = Market(upstreams)
    market.goplus(sell_tax="0.05")
    market.honeypotis(simulationResult={"buyTax": 0, "sellTax": 12.5, "transferTax": 0})

    envelope = buy_report(client)

    assert envelope["data"]["taxes"]["sell"] == {
        "percent": 12.5,
        "readings": [
            {"source": "goplus", "percent": 5, "raw": "0.05"},
            {"source": "honeypotis", "percent": 12.5, "raw": "12.5"},
        ],
    }
    assert flag_severities(envelope)["sell_tax_high"] == "high"
    assert any("sources disagree on the sell tax" in each for each in envelope["data"]["warnings"])


def test_invalid_numbers_are_null(client: httpx.Client, upstreams: FakeUpstreams):
    market = Market(upstreams)
    market.goplus(sell_tax="NaN", owner_percent="1e400", holder_count="inf")
    market.honeypotis(simulationResult={"sellTax": "Infinity"}, pair={"liquidity": "NaN"})

    data = buy_report(client)["data"]

    assert data["taxes"]["sell"]["percent"] is None
    assert (data["ownership"]["ownerPercent"], data["ownership"]["holderCount"]) == (None, None)
    assert any("balance forged or unreadable" in each for each in data["warnings"])


@pytest.mark.extended
def test_sources_that_disagree_about_sale_are_named(client: httpx.Client, upstreams: FakeUpstreams):
    Market(upstreams).goplus(is_honeypot="1")

    envelope = buy_report(client)

    assert flag_severities(envelope)["honeypot_disputed"] == "high"
    assert envelope["data"]["honeypot"]["sourcesAgree"] is False
    assert any("sources disagree" in each for each in envelope["data"]["warnings"])
    assert [(each["source"], each["value"]) for each in envelope["data"]["honeypot"]["evidence"]] == [
        ("goplus", "1"),
        ("honeypotis", "false"),
    ]


def test_known_token_with_issuer_is_low(client: httpx.Client, upstreams: FakeUpstreams):
    Market(upstreams).goplus(
        owner_address=OTHER,
        trust_list="1",
        **dict.fromkeys(("is_proxy", "is_mintable", "is_blacklisted", "transfer_pausable"), "1"),
    )

    envelope = buy_report(client)

    assert envelope["data"]["riskLevel"] == "low"
    assert flag_severities(envelope)["owner_can_pause"] == "low"
    assert envelope["data"]["ownership"]["trusted"] is True
    assert (envelope["data"]["ownership"]["state"], envelope["data"]["ownership"]["canPause"]) == (
        "held",
        True,
    )


# holders, locks and the chain in a response


def test_failing_holders_are_counted_without_summary(client: httpx.Client, upstreams: FakeUpstreams):
    analysis = {"holders": "1000", "successful": "100", "failed": "900", "siphoned": "0", "averageTax": 1}
    Market(upstreams).honeypotis(summary=None, holderAnalysis=analysis)

    data = buy_report(client)["data"]

    assert (data["riskLevel"], data["riskFlags"][0]["id"]) == ("critical", "holders_cannot_sell")
    (sales,) = data["honeypot"]["holderSales"]
    assert (sales["source"], sales["tested"], sales["failed"]) == ("honeypotis", 1000, 900)
    assert not any("gives no value: failed sales" in each for each in data["warnings"])


def test_locks_have_locker_share_and_end(client: httpx.Client, upstreams: FakeUpstreams):
    locker = {"address": "0x663a5c229c09b049e36dcc11a9b0d4a8eb9db214", "is_locked": 1, "is_contract": 1}
    ends = [
        {"amount": "60", "end_time": "2099-01-01T00:00:00+00:00"},
        {"amount": "20", "end_time": "2020-01-01T00:00:00+00:00"},
    ]
    rows = [
        locker | {"percent": "0.8", "balance": "80", "locked_detail": ends},
        {"address": "0x" + "0" * 40, "percent": "0.1", "is_locked": 1, "is_contract": 0},
        {"address": OTHER, "percent": "0.1", "is_locked": 0, "is_contract": 0},
    ]
    Market(upstreams).goplus(lp_holders=rows)

    liquidity = buy_report(client)["data"]["liquidity"]

    assert (liquidity["lockedPercent"], liquidity["unlockedPercent"]) == (70, 30)
    assert [
        (each["locker"], each["percent"], each["unlocksAt"], each["burned"]) for each in liquidity["locks"]
    ] == [
        ("UNCX", 60, "2099-01-01T00:00:00Z", False),
        (None, 10, None, True),
    ]
    assert [(each["percent"], each["lockEndedAt"]) for each in liquidity["unlockedHolders"]] == [
        (20, "2020-01-01T00:00:00Z"),
        (10, None),
    ]


def test_withdrawn_locks_take_nothing_from_one_in_force(client: httpx.Client, upstreams: FakeUpstreams):
    locks = [
        {"amount": "700", "end_time": "2020-01-01T00:00:00+00:00"},
        {"amount": "60", "end_time": "2099-01-01T00:00:00+00:00"},
    ]
    locker = {"address": "0x663a5c229c09b049e36dcc11a9b0d4a8eb9db214", "is_locked": 1, "is_contract": 1}
    rows = [locker | {"percent": "0.8", "balance": "80", "locked_detail": locks}]
    Market(upstreams).goplus(lp_holders=rows)

    liquidity = buy_report(client)["data"]["liquidity"]

    assert (liquidity["lockedPercent"], liquidity["unlockedPercent"]) == (60, 20)
    assert [(each["percent"], each["lockEndedAt"]) for each in liquidity["unlockedHolders"]] == [
        (20, "2020-01-01T00:00:00Z")
    ]


def test_untrusted_reasons_are_kept_separate(client: httpx.Client, upstreams: FakeUpstreams):
    market = Market(upstreams)
    text = "execution reverted: TransferHelper: TRANSFER_FROM_FAILED, claim at evil.example"
    market.honeypotis(honeypotResult={"isHoneypot": True, "honeypotReason": text})
    market.goplus(other_potential_risks="visit evil.example")

    data = buy_report(client)["data"]

    assert data["honeypot"]["reason"] == "the token's transfer fails"
    assert (data["honeypot"]["sourceReason"], data["sourceNote"]) == (text, "visit evil.example")
    assert "evil" not in " ".join([*data["warnings"], *(each["explanation"] for each in data["riskFlags"])])


def test_both_notes_of_source_are_given(client: httpx.Client, upstreams: FakeUpstreams):
    Market(upstreams).goplus(note="The owner may pause.", other_potential_risks="Fees can rise.")

    data = buy_report(client)["data"]

    assert data["sourceNote"] == "The owner may pause. | Fees can rise."


def test_powers_of_burned_owner_are_false_but_in_evidence(client: httpx.Client, upstreams: FakeUpstreams):
    others = ("owner_change_balance", "selfdestruct")
    powers = dict.fromkeys(("is_mintable", "transfer_pausable", "slippage_modifiable", *others), "1")
    Market(upstreams).goplus(**powers, owner_address="0x" + "0" * 40)

    data = buy_report(client)["data"]

    ownership = data["ownership"]
    assert (ownership["canMint"], ownership["canPause"], data["taxes"]["modifiable"]) == (False, False, False)
    assert (ownership["canChangeBalances"], ownership["canSelfDestruct"]) == (False, True)
    (flag,) = [each for each in data["riskFlags"] if each["id"] == "owner_can_mint"]
    assert (flag["severity"], flag["evidence"][0]["value"]) == ("info", "1")


def test_pair_of_simulation_precedes_none(client: httpx.Client, upstreams: FakeUpstreams):
    market = Market(upstreams)
    market.goplus(is_in_dex=None)
    market.honeypotis(pairAddress=OTHER)
    market.remove_pairs()
    market.remove_pools()

    data = buy_report(client)["data"]

    assert (data["riskLevel"], data["honeypot"]["canSell"]) == ("low", True)
    assert (data["liquidity"]["source"], data["liquidity"]["totalUsd"]) == ("honeypotis", 500_000)
    assert any(each.startswith("sources disagree: honeypot.is shows $500,000") for each in data["warnings"])


def test_total_tax_does_not_disprove_honeypot(client: httpx.Client, upstreams: FakeUpstreams):
    market = Market(upstreams)
    market.goplus(sell_tax="1")
    market.remove_simulation()

    honeypot = buy_report(client)["data"]["honeypot"]

    assert (honeypot["isHoneypot"], honeypot["canSell"]) == (None, False)


@pytest.mark.extended
@pytest.mark.parametrize(("failed", "is_known"), [(400, True), (500, False), (1000, False)])
def test_failing_holders_outweigh_one_sale(
    client: httpx.Client, upstreams: FakeUpstreams, *, failed: int, is_known: bool
):
    analysis = {"holders": "1000", "successful": str(1000 - failed), "failed": str(failed)}
    Market(upstreams).honeypotis(holderAnalysis=analysis)

    data = buy_report(client)["data"]

    told = (False, True) if is_known else (None, None)
    assert (data["honeypot"]["isHoneypot"], data["honeypot"]["canSell"]) == told
    warned = [each for each in data["warnings"] if each.startswith("a simulated sale went through, but")]
    assert bool(warned) is not is_known
    assert all(f"but {failed} of 1000 holders that honeypot.is tried" in each for each in warned)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("row", "is_named"),
    [
        ({"address": OTHER, "is_contract": 1}, True),
        ({"address": OTHER, "locked_detail": [{"amount": "5", "end_time": "2090-01-01T00:00:00Z"}]}, False),
        ({"address": "0x" + "0" * 40}, False),
    ],
    ids=["no date", "date", "burned"],
)
def test_locks_without_date_are_named(
    client: httpx.Client, upstreams: FakeUpstreams, *, row: Body, is_named: bool
):
    Market(upstreams).goplus(lp_holders=[{"percent": "1", "is_locked": 1, **row}])

    data = buy_report(client)["data"]

    assert data["liquidity"]["lockedPercent"] == 100
    assert any("no source tells until when" in each for each in data["warnings"]) is is_named


def test_response_of_other_chain_is_refused(client: httpx.Client, upstreams: FakeUpstreams):
    Market(upstreams).honeypotis(chain={"id": "8453"})

    envelope = buy_report(client)

    assert provider_statuses(envelope)["honeypotis"] == "error"
    assert any("another chain" in each for each in envelope["warnings"])


def test_score_and_token_name_are_returned(client: httpx.Client, upstreams: FakeUpstreams):
    Market(upstreams).goplus(
        is_proxy="1", token_name="Some\u202eName", token_symbol="SOME", total_supply="12.5"
    )

    data = buy_report(client)["data"]

    assert data["riskScore"]["score"] == sum(part["points"] for part in data["riskScore"]["parts"])
    assert (data["token"]["name"], data["token"]["symbol"], data["token"]["supply"]) == (
        "SomeName",
        "SOME",
        12.5,
    )
    assert data["token"]["source"] == "goplus"


# recordings


@pytest.fixture
def replay_client(api: ApiFactory, settings: Settings, recordings_url: str) -> httpx.Client:
    """A client of an API that is answered by recordings."""
    folders = {"goplus": "goplus_token_security", "honeypotis": "honeypot_is"}
    recorded_at = {
        name: ProviderSettings(url=f"{recordings_url}/{folders.get(name, name)}") for name in NAMES
    }
    return api(configure_providers(settings, NODES_OFF | recorded_at))


@pytest.mark.extended
@pytest.mark.parametrize(
    ("chain", "token", "level"),
    [
        ("ethereum", "0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2", "low"),
        ("bsc", "0x0e09fabb73bd3ade0a17ecc321fd13a19e81ce82", "low"),
        ("ethereum", "0x84fa8f52e437ac04107ec1768764b2b39287cb3e", "critical"),
        ("ethereum", "0x4e7e15a6b83718ba79674cc4ce09f7d4a631ec2c", "critical"),
    ],
)
def test_recorded_token_has_its_level(
    api: ApiFactory,
    settings: Settings,
    upstreams: FakeUpstreams,
    replay_client: httpx.Client,
    chain: str,
    token: str,
    level: str,
):
    if chain == "bsc":  # recorded together with another token, so both are requested
        case = "bsc_two_tokens_launchpad_and_cake_trusted"
        upstreams.set_response(
            "goplus", "/api/v1/token_security/56", load_body("goplus_token_security", case)
        )
        upstreams.faults["dexscreener"] = "500"
        replay_client = api(configure_providers(settings, NODES_OFF | upstreams.provider_settings(*NAMES)))

    envelope = send_paid(replay_client, PATH, {"chain": chain, "tokenAddress": token}).json()

    assert envelope["data"]["riskLevel"] == level


@pytest.mark.extended
@pytest.mark.parametrize(
    ("case", "token", "flag", "level"),
    [
        ("liquidity_removed", "0x" + "ab" * 20, "no_liquidity", "high"),
        ("not_simulated", TOKEN, "honeypot", "critical"),
        recorded_case(
            "eth_nitro_honeypot_liquidity_removed",
            "0x95B6cD4aCb05A4e3B682f009FD323BB1D822F5cF",
            "no_liquidity",
            "high",
        ),
        recorded_case("documented_summary_honeypot_closed_source", TOKEN, "honeypot", "critical"),
    ],
)
def test_saved_simulation_alone_gives_risk_level(
    client: httpx.Client, upstreams: FakeUpstreams, case: str, token: str, flag: str, level: str
):
    upstreams.set_response("goplus", "/api/v1/token_security/1", NOTHING)
    upstreams.set_response("honeypotis", "/v2/IsHoneypot", load_body("honeypot_is", case))

    envelope = send_paid(client, PATH, {"chain": "ethereum", "tokenAddress": token}).json()

    assert flag in flag_severities(envelope)
    assert envelope["data"]["riskLevel"] == level
