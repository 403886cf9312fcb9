"""Directories of paid APIs: their own code finds every service, without warnings."""

# x402 is typed, and does not say so
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from buyer import decode_header
from pydantic import SecretStr
from x402.extensions.bazaar import validate_discovery_extension, validate_discovery_extension_spec

from centgate.catalog import all_services
from centgate.devchain.environment import DEFAULT_PAYEE
from centgate.server import run_in_thread
from centgate.service import AnyService
from centgate.settings import Settings

pytestmark = pytest.mark.extended

PROOF = "0x" + "1f" * 65
MOST_HEADER = 6 * 1024

each_service = pytest.mark.parametrize("service", all_services(), ids=lambda service: service.slug)


@pytest.fixture(scope="session")
def api_url(api_settings: Settings) -> Generator[str]:
    """URL of an API with the operator's name and contact."""
    said = {"operator": "desk@shop.example", "ownership_proofs": (PROOF,)}
    with ExitStack() as open_parts:
        yield open_parts.enter_context(run_in_thread(api_settings.model_copy(update=said)))


@pytest.fixture(scope="session")
def audit(api_url: str, npm_tools: Path) -> dict[str, Any]:
    """Results of AgentCash's own code for the API."""
    return run_audit(api_url, npm_tools)


def run_audit(origin: str, tools: Path) -> dict[str, Any]:
    shutil.copy(Path(__file__).parent / "agentcash.mjs", tools)
    done = subprocess.run(
        ["node", "agentcash.mjs", origin], cwd=tools, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def list_codes(audit: dict[str, Any]) -> list[str]:
    """Return the codes of the warnings, except the one about more than 40 operations."""
    return [each["code"] for each in audit["warnings"] if each["code"] != "L2_ROUTE_COUNT_HIGH"]


def test_only_warning_is_of_older_document(audit: dict[str, Any]) -> None:
    assert list_codes(audit) == ["LEGACY_WELL_KNOWN_FOUND"]


def test_every_service_is_found_paid_without_warning(audit: dict[str, Any]) -> None:
    assert [route["path"] for route in audit["routes"]] == [service.path for service in all_services()]
    assert not any(route["warnings"] for route in audit["routes"])
    assert all(route["valid"] for route in audit["routes"])


def test_signed_offers_are_complete(api_settings: Settings, npm_tools: Path) -> None:
    signing = api_settings.model_copy(update={"receipt_key": SecretStr("0x" + "5e" * 32)})
    with run_in_thread(signing) as origin:
        routes = run_audit(origin, npm_tools)["routes"]

    assert len(routes) == len(all_services())
    assert [route["warnings"] for route in routes if route["warnings"]] == []
    assert all(route["valid"] for route in routes)


def test_described_route_matches_its_terms(audit: dict[str, Any]) -> None:
    for route in audit["routes"]:
        (option,) = route["options"]
        assert (option["amount"], option["payTo"]) == ("10000", DEFAULT_PAYEE)
        assert route["written"]["estimatedPrice"].startswith("0.01")
        assert route["written"]["protocols"] == ["x402"]
        assert {"GET unprotected", "POST paid"} <= set(route["methods"])


def test_owner_is_known(audit: dict[str, Any]) -> None:
    discovered = audit["discovered"]

    assert discovered["trustTier"] == "ownership_verified"
    assert discovered["ownershipProofs"] == [PROOF]
    assert discovered["info"]["contactEmail"] == "desk@shop.example"


def test_missing_owner_is_reported(reader: httpx.Client, npm_tools: Path) -> None:
    audit = run_audit(str(reader.base_url).rstrip("/"), npm_tools)

    assert list_codes(audit) == ["OPENAPI_CONTACT_MISSING", "LEGACY_WELL_KNOWN_FOUND"]


@pytest.mark.parametrize("body", [b"", b"{}", b"example"], ids=["no body", "empty object", "of the example"])
@each_service
def test_probe_gets_terms(reader: httpx.Client, service: AnyService, body: bytes) -> None:
    content = json.dumps(service.input_example).encode() if body == b"example" else body

    response = reader.post(service.path, content=content, headers={"Content-Type": "application/json"})

    assert response.status_code == 402
    offer = decode_header(response.headers["PAYMENT-REQUIRED"])
    assert offer["accepts"] == response.json()["error"]["details"]["accepts"]
    assert response.headers["Cache-Control"] == "no-store"


def test_probe_learns_required_body(reader: httpx.Client) -> None:
    response = reader.post("/services/pool-snapshot", json={})

    issues = response.json()["error"]["details"]["issues"]
    assert response.status_code == 402
    assert response.headers["PAYMENT-REQUIRED"]
    assert "exactly one of tokenAddress or pairAddress is required" in {each["message"] for each in issues}


@pytest.mark.parametrize("body", [b"{ }", b" {}\n"])
def test_probe_with_spaces_gets_terms(reader: httpx.Client, body: bytes) -> None:
    assert reader.post("/services/pool-snapshot", content=body).status_code == 402


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@each_service
def test_get_probe_gets_description(reader: httpx.Client, service: AnyService, method: str) -> None:
    response = reader.request(method, service.path)

    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json"
    assert "PAYMENT-REQUIRED" not in response.headers


@each_service
def test_terms_are_accepted_by_directories(reader: httpx.Client, service: AnyService) -> None:
    header = reader.post(service.path).headers["PAYMENT-REQUIRED"]

    offer = decode_header(header)
    resource, block = offer["resource"], offer["extensions"]["bazaar"]
    assert len(header) < MOST_HEADER
    assert validate_discovery_extension(block).errors == []
    assert validate_discovery_extension_spec(block).errors == []
    assert 0 < len(resource["description"]) <= 500
    assert 0 < len(resource["serviceName"]) <= 32
    assert 0 < len(resource["tags"]) <= 5
    assert all(0 < len(tag) <= 32 for tag in resource["tags"])
    assert len({tag.lower() for tag in resource["tags"]}) == len(resource["tags"])
    assert all(text.isascii() and text.isprintable() for text in (*resource["tags"], resource["serviceName"]))
