"""HTTP proxies: the one in the client's settings, and those of the environment only on request."""

from __future__ import annotations

import pytest
from hostile import SLUG, HostileApi
from pydantic import ValidationError

from centgate.client.async_client import AsyncCentgate
from centgate.client.errors import Unreachable
from centgate.client.settings import BuyerSettings
from centgate.client.sync_client import Centgate

NOWHERE = "http://nowhere.local:8402"
"""URL of an API that resolves only through a proxy."""


def test_sync_client_uses_configured_proxy(hostile: HostileApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CENTGATE_API_URL", NOWHERE)
    monkeypatch.setenv("CENTGATE_PROXY", hostile.url)

    with Centgate.from_settings() as client, pytest.raises(Exception, match="no service"):
        client.service(SLUG)

    assert [each.path for each in hostile.requests] == [f"{NOWHERE}/services/{SLUG}"]


async def test_async_client_uses_environment_proxy_on_request(
    hostile: HostileApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", hostile.url)
    settings = BuyerSettings(api_url=NOWHERE, proxy="environment")

    async with AsyncCentgate.from_settings(settings) as client:
        with pytest.raises(Exception, match="no service"):
            await client.service(SLUG)

    assert len(hostile.requests) == 1


def test_environment_proxy_is_not_used_by_default(
    hostile: HostileApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", hostile.url)

    with Centgate.from_settings(BuyerSettings(api_url=NOWHERE)) as client, pytest.raises(Unreachable):
        client.service(SLUG)

    assert hostile.requests == []


@pytest.mark.parametrize("proxy", ["yes", "socks5://127.0.0.1:1", "http://", "http://a:b", "http://[x"])
def test_invalid_proxy_is_reported(proxy: str) -> None:
    with pytest.raises(ValidationError, match="a proxy is"):
        BuyerSettings(proxy=proxy)
