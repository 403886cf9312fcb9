"""Requests and sources of the six crypto services, before any source is called."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError
from subtest_cases import each_case

from centgate.errors import Issue
from centgate.service import AnyService
from centgate.services.approval_risk import approval_risk
from centgate.services.contract_explain import contract_explain
from centgate.services.pool_snapshot import pool_snapshot
from centgate.services.protocol_context import protocol_context
from centgate.services.token_risk import token_risk
from centgate.services.wallet_brief import wallet_brief

NAMED: tuple[AnyService, ...] = (token_risk, pool_snapshot)
BY_ID: tuple[AnyService, ...] = (contract_explain, wallet_brief, approval_risk)
CHAINED = (*NAMED, *BY_ID)
SERVICES = (*CHAINED, protocol_context)
CHAINS = {"ethereum": 1, "base": 8453, "bsc": 56, "polygon": 137, "arbitrum": 42161, "optimism": 10}
ADDRESS = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
OTHER = "0xd0b53D9277642d899DF5C87A3966A349A798F224"
ABOUT = {
    "token-risk": "tokenAddress",
    "pool-snapshot": "tokenAddress",
    "contract-explain": "contractAddress",
    "wallet-brief": "walletAddress",
    "approval-risk": "walletAddress",
}
BAD_IDS: tuple[Any, ...] = (0, -1, 2**53, 2**53 - 1, 5, 43114, "1", "base", True, 1.5, None, [1], {})
BAD_SLUGS = ("Base", "solana", "", 8453, None, True, ["base"])
BAD_ADDRESSES = (
    *("", "0x", ADDRESS[2:], ADDRESS[:-1], ADDRESS + "0", "0X" + ADDRESS[2:], "0x" + "g" * 40),
    *(" " + ADDRESS, ADDRESS + " ", None, 0, [ADDRESS]),
)

Body = dict[str, Any]
Case = tuple[AnyService, Body]


def build_body(service: AnyService, **more: Any) -> Body:
    """Return a body with the address that the service is about; valid if `more` names a chain."""
    return {ABOUT[service.slug]: ADDRESS, **more}


def validate(service: AnyService, body: Body, development_chain: int | None = None) -> list[Issue]:
    """Return all issues that the validator finds in a body."""
    found: list[Issue] = []
    try:
        service.request.model_validate(body, by_name=False)
    except ValidationError as error:
        found += [Issue(".".join(map(str, each["loc"])), each["msg"]) for each in error.errors()]
    return [*found, *service.request.check_cross_field_rules(body, {"development_chain": development_chain})]


def list_schema_errors(schema: dict[str, Any], value: Any) -> list[Any]:
    """Return all errors of a value by a JSON Schema."""
    Draft202012Validator.check_schema(schema)
    validator: Any = Draft202012Validator(schema)
    return list(validator.iter_errors(value))


def list_valid_cases() -> list[Case]:
    """Return valid bodies."""
    return [
        *((service, service.input_example) for service in SERVICES),
        *((service, {**service.input_example, "unknown": 1, "token_address": 1}) for service in SERVICES),
        *(
            (service, build_body(service, chainId=number))
            for service in CHAINED
            for number in CHAINS.values()
        ),
        *((service, build_body(service, chain=slug)) for service in NAMED for slug in CHAINS),
        *(
            (service, build_body(service, chain="base", chainId=number))
            for service in NAMED
            for number in (1, 5)
        ),
        *((service, build_body(service, chain=["no chain"], chainId=1)) for service in BY_ID),
        (token_risk, {"chain": "base", "tokenAddress": "0x" + "F" * 40}),
        (pool_snapshot, {"chain": "base", "pairAddress": OTHER}),
        (pool_snapshot, {"chainId": 10, "pairAddress": OTHER}),
        *((protocol_context, {"protocol": right}) for right in ("a", "a" * 100, "\N{OCTOPUS}" * 51)),
    ]


def list_invalid_cases() -> list[Case]:
    """Return invalid bodies."""
    return [
        *((service, {}) for service in SERVICES),
        *((service, build_body(service)) for service in CHAINED),
        *((service, {"chainId": 1}) for service in CHAINED),
        *((service, build_body(service, chainId=bad)) for service in CHAINED for bad in BAD_IDS),
        *(
            (service, {"chainId": 1, ABOUT[service.slug]: bad})
            for service in CHAINED
            for bad in BAD_ADDRESSES
        ),
        *((service, build_body(service, chain=bad)) for service in NAMED for bad in BAD_SLUGS),
        *((service, build_body(service, chain=bad, chainId=1)) for service in NAMED for bad in BAD_SLUGS),
        *(
            (service, build_body(service, chain="base", chainId=bad))
            for service in NAMED
            for bad in (0, 2**53, "1", None)
        ),
        *((service, build_body(service, chain="base")) for service in BY_ID),
        *((pool_snapshot, {"chain": "base", "pairAddress": bad}) for bad in BAD_ADDRESSES),
        *(
            (pool_snapshot, build_body(pool_snapshot, chain="base", pairAddress=other))
            for other in (OTHER, None)
        ),
        (pool_snapshot, {"chain": "base", "tokenAddress": None, "pairAddress": OTHER}),
        (pool_snapshot, {"chain": "base", "tokenAddress": None, "pairAddress": None}),
        (pool_snapshot, {"chain": "base", "token_address": ADDRESS}),
        *((protocol_context, {"protocol": bad}) for bad in ("", "a" * 101, None, 1, True, ["aave"])),
    ]


@pytest.mark.extended
@each_case(("service", "body"), list_valid_cases())
def test_valid_body_is_accepted_by_validator_and_schema(service: AnyService, body: Body):
    assert validate(service, body) == []
    assert list_schema_errors(service.input_schema(None), body) == []


@pytest.mark.extended
@each_case(("service", "body"), list_invalid_cases())
def test_invalid_body_is_refused_by_validator_and_schema(service: AnyService, body: Body):
    assert validate(service, body) != []
    assert list_schema_errors(service.input_schema(None), body) != []


def test_address_with_line_break_is_refused():
    assert validate(token_risk, {"chain": "base", "tokenAddress": ADDRESS + "\n"}) != []


@each_case("service", BY_ID)
def test_unsupported_chain_is_refused_with_supported_ones(service: AnyService):
    issues = validate(service, build_body(service, chainId=5))

    assert [issue.path for issue in issues] == ["chainId"]
    assert all(f"{slug} ({number})" in issues[0].message for slug, number in CHAINS.items())


@each_case("service", CHAINED)
def test_development_chain_is_accepted_only_if_configured(service: AnyService):
    body = build_body(service, chainId=31337)

    assert validate(service, body, 31337) == []
    assert list_schema_errors(service.input_schema(31337), body) == []
    assert validate(service, body) != []
    assert list_schema_errors(service.input_schema(None), body) != []


def test_all_issues_are_reported_together():
    issues = validate(pool_snapshot, {"chainId": 5, "tokenAddress": "0x", "pairAddress": None})

    assert sorted(issue.path for issue in issues) == ["", "chainId", "pairAddress", "tokenAddress"]


@each_case("service", NAMED)
def test_body_without_chain_is_told_of_both_fields(service: AnyService):
    assert validate(service, build_body(service)) == [Issue("", "one of chain or chainId is required")]


@each_case("body", [{}, {"tokenAddress": ADDRESS, "pairAddress": OTHER}])
def test_pool_is_named_by_token_or_address_but_not_both(body: Body):
    issues = validate(pool_snapshot, {"chain": "base", **body})

    assert issues == [Issue("", "exactly one of tokenAddress or pairAddress is required")]


@each_case("number", [1, 5])
def test_chain_slug_precedes_chain_id(number: int):
    request = token_risk.request.model_validate({"chain": "base", "chainId": number, "tokenAddress": ADDRESS})

    assert request.target_chain_id == 8453


@each_case("service", NAMED)
def test_chain_by_slug_and_id_give_same_request(service: AnyService):
    by_slug = service.request.model_validate(build_body(service, chain="bsc"))
    by_id = service.request.model_validate(build_body(service, chainId=56))

    assert by_slug.canonical == by_id.canonical


@each_case("service", CHAINED)
def test_address_is_read_in_lower_case(service: AnyService):
    request = service.request.model_validate(build_body(service, chainId=1))

    assert ADDRESS.lower() in request.canonical.values()


@each_case(
    ("service", "sources"),
    [
        (
            token_risk,
            "goplus:primary rpc:fallback honeypotis:secondary dexscreener:enrichment "
            "geckoterminal:enrichment bytecode:enrichment etherscan:enrichment sourcify:enrichment "
            "blockscout:enrichment",
        ),
        (pool_snapshot, "dexscreener:primary geckoterminal:fallback rpc:fallback"),
        (
            contract_explain,
            "etherscan:primary sourcify:fallback blockscout:fallback rpc:fallback bytecode:enrichment",
        ),
        (protocol_context, "defillama:primary exa:fallback"),
        (wallet_brief, "alchemy:primary blockscout:fallback rpc:fallback defillama:enrichment"),
        (approval_risk, "goplus:primary rpc:fallback etherscan:enrichment defillama:enrichment"),
    ],
)
def test_sources_have_their_roles(service: AnyService, sources: str):
    declared = [f"{source.info.name}:{source.declared_role.name}" for source in service.sources]

    assert declared == sources.split()
