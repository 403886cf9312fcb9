"""The OpenAPI document is valid and complete, and describes the server's responses."""

# jsonschema is typed in part
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
from buyer import ApiFactory, Buyer, pay, sign_payment
from jsonschema import Draft202012Validator
from node_packages import ORIGINAL_ENVIRONMENT
from openapi_spec_validator import OpenAPIV31SpecValidator

from centgate.api.openapi import openapi_document
from centgate.catalog import all_services
from centgate.devchain.environment import DEFAULT_PAYEE
from centgate.envelope import CONNECTION_ERRORS, ERROR_SPECS
from centgate.service import AnyService
from centgate.settings import Settings

pytestmark = pytest.mark.extended

REDOCLY = "@redocly/cli@2.77.0"
METHODS = ("get", "post")
FREE = {
    "/": "application/json",
    "/services": "application/json",
    "/openapi.json": "application/json",
    "/.well-known/x402": "application/json",
    "/health": "application/json",
    "/livez": "application/json",
    "/readyz": "application/json",
}
"""Described free routes, with the media type of their responses."""
SIGNED_IN = {"/payments", "/payments/{transaction}"}
"""Routes that show a wallet its payments."""
PROOFS = ("0x" + "1f" * 65, "0x" + "2e" * 65)

each_service = pytest.mark.parametrize("service", all_services(), ids=lambda service: service.slug)


@pytest.fixture(scope="session")
def document(reader: httpx.Client) -> dict[str, Any]:
    """The served document."""
    return reader.get("/openapi.json").json()


def build_document(**options: Any) -> dict[str, Any]:
    """Return the document of a deployment with these settings."""
    written: dict[str, Any] = json.loads(
        json.dumps(openapi_document(all_services(), Settings(pay_to=DEFAULT_PAYEE, **options)))
    )
    return written


def list_operations(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [path[method] for path in document["paths"].values() for method in METHODS if method in path]


def schema_at(document: dict[str, Any], *pointer: str) -> Draft202012Validator:
    """Return a validator for the schema at a pointer in the document."""
    place = "/".join(part.replace("~", "~0").replace("/", "~1") for part in pointer)
    return Draft202012Validator({**document, "$ref": f"#/{place}"})


def response_schema(document: dict[str, Any], path: str, method: str, status: int) -> Draft202012Validator:
    """Return a validator for the response of an operation with a status."""
    response = document["paths"][path][method]["responses"][str(status)]
    place = ["paths", path, method, "responses", str(status)]
    if "$ref" in response:
        place = response["$ref"].removeprefix("#/").split("/")
    return schema_at(document, *place, "content", "application/json", "schema")


def test_document_is_openapi_3_1(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1.")


def test_document_is_valid(document: dict[str, Any]) -> None:
    assert not list(OpenAPIV31SpecValidator(document).iter_errors())


def test_fault_in_document_would_be_detected(document: dict[str, Any]) -> None:
    faulty: dict[str, Any] = {**document, "paths": {"/x": {"get": {"responses": {"200": {}}}}}}

    assert list(OpenAPIV31SpecValidator(faulty).iter_errors())


def test_every_paid_route_is_described(document: dict[str, Any]) -> None:
    paid = {path for path, item in document["paths"].items() if "post" in item} - SIGNED_IN

    assert paid == {service.path for service in all_services()}


def test_only_service_posts_are_paid(document: dict[str, Any]) -> None:
    priced = {
        (method, path)
        for path, item in document["paths"].items()
        for method in METHODS
        if "x-payment-info" in item.get(method, {})
    }

    assert priced == {("post", service.path) for service in all_services()}


def test_no_operation_requires_account(document: dict[str, Any]) -> None:
    for path, item in document["paths"].items():
        wanted: list[Any] = [{"siwx": []}] if path in SIGNED_IN else []
        assert [item[method]["security"] for method in METHODS if method in item] == [wanted] * len(item)


def test_every_free_route_is_described(document: dict[str, Any]) -> None:
    free = {path for path, item in document["paths"].items() if "post" not in item} - SIGNED_IN

    assert free == {*FREE, "/services/{slug}", "/status.json"}


def test_free_route_with_database_lists_its_failure(document: dict[str, Any]) -> None:
    for path in ("/status.json", *SIGNED_IN):
        assert "500" in document["paths"][path]["get"]["responses"], path


def test_unavailable_services_are_named(document: dict[str, Any]) -> None:
    slug = document["paths"]["/services/{slug}"]["get"]["parameters"][0]["schema"]

    assert slug["enum"] == [service.slug for service in all_services()]


def test_operation_ids_are_unique(document: dict[str, Any]) -> None:
    ids = Counter(operation["operationId"] for operation in list_operations(document))

    assert set(ids.values()) == {1}


def test_every_operation_has_described_tag(document: dict[str, Any]) -> None:
    explained = {tag["name"] for tag in document["tags"]}

    assert {tag for operation in list_operations(document) for tag in operation["tags"]} == explained


@each_service
def test_paid_route_states_price(document: dict[str, Any], service: AnyService) -> None:
    info = document["paths"][service.path]["post"]["x-payment-info"]

    assert info["price"] == {"mode": "fixed", "currency": "USD", "amount": "0.01"}
    assert info["protocols"] == [{"x402": {}}]


@each_service
def test_paid_route_lists_every_status(document: dict[str, Any], service: AnyService) -> None:
    responses = document["paths"][service.path]["post"]["responses"]

    statuses = {meaning.status for meaning in ERROR_SPECS.values()} | CONNECTION_ERRORS.keys()
    assert set(responses) == {"200", *map(str, statuses)}


def test_every_operation_lists_errors_of_connections(document: dict[str, Any]) -> None:
    for operation in list_operations(document):
        assert {"408", "431", "503"} <= operation["responses"].keys(), operation["operationId"]


@pytest.mark.parametrize(
    ("response", "code"),
    [
        ("RequestTimeout", "validation_error"),
        ("RequestHeaderFieldsTooLarge", "validation_error"),
        ("ServiceUnavailable", "internal_error"),
    ],
)
def test_error_of_connection_has_example(document: dict[str, Any], response: str, code: str) -> None:
    place = ("components", "responses", response, "content", "application/json")
    content = document["components"]["responses"][response]["content"]["application/json"]

    schema_at(document, *place, "schema").validate(content["examples"][code]["value"])
    assert content["examples"][code]["value"]["error"]["code"] == code


@pytest.mark.parametrize(
    "response",
    ["TooManyRequests", "InternalServerError", "BadGateway", "ServiceUnavailable", "GatewayTimeout"],
)
def test_errors_that_pass_say_when(document: dict[str, Any], response: str) -> None:
    assert "Retry-After" in document["components"]["responses"][response]["headers"]


@each_service
def test_request_example_fits_schema(document: dict[str, Any], service: AnyService) -> None:
    content = document["paths"][service.path]["post"]["requestBody"]["content"]["application/json"]

    place = ("paths", service.path, "post", "requestBody", "content", "application/json", "schema")
    schema_at(document, *place).validate(content["example"])


@each_service
def test_response_example_fits_schema(document: dict[str, Any], service: AnyService) -> None:
    content = document["paths"][service.path]["post"]["responses"]["200"]["content"]["application/json"]

    response_schema(document, service.path, "post", 200).validate(content["example"])


@each_service
def test_response_schema_is_not_empty(document: dict[str, Any], service: AnyService) -> None:
    content = document["paths"][service.path]["post"]["responses"]["200"]["content"]["application/json"]
    schema = response_schema(document, service.path, "post", 200)

    for field in content["example"]["data"]:
        data = {name: value for name, value in content["example"]["data"].items() if name != field}
        assert not schema.is_valid({**content["example"], "data": data}), field


@each_service
def test_refusal_fits_schema(document: dict[str, Any], reader: httpx.Client, service: AnyService) -> None:
    invalid = reader.post(service.path, json=[])
    probe = reader.post(service.path, json={})
    unpaid = reader.post(service.path, json=service.input_example)

    response_schema(document, service.path, "post", 400).validate(invalid.json())
    response_schema(document, service.path, "post", 402).validate(unpaid.json())
    response_schema(document, service.path, "post", 402).validate(probe.json())
    assert (invalid.status_code, unpaid.status_code, probe.status_code) == (400, 402, 402)


@each_service
def test_paid_response_fits_schema(
    document: dict[str, Any], reader: httpx.Client, buyer: Buyer, service: AnyService
) -> None:
    payment = sign_payment(reader, buyer, service.path, service.input_example)

    response = pay(reader, payment, service.path, service.input_example)

    response_schema(document, service.path, "post", response.status_code).validate(response.json())


def test_members_of_source_are_described(
    document: dict[str, Any], reader: httpx.Client, buyer: Buyer
) -> None:
    response = pay(reader, sign_payment(reader, buyer))

    described = document["components"]["schemas"]["Provider"]["properties"]
    assert set(response.json()["providers"][0]) - set(described) == set()


@pytest.mark.parametrize("path", FREE)
def test_free_response_fits_description(document: dict[str, Any], reader: httpx.Client, path: str) -> None:
    response = reader.get(path)

    described = document["paths"][path]["get"]["responses"]["200"]["content"]
    assert response.headers["Content-Type"] in described
    place = ("paths", path, "get", "responses", "200", "content", FREE[path], "schema")
    schema_at(document, *place).validate(response.json())


@pytest.mark.parametrize("code", ERROR_SPECS)
def test_every_error_example_fits_schema(document: dict[str, Any], code: str) -> None:
    described = {
        name: (place, example["value"])
        for place, response in document["components"]["responses"].items()
        for name, example in response["content"]["application/json"]["examples"].items()
    }

    place, example = described[code]
    assert example["error"]["code"] == code
    schema = ("components", "responses", place, "content", "application/json", "schema")
    schema_at(document, *schema).validate(example)


def test_402_example_has_terms_of_deployment(document: dict[str, Any], reader: httpx.Client) -> None:
    examples = document["components"]["responses"]["PaymentRequired"]["content"]["application/json"][
        "examples"
    ]

    real = reader.post("/services/token-risk").json()["error"]
    del real["details"]["issues"]  # an empty body, as sent here, is described in the message

    assert examples["payment_required"]["value"]["error"] == real


@each_service
def test_payment_headers_are_described(document: dict[str, Any], service: AnyService) -> None:
    responses = document["paths"][service.path]["post"]["responses"]
    unpaid = document["components"]["responses"][responses["402"]["$ref"].rpartition("/")[2]]

    assert "PAYMENT-RESPONSE" in responses["200"]["headers"]
    assert "PAYMENT-REQUIRED" in unpaid["headers"]
    for name in ("PAYMENT-RESPONSE", "PAYMENT-REQUIRED"):
        assert document["components"]["headers"][name]["schema"]["contentEncoding"] == "base64"


def test_receipt_of_empty_or_redeemed_answer_is_described(document: dict[str, Any]) -> None:
    no_data = document["components"]["responses"]["NotFound"]
    redeemed = document["paths"]["/payments/{transaction}"]["post"]["responses"]["200"]

    for response in (no_data, redeemed):
        assert {"PAYMENT-RESPONSE", "Idempotent-Replayed"} <= response["headers"].keys()


@pytest.mark.parametrize(
    ("operator", "contact"),
    [
        ("desk@shop.example", {"email": "desk@shop.example"}),
        ("mailto:desk@shop.example", {"email": "desk@shop.example"}),
        ("https://shop.example/contact", {"url": "https://shop.example/contact"}),
        ("shop.example", {"name": "shop.example"}),
    ],
)
def test_operator_is_contact(operator: str, contact: dict[str, str]) -> None:
    assert build_document(operator=operator)["info"]["contact"] == contact


def test_unset_settings_are_left_out() -> None:
    bare = build_document()

    absent = {"externalDocs", "x-agentcash-guidance", "x-agentcash-provenance", "x-discovery"}
    assert not absent & bare.keys()
    assert "contact" not in bare["info"]


def test_website_is_external_documentation() -> None:
    document = build_document(site_url="https://shop.example/")

    assert document["externalDocs"]["url"] == "https://shop.example"
    assert document["x-agentcash-guidance"] == {"llmsTxtUrl": "https://shop.example/llms.txt"}


def test_ownership_proofs_are_where_directories_look() -> None:
    document = build_document(ownership_proofs=PROOFS)

    assert document["x-agentcash-provenance"] == {"ownershipProofs": list(PROOFS)}
    assert document["x-discovery"] == {"ownershipProofs": list(PROOFS)}


def test_document_with_all_settings_is_valid() -> None:
    document = build_document(
        operator="desk@shop.example",
        site_url="https://shop.example",
        public_url="https://api.shop.example",
        ownership_proofs=PROOFS,
    )

    assert not list(OpenAPIV31SpecValidator(document).iter_errors())


def test_guidance_is_short(document: dict[str, Any]) -> None:
    assert 0 < len(document["info"]["x-guidance"]) < 4000


def test_server_is_public_url(api: ApiFactory, settings: Settings) -> None:
    client = api(settings.model_copy(update={"public_url": "https://api.shop.example"}))

    assert client.get("/openapi.json").json()["servers"] == [{"url": "https://api.shop.example"}]


def test_server_defaults_to_listening_address(document: dict[str, Any], reader: httpx.Client) -> None:
    assert document["servers"] == [{"url": str(reader.base_url).rstrip("/")}]


def test_every_reference_resolves(document: dict[str, Any]) -> None:
    text = json.dumps(document)
    components = document["components"]
    defined = {f"#/components/{kind}/{name}" for kind, named in components.items() for name in named}

    used = {part.split('"')[0] for part in text.split('"$ref": "')[1:]}

    assert used <= defined


@pytest.mark.skipif(shutil.which("npx") is None, reason="npx is not installed")
def test_document_passes_redocly_ruleset(document: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "openapi.json").write_text(json.dumps(document), encoding="utf-8")
    quiet = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true", "NO_COLOR": "1"}
    redocly = ["npx", "--yes", REDOCLY]
    if subprocess.run(
        [*redocly, "--version"], cwd=tmp_path, env=ORIGINAL_ENVIRONMENT, capture_output=True, check=False
    ).returncode:
        pytest.skip(f"{REDOCLY} cannot be had here")

    lint = subprocess.run(
        [*redocly, "lint", "--extends", "recommended", "openapi.json"],
        cwd=tmp_path,
        env={**ORIGINAL_ENVIRONMENT, **quiet},
        capture_output=True,
        text=True,
        check=False,
    )

    assert lint.returncode == 0, lint.stdout + lint.stderr
    assert "warning" not in (lint.stdout + lint.stderr).lower().replace("deprecation warning", "")


def test_sample_answers_name_cited_sources(document: dict[str, Any]) -> None:
    post = document["paths"]["/services/token-risk"]["post"]
    sample = post["responses"]["200"]["content"]["application/json"]["example"]

    assert [each["name"] for each in sample["providers"]] == ["goplus", "rpc", "honeypotis", "dexscreener"]
