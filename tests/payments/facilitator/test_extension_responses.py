"""Extension responses of the facilitator (its directory): logged, counted, shown, never trusted."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import structlog
from buyer import Buyer, pay, sign_payment
from facilitators import Reply, StubFacilitator, build_settings, open_stub_facilitator
from served_api import run_api_process
from starlette.responses import JSONResponse, Response
from structlog.testing import capture_logs

from centgate.cli.doctor.context import open_context
from centgate.cli.doctor.registry import select_checks
from centgate.findings import Finding
from centgate.payments.facilitator.extension_responses import DirectoryResponses, parse_directory_response
from centgate.settings import Settings


def encode_header_value(content: Any) -> str:
    return b64encode(orjson.dumps(content)).decode()


REJECTED = encode_header_value(
    {"bazaar": {"status": "rejected", "rejectedReason": "no\nschema \u202e", "code": "E7"}}
)


def test_rejection_is_read_as_one_clean_line() -> None:
    response = parse_directory_response(REJECTED)

    assert response is not None
    assert (response.status, response.reason, response.code) == (
        "rejected",
        "no schema",
        "E7",
    )


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "!",
        encode_header_value([]),
        encode_header_value({}),
        encode_header_value({"bazaar": []}),
        encode_header_value({"bazaar": {"status": 7}}),
        "A" * 20_000,
        "bm90IGpzb24=",
    ],
)
def test_unreadable_header_is_absent(header: str | None) -> None:
    assert parse_directory_response(header) is None


def test_changed_response_of_service_is_logged() -> None:
    responses, accepted = DirectoryResponses(), encode_header_value({"bazaar": {"status": "success"}})
    configured = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("info"))

    with capture_logs() as lines:
        for header in (REJECTED, REJECTED, accepted, None, accepted):
            responses.record("crawler-map", header)
    structlog.configure(**configured)

    assert [line["status"] for line in lines] == ["rejected", "success"]


def test_rejection_is_logged_counted_and_kept_from_buyers(tmp_path: Path, buyer: Buyer) -> None:
    log = tmp_path / "log"
    with open_stub_facilitator() as stub:
        stub.usually = reply_with_directory(stub)
        settings = build_settings(tmp_path, stub.url)
        with (
            run_api_process(settings, log=log, METRICS_PORT="0", LOG_LEVEL="info") as process,
            httpx.Client(base_url=process.url, timeout=30) as client,
        ):
            responses = [pay(client, sign_payment(client, buyer)) for _ in range(2)]
            lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
            port = next(line["port"] for line in lines if line["event"] == "metrics are served")
            finding = asyncio.run(
                run_named_check(settings.model_copy(update={"metrics_port": port}), "directories")
            )

    (logged,) = [line for line in lines if line["event"] == "a directory response was received"]
    assert (logged["service"], logged["status"], logged["reason"]) == (
        "phishing-check",
        "rejected",
        "no schema",
    )
    assert [response.status_code for response in responses] == [200, 200]
    assert "extension-responses" not in responses[0].headers
    assert finding.status == "warning"
    assert "rejected phishing-check" in finding.what


async def run_named_check(settings: Settings, name: str) -> Finding:
    (check,) = select_checks([name])
    async with open_context(settings) as deployment:
        return await check.run(deployment)


def reply_with_directory(stub: StubFacilitator) -> Reply:
    """Return a working reply with the directory's rejection in its header."""

    async def reply(body: dict[str, Any]) -> Response:
        return JSONResponse(stub.move(body), headers={"EXTENSION-RESPONSES": REJECTED})

    return reply
