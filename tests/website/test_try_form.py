"""The form of a service as its JSON Schema describes it, and what its page promises of the payment."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from centgate.catalog import all_services, service_details
from centgate.client.catalog import ListedRequirements, ServiceDetail
from centgate.settings import Settings
from centgate.website.api_snapshot import ApiSnapshot
from centgate.website.payment_terms import promise_terms
from centgate.website.try_form import FormField, build_form

API = "https://api.example"
TERMS = ListedRequirements(
    scheme="exact",
    network="eip155:8453",
    asset="0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
    amount="10000",
    pay_to="0x" + "22" * 20,
    max_timeout_seconds=120,
    extra={"name": "USD Coin", "version": "2"},
)
ENTRIES = [ServiceDetail.model_validate(service_details(service, Settings())) for service in all_services()]


def deployment(terms: ListedRequirements | None = TERMS) -> ApiSnapshot:
    """A deployment that takes payments on Base, or none."""
    return ApiSnapshot(
        api=API,
        site="https://www.example",
        services=tuple(ENTRIES),
        terms=terms,
        health=None,
        openapi={"info": {"version": "1"}},
        x402={},
        read_at=datetime(2026, 11, 1, tzinfo=UTC),
    )


def entry(**properties: Any) -> ServiceDetail:
    """A service with these fields; `example`, `required` and other words of the schema are taken as such."""
    words = {
        name: properties.pop(name) for name in ("anyOf", "oneOf", "allOf", "required") if name in properties
    }
    example = properties.pop("example", {})
    schema = {"type": "object", "properties": properties, **words}
    return ENTRIES[0].model_copy(update={"input_schema": schema, "input_example": example})


def only(**properties: Any) -> FormField:
    """The one field of a service."""
    (field,) = build_form(entry(**properties), deployment()).fields
    return field


@pytest.mark.parametrize("service", ENTRIES, ids=lambda each: each.slug)
def test_every_field_of_every_service_is_asked_for_in_its_order(service: ServiceDetail) -> None:
    form = build_form(service, deployment())

    assert [field.name for field in form.fields] == list(service.input_schema["properties"])


@pytest.mark.parametrize("service", ENTRIES, ids=lambda each: each.slug)
def test_every_form_starts_with_the_example(service: ServiceDetail) -> None:
    form = build_form(service, deployment())

    shown = {field.name: field.value for field in form.fields if field.kind != "flag" and field.value}
    told = {
        name: "\n".join(cast("list[str]", value)) if isinstance(value, list) else str(value)
        for name, value in service.input_example.items()
    }
    assert shown == told


@pytest.mark.parametrize("service", ENTRIES, ids=lambda each: each.slug)
def test_every_hint_says_what_the_field_means(service: ServiceDetail) -> None:
    form = build_form(service, deployment())

    meanings = [
        schema["description"].replace("`", "") for schema in service.input_schema["properties"].values()
    ]
    hints = [field.hint.striptags() for field in form.fields]
    assert all(hint.startswith(meaning) for hint, meaning in zip(hints, meanings, strict=True))


def test_hints_are_escaped_and_have_code_in_them() -> None:
    field = only(it={"type": "string", "description": "Like `<a>` & co."})

    assert field.hint == "Like <code>&lt;a&gt;</code> &amp; co. Optional."


@pytest.mark.parametrize(
    ("schema", "kind", "hint"),
    [
        ({"type": "string", "minLength": 2, "maxLength": 9}, "text", "2 to 9 characters; optional."),
        ({"type": "string", "maxLength": 9}, "text", "At most 9 characters; optional."),
        ({"type": "string", "enum": ["a", "b"]}, "choice", "Optional."),
        (
            {"type": "integer", "minimum": 1, "maximum": 10, "default": 5},
            "number",
            "1 to 10; 5 when left out.",
        ),
        ({"type": "integer", "minimum": 0}, "number", "At least 0; optional."),
        ({"type": "integer", "maximum": 2**53 - 1}, "number", "Optional."),
        ({"type": "boolean", "default": True}, "flag", ""),
        (
            {"type": "array", "minItems": 1, "maxItems": 5, "items": {"type": "string", "maxLength": 99}},
            "lines",
            "1 to 5 items; each at most 99 characters; optional.",
        ),
    ],
    ids=["text", "short text", "choice", "number", "from zero", "any number", "flag", "lines"],
)
def test_a_field_has_the_control_and_the_bounds_of_its_schema(
    schema: dict[str, Any], kind: str, hint: str
) -> None:
    field = only(it=schema)

    assert (field.kind, field.hint) == (kind, hint)


def test_a_number_above_a_bound_starts_after_it() -> None:
    field = only(it={"type": "integer", "exclusiveMinimum": 0, "maximum": 7})

    assert field.bounds == {"min": 1, "max": 7}


def test_values_allowed_by_a_rule_are_choices_and_chains_have_their_names() -> None:
    rule = {"properties": {"chainId": {"enum": [8453, 31337]}}}

    field = only(chainId={"type": "integer"}, allOf=[{"anyOf": [rule]}])

    assert field.kind == "choice"
    assert field.options == (("8453", "8453 (base)"), ("31337", "31337"))


@pytest.mark.parametrize(
    ("word", "rule"),
    [("anyOf", "At least one"), ("oneOf", "Exactly one")],
)
def test_fields_that_stand_for_one_another_are_told(word: str, rule: str) -> None:
    either = {word: [{"required": ["a"]}, {"required": ["b"]}]}

    form = build_form(entry(a={"type": "string"}, b={"type": "string"}, allOf=[either]), deployment())

    assert form.rules == (f"{rule} of <code>a</code> and <code>b</code> is required.",)


@pytest.mark.parametrize(
    ("given", "value", "default"),
    [
        ({"it": {"type": "boolean", "default": True}}, "true", "true"),
        ({"it": {"type": "boolean"}}, "", "false"),
        ({"it": {"type": "boolean", "default": True}, "example": {"it": False}}, "false", "true"),
        ({"it": {"type": "boolean"}, "required": ["it"]}, "", ""),
    ],
    ids=["on", "off", "on, off in the example", "must be sent"],
)
def test_a_flag_knows_when_it_need_not_be_sent(given: dict[str, Any], value: str, default: str) -> None:
    field = only(**given)

    assert (field.value, field.default) == (value, default)


def test_names_are_told_in_words() -> None:
    assert only(onlyMainContent={"type": "boolean"}).label == "Only main content"


def test_the_promise_is_the_price_in_the_tokens_base_units() -> None:
    promise = promise_terms(ENTRIES[0].model_copy(update={"price": "$0.25"}), deployment())

    assert promise is not None
    assert promise["sum"] == "0.25 USDC"
    assert promise["terms"]["amount"][1] == "250000"


def test_the_token_is_the_known_one_whatever_the_api_says() -> None:
    lying = TERMS.model_copy(update={"asset": "0x" + "99" * 20, "extra": {"name": "Fake", "version": "9"}})

    promise = promise_terms(ENTRIES[0], deployment(lying))

    assert promise is not None
    assert promise["terms"]["asset"][1] == TERMS.asset
    assert promise["typedData"]["domain"]["name"] == "USD Coin"


def test_on_an_unknown_network_the_token_is_the_one_the_api_says() -> None:
    own = TERMS.model_copy(update={"network": "eip155:424242", "extra": {"name": "Own", "version": "1"}})

    promise = promise_terms(ENTRIES[0], deployment(own))

    assert promise is not None
    assert promise["typedData"]["domain"]["name"] == "Own"
    assert (promise["explorer"], promise["addChain"]) == (None, None)


def test_a_wallet_is_only_told_of_networks_that_are_known() -> None:
    promise = promise_terms(ENTRIES[0], deployment())

    assert promise is not None
    assert promise["addChain"]["chainId"] == "0x2105"
    assert promise["addChain"]["blockExplorerUrls"] == ["https://basescan.org"]


def test_a_development_chain_links_to_no_explorer() -> None:
    payment = ENTRIES[0].payment.model_copy(update={"dev_mode": True})
    development = ENTRIES[0].model_copy(update={"payment": payment})
    there = replace(deployment(), services=(development,), api="http://127.0.0.1:8402")

    local, public = (promise_terms(development, each) for each in (there, replace(there, api=API)))

    assert local is not None
    assert public is not None
    assert (local["explorer"], public["explorer"]) == (None, "https://basescan.org/tx/")


def test_where_no_payments_are_taken_there_is_no_promise() -> None:
    assert promise_terms(ENTRIES[0], replace(deployment(), terms=None)) is None
