"""Doctor check of MPP at the public URL; each test breaks one thing."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from databases import reserve_port
from doctor_fixtures import UNREACHABLE_URL, ResponseChange, run_check, serve_proxy, with_changes
from facilitators import build_settings
from mpp_buyer import MPP_SETTINGS
from pydantic import SecretStr

from centgate.server import run_in_thread
from centgate.settings import Settings


@pytest.fixture(scope="module")
def served_settings(tmp_path_factory: pytest.TempPathFactory) -> Generator[Settings]:
    """An API that accepts MPP, and its settings: the public URL is where it listens."""
    folder = tmp_path_factory.mktemp("served")
    with reserve_port() as port:
        public_url = f"http://127.0.0.1:{port}"
        settings = build_settings(folder, UNREACHABLE_URL, port=port, public_url=public_url, **MPP_SETTINGS)
        with run_in_thread(settings):
            yield settings


async def test_server_with_mpp_passes(served_settings: Settings) -> None:
    assert (await run_check(served_settings, "mpp")).status == "ok"


async def test_deployment_without_mpp_is_skipped(settings: Settings) -> None:
    assert (await run_check(settings, "mpp")).status == "skipped"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"mpp_secret": SecretStr("s" * 40)}, "another secret"),
        ({"public_url": UNREACHABLE_URL}, "does not respond"),
    ],
    ids=["secret", "down"],
)
async def test_other_deployment_at_public_url_is_reported(
    served_settings: Settings, changes: dict[str, Any], reason: str
) -> None:
    finding = await run_check(with_changes(served_settings, **changes), "mpp")
    assert (finding.status, reason in finding.what) == ("failed", True), finding


def _drop_challenge(_request: dict[str, str], status: int, headers: dict[str, str]) -> int:
    headers.pop("www-authenticate", None)
    return status


def _change_realm(_request: dict[str, str], status: int, headers: dict[str, str]) -> int:
    if "www-authenticate" in headers:
        headers["www-authenticate"] = headers["www-authenticate"].replace("127.0.0.1", "inner.example")
    return status


def _forward(_request: dict[str, str], status: int, _headers: dict[str, str]) -> int:
    return status


@pytest.mark.extended
@pytest.mark.parametrize(
    ("change", "drop", "reason"),
    [
        (_drop_challenge, "", "no challenge"),
        (_change_realm, "", "realm"),
        (_forward, "authorization", "does not reach"),
    ],
    ids=["challenge", "realm", "authorization"],
)
async def test_proxy_that_damages_mpp_headers_is_reported(
    served_settings: Settings, change: ResponseChange, drop: str, reason: str
) -> None:
    with serve_proxy(served_settings.port, change, drop=drop) as url:
        finding = await run_check(with_changes(served_settings, public_url=url), "mpp")
    assert (finding.status, reason in finding.what) == ("failed", True), finding
