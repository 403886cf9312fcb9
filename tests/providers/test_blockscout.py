"""Blockscout provider: hosts of chains, contracts, accounts, and failures."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from facilitators import build_settings
from fake_upstreams import FAULTS, FakeUpstreams, Fault, load_body, open_provider, recorded_case
from pydantic import SecretStr

from centgate.crypto.contract.contracts import ContractCreation, NamedAddress, SourceRecord
from centgate.errors import NoData, ProviderError, ProviderFailure, ProviderRateLimited, ProviderRefused
from centgate.providers.blockscout import HOSTS, Blockscout, ExplorerAccount, redirect_target
from centgate.rate_limiter import RateLimit
from centgate.settings import ProviderSettings
from centgate.upstream import UpstreamResponse

CONTRACT = "0x" + "ab" * 20
LOGIC = "0x" + "cd" * 20
PATH = f"/api/v2/smart-contracts/{CONTRACT}"
ACCOUNT = f"/api/v2/addresses/{CONTRACT}"
KEY = "operators-own"
TRANSACTION = "0x" + "1f" * 32
VERIFIED: dict[str, Any] = {
    "is_verified": True,
    "is_fully_verified": True,
    "is_partially_verified": False,
    "name": "Vault",
    "language": "solidity",
    "compiler_version": "v0.8.17+commit.8df45f5f",
    "license_type": "gnu_gpl_v3",
    "source_code": "contract Vault {}",
    "abi": [],
    "deployed_bytecode": "0x6080",
}


async def fetch_source(upstreams: FakeUpstreams, folder: Path, body: Any, status: int = 200) -> SourceRecord:
    upstreams.set_response("blockscout", PATH, body, status=status)
    async with open_provider(Blockscout, folder, url=upstreams.url_of("blockscout"), timeout=5) as blockscout:
        return await blockscout.source_record(1, CONTRACT)


async def fetch_account(
    upstreams: FakeUpstreams, folder: Path, body: Any, status: int = 200
) -> ExplorerAccount:
    upstreams.set_response("blockscout", ACCOUNT, body, status=status)
    async with open_provider(Blockscout, folder, url=upstreams.url_of("blockscout"), timeout=5) as blockscout:
        return await blockscout.explorer_account(1, CONTRACT)


class RecordingUpstream:
    """Upstream that records URLs and returns these replies in order."""

    def __init__(self, *replies: UpstreamResponse) -> None:
        self.urls: list[str] = []
        self.params: list[dict[str, str]] = []
        self._replies = list(replies)

    async def get(self, url: str, *, params: dict[str, str] | None = None, **_more: Any) -> UpstreamResponse:
        self.urls.append(url)
        self.params.append(params or {})
        return self._replies.pop(0)

    def failure(self, reply: UpstreamResponse) -> ProviderFailure:
        return ProviderError("blockscout", f"status {reply.status}")


def build_reply(status: int, body: bytes = b"{}", **headers: str) -> UpstreamResponse:
    return UpstreamResponse("blockscout", "Blockscout", status, body, headers)


def record_urls(monkeypatch: pytest.MonkeyPatch, *replies: UpstreamResponse) -> RecordingUpstream:
    way = RecordingUpstream(*replies)

    def open_upstream(*_given: object, **_more: object) -> RecordingUpstream:
        return way

    monkeypatch.setattr(Blockscout, "open_upstream", open_upstream)
    return way


FOUND = build_reply(200, b'{"is_verified": false}')


@pytest.mark.parametrize("chain_id", HOSTS)
async def test_chain_has_its_host_without_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, chain_id: int):
    way = record_urls(monkeypatch, FOUND)
    async with open_provider(Blockscout, tmp_path) as blockscout:
        await blockscout.source_record(chain_id, CONTRACT)

    assert way.urls == [HOSTS[chain_id] + PATH]
    assert way.params == [{}]


async def test_gateway_is_used_with_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    way = record_urls(monkeypatch, FOUND)
    async with open_provider(Blockscout, tmp_path, key=SecretStr(KEY)) as blockscout:
        await blockscout.source_record(8453, CONTRACT)

    assert way.urls == [f"https://api.blockscout.com/8453{PATH}"]
    assert way.params == [{"apikey": KEY}]


@pytest.mark.parametrize(
    ("key", "url"),
    [(None, "https://base.blockscout.com/api"), (SecretStr(KEY), "https://api.blockscout.com/8453/api")],
)
async def test_list_of_transactions_is_beside_other_paths(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, key: SecretStr | None, url: str
):
    body = b'{"message": "No transactions found", "result": [], "status": "0"}'
    way = record_urls(monkeypatch, build_reply(200, body))
    async with open_provider(Blockscout, tmp_path, key=key) as blockscout:
        await blockscout.first_funding(8453, CONTRACT)

    assert way.urls == [url]
    assert way.params[0].get("apikey") == (KEY if key else None)


@pytest.mark.parametrize(("key", "prefix"), [(None, ""), (SecretStr(KEY), "/8453")])
async def test_operator_url_replaces_host_and_gateway(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, key: SecretStr | None, prefix: str
):
    way = record_urls(monkeypatch, FOUND)
    async with open_provider(Blockscout, tmp_path, key=key, url="http://here/x/") as blockscout:
        await blockscout.source_record(8453, CONTRACT)

    assert way.urls == [f"http://here/x{prefix}{PATH}"]


@pytest.mark.parametrize("chain_id", [1, 56, 84532])
async def test_chain_with_own_host_sends_no_key(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, chain_id: int
):
    way = record_urls(monkeypatch, FOUND)
    options = {
        "blockscout": ProviderSettings(key=SecretStr(KEY), url="http://elsewhere"),
        f"blockscout_{chain_id}": ProviderSettings(url="http://here"),
    }
    blockscout = Blockscout(build_settings(tmp_path, "http://127.0.0.1:9", providers=options))

    await blockscout.source_record(chain_id, CONTRACT)

    assert blockscout.supports_chain(chain_id)
    assert way.urls == [f"http://here{PATH}"]
    assert way.params == [{}]


async def test_coverage_is_five_chains_and_configured_ones(tmp_path: Path):
    async with open_provider(Blockscout, tmp_path, key=SecretStr(KEY)) as blockscout:
        covered = {each for each in (*HOSTS, 56, 31337, 84532) if blockscout.supports_chain(each)}

    assert covered == {*HOSTS}
    off = {"blockscout_10": ProviderSettings(enabled=False)}
    assert not Blockscout(build_settings(tmp_path, "http://127.0.0.1:9", providers=off)).supports_chain(10)


async def test_key_allows_higher_rate(tmp_path: Path):
    rates: list[RateLimit | None] = []
    for options in ({}, {"key": SecretStr(KEY)}, {"key": SecretStr(KEY), "per_minute": 9}):
        async with open_provider(Blockscout, tmp_path, **options) as blockscout:
            rates.append(blockscout.rate_limit)

    assert rates == [RateLimit(3, 1), RateLimit(5, 1), RateLimit(1, 60 / 9)]


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_redirect_to_known_host_is_followed_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, status: int
):
    onward = f"https://optimism.blockscout.com{PATH}"
    way = record_urls(monkeypatch, build_reply(status, Location=onward), FOUND)
    async with open_provider(Blockscout, tmp_path) as blockscout:
        await blockscout.source_record(10, CONTRACT)

    assert way.urls[1] == onward


@pytest.mark.parametrize(
    "location",
    [
        None,
        "",
        "http://eth.blockscout.com/x",
        "https://evil.example/x",
        "https://eth.blockscout.com.evil.example/",
        "https://a@eth.blockscout.com/",
        "https://eth.blockscout.com:8443/",
        "//evil.example/x",
        "file:///etc/passwd",
    ],
)
def test_other_redirects_are_refused(location: str | None):
    assert redirect_target(HOSTS[1] + PATH, location) is None


def test_redirect_within_host_is_followed():
    assert redirect_target(HOSTS[1] + "/x", "/api/y") == HOSTS[1] + "/api/y"


async def test_redirect_to_other_host_is_failure(upstreams: FakeUpstreams, tmp_path: Path):
    with pytest.raises(ProviderError, match="redirects"):
        await fetch_source(upstreams, tmp_path, {}, 302)


async def test_abi_signatures_are_parsed(upstreams: FakeUpstreams, tmp_path: Path):
    abi = [{"type": "function", "name": "mint", "inputs": [{"type": "address"}]}, {"type": "error"}, 7]

    found = await fetch_source(upstreams, tmp_path, VERIFIED | {"abi": abi})

    assert found.signatures == ("mint(address)",)


async def test_verified_contract_is_parsed_without_source(upstreams: FakeUpstreams, tmp_path: Path):
    found = await fetch_source(upstreams, tmp_path, VERIFIED)

    assert (found.match, found.name, found.language, found.license) == (
        "exact",
        "Vault",
        "Solidity",
        "GPL-3.0",
    )
    assert (found.source_available, found.abi_available) == (True, True)
    assert found.url == f"https://eth.blockscout.com/address/{CONTRACT}"


@pytest.mark.parametrize(
    ("flags", "level"),
    [
        ({"is_fully_verified": True}, "exact"),
        ({"is_fully_verified": False, "is_partially_verified": True}, "bytecode"),
        ({"is_fully_verified": None}, "unspecified"),
        ({"is_verified": False}, "none"),
    ],
)
async def test_kind_of_match_is_parsed(
    upstreams: FakeUpstreams, tmp_path: Path, flags: dict[str, Any], level: str
):
    assert (await fetch_source(upstreams, tmp_path, {**VERIFIED, **flags})).match == level


@pytest.mark.parametrize("flag", [None, "true", 1])
async def test_invalid_flag_is_failure(upstreams: FakeUpstreams, tmp_path: Path, flag: Any):
    with pytest.raises(ProviderError):
        await fetch_source(upstreams, tmp_path, {**VERIFIED, "is_verified": flag})


async def test_source_of_twin_is_no_verification(upstreams: FakeUpstreams, tmp_path: Path):
    twin = {"is_verified": False, "verified_twin_address_hash": LOGIC.upper().replace("0X", "0x")}
    found = await fetch_source(upstreams, tmp_path, {**VERIFIED, **twin})

    assert (found.match, found.similar_address, found.is_verified) == ("similar", LOGIC, False)


async def test_destroyed_and_changed_code_are_reported(upstreams: FakeUpstreams, tmp_path: Path):
    found = await fetch_source(
        upstreams, tmp_path, {**VERIFIED, "is_self_destructed": True, "is_changed_bytecode": True}
    )

    assert (found.is_self_destructed, found.is_code_changed) == (True, True)


async def test_field_names_of_older_server_are_parsed(upstreams: FakeUpstreams, tmp_path: Path):
    old = {"is_vyper_contract": True, "language": None, "license_type": "none", "proxy_type": None}
    names = {"implementation_address": LOGIC, "implementation_name": "Logic"}
    found = await fetch_source(upstreams, tmp_path, {**VERIFIED, **old, **names})

    assert (found.language, found.license) == ("Vyper", None)
    assert found.proxy
    assert found.proxy.implementations == (NamedAddress(LOGIC, "Logic"),)


@pytest.mark.parametrize(
    ("body", "status"), [({"message": "Not found"}, 404), ({"deployed_bytecode": "0x"}, 200)]
)
async def test_unpublished_contract_is_answer(
    upstreams: FakeUpstreams, tmp_path: Path, body: Any, status: int
):
    found = await fetch_source(upstreams, tmp_path, body, status)

    assert (found.match, found.source_available, found.abi_available) == ("none", False, False)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("eip1167", "eip1167"),
        ("minimal_proxy", "eip1167"),
        ("eip1967_oz", "zeppelinos"),
        ("eip1967_beacon", "eip1967_beacon"),
        ("master_copy", "safe"),
        ("clone_with_immutable_arguments", "clone_with_immutable_args"),
        ("eip7702", "eip7702"),
        ("comptroller", "other"),
        ("unknown", "other"),
        (None, None),
    ],
)
async def test_proxy_kinds_are_mapped(
    upstreams: FakeUpstreams, tmp_path: Path, theirs: str | None, ours: str | None
):
    body = {
        "is_contract": True,
        "proxy_type": theirs,
        "implementations": [{"address_hash": LOGIC, "name": "Logic"}, {"address": CONTRACT}, None],
    }
    found = await fetch_account(upstreams, tmp_path, body)

    assert found.proxy
    assert found.proxy.kind == ours
    assert found.proxy.implementations == (NamedAddress(LOGIC, "Logic"), NamedAddress(CONTRACT, None))


async def test_account_has_its_creator(upstreams: FakeUpstreams, tmp_path: Path):
    body: dict[str, Any] = {
        "is_contract": True,
        "name": "Vault",
        "creator_address_hash": LOGIC,
        "creation_transaction_hash": TRANSACTION,
        "proxy_type": None,
        "implementations": [],
    }
    found = await fetch_account(upstreams, tmp_path, body)

    assert found == ExplorerAccount(True, "Vault", None, ContractCreation(LOGIC, TRANSACTION))  # noqa: FBT003


async def test_unknown_address_has_no_account(upstreams: FakeUpstreams, tmp_path: Path):
    with pytest.raises(NoData):
        await fetch_account(upstreams, tmp_path, {"message": "Not found"}, 404)


async def test_transaction_has_its_time(upstreams: FakeUpstreams, tmp_path: Path):
    body = {"timestamp": "2026-11-02T10:15:47.000000Z"}
    upstreams.set_response("blockscout", f"/api/v2/transactions/{TRANSACTION}", body)
    async with open_provider(Blockscout, tmp_path, url=upstreams.url_of("blockscout")) as blockscout:
        assert await blockscout.transaction_time(1, TRANSACTION) == datetime(
            2026, 11, 2, 10, 15, 47, tzinfo=UTC
        )


@pytest.mark.parametrize(
    "odd",
    [
        "2026-11-02T10:15:47",
        "0001-01-01T00:00:00+14:00",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59-12:00",
        "soon",
        7,
        None,
    ],
)
async def test_invalid_time_is_failure(upstreams: FakeUpstreams, tmp_path: Path, odd: Any):
    upstreams.set_response("blockscout", f"/api/v2/transactions/{TRANSACTION}", {"timestamp": odd})
    async with open_provider(Blockscout, tmp_path, url=upstreams.url_of("blockscout")) as blockscout:
        with pytest.raises(ProviderError):
            await blockscout.transaction_time(1, TRANSACTION)


async def test_error_text_is_shortened(upstreams: FakeUpstreams, tmp_path: Path):
    body = {"errors": [{"detail": "Odd\u202e\n" + "x" * 5000}]}

    with pytest.raises(ProviderError) as failure:
        await fetch_source(upstreams, tmp_path, body, 422)

    assert len(failure.value.message) < 160
    assert failure.value.message.isprintable()


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (422, {"errors": [{"title": "Invalid value", "detail": "Invalid format"}]}, ProviderError),
        (422, {"message": "Invalid parameter(s)"}, ProviderError),
        (422, "<html></html>", ProviderError),
        (404, "404 page not found", ProviderError),
        (404, {"error": "no recording"}, ProviderError),
        (404, "<html>Not found</html>", ProviderError),
        (403, {"message": "Restricted access"}, ProviderRefused),
        (401, {"message": "Unauthorized"}, ProviderRefused),
        (402, {"x402Version": 1}, ProviderRefused),
        (429, {"message": "Too many requests."}, ProviderRateLimited),
        (200, "<!doctype html><html></html>", ProviderError),
        (200, [], ProviderError),
        (200, {}, ProviderError),
        (200, {"message": "something else"}, ProviderError),
    ],
)
async def test_refusals_are_failures(
    upstreams: FakeUpstreams, tmp_path: Path, status: int, body: Any, kind: type[ProviderFailure]
):
    with pytest.raises(kind) as failure:
        await fetch_source(upstreams, tmp_path, body, status)

    assert type(failure.value) is kind


@pytest.mark.extended
@pytest.mark.parametrize("fault", FAULTS)
async def test_fault_is_failure_of_its_kind(upstreams: FakeUpstreams, tmp_path: Path, fault: Fault):
    upstreams.faults["blockscout"] = fault
    timeout = 0.3 if fault == "timeout" else 5
    options: Any = {"url": upstreams.url_of("blockscout"), "timeout": timeout, "key": SecretStr(KEY)}

    async with open_provider(Blockscout, tmp_path, **options) as blockscout:
        with pytest.raises(ProviderFailure) as failure:
            await blockscout.source_record(1, CONTRACT)

    assert failure.value.code == FAULTS[fault][1]
    assert KEY not in failure.value.message


# saved bodies


@pytest.mark.parametrize(
    ("case", "name", "license_name"),
    [
        ("contract_verified", "ExampleVault", "MIT"),
        recorded_case("smart_contract_verified", "WPOA", "GPL-3.0"),
    ],
)
async def test_saved_verified_contract_is_parsed(
    upstreams: FakeUpstreams, tmp_path: Path, case: str, name: str, license_name: str
):
    found = await fetch_source(upstreams, tmp_path, load_body("blockscout_v2", case))

    assert (found.match, found.name, found.language) == ("unspecified", name, "Solidity")
    assert (found.license, found.abi_available) == (license_name, True)


@pytest.mark.parametrize(
    ("case", "status"),
    [
        ("contract_unverified", 200),
        ("not_found", 404),
        recorded_case("smart_contract_not_verified_200", 200),
        recorded_case("smart_contract_not_found_404", 404),
    ],
)
async def test_saved_unverified_contract_has_no_match(
    upstreams: FakeUpstreams, tmp_path: Path, case: str, status: int
):
    assert (await fetch_source(upstreams, tmp_path, load_body("blockscout_v2", case), status)).match == "none"


@pytest.mark.parametrize("case", ["address_unused", recorded_case("address_unknown_200_nulls")])
async def test_saved_unused_address_is_parsed(upstreams: FakeUpstreams, tmp_path: Path, case: str):
    found = await fetch_account(upstreams, tmp_path, load_body("blockscout_v2", case))

    assert found == ExplorerAccount(False, None, None, None)  # noqa: FBT003


@pytest.mark.parametrize("case", ["address_invalid", recorded_case("invalid_address_422")])
async def test_saved_refusal_is_failure_with_reason(upstreams: FakeUpstreams, tmp_path: Path, case: str):
    with pytest.raises(ProviderError, match="Invalid format"):
        await fetch_account(upstreams, tmp_path, load_body("blockscout_v2", case), 422)


async def test_path_without_key_matches_recordings(recordings_url: str, tmp_path: Path):
    async with open_provider(Blockscout, tmp_path, url=f"{recordings_url}/blockscout_v2") as blockscout:
        found = await blockscout.source_record(1, "0x0000000000000000000000000000000000000001")

    assert found.match == "none"


async def test_path_with_key_matches_recordings(recordings_url: str, tmp_path: Path):
    transaction = "0x5b97c69211cda5d0ac192302f478a7046da72004438beae14164550e2722d380"
    options = {"url": f"{recordings_url}/blockscout_v2", "key": SecretStr(KEY)}

    async with open_provider(Blockscout, tmp_path, **options) as blockscout:
        assert (await blockscout.transaction_time(8453, transaction)).tzinfo
