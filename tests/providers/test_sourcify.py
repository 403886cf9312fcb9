"""Sourcify provider: `match` decides whether a contract is verified, with any status."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_upstreams import (
    FAULTS,
    FakeUpstreams,
    Fault,
    RecordedRequest,
    load_body,
    open_provider,
    recorded_case,
)

from centgate.crypto.contract.contracts import ContractCreation, NamedAddress, SourceRecord
from centgate.errors import ProviderError, ProviderFailure, ProviderRateLimited
from centgate.providers.sourcify import FIELDS, Sourcify

CONTRACT = "0x" + "ab" * 20
LOGIC = "0x751d7c0cf91a9b7704541b44e5ff7bec3d2caa6f"
PATH = f"/server/v2/contract/1/{CONTRACT}"
MINIMAL: dict[str, Any] = {
    "match": "exact_match",
    "creationMatch": None,
    "runtimeMatch": "exact_match",
    "chainId": "1",
    "address": CONTRACT,
}
FULL: dict[str, Any] = MINIMAL | {
    "abi": [],
    "compilation": {"language": "Vyper", "compilerVersion": "0.3.10", "name": "Vault"},
    "deployment": {"blockNumber": "4719568"},
    "proxyResolution": {"isProxy": False, "proxyType": None, "implementations": []},
}
NONE = MINIMAL | {"match": None, "runtimeMatch": None}
COMPLAINT = {"customCode": "invalid_parameter", "message": "Field does not exist", "errorId": "1"}


async def fetch_source(upstreams: FakeUpstreams, folder: Path, **given: Any) -> SourceRecord:
    options = {"timeout": 5, **given}
    async with open_provider(Sourcify, folder, url=upstreams.url_of("sourcify"), **options) as sourcify:
        return await sourcify.source_record(1, CONTRACT)


async def fetch_source_from(
    upstreams: FakeUpstreams, folder: Path, body: Any, status: int = 200
) -> SourceRecord:
    upstreams.set_response("sourcify", PATH, body, status=status)
    return await fetch_source(upstreams, folder)


async def test_only_short_fields_are_requested(upstreams: FakeUpstreams, tmp_path: Path):
    await fetch_source_from(upstreams, tmp_path, FULL)

    (call,) = upstreams.requests_of("sourcify")
    assert call.params == {"fields": FIELDS}


async def test_verified_contract_is_parsed_without_source(upstreams: FakeUpstreams, tmp_path: Path):
    found = await fetch_source_from(upstreams, tmp_path, FULL)

    assert (found.match, found.name, found.language) == ("exact", "Vault", "Vyper")
    assert (found.compiler_version, found.source_available, found.abi_available) == ("0.3.10", True, True)
    assert found.created == ContractCreation(block=4719568)
    assert found.proxy
    assert found.proxy.is_proxy is False
    assert found.url == "https://repo.sourcify.dev/1/0xABaBaBaBABabABabAbAbABAbABabababaBaBABaB"


async def test_abi_signatures_are_parsed(upstreams: FakeUpstreams, tmp_path: Path):
    abi = [{"type": "function", "name": "mint", "inputs": [{"type": "address"}]}, {"type": "error"}, 7]

    found = await fetch_source_from(upstreams, tmp_path, FULL | {"abi": abi})

    assert found.signatures == ("mint(address)",)


async def test_same_code_with_other_comments_is_verified(upstreams: FakeUpstreams, tmp_path: Path):
    found = await fetch_source_from(upstreams, tmp_path, {**FULL, "match": "match"})

    assert (found.match, found.is_verified) == ("bytecode", True)


@pytest.mark.parametrize("status", [200, 404])
async def test_missing_match_is_an_answer_with_either_status(
    upstreams: FakeUpstreams, tmp_path: Path, status: int
):
    found = await fetch_source_from(upstreams, tmp_path, NONE, status)

    assert (found.match, found.is_verified, found.source_available) == ("none", False, False)


@pytest.mark.parametrize("named", [{"chainId": "10"}, {"address": LOGIC}])
async def test_other_contract_than_requested_is_a_failure(
    upstreams: FakeUpstreams, tmp_path: Path, named: dict[str, str]
):
    with pytest.raises(ProviderError, match="another contract"):
        await fetch_source_from(upstreams, tmp_path, MINIMAL | named)


async def test_answer_without_abi_field_leaves_abi_unknown(upstreams: FakeUpstreams, tmp_path: Path):
    found = await fetch_source_from(upstreams, tmp_path, MINIMAL)

    assert found.is_verified
    assert (found.abi_available, found.name, found.proxy, found.created) == (None, None, None, None)


async def test_refused_list_of_fields_is_omitted_once(upstreams: FakeUpstreams, tmp_path: Path):
    def answer(call: RecordedRequest) -> tuple[int, Any]:
        return (400, COMPLAINT) if "fields" in call.params else (200, MINIMAL)

    upstreams.set_response_function("sourcify", PATH, answer)

    assert (await fetch_source(upstreams, tmp_path)).is_verified
    assert len(upstreams.requests_of("sourcify")) == 2


async def test_repeated_refusal_is_a_failure(upstreams: FakeUpstreams, tmp_path: Path):
    with pytest.raises(ProviderError, match="Field does not exist"):
        await fetch_source_from(upstreams, tmp_path, COMPLAINT, 400)

    assert len(upstreams.requests_of("sourcify")) == 2


async def test_unknown_chain_is_a_failure(upstreams: FakeUpstreams, tmp_path: Path):
    body = {"customCode": "unsupported_chain", "message": "The chain is not supported", "errorId": "1"}

    with pytest.raises(ProviderError, match="not supported"):
        await fetch_source_from(upstreams, tmp_path, body, 400)

    assert len(upstreams.requests_of("sourcify")) == 1


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("EIP1967Proxy", "eip1967"),
        ("EIP1167Proxy", "eip1167"),
        ("GnosisSafeProxy", "safe"),
        ("DiamondProxy", "eip2535"),
        ("PROXIABLEProxy", "eip1822"),
        ("ZeppelinOSProxy", "zeppelinos"),
        ("FixedProxy", "other"),
        ("SequenceWalletProxy", "other"),
        ("SomethingNew", "other"),
        (None, None),
    ],
)
async def test_proxy_kinds_are_mapped(
    upstreams: FakeUpstreams, tmp_path: Path, theirs: str | None, ours: str | None
):
    implementations = [
        {"address": LOGIC.upper().replace("0X", "0x"), "name": "Logic\u200b"},
        {"address": 7},
        3,
    ]
    resolution = {"isProxy": True, "proxyType": theirs, "implementations": implementations}
    found = await fetch_source_from(upstreams, tmp_path, {**FULL, "proxyResolution": resolution})

    assert found.proxy
    assert (found.proxy.is_proxy, found.proxy.kind) == (True, ours)
    assert found.proxy.implementations == (NamedAddress(LOGIC, "Logic"),)


@pytest.mark.parametrize("part", ["compilation", "deployment", "proxyResolution"])
@pytest.mark.parametrize("broken", [None, [], "text", {"isProxy": "yes", "blockNumber": "²", "name": 7}])
async def test_invalid_part_keeps_the_answer(
    upstreams: FakeUpstreams, tmp_path: Path, part: str, broken: Any
):
    assert (await fetch_source_from(upstreams, tmp_path, {**FULL, part: broken})).is_verified


@pytest.mark.parametrize("body", [[], {}, {"match": "perhaps"}, {"error": "no recording"}, "text"])
@pytest.mark.parametrize("status", [200, 400, 404])
async def test_unknown_format_is_a_failure(upstreams: FakeUpstreams, tmp_path: Path, body: Any, status: int):
    with pytest.raises(ProviderError):
        await fetch_source_from(upstreams, tmp_path, body, status)


async def test_own_error_is_a_failure(upstreams: FakeUpstreams, tmp_path: Path):
    body = {"customCode": "internal_error", "message": "Something went wrong", "errorId": "1"}

    with pytest.raises(ProviderError):
        await fetch_source_from(upstreams, tmp_path, body, 500)


@pytest.mark.extended
@pytest.mark.parametrize("fault", FAULTS)
async def test_fault_is_a_failure_of_its_kind(upstreams: FakeUpstreams, tmp_path: Path, fault: Fault):
    upstreams.faults["sourcify"] = fault

    with pytest.raises(ProviderFailure) as failure:
        await fetch_source(upstreams, tmp_path, timeout=0.3 if fault == "timeout" else 5)

    assert failure.value.code == FAULTS[fault][1]


async def test_error_text_is_shortened(upstreams: FakeUpstreams, tmp_path: Path):
    body = {"customCode": "odd", "message": "Odd\u202e\n" + "x" * 5000}

    with pytest.raises(ProviderError) as failure:
        await fetch_source_from(upstreams, tmp_path, body, 400)

    assert len(failure.value.message) < 150
    assert failure.value.message.isprintable()


# saved bodies


def load_saved(case: str) -> Any:
    """Return a saved body, changed to the contract that is requested here."""
    return load_body("sourcify", case) | {"chainId": "1", "address": CONTRACT}


async def test_saved_match_is_parsed(upstreams: FakeUpstreams, tmp_path: Path):
    found = await fetch_source_from(upstreams, tmp_path, load_body("sourcify", "contract"))

    assert (found.match, found.name, found.compiler_version) == (
        "bytecode",
        "ExampleVault",
        "0.8.24+commit.e11b9ed9",
    )
    assert found.created == ContractCreation(block=20_000_001)
    assert found.proxy
    assert found.proxy.is_proxy is False


async def test_replayed_match_is_parsed(recordings_url: str, tmp_path: Path):
    async with open_provider(Sourcify, tmp_path, url=f"{recordings_url}/sourcify") as sourcify:
        found = await sourcify.source_record(1, "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2")

    assert (found.match, found.name, found.compiler_version) == (
        "bytecode",
        "WETH9",
        "0.4.19+commit.c4cbbb05",
    )
    assert found.created == ContractCreation(block=4719568)
    assert found.proxy
    assert found.proxy.is_proxy is False


@pytest.mark.parametrize(
    ("case", "implementation"),
    [
        ("proxy", NamedAddress("0x" + "cd" * 20, "Example Logic")),
        recorded_case(
            "documented_proxy_resolution_fields_proxyresolution_", NamedAddress(LOGIC, "Logic contract")
        ),
    ],
)
async def test_saved_proxy_is_parsed(
    upstreams: FakeUpstreams, tmp_path: Path, case: str, implementation: NamedAddress
):
    found = await fetch_source_from(upstreams, tmp_path, load_saved(case))

    assert found.proxy
    assert found.proxy.kind == "eip1967"
    assert found.proxy.implementations == (implementation,)


@pytest.mark.parametrize("case", ["proxy_error", recorded_case("documented_proxy_resolution_error")])
async def test_saved_proxy_failure_keeps_the_match(upstreams: FakeUpstreams, tmp_path: Path, case: str):
    found = await fetch_source_from(upstreams, tmp_path, load_saved(case))

    assert (found.match, found.proxy) == ("exact", None)


@pytest.mark.recorded
async def test_recorded_full_answer_is_parsed(upstreams: FakeUpstreams, tmp_path: Path):
    found = await fetch_source_from(upstreams, tmp_path, load_saved("documented_full_response"))

    assert (found.name, found.created) == ("MyContract", ContractCreation(block=21721660))


@pytest.mark.parametrize("case", ["not_verified", recorded_case("not_verified_404")])
async def test_saved_contract_without_match_is_parsed(upstreams: FakeUpstreams, tmp_path: Path, case: str):
    found = await fetch_source_from(upstreams, tmp_path, load_saved(case), 404)

    assert found.match == "none"


@pytest.mark.parametrize("case", ["rate_limit", recorded_case("too_many_requests_429")])
async def test_saved_rate_limit_is_a_rate_limit(upstreams: FakeUpstreams, tmp_path: Path, case: str):
    with pytest.raises(ProviderRateLimited):
        await fetch_source_from(upstreams, tmp_path, load_body("sourcify", case), 429)
