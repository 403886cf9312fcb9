"""Etherscan provider: answers, refusals and rate limits, which all have status 200 and differ by text."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fake_upstreams import FAULTS, FakeUpstreams, Fault, load_body, open_provider, recorded_case
from pydantic import SecretStr

from centgate.crypto.contract.contracts import ContractCreation, NamedAddress, SourceRecord
from centgate.errors import (
    NoData,
    ProviderError,
    ProviderFailure,
    ProviderRateLimited,
    ProviderRefused,
    ProviderTimeout,
    ProviderUnconfigured,
)
from centgate.provider import RequestTrace
from centgate.providers.etherscan import Etherscan, explorer_page

CONTRACT = "0x" + "ab" * 20
MIDNIGHT = 20_000 * 86_400
TWIN = "0x" + "cd" * 20
KEY = "operators-own"
UNVERIFIED = {"SourceCode": "", "ABI": "Contract source code not verified", "ContractName": "", "Proxy": "0"}
VERIFIED = {
    "SourceCode": "contract Vault {}",
    "ABI": '[{"type":"function"}]',
    "ContractName": "Vault",
    "CompilerVersion": "v0.8.17+commit.8df45f5f",
    "LicenseType": "MIT",
    "Proxy": "0",
    "Implementation": "",
    "SimilarMatch": "",
}
CREATED = {
    "contractAddress": CONTRACT,
    "contractCreator": TWIN.upper().replace("0X", "0x"),
    "txHash": "0x" + "1F" * 32,
    "blockNumber": "38400000",
    "timestamp": "1763000000",
    "contractFactory": "",
    "creationBytecode": "0x6080",
}


def build_result(*rows: Any, message: str = "OK") -> dict[str, Any]:
    return {"status": "1", "message": message, "result": list(rows)}


def build_refusal(result: Any, message: str = "NOTOK") -> dict[str, Any]:
    return {"status": "0", "message": message, "result": result}


WRONG: tuple[Any, ...] = (
    *([], {}, "text", 7),
    *({"status": "1"}, {"status": "1", "result": "x"}, {"status": "1", "result": [7]}),
    *(build_refusal(None, ""), build_result({"unexpected": 1})),
    {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602}},
)


async def fetch_source(
    upstreams: FakeUpstreams, folder: Path, body: Any = None, **given: Any
) -> SourceRecord:
    if body is not None:
        upstreams.set_response("etherscan", "/v2/api", body)
    options = {"timeout": 5, "key": SecretStr(KEY), **given}
    async with open_provider(Etherscan, folder, url=upstreams.url_of("etherscan"), **options) as etherscan:
        return await etherscan.source_record(8453, CONTRACT)


async def fetch_creation(upstreams: FakeUpstreams, folder: Path, body: Any) -> ContractCreation:
    upstreams.set_response("etherscan", "/v2/api", body)
    async with open_provider(
        Etherscan, folder, url=upstreams.url_of("etherscan"), key=SecretStr(KEY)
    ) as etherscan:
        return await etherscan.contract_creation(8453, CONTRACT)


async def test_request_has_chain_and_key(upstreams: FakeUpstreams, tmp_path: Path):
    await fetch_source(upstreams, tmp_path, build_result(VERIFIED))

    (call,) = upstreams.requests_of("etherscan")
    assert call.path == "/v2/api"
    assert call.params == {
        "chainid": "8453",
        "module": "contract",
        "action": "getsourcecode",
        "address": CONTRACT,
        "apikey": KEY,
    }


async def test_verified_contract_is_parsed_without_source(upstreams: FakeUpstreams, tmp_path: Path):
    found = await fetch_source(upstreams, tmp_path, build_result(VERIFIED))

    assert found.is_verified
    assert (found.match, found.name, found.language) == ("unspecified", "Vault", "Solidity")
    assert (found.compiler_version, found.license) == ("v0.8.17+commit.8df45f5f", "MIT")
    assert (found.source_available, found.abi_available) == (True, True)
    assert found.url == f"https://basescan.org/address/{CONTRACT}#code"
    assert found.proxy is None


@pytest.mark.parametrize(
    "body",
    [
        build_result(UNVERIFIED),
        build_refusal("Contract source code not verified"),
        build_refusal(None, "No data found"),
    ],
)
async def test_unpublished_contract_is_answer(upstreams: FakeUpstreams, tmp_path: Path, body: Any):
    found = await fetch_source(upstreams, tmp_path, body)

    assert (found.match, found.is_verified, found.name, found.proxy) == ("none", False, None, None)
    assert (found.source_available, found.abi_available) == (False, False)


@pytest.mark.parametrize(
    "body",
    [build_result(), build_result({}), build_result({"SourceCode": None}), build_result({"SourceCode": 7})],
)
async def test_success_without_result_is_failure(upstreams: FakeUpstreams, tmp_path: Path, body: Any):
    with pytest.raises(ProviderError):
        await fetch_source(upstreams, tmp_path, body)


async def test_abi_signatures_are_parsed(upstreams: FakeUpstreams, tmp_path: Path):
    abi = [{"type": "function", "name": "mint", "inputs": [{"type": "address"}]}, {"type": "error"}, 7]

    found = await fetch_source(upstreams, tmp_path, build_result(VERIFIED | {"ABI": json.dumps(abi)}))

    assert found.signatures == ("mint(address)",)


async def test_source_of_other_contract_is_no_verification(upstreams: FakeUpstreams, tmp_path: Path):
    found = await fetch_source(
        upstreams, tmp_path, build_result({**VERIFIED, "SimilarMatch": TWIN.upper().replace("0X", "0x")})
    )

    assert (found.match, found.similar_address, found.is_verified) == ("similar", TWIN, False)


@pytest.mark.parametrize(
    ("source", "compiler", "language"),
    [
        ('{{"language": "Yul", "sources": {}}}', "v0.8.17", "Yul"),
        ('{"A.sol": {"content": "contract A {}"}}', "v0.8.17", "Solidity"),
        ("{{ broken }}", "v0.8.17", "Solidity"),
        ("{{[1]}}", "v0.8.17", "Solidity"),
        ("# @version 0.3.10", "vyper:0.3.10", "Vyper"),
        ("something", "", None),
    ],
)
async def test_source_is_parsed_in_every_format(
    upstreams: FakeUpstreams, tmp_path: Path, source: str, compiler: str, language: str | None
):
    row = {**VERIFIED, "SourceCode": source, "CompilerVersion": compiler}
    found = await fetch_source(upstreams, tmp_path, build_result(row))

    assert found.is_verified
    assert found.language == language
    assert found.compiler_version == (compiler.removeprefix("vyper:") or None)


async def test_proxy_mark_is_claim(upstreams: FakeUpstreams, tmp_path: Path):
    marked = {"Proxy": "1", "Implementation": TWIN.upper().replace("0X", "0x")}
    found = await fetch_source(upstreams, tmp_path, build_result({**VERIFIED, **marked}))

    assert found.proxy
    assert (found.proxy.is_proxy, found.proxy.kind) == (True, None)
    assert found.proxy.implementations == (NamedAddress(TWIN, None),)


@pytest.mark.parametrize("implementation", ["", "0x", "0x" + "0" * 40, None, 7, "nonsense"])
async def test_proxy_without_valid_implementation_keeps_mark(
    upstreams: FakeUpstreams, tmp_path: Path, implementation: Any
):
    found = await fetch_source(
        upstreams, tmp_path, build_result({**VERIFIED, "Proxy": "1", "Implementation": implementation})
    )

    assert found.proxy
    assert (found.proxy.is_proxy, found.proxy.implementations) == (True, ())


async def test_invalid_details_keep_answer(upstreams: FakeUpstreams, tmp_path: Path):
    row = {"SourceCode": "contract A {}", "ABI": "[broken", "ContractName": 7, "LicenseType": None}
    found = await fetch_source(upstreams, tmp_path, build_result(row))

    assert found.is_verified
    assert (found.name, found.license, found.abi_available) == (None, None, False)


async def test_name_with_hidden_characters_is_cleaned(upstreams: FakeUpstreams, tmp_path: Path):
    found = await fetch_source(
        upstreams, tmp_path, build_result({**VERIFIED, "ContractName": "Va\u202eult\n" + "x" * 200})
    )

    assert found.name
    assert found.name.startswith("Vault x")
    assert len(found.name) == 64


async def test_complaint_beside_valid_data_is_no_refusal(upstreams: FakeUpstreams, tmp_path: Path):
    message = "OK-Missing/Invalid API Key, rate limit of 1/5sec applied"

    assert (await fetch_source(upstreams, tmp_path, build_result(VERIFIED, message=message))).is_verified


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("Max rate limit reached", ProviderRateLimited),
        ("Max rate limit reached, please use API Key for higher rate limit", ProviderRateLimited),
        ("Max calls per sec rate limit reached (3/sec)", ProviderRateLimited),
        ("Max daily rate limit reached. 100000/100000", ProviderRateLimited),
        ("Invalid API Key", ProviderRefused),
        ("Missing/Invalid API Key", ProviderRefused),
        ("Free API access is not supported for this chain. Please upgrade your api plan", ProviderRefused),
        ("Missing or unsupported chainid parameter (required for v2 api)", ProviderRefused),
        (
            "Free API access is temporarily unavailable due to unusually high network activity",
            ProviderRateLimited,
        ),
        ("Error! Invalid address format", ProviderError),
        ("Query Timeout occured. Please select a smaller result dataset", ProviderTimeout),
    ],
)
async def test_refusals_are_distinguished(
    upstreams: FakeUpstreams, tmp_path: Path, value: str, kind: type[ProviderFailure]
):
    with pytest.raises(kind) as failure:
        await fetch_source(upstreams, tmp_path, build_refusal(value))

    assert type(failure.value) is kind
    assert KEY not in failure.value.message


async def test_daily_limit_stops_queries_until_midnight(upstreams: FakeUpstreams, tmp_path: Path):
    upstreams.set_response(
        "etherscan", "/v2/api", build_refusal("Max daily rate limit reached. 100000/100000")
    )
    async with open_provider(
        Etherscan, tmp_path, url=upstreams.url_of("etherscan"), key=SecretStr(KEY)
    ) as etherscan:
        etherscan.clock = lambda: MIDNIGHT - 600.0
        for ask in (etherscan.source_record, etherscan.bind(RequestTrace()).contract_creation):
            with pytest.raises(ProviderRateLimited, match="daily quota") as failure:
                await ask(1, CONTRACT)
            assert failure.value.retry_after == 600
        asked_that_day = len(upstreams.requests_of("etherscan"))
        upstreams.set_response("etherscan", "/v2/api", build_result(VERIFIED))
        etherscan.clock = lambda: MIDNIGHT + 1.0
        found = await etherscan.source_record(1, CONTRACT)

    assert asked_that_day == 1
    assert found.is_verified


async def test_hourly_limit_is_retried_after_minute(upstreams: FakeUpstreams, tmp_path: Path):
    with pytest.raises(ProviderRateLimited) as failure:
        await fetch_source(
            upstreams, tmp_path, build_refusal("Free API access is temporarily unavailable due to …")
        )

    assert failure.value.retry_after == 60


async def test_chain_outside_plan_is_queried_once_hour(upstreams: FakeUpstreams, tmp_path: Path):
    upstreams.set_response(
        "etherscan", "/v2/api", build_refusal("Free API access is not supported for this chain.")
    )
    now = time.time()
    async with open_provider(
        Etherscan, tmp_path, url=upstreams.url_of("etherscan"), key=SecretStr(KEY)
    ) as etherscan:
        for later in (0, 3500, 3700):
            etherscan.clock = partial(float, now + later)
            with pytest.raises(ProviderRefused, match="does not serve chain 56"):
                await etherscan.source_record(56, CONTRACT)

    assert len(upstreams.requests_of("etherscan")) == 2


async def test_error_text_is_shortened(upstreams: FakeUpstreams, tmp_path: Path):
    with pytest.raises(ProviderError) as failure:
        await fetch_source(upstreams, tmp_path, build_refusal("Odd\u202e\n" + "x" * 5000))

    assert len(failure.value.message) < 150
    assert failure.value.message.isprintable()


@pytest.mark.parametrize("body", WRONG)
async def test_unknown_format_is_failure(upstreams: FakeUpstreams, tmp_path: Path, body: Any):
    with pytest.raises(ProviderError):
        await fetch_source(upstreams, tmp_path, body)


@pytest.mark.extended
@pytest.mark.parametrize("fault", FAULTS)
async def test_fault_is_failure_of_its_kind(upstreams: FakeUpstreams, tmp_path: Path, fault: Fault):
    upstreams.faults["etherscan"] = fault

    with pytest.raises(ProviderFailure) as failure:
        await fetch_source(upstreams, tmp_path, timeout=0.3 if fault == "timeout" else 5)

    assert failure.value.code == FAULTS[fault][1]
    assert KEY not in failure.value.message


async def test_missing_key_sends_no_request(upstreams: FakeUpstreams, tmp_path: Path):
    with pytest.raises(ProviderUnconfigured):
        await fetch_source(upstreams, tmp_path, key=None)

    assert not upstreams.requests_of("etherscan")


async def test_creation_has_creator_and_time(upstreams: FakeUpstreams, tmp_path: Path):
    found = await fetch_creation(upstreams, tmp_path, build_result(CREATED))

    at = datetime.fromtimestamp(1763000000, UTC)
    assert found == ContractCreation(creator=TWIN, transaction="0x" + "1f" * 32, at=at, block=38400000)


async def test_creation_in_old_format_has_no_time(upstreams: FakeUpstreams, tmp_path: Path):
    row = {"contractAddress": CONTRACT, "contractCreator": TWIN, "txHash": "0x" + "1f" * 32}

    assert await fetch_creation(upstreams, tmp_path, build_result(row)) == ContractCreation(
        TWIN, "0x" + "1f" * 32
    )


@pytest.mark.extended
@pytest.mark.parametrize("odd", ["²", "9" * 15, "x", None, [], -1, "1e400"])
async def test_invalid_creation_time_is_omitted(upstreams: FakeUpstreams, tmp_path: Path, odd: Any):
    found = await fetch_creation(
        upstreams, tmp_path, build_result({**CREATED, "timestamp": odd, "blockNumber": odd})
    )

    assert (found.creator, found.at) == (TWIN, None)


@pytest.mark.parametrize(
    "body", [build_refusal(None, "No data found"), build_refusal("None", "No data found"), build_result()]
)
async def test_contract_without_creation_is_no_data(upstreams: FakeUpstreams, tmp_path: Path, body: Any):
    with pytest.raises(NoData):
        await fetch_creation(upstreams, tmp_path, body)


async def test_plan_without_creation_is_queried_once(upstreams: FakeUpstreams, tmp_path: Path):
    body = "Free API access is not supported for this chain. Please upgrade your api plan"
    upstreams.set_response("etherscan", "/v2/api", build_refusal(body))
    async with open_provider(
        Etherscan, tmp_path, url=upstreams.url_of("etherscan"), key=SecretStr(KEY)
    ) as etherscan:
        record = RequestTrace()
        for chain_id in (56, 56, 1):
            with pytest.raises(NoData, match="under this plan"):
                await etherscan.bind(record).contract_creation(chain_id, CONTRACT)

    assert (record.warnings, record.providers["etherscan"]["status"]) == ([], "no_data")
    assert [call.params["chainid"] for call in upstreams.requests_of("etherscan")] == ["56", "1"]


@pytest.mark.parametrize(
    ("chain_id", "host"),
    [
        (1, "etherscan.io"),
        (8453, "basescan.org"),
        (56, "bscscan.com"),
        (137, "polygonscan.com"),
        (42161, "arbiscan.io"),
        (10, "optimistic.etherscan.io"),
    ],
)
def test_each_chain_has_its_page(chain_id: int, host: str):
    assert explorer_page(chain_id, CONTRACT) == f"https://{host}/address/{CONTRACT}#code"
    assert explorer_page(31337, CONTRACT) is None


# saved bodies


async def parse_saved(upstreams: FakeUpstreams, folder: Path, case: str) -> SourceRecord:
    return await fetch_source(upstreams, folder, load_body("etherscan", case))


@pytest.mark.parametrize(
    ("case", "name", "language", "version"),
    [
        ("source_standard_json", "ExampleToken", "Solidity", "v0.8.24+commit.e11b9ed9"),
        ("source_marked_proxy", "ExampleClone", "Solidity", "v0.8.24+commit.e11b9ed9"),
        ("source_vyper", "Example Gauge", "Vyper", "0.3.10"),
        recorded_case("getsourcecode_std_json", "Token", "Solidity", "v0.8.28+commit.7893614a"),
        recorded_case(
            "getsourcecode_single_file_marked_proxy", "Hemispheres", "Solidity", "v0.8.17+commit.8df45f5f"
        ),
        recorded_case("getsourcecode_vyper", "XYZ Broadcaster", "Vyper", "0.3.10"),
        recorded_case("getsourcecode_vyper_vault", "Vyper_contract", "Vyper", "0.2.12"),
    ],
)
async def test_saved_source_is_parsed(
    upstreams: FakeUpstreams, tmp_path: Path, case: str, name: str, language: str, version: str
):
    found = await parse_saved(upstreams, tmp_path, case)

    assert found.is_verified
    assert (found.name, found.language, found.compiler_version) == (name, language, version)
    assert found.abi_available


@pytest.mark.parametrize(
    ("case", "implementation"),
    [
        ("source_marked_proxy", "0x" + "5c" * 20),
        recorded_case("getsourcecode_single_file_marked_proxy", "0xfb1647bd77d28d0acab0c3632ceef87e7cd62b04"),
    ],
)
async def test_saved_clone_with_own_source_is_marked(
    upstreams: FakeUpstreams, tmp_path: Path, case: str, implementation: str
):
    found = await parse_saved(upstreams, tmp_path, case)

    assert found.proxy
    assert found.proxy.implementations[0].address == implementation


@pytest.mark.parametrize(
    "case",
    [
        "source_unverified",
        "abi_unverified",
        recorded_case("getsourcecode_unverified"),
        recorded_case("getabi_unverified"),
    ],
)
async def test_saved_unverified_contract_has_no_match(upstreams: FakeUpstreams, tmp_path: Path, case: str):
    assert (await parse_saved(upstreams, tmp_path, case)).match == "none"


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        ("invalid_key", ProviderRefused),
        ("rate_limit", ProviderRateLimited),
        ("chain_not_free", ProviderRefused),
        ("temporarily_unavailable", ProviderRateLimited),
        recorded_case("invalid_api_key", ProviderRefused),
        recorded_case("rate_limit_reached_keyless", ProviderRateLimited),
        recorded_case("free_tier_chain_not_supported_56", ProviderRefused),
        recorded_case("free_tier_chain_not_supported_8453", ProviderRefused),
        recorded_case("free_api_temporarily_unavailable", ProviderRateLimited),
    ],
)
async def test_saved_refusals_are_distinguished(
    upstreams: FakeUpstreams, tmp_path: Path, case: str, kind: type[ProviderFailure]
):
    with pytest.raises(kind) as failure:
        await parse_saved(upstreams, tmp_path, case)

    assert type(failure.value) is kind


@pytest.mark.parametrize("case", ["creation_none", recorded_case("getcontractcreation_none")])
async def test_saved_missing_creation_is_no_data(upstreams: FakeUpstreams, tmp_path: Path, case: str):
    with pytest.raises(NoData):
        await fetch_creation(upstreams, tmp_path, load_body("etherscan", case))


async def test_path_matches_recordings(recordings_url: str, tmp_path: Path):
    url = f"{recordings_url}/etherscan"
    async with open_provider(Etherscan, tmp_path, url=url, key=SecretStr(KEY)) as etherscan:
        found = await etherscan.source_record(1, "0x" + "0" * 39 + "1")

    assert found.match == "none"
