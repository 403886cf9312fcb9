"""Doctor checks of payments: address, token, facilitator, node, clock; each test breaks one thing."""

from __future__ import annotations

import time
from typing import Any

import pytest
from databases import Postgres
from doctor_fixtures import (
    KIND,
    NETWORK,
    UNREACHABLE_URL,
    facilitator_supporting,
    replace_result,
    run_check,
    serve_skewed_facilitator,
    with_changes,
    with_node_proxy,
    with_provider,
)
from fake_upstreams import FakeUpstreams
from pydantic import SecretStr
from tampering_proxy import limit_log_range, start_proxy

from centgate.cli.doctor.context import open_context
from centgate.cli.doctor.node import check_nodes
from centgate.devchain.accounts import BUYER_ACCOUNTS, FACILITATOR_ACCOUNT
from centgate.devchain.devnet import DevChain
from centgate.findings import Finding
from centgate.payments.chain.nodes import NodeSet
from centgate.settings import Settings
from centgate.signing.assets import USDC

MINE = "0x2e988A386a799F506693793c6A5AF6B54dfAaBfB"
TRUE = "0x" + "1".rjust(64, "0")


async def test_address_without_checksum_is_reported_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CENTGATE_PAY_TO", MINE.lower())

    finding = await run_check(Settings(), "pay-to")

    assert finding.status == "warning"
    assert f"CENTGATE_PAY_TO={MINE}" in (finding.mend or "")


async def test_address_with_checksum_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CENTGATE_PAY_TO", MINE)

    assert (await run_check(Settings(), "pay-to")).status == "ok"


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        (None, "not set"),
        ("0x000000000000000000000000000000000000dEaD", "has no owner"),
        ("0x0000000000000000000000000000000000000004", "has no owner"),
        (BUYER_ACCOUNTS[0].address, "key is public"),
        (FACILITATOR_ACCOUNT.address, "key is public"),
        ("0xcE47ca7E00000000000000000000000000000402", "whose key does not exist"),
        (USDC["eip155:8453"].address, "the token contract itself"),
    ],
    ids=["none", "burn", "precompiled", "test key", "test facilitator", "test merchant", "token"],
)
async def test_address_without_owner_is_refused(address: str | None, reason: str) -> None:
    finding = await run_check(Settings(pay_to=address), "pay-to")

    assert (finding.status, reason in finding.what) == ("failed", True), finding


@pytest.mark.parametrize(
    ("code", "status", "reason"),
    [("0x6001", "warning", "Safe"), ("0xef0100" + "11" * 20, "warning", "EIP-7702"), ("0x", "ok", "")],
    ids=["contract", "delegated", "plain"],
)
async def test_account_type_at_address_is_reported(
    chain_settings: Settings, upstreams: FakeUpstreams, code: str, status: str, reason: str
) -> None:
    settings = with_node_proxy(upstreams, chain_settings, replace_result("eth_getCode", code))

    finding = await run_check(settings, "pay-to-account")

    assert (finding.status, reason in f"{finding.what} {finding.mend}") == (status, True), finding


async def test_address_blocked_by_token_is_reported(
    chain_settings: Settings, upstreams: FakeUpstreams
) -> None:
    settings = with_node_proxy(upstreams, chain_settings, replace_result("eth_call", TRUE, data="0xfe575a87"))

    finding = await run_check(settings, "pay-to-account")

    assert (finding.status, "blocks" in finding.what) == ("failed", True), finding


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"asset": USDC[NETWORK].address, "asset_name": "USD Coin"}, "the contract says name 'USDC'"),
        ({"asset": USDC[NETWORK].address, "asset_name": "USDC", "asset_version": "1"}, "version '2'"),
        ({"asset": MINE, "asset_name": "USDC"}, "there is no token at"),
    ],
    ids=["name", "version", "address"],
)
async def test_token_different_on_chain_is_reported(
    chain_settings: Settings, changes: dict[str, Any], reason: str
) -> None:
    finding = await run_check(with_changes(chain_settings, **changes), "token")

    assert (finding.status, reason in finding.what) == ("failed", True), finding


async def test_token_signing_for_another_chain_is_reported(
    chain_settings: Settings, upstreams: FakeUpstreams
) -> None:
    other = "0x" + "5e" * 32
    settings = with_node_proxy(
        upstreams, chain_settings, replace_result("eth_call", other, data="0x3644e515")
    )

    finding = await run_check(settings, "token")

    assert finding.status == "failed", finding
    assert "another chain or address" in finding.what
    assert "CENTGATE_ASSET_NAME" not in (finding.mend or "")


async def test_token_with_other_decimals_is_reported(
    chain_settings: Settings, upstreams: FakeUpstreams
) -> None:
    eighteen = "0x" + f"{18:x}".rjust(64, "0")
    settings = with_node_proxy(
        upstreams, chain_settings, replace_result("eth_call", eighteen, data="0x313ce567")
    )

    finding = await run_check(settings, "token")

    assert (finding.status, "18 decimals" in finding.what) == ("failed", True), finding


async def test_missing_node_warns_only_for_real_money(settings: Settings) -> None:
    real = with_provider(with_changes(settings, network="eip155:8453"), "rpc_8453", enabled=False)

    assert (await run_check(real, "node")).status == "warning"
    assert (await run_check(settings, "node")).status == "skipped"


@pytest.mark.parametrize(
    ("kinds", "status", "verify", "reason"),
    [
        ([{**KIND, "network": "eip155:1"}], 200, 400, "does not settle on eip155:84532"),
        ([{**KIND, "scheme": "upto"}], 200, 400, "does not settle"),
        ([{**KIND, "x402Version": 1}], 200, 400, "does not settle"),
        ([KIND], 401, 400, "rejects this deployment"),
        ([KIND], 200, 403, "rejects this deployment"),
        ([KIND], 503, 400, "status 503"),
        (["nonsense"], 200, 400, "not a facilitator's response"),
    ],
    ids=["network", "scheme", "version", "key", "key to verify", "down", "nonsense"],
)
async def test_facilitator_that_would_not_settle_is_reported(
    settings: Settings, upstreams: FakeUpstreams, kinds: list[Any], status: int, verify: int, reason: str
) -> None:
    url = facilitator_supporting(upstreams, *kinds, status=status, verify=verify)

    finding = await run_check(with_changes(settings, facilitator_url=url), "facilitator")

    assert (finding.status, reason in finding.what, bool(finding.mend)) == ("failed", True, True), finding


async def test_facilitator_is_checked_with_key(settings: Settings, upstreams: FakeUpstreams) -> None:
    url = facilitator_supporting(upstreams, KIND)
    keyed = with_changes(settings, facilitator_url=url, facilitator_token=SecretStr("the-token"))

    finding = await run_check(keyed, "facilitator")

    assert finding.status == "ok", finding
    keys = [request.headers.get("authorization") for request in upstreams.requests_of("facilitator")]
    assert keys == ["Bearer the-token", "Bearer the-token"]


async def test_second_facilitator_is_checked_with_its_key(
    settings: Settings, upstreams: FakeUpstreams
) -> None:
    url = facilitator_supporting(upstreams, KIND)
    token = {"facilitator_token": SecretStr("first"), "facilitator_fallback_token": SecretStr("second")}

    alone = await run_check(settings, "facilitator-fallback")
    finding = await run_check(
        with_changes(settings, facilitator_fallback_url=url, **token), "facilitator-fallback"
    )

    keys = [request.headers.get("authorization") for request in upstreams.requests_of("facilitator")]
    assert (alone.status, finding.status) == ("skipped", "ok")
    assert keys == ["Bearer second", "Bearer second"]


async def test_second_facilitator_must_support_network(settings: Settings, upstreams: FakeUpstreams) -> None:
    url = facilitator_supporting(upstreams, {**KIND, "network": "eip155:1"})

    finding = await run_check(with_changes(settings, facilitator_fallback_url=url), "facilitator-fallback")

    assert (finding.status, finding.mend) == (
        "failed",
        "set another CENTGATE_FACILITATOR_FALLBACK_URL, or set CENTGATE_NETWORK to a network it supports",
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"facilitator_url": UNREACHABLE_URL}, "does not respond"),
        ({"network": "eip155:8453", "facilitator_url": None}, "requires a key"),
        ({"cdp_api_key_id": "id", "cdp_api_key_secret": SecretStr("bm9uZQ==")}, "SECRET"),
    ],
    ids=["address", "no key", "bad key"],
)
async def test_invalid_facilitator_settings_are_reported(
    settings: Settings, changes: dict[str, Any], reason: str
) -> None:
    finding = await run_check(with_changes(settings, **changes), "facilitator")

    assert (finding.status, reason in finding.what) == ("failed", True), finding


def build_block(age: float) -> dict[str, str]:
    """Return a block of an age in seconds."""
    return {"number": "0x10", "timestamp": hex(int(time.time() - age))}


@pytest.mark.parametrize(
    ("method", "result", "status", "reason"),
    [
        ("eth_chainId", "0x1", "failed", "on chain 1"),
        ("eth_getBlockByNumber", build_block(120), "warning", "s old"),
        ("eth_getBlockByNumber", build_block(1200), "warning", "s old"),
        ("eth_getBlockByNumber", "nonsense", "failed", "invalid responses"),
    ],
    ids=["chain", "behind", "development chain", "nonsense"],
)
async def test_unusable_node_is_reported(
    chain_settings: Settings, upstreams: FakeUpstreams, method: str, result: Any, status: str, reason: str
) -> None:
    finding = await run_check(
        with_node_proxy(upstreams, chain_settings, replace_result(method, result)), "node"
    )

    assert (finding.status, reason in finding.what) == (status, True), finding


async def test_node_with_short_log_range_is_reported(
    chain_settings: Settings, upstreams: FakeUpstreams
) -> None:
    refuses = limit_log_range(500, "query exceeds max block range 500")

    def change(request: dict[str, Any]) -> tuple[int, Any] | None:
        newest = {"number": "0x100000", "timestamp": hex(int(time.time()))}
        return refuses(request) or replace_result("eth_getBlockByNumber", newest)(request)

    finding = await run_check(with_node_proxy(upstreams, chain_settings, change), "node")

    assert (finding.status, "500 blocks per request" in finding.what) == ("failed", True), finding


async def test_old_block_with_real_money_is_failure(
    chain_settings: Settings, upstreams: FakeUpstreams
) -> None:
    def change(request: dict[str, Any]) -> tuple[int, Any] | None:
        old = replace_result("eth_getBlockByNumber", build_block(1200))
        return replace_result("eth_chainId", "0x2105")(request) or old(request)

    front = with_node_proxy(upstreams, chain_settings, change)
    real = with_changes(
        front, network="eip155:8453", providers={"rpc_8453": front.provider_settings("rpc_84532")}
    )

    assert (await run_check(real, "node")).status == "failed"


async def check_public_nodes(settings: Settings, *urls: str) -> Finding:
    """Return the finding about public nodes, of which two must agree."""
    async with open_context(settings) as deployment:
        return await check_nodes(deployment, NodeSet(settings.network, urls, 2, "public"))


def serve_young_block(devchain: DevChain, upstreams: FakeUpstreams) -> str:
    """Serve the development chain's node with a newest block that is one second old; return its URL."""
    return (
        start_proxy(
            upstreams, "young", devchain.rpc_url, replace_result("eth_getBlockByNumber", build_block(1))
        )
        + "/"
    )


async def test_two_of_three_public_nodes_pass(
    chain_settings: Settings, devchain: DevChain, upstreams: FakeUpstreams
) -> None:
    node = serve_young_block(devchain, upstreams)

    finding = await check_public_nodes(chain_settings, UNREACHABLE_URL, node, node)

    assert finding.status == "ok", finding
    assert "public nodes, 2 of 3 must agree; set CENTGATE_RPC_84532_URL to use your own" in finding.what
    assert f"not responding: {UNREACHABLE_URL}" in finding.what


async def test_one_of_three_public_nodes_fails(chain_settings: Settings, devchain: DevChain) -> None:
    finding = await check_public_nodes(chain_settings, UNREACHABLE_URL, devchain.rpc_url, UNREACHABLE_URL)

    assert (finding.status, finding.mend) == ("failed", "set CENTGATE_RPC_84532_URL to your own node"), (
        finding
    )


async def test_silent_own_node_beside_working_one_is_reported(
    chain_settings: Settings, devchain: DevChain, upstreams: FakeUpstreams
) -> None:
    two = with_provider(
        chain_settings, "rpc_84532", url=f"{UNREACHABLE_URL},{serve_young_block(devchain, upstreams)}"
    )

    finding = await run_check(two, "node")

    assert (finding.status, f"not responding: {UNREACHABLE_URL}" in finding.what) == ("warning", True), (
        finding
    )


async def test_node_without_safe_block_is_reported(
    chain_settings: Settings, upstreams: FakeUpstreams
) -> None:
    def change(request: dict[str, Any]) -> tuple[int, Any] | None:
        found = None if "safe" in request["params"] else build_block(1)
        return replace_result("eth_getBlockByNumber", found)(request)

    finding = await run_check(with_node_proxy(upstreams, chain_settings, change), "node")

    assert (finding.status, "no safe block" in finding.what) == ("ok", True), finding


@pytest.mark.parametrize(
    ("ahead", "status", "reason"),
    [(90, "failed", "behind"), (-90, "failed", "ahead of"), (3.5, "warning", "behind"), (0, "ok", "within")],
    ids=["behind", "ahead", "drifting", "right"],
)
async def test_wrong_clock_is_reported(settings: Settings, ahead: float, status: str, reason: str) -> None:
    with serve_skewed_facilitator(ahead) as url:
        finding = await run_check(with_changes(settings, facilitator_url=url), "clock")

    assert (finding.status, reason in finding.what) == (status, True), finding


async def test_future_block_reveals_slow_clock(chain_settings: Settings, upstreams: FakeUpstreams) -> None:
    settings = with_node_proxy(
        upstreams, chain_settings, replace_result("eth_getBlockByNumber", build_block(-60))
    )

    finding = await run_check(settings, "clock")

    assert (finding.status, "newest block" in finding.what) == ("failed", True), finding


async def test_database_clock_is_compared(settings: Settings, postgres: Postgres) -> None:
    lonely = with_changes(settings, facilitator_url=UNREACHABLE_URL)

    assert (await run_check(lonely, "clock")).status == "skipped"
    finding = await run_check(with_changes(lonely, database_url=postgres.url), "clock")

    assert (finding.status, "the database's" in finding.what) == ("ok", True), finding
