"""Tool definitions for models, public names of the client, and the display of answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any, cast

import pytest
from hostile import DATA, SLUG, HostileApi, PlannedResponse, service_entry
from shopping import NO_AUTHORITIES, OpenClient

import centgate
import centgate.client
from centgate.catalog import all_services
from centgate.client import Centgate, TypedAnswer, Wallet, errors
from centgate.client.answer_data import AnswerData
from centgate.client.catalog import ServiceDetail
from centgate.client.tools import ToolFlavour, build_tool
from centgate.devchain.accounts import BUYER_ACCOUNTS

FLAVOURS: tuple[ToolFlavour, ...] = ("openai", "anthropic", "gemini")
COMBINATIONS = {"allOf", "anyOf", "oneOf", "not", "if", "format", "$ref", "$schema", "$defs"}


def build_detail(schema: Mapping[str, Any], **changes: Any) -> ServiceDetail:
    return ServiceDetail.model_validate(service_entry(inputSchema=dict(schema), **changes))


def read_parameters(tool: Mapping[str, Any]) -> dict[str, Any]:
    inner = tool.get("function", tool)
    return inner.get("parameters") or inner["input_schema"]


def read_description(tool: Mapping[str, Any]) -> str:
    return tool.get("function", tool)["description"]


def iterate_keywords(schema: Any) -> Iterator[str]:
    """Yield every keyword of a schema, but not the names of its properties."""
    for name, value in cast(dict[str, Any], schema).items():
        yield name
        if name == "properties":
            for field in value.values():
                yield from iterate_keywords(field)
        elif isinstance(value, dict):
            yield from iterate_keywords(value)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_schema_of_every_service_becomes_plain(flavour: ToolFlavour) -> None:
    for service in all_services():
        tool = build_tool(build_detail(service.input_schema(None), slug=service.slug), flavour)

        parameters = read_parameters(tool)
        assert parameters["properties"].keys() == service.input_schema(None)["properties"].keys()
        assert not COMBINATIONS & set(iterate_keywords(parameters))
        assert len(read_description(tool)) <= 1024


def test_needed_chain_is_described() -> None:
    service = next(each for each in all_services() if each.slug == "token-risk")

    tool = build_tool(build_detail(service.input_schema(None), slug=service.slug), "openai")

    assert "Needs `chain` or `chainId`." in read_description(tool)


@pytest.mark.parametrize(
    "rule",
    [
        {"anyOf": [{"required": ["chain"]}, {"required": ["chainId"]}]},
        {"allOf": [{"anyOf": [{"required": ["chain"]}, {"required": ["chainId"]}]}]},
        {"not": {"properties": {"chain": False, "chainId": False}}},
        {"if": {}, "then": {"allOf": [{"anyOf": [{"required": ["chain"]}, {"required": ["chainId"]}]}]}},
        {
            "if": {"type": "object"},
            "then": {"anyOf": [{"required": ["chain"]}, {"required": ["chainId"]}]},
        },
    ],
    ids=["anyOf", "anyOf in allOf", "not", "then after an empty if", "then"],
)
def test_rule_across_fields_is_described(rule: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"chain": {"type": "string"}, "chainId": {"type": "integer"}}}

    tool = build_tool(build_detail(schema | rule), "openai")

    assert read_description(tool) == "Facts. Needs `chain` or `chainId`. Costs $0.01 a call."


def test_gemini_enums_are_strings() -> None:
    schema = {
        "properties": {"chainId": {"type": "integer", "description": "The chain."}},
        "allOf": [{"properties": {"chainId": {"enum": [1, 8453]}}}],
        "required": ["chainId"],
    }

    fields = {flavour: read_parameters(build_tool(build_detail(schema), flavour)) for flavour in FLAVOURS}

    assert fields["openai"]["properties"]["chainId"]["enum"] == [1, 8453]
    assert fields["gemini"]["properties"]["chainId"] == {
        "type": "integer",
        "description": "The chain. One of 1, 8453.",
    }
    assert {tuple(each["required"]) for each in fields.values()} == {("chainId",)}


async def test_tools_are_purchasable_services(shop: OpenClient, hostile: HostileApi) -> None:
    listed = {"services": [service_entry()]}
    hostile.catalogue = PlannedResponse(200, listed)
    client = shop(hostile.url)

    tools = await client.tools("anthropic")
    lacking = service_entry(
        providers=[{"name": "book", "role": "primary"}], sources=[{"name": "book", "configured": False}]
    )
    hostile.service_response = PlannedResponse(200, lacking)

    assert [tool["name"] for tool in tools] == [SLUG]
    assert await client.tools("anthropic") == []
    with pytest.raises(ValueError, match="openai, anthropic, gemini"):
        build_tool(build_detail({}), cast(Any, "mistral"))


def test_public_names_can_be_imported() -> None:
    assert all(getattr(centgate.client, name) for name in centgate.client.__all__)
    named = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and value.__module__ == errors.__name__
    }
    assert named <= set(centgate.client.__all__)
    assert centgate.__version__ == centgate.client.__version__ == version("centgate")


def test_typed_answer_has_repr_and_json(hostile: HostileApi) -> None:
    wallet = Wallet.from_key(BUYER_ACCOUNTS[0].private_key)
    with Centgate(hostile.url, wallet, tls=NO_AUTHORITIES) as client:
        answer = TypedAnswer[AnswerData](client.call(SLUG, {}), AnswerData)

    output = json.loads(json.dumps(answer.to_dict()))
    assert (output["data"], output["money"], output["receipt"]["amount"]) == (DATA, "moved", "0.01")
    assert repr(answer) == (
        "<TypedAnswer 'some-facts req_3', paid 0.01 USD, 0 warnings, data={'fact': 'water is wet'}>"
    )
