"""Form of a service, generated from its JSON Schema, and the terms that its page promises."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

import pytest
from msgspec.structs import replace

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


def build_deployment(terms: ListedRequirements | None = TERMS) -> ApiSnapshot:
    """Return a deployment that takes payments on Base, or none."""
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


def build_entry(**properties: Any) -> ServiceDetail:
    """Return a service with these fields; `example`, `required` and other keywords go into the schema."""
    words = {
        name: properties.pop(name) for name in ("anyOf", "oneOf", "allOf", "required") if name in properties
    }
    example = properties.pop("example", {})
    schema = {"type": "object", "properties": properties, **words}
    return ENTRIES[0].model_copy(update={"input_schema": schema, "input_example": example})


def build_field(**properties: Any) -> FormField:
    """Return the only field of a service."""
    (field,) = build_form(build_entry(**properties), build_deployment()).fields
    return field


@pytest.mark.parametrize("service", ENTRIES, ids=lambda each: each.slug)
def test_form_has_every_field_in_order(service: ServiceDetail) -> None:
    form = build_form(service, build_deployment())

    assert [field.name for field in form.fields] == list(service.input_schema["properties"])


@pytest.mark.parametrize("service", ENTRIES, ids=lambda each: each.slug)
def test_form_starts_with_example(service: ServiceDetail) -> None:
    form = build_form(service, build_deployment())

    shown = {field.name: field.value for field in form.fields if field.kind != "flag" and field.value}
    told = {
        name: "\n".join(cast("list[str]", value)) if isinstance(value, list) else str(value)
        for name, value in service.input_example.items()
    }
    assert shown == told


@pytest.mark.parametrize("service", ENTRIES, ids=lambda each: each.slug)
def test_hint_is_field_description(service: ServiceDetail) -> None:
    form = build_form(service, build_deployment())

    meanings = [
        schema["description"].replace("`", "") for schema in service.input_schema["properties"].values()
    ]
    hints = [field.hint.striptags() for field in form.fields]
    assert all(hint.startswith(meaning) for hint, meaning in zip(hints, meanings, strict=True))


def test_hints_are_escaped_and_format_code() -> None:
    field = build_field(it={"type": "string", "description": "Like `<a>` & co."})

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
def test_field_has_control_and_bounds_of_schema(schema: dict[str, Any], kind: str, hint: str) -> None:
    field = build_field(it=schema)

    assert (field.kind, field.hint) == (kind, hint)


def test_exclusive_bound_is_excluded() -> None:
    field = build_field(it={"type": "integer", "exclusiveMinimum": 0, "maximum": 7})

    assert field.bounds == {"min": 1, "max": 7}


def test_allowed_values_are_choices_and_chains_are_named() -> None:
    rule = {"properties": {"chainId": {"enum": [8453, 31337]}}}

    field = build_field(chainId={"type": "integer"}, allOf=[{"anyOf": [rule]}])

    assert field.kind == "choice"
    assert field.options == (("8453", "8453 (base)"), ("31337", "31337"))


@pytest.mark.parametrize(
    ("word", "rule"),
    [("anyOf", "At least one"), ("oneOf", "Exactly one")],
)
def test_alternative_fields_are_described(word: str, rule: str) -> None:
    either = {word: [{"required": ["a"]}, {"required": ["b"]}]}

    form = build_form(
        build_entry(a={"type": "string"}, b={"type": "string"}, allOf=[either]), build_deployment()
    )

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
def test_flag_is_omitted_at_its_default(given: dict[str, Any], value: str, default: str) -> None:
    field = build_field(**given)

    assert (field.value, field.default) == (value, default)


def test_names_become_words() -> None:
    assert build_field(onlyMainContent={"type": "boolean"}).label == "Only main content"


def test_promise_has_price_in_base_units() -> None:
    promise = promise_terms(ENTRIES[0].model_copy(update={"price": "$0.25"}), build_deployment())

    assert promise is not None
    assert promise["sum"] == "0.25 USDC"
    assert promise["terms"]["amount"][1] == "250000"


def test_known_token_is_used_whatever_api_says() -> None:
    lying = TERMS.model_copy(update={"asset": "0x" + "99" * 20, "extra": {"name": "Fake", "version": "9"}})

    promise = promise_terms(ENTRIES[0], build_deployment(lying))

    assert promise is not None
    assert promise["terms"]["asset"][1] == TERMS.asset
    assert promise["typedData"]["domain"]["name"] == "USD Coin"


def test_unknown_network_uses_token_of_api() -> None:
    own = TERMS.model_copy(update={"network": "eip155:424242", "extra": {"name": "Own", "version": "1"}})

    promise = promise_terms(ENTRIES[0], build_deployment(own))

    assert promise is not None
    assert promise["typedData"]["domain"]["name"] == "Own"
    assert (promise["explorer"], promise["addChain"]) == (None, None)


def test_wallet_is_given_known_networks_only() -> None:
    promise = promise_terms(ENTRIES[0], build_deployment())

    assert promise is not None
    assert promise["addChain"]["chainId"] == "0x2105"
    assert promise["addChain"]["blockExplorerUrls"] == ["https://basescan.org"]


def test_development_chain_has_no_explorer_links() -> None:
    payment = ENTRIES[0].payment.model_copy(update={"dev_mode": True})
    development = ENTRIES[0].model_copy(update={"payment": payment})
    there = replace(build_deployment(), services=(development,), api="http://127.0.0.1:8402")

    local, public = (promise_terms(development, each) for each in (there, replace(there, api=API)))

    assert local is not None
    assert public is not None
    assert (local["explorer"], public["explorer"]) == (None, "https://basescan.org/tx/")


def test_promise_is_absent_without_payments() -> None:
    assert promise_terms(ENTRIES[0], replace(build_deployment(), terms=None)) is None
