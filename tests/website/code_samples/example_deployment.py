"""Deployment whose services all return their examples, and its payer."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial

import orjson
import pytest
from databases import redis_server
from fake_upstreams import configure_providers
from pydantic import SecretStr

from centgate.cache.redis import open_redis
from centgate.cache.redis_responses import SharedResponses
from centgate.cache.response_cache import MemoryCache, ResponseCache
from centgate.catalog import all_providers, all_services
from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.envelope import ServiceResult
from centgate.pipeline import request_digest
from centgate.server import run_in_thread
from centgate.settings import ProviderSettings, Settings

PAYER = BUYER_ACCOUNTS[3]
LONGER_THAN_THE_TESTS = timedelta(days=1)
TIMEOUT = 60.0


@contextmanager
def run_with_examples(settings: Settings) -> Generator[str]:
    """Run an API beside a Redis server that has the example of each cached service; yields the API's URL.

    To the API they are the answers of another server. Every provider is configured, and none can be reached.
    """
    unreachable = ProviderSettings(url="http://127.0.0.1:9", key=SecretStr("a-key"))
    providers = dict.fromkeys(all_providers(all_services()), unreachable)
    with redis_server() as redis, pytest.MonkeyPatch.context() as patch:
        asyncio.run(_store_examples(redis.url))
        # an answer that is not read in time would be requested from its sources
        patch.setattr("centgate.cache.redis.open_redis", partial(open_redis, timeout=TIMEOUT))
        shared = settings.model_copy(update={"cache_url": redis.url})
        with run_in_thread(configure_providers(shared, providers)) as url:
            yield url


async def _store_examples(redis_url: str) -> None:
    """Compute the example of each service, as a server that shares its answers does."""
    async with open_redis(redis_url, TIMEOUT) as redis:
        while not redis.is_up:  # noqa: ASYNC110 - it has no event to wait for
            await asyncio.sleep(0.01)
        responses = ResponseCache(MemoryCache(), SharedResponses(redis))
        for service in all_services():
            example = ServiceResult(orjson.dumps(service.output_example), [], [])

            async def compute(result: ServiceResult = example) -> ServiceResult:
                return result

            digest = request_digest(service, service.example_request)
            await responses.get_or_compute(digest, LONGER_THAN_THE_TESTS, compute)
