"""Payment terms as buyers' tools read them: x402's own models and the validators of its extensions."""

# x402 is typed, and does not say so
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import jsonschema
import pytest
from buyer import PHISHING, decode_header
from served_api import ServedApi, serve_api
from x402.extensions.bazaar import (
    validate_discovery_extension,
    validate_discovery_extension_spec,
)
from x402.extensions.bazaar.types import parse_discovery_extension
from x402.extensions.payment_identifier import declare_payment_identifier_extension
from x402.schemas import PaymentRequired

from centgate.catalog import all_services
from centgate.devchain.environment import DEFAULT_PAYEE
from centgate.service import AnyService
from centgate.signing.assets import USDC
from centgate.signing.evm import to_checksum_address

MOST = 6144
"""Header size in bytes that every common client and proxy accepts."""

each_service = pytest.mark.parametrize("service", all_services(), ids=lambda service: service.slug)


@pytest.fixture(scope="module")
def served_api(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedApi]:
    """An API that accepts payments, with a public service name."""
    with serve_api(tmp_path_factory.mktemp("served_api"), public_url="https://api.test/") as served_api:
        yield served_api


def fetch_offer(served_api: ServedApi, service: AnyService) -> Any:
    return decode_header(served_api.client.post(service.path).headers["PAYMENT-REQUIRED"])


@each_service
def test_every_service_costs_one_cent_up_front(served_api: ServedApi, service: AnyService) -> None:
    offer = fetch_offer(served_api, service)

    assert offer["accepts"] == [
        {
            "scheme": "exact",
            "network": "eip155:84532",
            "asset": "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
            "amount": "10000",
            "payTo": to_checksum_address(DEFAULT_PAYEE),
            "maxTimeoutSeconds": 120,
            "extra": {"name": "USDC", "version": "2", "paymentFlow": "upfront"},
        }
    ]


@each_service
def test_terms_name_service(served_api: ServedApi, service: AnyService) -> None:
    offer = fetch_offer(served_api, service)

    assert offer["x402Version"] == 2
    assert offer["error"] == "Payment required"
    assert offer["resource"]["url"] == f"https://api.test{service.path}"
    assert offer["resource"]["description"] == service.summary
    assert offer["resource"]["mimeType"] == "application/json"


@each_service
def test_terms_are_valid_x402(served_api: ServedApi, service: AnyService) -> None:
    offer = fetch_offer(served_api, service)

    read = PaymentRequired.model_validate(offer).model_dump(mode="json", by_alias=True, exclude_none=True)

    assert read["accepts"] == offer["accepts"]
    assert read["extensions"] == offer["extensions"]


@each_service
def test_terms_fit_into_header(served_api: ServedApi, service: AnyService) -> None:
    header = served_api.client.post(service.path).headers["PAYMENT-REQUIRED"]

    assert len(header) < MOST


@each_service
def test_service_names_and_tags_keep_x402_lengths(served_api: ServedApi, service: AnyService) -> None:
    resource = fetch_offer(served_api, service)["resource"]

    assert len(resource["serviceName"]) <= 32
    assert len(resource["tags"]) <= 5
    assert all(len(tag) <= 32 for tag in resource["tags"])


@each_service
def test_directories_can_list_service(served_api: ServedApi, service: AnyService) -> None:
    block = fetch_offer(served_api, service)["extensions"]["bazaar"]

    assert validate_discovery_extension_spec(block).errors == []
    assert validate_discovery_extension(block).errors == []
    assert validate_discovery_extension(parse_discovery_extension(block)).errors == []


@pytest.mark.extended
@each_service
def test_example_of_directory_is_valid_request(served_api: ServedApi, service: AnyService) -> None:
    block = fetch_offer(served_api, service)["extensions"]["bazaar"]

    example = block["info"]["input"]["body"]
    jsonschema.validate(example, service.input_schema(84532))
    assert served_api.client.post(service.path, json=example).status_code == 402


@each_service
def test_idempotency_keys_are_offered_as_by_sdk(served_api: ServedApi, service: AnyService) -> None:
    offer = fetch_offer(served_api, service)

    assert offer["extensions"]["payment-identifier"] == declare_payment_identifier_extension()


@pytest.mark.extended
@pytest.mark.parametrize("network", USDC)
def test_token_of_each_network_is_signed_under_its_name(
    tmp_path_factory: pytest.TempPathFactory, network: str
) -> None:
    with serve_api(tmp_path_factory.mktemp("network"), network=network) as served_api:
        response = served_api.client.post(PHISHING)

    (wanted,) = decode_header(response.headers["PAYMENT-REQUIRED"])["accepts"]
    token = USDC[network]
    assert (wanted["network"], wanted["asset"], wanted["extra"]["name"]) == (
        network,
        token.address,
        token.name,
    )


@pytest.mark.extended
def test_window_is_operators_setting(tmp_path_factory: pytest.TempPathFactory) -> None:
    with serve_api(tmp_path_factory.mktemp("window"), payment_window=45) as served_api:
        response = served_api.client.post(PHISHING)

    assert decode_header(response.headers["PAYMENT-REQUIRED"])["accepts"][0]["maxTimeoutSeconds"] == 45
