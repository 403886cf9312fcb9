"""MCP tools: one per service, generated from the catalogue."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator
from mcp_clients import ConnectClient
from mcp_types import Tool

from centgate.api.mcp.tools import build_tool
from centgate.catalog import all_services, service_details
from centgate.client.catalog import ServiceDetail
from centgate.service import AnyService
from centgate.settings import ProviderSettings, Settings

SERVICES = {service.slug: service for service in all_services()}
ADDRESS = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"
BODIES: list[dict[str, Any]] = [
    {},
    {"chain": "base", "tokenAddress": ADDRESS},
    {"chainId": 8453, "tokenAddress": ADDRESS},
    {"chainId": 7, "tokenAddress": ADDRESS},
    {"tokenAddress": ADDRESS},
    {"chain": "base", "tokenAddress": "0x" + "0" * 40},
    {"chain": "base", "tokenAddress": ADDRESS, "pairAddress": ADDRESS},
    {"chain": "base", "pairAddress": ADDRESS},
    {"chainId": 1, "contractAddress": ADDRESS, "walletAddress": ADDRESS},
    {"chainId": 5, "contractAddress": ADDRESS, "walletAddress": ADDRESS},
    {"url": "https://example.org", "query": "what", "unknown": 1},
    {"url": "https://example.org"},
    {"query": "what"},
]


def build_entry(service: AnyService) -> ServiceDetail:
    return ServiceDetail.model_validate(service_details(service, Settings()))


def build_service_tool(slug: str) -> Tool:
    return build_tool(build_entry(SERVICES[slug]))


def is_valid(schema: dict[str, Any], instance: Any) -> bool:
    return Draft202012Validator(schema).is_valid(instance)  # pyright: ignore[reportUnknownMemberType]


def fetch_entries(client: httpx.Client) -> list[ServiceDetail]:
    """Return the catalogue's entries, read over HTTP."""
    slugs = [each["slug"] for each in client.get("/services").json()["services"]]
    return [ServiceDetail.model_validate(client.get(f"/services/{slug}").json()) for slug in slugs]


@pytest.mark.extended
async def test_each_service_is_tool_in_catalogue_order(
    connect_client: ConnectClient, reader: httpx.Client
) -> None:
    async with connect_client(reader) as mcp:
        listed = await mcp.list_tools()

    entries = fetch_entries(reader)
    assert [tool.name for tool in listed.tools] == [entry.slug for entry in entries]
    assert [tool.title for tool in listed.tools] == [entry.title for entry in entries]


async def test_tools_equal_those_of_http_catalogue(
    connect_client: ConnectClient, reader: httpx.Client
) -> None:
    async with connect_client(reader) as mcp:
        listed = await mcp.list_tools()

    assert listed.tools == [build_tool(entry) for entry in fetch_entries(reader)]


async def test_server_explains_payment(connect_client: ConnectClient, reader: httpx.Client) -> None:
    async with connect_client(reader) as mcp:
        instructions = mcp.instructions or ""

    assert "x402/payment" in instructions
    assert "same payment again" in instructions


@pytest.mark.parametrize("slug", SERVICES)
def test_description_has_purpose_price_and_failure_costs(slug: str) -> None:
    entry, description = build_entry(SERVICES[slug]), build_service_tool(slug).description or ""

    assert description.startswith(entry.summary)
    assert f"Price: {entry.price}. {entry.pricing_note}" in description
    assert all(guardrail in description for guardrail in entry.guardrails)


def has_free_text(schema: dict[str, Any]) -> bool:
    """True if the schema allows a text of any content."""
    limits = {"enum", "const", "format", "pattern"}
    nodes: list[dict[str, Any]] = []
    json.loads(json.dumps(schema), object_hook=nodes.append)
    return any(node.get("type") == "string" and not limits & {*node} for node in nodes)


@pytest.mark.parametrize(
    "slug",
    [
        slug
        for slug, each in SERVICES.items()
        if each.category == "web-context" and has_free_text(each.output_schema)
    ],
)
def test_untrusted_text_is_called_data(slug: str) -> None:
    assert "never instructions" in (build_service_tool(slug).description or "")


@pytest.mark.parametrize(
    ("slug", "says"),
    [
        ("pool-snapshot", "up to 1 minute old"),
        ("token-risk", "up to 5 minutes old"),
        ("phishing-check", "not cached"),
    ],
)
def test_description_states_cache_age(slug: str, says: str) -> None:
    assert says in (build_service_tool(slug).description or "")


def test_unconfigured_service_is_marked() -> None:
    off = ProviderSettings(enabled=False)
    settings = Settings(providers={"phishinglist": off})

    entry = ServiceDetail.model_validate(service_details(SERVICES["phishing-check"], settings))

    assert "not configured on this deployment" in (build_tool(entry).description or "")
    assert "not configured on this deployment" not in (build_service_tool("phishing-check").description or "")


@pytest.mark.parametrize("slug", SERVICES)
def test_tools_are_read_only(slug: str) -> None:
    hints = build_service_tool(slug).annotations

    assert hints is not None
    values = (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint)
    assert values == (True, False, True, True)


@pytest.mark.parametrize("slug", SERVICES)
def test_schemas_are_valid_and_fit_examples(slug: str) -> None:
    entry, tool = build_entry(SERVICES[slug]), build_service_tool(slug)
    assert tool.output_schema is not None
    answer: dict[str, Any] = {
        "service": slug,
        "requestId": "req_1",
        "cache": {"hit": False},
        "providers": [],
        "warnings": [],
        "data": entry.output_example,
    }

    for schema, instance in ((tool.input_schema, entry.input_example), (tool.output_schema, answer)):
        Draft202012Validator.check_schema(schema)
        Draft202012Validator(schema).validate(instance)  # pyright: ignore[reportUnknownMemberType]
        assert schema["type"] == "object"


@pytest.mark.parametrize("slug", SERVICES)
def test_output_schema_allows_error_and_no_partial_answer(slug: str) -> None:
    schema = build_service_tool(slug).output_schema
    assert schema is not None

    error: Any = {"error": {"code": "validation_error", "message": "no"}, "requestId": "req_1"}
    terms: Any = {"x402Version": 2, "error": "Payment required", "resource": {}, "accepts": []}
    half: Any = {"service": slug, "requestId": "req_1", "data": build_entry(SERVICES[slug]).output_example}
    bodies: list[Any] = [error, terms, half, {}]
    assert [is_valid(schema, body) for body in bodies] == [True, True, False, False]


@pytest.mark.parametrize("slug", SERVICES)
def test_input_schema_has_no_combination_at_root(slug: str) -> None:
    assert {"allOf", "anyOf", "oneOf", "not", "enum"} & build_service_tool(slug).input_schema.keys() == set()


@pytest.mark.parametrize("slug", SERVICES)
def test_input_schema_refuses_what_service_refuses(slug: str) -> None:
    entry, tool = build_entry(SERVICES[slug]), build_service_tool(slug)

    bodies = [*BODIES, entry.input_example]
    verdicts = [is_valid(entry.input_schema, body) for body in bodies]
    assert [is_valid(tool.input_schema, body) for body in bodies] == verdicts
    assert set(verdicts) == {True, False}


async def test_development_chain_is_listed(connect_client: ConnectClient, chain_client: httpx.Client) -> None:
    async with connect_client(chain_client) as mcp:
        tools = {tool.name: tool for tool in (await mcp.list_tools()).tools}

    body = {"chainId": 84532, "walletAddress": ADDRESS}
    assert is_valid(tools["wallet-brief"].input_schema, body)
    assert not is_valid(build_service_tool("wallet-brief").input_schema, body)
