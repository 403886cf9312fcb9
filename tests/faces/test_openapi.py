"""The OpenAPI document is valid, complete, and says what the server does."""

# jsonschema is typed in part
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
from buyer import Api, Buyer, pay, payment_for
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from centgate.catalog import all_services
from centgate.envelope import ERRORS
from centgate.service import AnyService
from centgate.settings import Settings

REDOCLY = "@redocly/cli@2.77.0"
METHODS = ("get", "post")

each_service = pytest.mark.parametrize("service", all_services(), ids=lambda service: service.slug)


@pytest.fixture(scope="session")
def document(reader: httpx.Client) -> dict[str, Any]:
    """The document as it is served."""
    return reader.get("/openapi.json").json()


def operations(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [path[method] for path in document["paths"].values() for method in METHODS if method in path]


def schema_at(document: dict[str, Any], *pointer: str) -> Draft202012Validator:
    """A validator for the schema that lies at a place in the document."""
    place = "/".join(part.replace("~", "~0").replace("/", "~1") for part in pointer)
    return Draft202012Validator({**document, "$ref": f"#/{place}"})


def answer_schema(document: dict[str, Any], path: str, method: str, status: int) -> Draft202012Validator:
    """A validator for what an operation answers with a status."""
    response = document["paths"][path][method]["responses"][str(status)]
    place = ["paths", path, method, "responses", str(status)]
    if "$ref" in response:
        place = response["$ref"].removeprefix("#/").split("/")
    return schema_at(document, *place, "content", "application/json", "schema")


def test_the_document_is_openapi_3_1(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1.")


def test_the_document_is_valid(document: dict[str, Any]) -> None:
    assert not list(OpenAPIV31SpecValidator(document).iter_errors())


def test_a_document_with_a_fault_would_be_noticed(document: dict[str, Any]) -> None:
    faulty: dict[str, Any] = {**document, "paths": {"/x": {"get": {"responses": {"200": {}}}}}}

    assert list(OpenAPIV31SpecValidator(faulty).iter_errors())


def test_every_paid_route_is_described(document: dict[str, Any]) -> None:
    paid = {path for path, item in document["paths"].items() if "post" in item}

    assert paid == {service.path for service in all_services()}


def test_every_free_route_is_described(document: dict[str, Any]) -> None:
    free = {path for path, item in document["paths"].items() if "post" not in item}

    assert free == {"/", "/services", "/services/{slug}", "/openapi.json", "/health", "/livez", "/readyz"}


def test_the_services_that_can_be_described_are_named(document: dict[str, Any]) -> None:
    slug = document["paths"]["/services/{slug}"]["get"]["parameters"][0]["schema"]

    assert slug["enum"] == [service.slug for service in all_services()]


def test_operation_ids_are_unique(document: dict[str, Any]) -> None:
    ids = Counter(operation["operationId"] for operation in operations(document))

    assert set(ids.values()) == {1}


def test_every_operation_has_a_tag_that_is_explained(document: dict[str, Any]) -> None:
    explained = {tag["name"] for tag in document["tags"]}

    assert {tag for operation in operations(document) for tag in operation["tags"]} == explained


@each_service
def test_a_paid_route_says_what_it_costs(document: dict[str, Any], service: AnyService) -> None:
    info = document["paths"][service.path]["post"]["x-payment-info"]

    assert info["price"] == {"mode": "fixed", "currency": "USD", "amount": "0.01"}
    assert info["protocols"] == [{"x402": {}}]


@each_service
def test_a_paid_route_lists_every_status_there_is(document: dict[str, Any], service: AnyService) -> None:
    responses = document["paths"][service.path]["post"]["responses"]

    assert set(responses) == {"200"} | {str(meaning.status) for meaning in ERRORS.values()}


@each_service
def test_the_example_of_a_request_fits_its_schema(document: dict[str, Any], service: AnyService) -> None:
    content = document["paths"][service.path]["post"]["requestBody"]["content"]["application/json"]

    place = ("paths", service.path, "post", "requestBody", "content", "application/json", "schema")
    schema_at(document, *place).validate(content["example"])


@each_service
def test_the_example_of_an_answer_fits_its_schema(document: dict[str, Any], service: AnyService) -> None:
    content = document["paths"][service.path]["post"]["responses"]["200"]["content"]["application/json"]

    answer_schema(document, service.path, "post", 200).validate(content["example"])


@each_service
def test_the_schema_of_an_answer_is_no_empty_promise(document: dict[str, Any], service: AnyService) -> None:
    content = document["paths"][service.path]["post"]["responses"]["200"]["content"]["application/json"]
    schema = answer_schema(document, service.path, "post", 200)

    for field in content["example"]["data"]:
        data = {name: value for name, value in content["example"]["data"].items() if name != field}
        assert not schema.is_valid({**content["example"], "data": data}), field


@each_service
def test_a_refusal_fits_its_schema(
    document: dict[str, Any], reader: httpx.Client, service: AnyService
) -> None:
    invalid = reader.post(service.path, json={})
    unpaid = reader.post(service.path, json=service.input_example)

    answer_schema(document, service.path, "post", 400).validate(invalid.json())
    answer_schema(document, service.path, "post", 402).validate(unpaid.json())
    assert (invalid.status_code, unpaid.status_code) == (400, 402)


@each_service
def test_what_a_paid_request_gets_fits_its_schema(
    document: dict[str, Any], reader: httpx.Client, buyer: Buyer, service: AnyService
) -> None:
    payment = payment_for(reader, buyer, service.path, service.input_example)

    response = pay(reader, payment, service.path, service.input_example)

    answer_schema(document, service.path, "post", response.status_code).validate(response.json())


@pytest.mark.parametrize("path", ["/", "/services", "/openapi.json", "/health", "/livez", "/readyz"])
def test_what_a_free_route_answers_fits_its_schema(
    document: dict[str, Any], reader: httpx.Client, path: str
) -> None:
    answer_schema(document, path, "get", 200).validate(reader.get(path).json())


def test_the_server_is_the_public_address(api: Api, settings: Settings) -> None:
    client = api(settings.model_copy(update={"public_url": "https://api.shop.example"}))

    assert client.get("/openapi.json").json()["servers"] == [{"url": "https://api.shop.example"}]


def test_the_server_is_where_it_listens_unless_set(document: dict[str, Any], reader: httpx.Client) -> None:
    assert document["servers"] == [{"url": str(reader.base_url).rstrip("/")}]


def test_no_reference_leads_nowhere(document: dict[str, Any]) -> None:
    text = json.dumps(document)
    components = document["components"]
    defined = {f"#/components/{kind}/{name}" for kind, named in components.items() for name in named}

    used = {part.split('"')[0] for part in text.split('"$ref": "')[1:]}

    assert used <= defined


@pytest.mark.skipif(shutil.which("npx") is None, reason="npx is not installed")
def test_the_document_passes_the_recommended_ruleset_of_redocly(
    document: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "openapi.json").write_text(json.dumps(document), encoding="utf-8")
    quiet = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true", "NO_COLOR": "1"}
    redocly = ["npx", "--yes", REDOCLY]
    if subprocess.run([*redocly, "--version"], cwd=tmp_path, capture_output=True, check=False).returncode:
        pytest.skip(f"{REDOCLY} cannot be had here")

    lint = subprocess.run(
        [*redocly, "lint", "--extends", "recommended", "openapi.json"],
        cwd=tmp_path,
        env={**os.environ, **quiet},
        capture_output=True,
        text=True,
        check=False,
    )

    assert lint.returncode == 0, lint.stdout + lint.stderr
    assert "warning" not in (lint.stdout + lint.stderr).lower().replace("deprecation warning", "")
