"""Free routes: the catalogue, health, and errors for unknown paths and methods."""

# jsonschema is typed in part
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from buyer import PHISHING, QUESTION, ApiFactory
from jsonschema import Draft202012Validator
from subtest_cases import each_case

from centgate.catalog import all_services
from centgate.chains import CHAINS
from centgate.devchain.environment import DEFAULT_PAYEE
from centgate.service import AnyService
from centgate.settings import Settings
from centgate.signing.assets import USDC

ENTRY: dict[str, type | tuple[type, ...]] = {
    "slug": str,
    "title": str,
    "summary": str,
    "description": str,
    "category": str,
    "tags": list,
    "method": str,
    "path": str,
    "price": str,
    "priceUsd": (int, float),
    "pricingNote": str,
    "inputExample": dict,
    "outputFields": list,
    "guardrails": list,
    "providers": list,
    "payment": dict,
}
FREE = [
    "/",
    "/services",
    "/openapi.json",
    "/.well-known/x402",
    "/.well-known/ai-catalog.json",
    "/.well-known/mcp.json",
    "/.well-known/mcp/server-card.json",
    "/mcp/server-card",
    "/favicon.ico",
    "/favicon.svg",
    "/health",
    "/livez",
    "/readyz",
]
ELSEWHERE = "https://shop.example"
EXPOSED = {"payment-required", "payment-response", "x-request-id"}

each_service = each_case("service", all_services())


def fetch_catalogue(client: httpx.Client) -> list[dict[str, Any]]:
    return client.get("/services").json()["services"]


def listed_entry(client: httpx.Client, service: AnyService) -> dict[str, Any]:
    return next(entry for entry in fetch_catalogue(client) if entry["slug"] == service.slug)


def send_target(client: httpx.Client, method: str, target: str) -> HTTPResponse:
    """Send a request whose target is not normalized, as clients do, and return the response."""
    where = urlsplit(str(client.base_url))
    connection = HTTPConnection(where.hostname or "", where.port)
    connection.putrequest(method, target)
    connection.putheader("Content-Length", "0")
    connection.endheaders()
    response = connection.getresponse()
    response.read()
    connection.close()
    return response


def parse_list(header: str) -> set[str]:
    return {item.strip().lower() for item in header.split(",")}


def test_index_names_operator_and_links(reader: httpx.Client) -> None:
    index = reader.get("/").json()

    assert index["name"]
    assert index["tagline"]
    assert set(index["links"]) == {"services", "openapi", "health"}


def test_links_of_index_resolve(reader: httpx.Client) -> None:
    links = reader.get("/").json()["links"]

    assert {reader.get(link).status_code for link in links.values()} == {200}


def test_links_have_public_address(api: ApiFactory, settings: Settings) -> None:
    client = api(settings.model_copy(update={"public_url": "https://api.shop.example"}))

    links = client.get("/").json()["links"]

    assert links["services"] == "https://api.shop.example/services"


def test_catalogue_lists_every_service_in_order(reader: httpx.Client) -> None:
    assert [entry["slug"] for entry in fetch_catalogue(reader)] == [
        service.slug for service in all_services()
    ]


def test_catalogue_is_object(reader: httpx.Client) -> None:
    assert set(reader.get("/services").json()) == {"services"}


@each_service
def test_entry_has_exactly_documented_fields(reader: httpx.Client, service: AnyService) -> None:
    entry = listed_entry(reader, service)

    assert set(entry) == set(ENTRY)


@each_service
def test_entry_fields_have_their_types(reader: httpx.Client, service: AnyService) -> None:
    entry = listed_entry(reader, service)

    wrong = {name: entry[name] for name, kind in ENTRY.items() if not isinstance(entry[name], kind)}
    assert not wrong


@each_service
def test_entry_lists_contain_sentences_and_words(reader: httpx.Client, service: AnyService) -> None:
    entry = listed_entry(reader, service)

    lists = [entry[name] for name in ("tags", "outputFields", "guardrails")]
    assert all(items and all(isinstance(item, str) and item for item in items) for items in lists)


@each_service
def test_summary_is_one_line(reader: httpx.Client, service: AnyService) -> None:
    entry = listed_entry(reader, service)

    assert entry["summary"].strip()
    assert "\n" not in entry["summary"]


@each_service
def test_every_service_is_one_cent_post(reader: httpx.Client, service: AnyService) -> None:
    entry = listed_entry(reader, service)

    assert (entry["method"], entry["price"], entry["priceUsd"]) == ("POST", "$0.01", 0.01)


@each_service
def test_providers_have_name_role_and_address(reader: httpx.Client, service: AnyService) -> None:
    providers = listed_entry(reader, service)["providers"]

    assert providers
    assert all(set(provider) == {"name", "label", "role", "docsUrl"} for provider in providers)
    assert {provider["role"] for provider in providers} <= {"primary", "secondary", "enrichment", "fallback"}
    assert all(provider["docsUrl"].startswith("https://") for provider in providers)


@each_service
def test_every_service_has_primary_provider(reader: httpx.Client, service: AnyService) -> None:
    providers = listed_entry(reader, service)["providers"]

    assert [provider["role"] for provider in providers].count("primary") == 1


@each_service
def test_single_entry_extends_listed_one(reader: httpx.Client, service: AnyService) -> None:
    summary = listed_entry(reader, service)

    entry = reader.get(f"/services/{service.slug}").json()

    more = {"inputSchema", "outputSchema", "outputExample", "cacheSeconds", "sources"}
    assert set(entry) - set(summary) == more
    assert {name: value for name, value in entry.items() if name not in more} == summary


@pytest.mark.extended
@each_service
def test_published_schemas_are_json_schema_2020_12(reader: httpx.Client, service: AnyService) -> None:
    entry = reader.get(f"/services/{service.slug}").json()

    for schema in (entry["inputSchema"], entry["outputSchema"]):
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        Draft202012Validator.check_schema(schema)


@pytest.mark.extended
@each_service
def test_published_examples_fit_schemas(reader: httpx.Client, service: AnyService) -> None:
    entry = reader.get(f"/services/{service.slug}").json()

    Draft202012Validator(entry["inputSchema"]).validate(entry["inputExample"])
    Draft202012Validator(entry["outputSchema"]).validate(entry["outputExample"])


@each_service
def test_published_example_is_valid_request(reader: httpx.Client, service: AnyService) -> None:
    entry = reader.get(f"/services/{service.slug}").json()

    assert reader.post(entry["path"], json=entry["inputExample"]).status_code == 402


@each_service
def test_get_of_paid_path_is_catalogue_entry(reader: httpx.Client, service: AnyService) -> None:
    assert reader.get(service.path).json() == reader.get(f"/services/{service.slug}").json()


def test_paid_deployment_describes_payment(reader: httpx.Client) -> None:
    assert reader.get("/services/token-risk").json()["payment"] == {
        "protocol": "x402",
        "network": "eip155:84532",
        "accepts": [
            {
                "network": "eip155:84532",
                "asset": USDC["eip155:84532"].address,
                "payTo": DEFAULT_PAYEE,
                "name": "USDC",
                "version": "2",
            }
        ],
        "enforced": True,
        "devMode": True,
    }


def test_real_money_deployment_is_not_in_development(api: ApiFactory, settings: Settings) -> None:
    client = api(settings.model_copy(update={"network": "eip155:8453"}))

    payments = [entry["payment"] for entry in fetch_catalogue(client)]

    assert all(payment["devMode"] is False and payment["network"] == "eip155:8453" for payment in payments)


def test_deployment_without_payee_enforces_nothing(api: ApiFactory, settings: Settings) -> None:
    client = api(settings.model_copy(update={"pay_to": None}))

    assert {entry["payment"]["enforced"] for entry in fetch_catalogue(client)} == {False}


def test_deployment_without_payee_serves_nothing_free(api: ApiFactory, settings: Settings) -> None:
    client = api(settings.model_copy(update={"pay_to": None}))

    responses = [client.post(entry["path"], json=entry["inputExample"]) for entry in fetch_catalogue(client)]

    assert {response.status_code for response in responses} == {402}
    assert {response.json()["error"]["code"] for response in responses} == {"payment_not_configured"}
    assert not any("PAYMENT-REQUIRED" in response.headers for response in responses)


def test_development_chain_is_accepted_where_payments_use_it(reader: httpx.Client) -> None:
    schema = reader.get("/services/wallet-brief").json()["inputSchema"]

    assert schema["then"]["properties"]["chainId"]["enum"] == [*(chain.id for chain in CHAINS), 84532]
    body = {"chainId": 84532, "walletAddress": "0x" + "1" * 40}
    assert reader.post("/services/wallet-brief", json=body).status_code == 402


def test_development_chain_is_refused_with_real_money(api: ApiFactory, settings: Settings) -> None:
    client = api(settings.model_copy(update={"network": "eip155:8453"}))
    body = {"chainId": 84532, "walletAddress": "0x" + "1" * 40}

    response = client.post("/services/wallet-brief", json=body)

    assert "84532" not in client.get("/services").text
    assert response.status_code == 400
    message = response.json()["error"]["details"]["issues"][0]["message"]
    assert all(f"{chain.slug} ({chain.id})" in message for chain in CHAINS)


def test_development_chain_is_accepted_by_every_chain_service(reader: httpx.Client) -> None:
    with_chain = [
        entry for entry in fetch_catalogue(reader) if {"chain", "chainId"} & set(entry["inputExample"])
    ]

    assert {"token-risk", "wallet-brief"} <= {entry["slug"] for entry in with_chain}
    for entry in with_chain:
        body = {name: value for name, value in entry["inputExample"].items() if name != "chain"}
        response = reader.post(entry["path"], json={**body, "chainId": 84532})
        assert response.status_code == 402, (entry["slug"], response.text)


@each_case("path", ["/nowhere", "/services/no-such-thing", "/services/neuralweb", "/.well-known/nothing.txt"])
@each_case("method", ["GET", "POST", "DELETE"])
def test_unknown_path_is_404_with_hint(reader: httpx.Client, method: str, path: str) -> None:
    response = reader.request(method, path)

    assert response.status_code == 404
    error = response.json()["error"]
    assert error["code"] == "not_found"
    assert "GET /services" in error["message"]
    assert "GET /openapi.json" in error["message"]


@pytest.mark.extended
@each_case(
    "target",
    [
        f"{PHISHING}/",
        f"/{PHISHING}",
        "/services//phishing-check",
        "/services/phishing%2Dcheck",
        "/services%2Fphishing-check",
        "/services/%70hishing-check",
        "/services/crawler%2Fmap",
        "/services/Phishing-Check",
        "/SERVICES/phishing-check",
        "/services/phishing-check%00",
        "/services/phishing-check%20",
        "/services/phishing-check;v=1",
        "/services/./phishing-check",
        "/services/x/../phishing-check",
        "/services/%2e%2e/services/phishing-check",
        "/services/phishing_check",
        "/services/phishing-check.json",
        "/services/crawler/map/",
    ],
)
@each_case("method", ["GET", "POST"])
def test_service_has_one_spelling(reader: httpx.Client, method: str, target: str) -> None:
    assert send_target(reader, method, target).status == 404


@pytest.mark.extended
@each_case("path", [*FREE, "/services/crawler-map"])
def test_free_path_refuses_post(reader: httpx.Client, path: str) -> None:
    response = reader.post(path, json={})

    assert response.status_code == 405
    assert response.json()["error"]["code"] == "method_not_allowed"
    assert parse_list(response.headers["Allow"]) == {"get", "head"}


@pytest.mark.extended
@each_service
@each_case("method", ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_paid_path_allows_get_head_and_post(reader: httpx.Client, service: AnyService, method: str) -> None:
    response = reader.request(method, service.path)

    assert response.status_code == 405
    assert response.json()["error"]["code"] == "method_not_allowed"
    assert parse_list(response.headers["Allow"]) == {"get", "head", "post"}


@pytest.mark.extended
@each_case(
    "path", [*FREE, *(service.path for service in all_services()), "/services/crawler-map", "/nowhere"]
)
def test_head_is_get_without_body(reader: httpx.Client, path: str) -> None:
    full, head = reader.get(path), reader.head(path)

    of_the_moment = ("date", "x-request-id")
    assert head.content == b""
    assert head.status_code == full.status_code
    assert head.headers["Content-Length"] == full.headers["Content-Length"]
    assert [pair for pair in head.headers.items() if pair[0] not in of_the_moment] == [
        pair for pair in full.headers.items() if pair[0] not in of_the_moment
    ]


def test_health_reports_database_and_time(reader: httpx.Client) -> None:
    response = reader.get("/health")

    assert response.status_code == 200
    assert set(response.json()) == {"status", "db", "time"}
    assert (response.json()["status"], response.json()["db"]) == ("ok", "ok")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", response.json()["time"])


def test_livez_and_readyz_respond(reader: httpx.Client) -> None:
    assert (reader.get("/livez").status_code, reader.get("/livez").json()) == (200, {"status": "ok"})
    assert (reader.get("/readyz").status_code, reader.get("/readyz").json()) == (200, {"status": "ready"})


@each_case("path", ["/health", "/livez", "/readyz"])
def test_health_is_not_cacheable(reader: httpx.Client, path: str) -> None:
    assert reader.get(path).headers["Cache-Control"] == "no-store"


REQUESTS: dict[str, Callable[[httpx.Client], httpx.Response]] = {
    **{f"GET {path}": lambda client, path=path: client.get(path) for path in FREE},
    "HEAD": lambda client: client.head("/services"),
    "400": lambda client: client.post(PHISHING, json={"url": 1}),
    "402": lambda client: client.post(PHISHING, json=QUESTION),
    "402 without a body": lambda client: client.post(PHISHING),
    "402 for a malformed payment": lambda client: client.post(
        PHISHING, json=QUESTION, headers={"PAYMENT-SIGNATURE": "?"}
    ),
    "404": lambda client: client.get("/nowhere"),
    "405": lambda client: client.delete("/"),
    "OPTIONS": lambda client: client.options(PHISHING),
    "preflight": lambda client: client.options(
        PHISHING, headers={"Origin": ELSEWHERE, "Access-Control-Request-Method": "POST"}
    ),
    "preflight refused": lambda client: client.options(
        PHISHING, headers={"Origin": ELSEWHERE, "Access-Control-Request-Method": "DELETE"}
    ),
}


@each_case("request_", REQUESTS)
def test_every_response_has_one_request_id(
    reader: httpx.Client, request_: Callable[[httpx.Client], httpx.Response]
) -> None:
    response = request_(reader)

    ids = response.headers.get_list("X-Request-Id")
    assert len(ids) == 1
    assert re.fullmatch(r"req_[0-9a-f]{24}", ids[0])


def test_payment_of_earlier_protocol_version_is_named(reader: httpx.Client) -> None:
    response = reader.post(PHISHING, json=QUESTION, headers={"X-PAYMENT": "e30="})

    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (402, "payment_required")
    assert "X-PAYMENT is the header of x402 version 1" in error["message"]
    assert "PAYMENT-REQUIRED" in response.headers


@each_case("status", ["400", "402", "404", "405"])
def test_error_has_request_id_of_header(reader: httpx.Client, status: str) -> None:
    response = REQUESTS[status](reader)

    assert str(response.status_code) == status
    assert response.json()["requestId"] == response.headers["X-Request-Id"]


def test_request_ids_differ(reader: httpx.Client) -> None:
    assert len({reader.get("/livez").headers["X-Request-Id"] for _ in range(20)}) == 20


def test_any_origin_may_call_by_default(reader: httpx.Client) -> None:
    response = reader.options(
        PHISHING,
        headers={
            "Origin": ELSEWHERE,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "content-type, payment-signature",
        },
    )

    assert response.status_code == 200
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert "post" in parse_list(response.headers["Access-Control-Allow-Methods"])
    allowed = parse_list(response.headers["Access-Control-Allow-Headers"])
    assert {"content-type", "payment-signature"} <= allowed
    assert response.headers["X-Request-Id"].startswith("req_")


@each_case("path", ["/services", PHISHING, "/nowhere"])
def test_payment_headers_are_readable_cross_origin(reader: httpx.Client, path: str) -> None:
    response = reader.post(path, json=QUESTION, headers={"Origin": ELSEWHERE})

    assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert parse_list(response.headers["Access-Control-Expose-Headers"]) >= EXPOSED


def test_browsers_send_no_credentials(reader: httpx.Client) -> None:
    response = reader.get("/services", headers={"Origin": ELSEWHERE})

    assert "Access-Control-Allow-Credentials" not in response.headers


def test_only_configured_origins_may_call(api: ApiFactory, settings: Settings) -> None:
    client = api(settings.model_copy(update={"allowed_origins": (ELSEWHERE,)}))
    asking = {"Access-Control-Request-Method": "POST"}

    known = client.options(PHISHING, headers={"Origin": ELSEWHERE, **asking})
    unknown = client.options(PHISHING, headers={"Origin": "https://other.example", **asking})

    assert known.headers["Access-Control-Allow-Origin"] == ELSEWHERE
    assert "Access-Control-Allow-Origin" not in unknown.headers
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (400, "validation_error")
    assert 'pages of "https://other.example" may not call' in unknown.json()["error"]["message"]


def test_preflight_of_other_method_names_those_that_pages_may_use(reader: httpx.Client) -> None:
    response = REQUESTS["preflight refused"](reader)

    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (400, "validation_error")
    assert error["message"] == "pages of other origins may use GET, HEAD, POST only"
    assert response.headers["Access-Control-Allow-Origin"] == "*"


def test_response_for_one_origin_varies_by_origin(api: ApiFactory, settings: Settings) -> None:
    client = api(settings.model_copy(update={"allowed_origins": (ELSEWHERE,)}))

    known = client.get("/services", headers={"Origin": ELSEWHERE})
    unknown = client.get("/services", headers={"Origin": "https://other.example"})

    assert known.headers["Access-Control-Allow-Origin"] == ELSEWHERE
    assert "Access-Control-Allow-Origin" not in unknown.headers
    assert "origin" in parse_list(known.headers["Vary"])
    assert "origin" in parse_list(unknown.headers["Vary"])


def test_unexpected_error_has_usual_format(unopened_api_client: httpx.Client) -> None:
    response = unopened_api_client.get("/health", headers={"Origin": ELSEWHERE})

    assert response.status_code == 500
    assert response.json()["error"]["code"] == "internal_error"
    assert response.json()["requestId"] == response.headers["X-Request-Id"]
    assert response.headers["Access-Control-Allow-Origin"] == "*"


def test_disconnecting_client_does_no_harm(reader: httpx.Client) -> None:
    where = urlsplit(str(reader.base_url))
    with socket.create_connection((where.hostname or "", where.port or 0)) as line:
        line.sendall(f"POST {PHISHING} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{{".encode())

    assert reader.get("/livez").status_code == 200
