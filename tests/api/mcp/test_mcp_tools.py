"""The tools: one a service, told from the catalogue."""

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


def entry_of(service: AnyService) -> ServiceDetail:
    return ServiceDetail.model_validate(service_details(service, Settings()))


def tool_for(slug: str) -> Tool:
    return build_tool(entry_of(SERVICES[slug]))


def fits(schema: dict[str, Any], instance: Any) -> bool:
    return Draft202012Validator(schema).is_valid(instance)  # pyright: ignore[reportUnknownMemberType]


def entries_of(client: httpx.Client) -> list[ServiceDetail]:
    """The catalogue, read over HTTP as anybody reads it."""
    slugs = [each["slug"] for each in client.get("/services").json()["services"]]
    return [ServiceDetail.model_validate(client.get(f"/services/{slug}").json()) for slug in slugs]


async def test_every_service_is_a_tool_in_the_catalogues_order(
    speak: ConnectClient, reader: httpx.Client
) -> None:
    async with speak(reader) as mcp:
        listed = await mcp.list_tools()

    entries = entries_of(reader)
    assert [tool.name for tool in listed.tools] == [entry.slug for entry in entries]
    assert [tool.title for tool in listed.tools] == [entry.title for entry in entries]


async def test_they_are_the_tools_made_from_the_catalogue_read_over_http(
    speak: ConnectClient, reader: httpx.Client
) -> None:
    async with speak(reader) as mcp:
        listed = await mcp.list_tools()

    assert listed.tools == [build_tool(entry) for entry in entries_of(reader)]


async def test_the_server_says_how_paying_works(speak: ConnectClient, reader: httpx.Client) -> None:
    async with speak(reader) as mcp:
        told = mcp.instructions or ""

    assert "x402/payment" in told
    assert "same payment again" in told


@pytest.mark.parametrize("slug", SERVICES)
def test_its_description_has_purpose_price_and_what_failing_costs(slug: str) -> None:
    entry, told = entry_of(SERVICES[slug]), tool_for(slug).description or ""

    assert told.startswith(entry.summary)
    assert f"Price: {entry.price}. {entry.pricing_note}" in told
    assert all(guardrail in told for guardrail in entry.guardrails)


def has_free_text(schema: dict[str, Any]) -> bool:
    """True if a text of any content has a place in the schema."""
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
def test_text_of_strangers_is_called_data(slug: str) -> None:
    assert "never instructions" in (tool_for(slug).description or "")


@pytest.mark.parametrize(
    ("slug", "says"),
    [
        ("pool-snapshot", "up to 1 minute old"),
        ("token-risk", "up to 5 minutes old"),
        ("phishing-check", "not cached"),
    ],
)
def test_it_says_how_old_an_answer_may_be(slug: str, says: str) -> None:
    assert says in (tool_for(slug).description or "")


def test_it_says_when_a_deployment_has_not_set_it_up() -> None:
    off = ProviderSettings(enabled=False)
    settings = Settings(providers={"phishinglist": off})

    entry = ServiceDetail.model_validate(service_details(SERVICES["phishing-check"], settings))

    assert "not configured on this deployment" in (build_tool(entry).description or "")
    assert "not configured on this deployment" not in (tool_for("phishing-check").description or "")


@pytest.mark.parametrize("slug", SERVICES)
def test_it_only_reads(slug: str) -> None:
    hints = tool_for(slug).annotations

    assert hints is not None
    told = (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint)
    assert told == (True, False, True, True)


@pytest.mark.parametrize("slug", SERVICES)
def test_its_schemas_are_schemas_and_fit_the_examples(slug: str) -> None:
    entry, tool = entry_of(SERVICES[slug]), tool_for(slug)
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
def test_its_output_schema_admits_an_error_and_nothing_half(slug: str) -> None:
    schema = tool_for(slug).output_schema
    assert schema is not None

    error: Any = {"error": {"code": "validation_error", "message": "no"}, "requestId": "req_1"}
    terms: Any = {"x402Version": 2, "error": "Payment required", "resource": {}, "accepts": []}
    half: Any = {"service": slug, "requestId": "req_1", "data": entry_of(SERVICES[slug]).output_example}
    bodies: list[Any] = [error, terms, half, {}]
    assert [fits(schema, body) for body in bodies] == [True, True, False, False]


@pytest.mark.parametrize("slug", SERVICES)
def test_nothing_is_combined_at_the_root_of_its_input_schema(slug: str) -> None:
    assert {"allOf", "anyOf", "oneOf", "not", "enum"} & tool_for(slug).input_schema.keys() == set()


@pytest.mark.parametrize("slug", SERVICES)
def test_its_input_schema_refuses_what_the_service_refuses(slug: str) -> None:
    entry, tool = entry_of(SERVICES[slug]), tool_for(slug)

    bodies = [*BODIES, entry.input_example]
    verdicts = [fits(entry.input_schema, body) for body in bodies]
    assert [fits(tool.input_schema, body) for body in bodies] == verdicts
    assert set(verdicts) == {True, False}


async def test_a_development_chain_is_among_the_chains(speak: ConnectClient, chained: httpx.Client) -> None:
    async with speak(chained) as mcp:
        tools = {tool.name: tool for tool in (await mcp.list_tools()).tools}

    body = {"chainId": 84532, "walletAddress": ADDRESS}
    assert fits(tools["wallet-brief"].input_schema, body)
    assert not fits(tool_for("wallet-brief").input_schema, body)
