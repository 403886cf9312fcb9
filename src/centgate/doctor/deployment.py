"""The deployment that is looked at: its settings, and connections to look with."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address
from urllib.parse import unquote, urlsplit

import aiohttp
from pydantic import SecretStr

from centgate.jsonrpc.nodes import Node
from centgate.resources import Resources, open_resources
from centgate.settings import PREFIX, Settings
from centgate.upstream import Upstream

MEGABYTE = 1 << 20
SECRET_LENGTH = 6
"""Characters from which a part of a secret setting is one, and not a word."""
PASSWORD_LENGTH = 4
"""The same of a password, which is one however short; a shorter one cannot be told from the text."""


class Unreached(Exception):
    """There was no answer; the message says why, as a clause."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer over HTTP."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float
    at: float
    """When it was on its way, in seconds since 1970: half-way between question and answer."""


@dataclass(frozen=True)
class Deployment:
    """What the checks are given."""

    settings: Settings
    resources: Resources
    send_test_alert: bool = False

    @cached_property
    def node(self) -> Node | None:
        """The node of the payment network that outcomes are looked up at, if one is set."""
        url = self.settings.rpc_url
        if url is None:
            return None
        session = self.resources.session
        return Node(url, Upstream("node", "the node", session, max_bytes=4 * MEGABYTE, patience=5))

    @cached_property
    def node_setting(self) -> str:
        """The name of the setting that names this node."""
        return f"{PREFIX}RPC_{self.settings.chain_id}_URL"

    @cached_property
    def secrets(self) -> tuple[str, ...]:
        """What is not to be shown, longest first."""
        return tuple(sorted(set(_secrets(self.settings)), key=len, reverse=True))

    async def ask(
        self, url: str, *, method: str = "GET", headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Reply:
        """One request, no redirect followed; Unreached when it has no answer."""
        started, sent = time.perf_counter(), time.time()
        try:
            async with self.resources.session.request(
                method, url, headers=headers, data=body or None, allow_redirects=False
            ) as response:
                content = await response.content.read(MEGABYTE)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Unreached(_why(error)) from error
        seconds = time.perf_counter() - started
        return Reply(response.status, response.headers, content, seconds, sent + seconds / 2)


@asynccontextmanager
async def open_deployment(settings: Settings, *, send_test_alert: bool = False) -> AsyncGenerator[Deployment]:
    """Open what the checks look with, and close it."""
    async with open_resources(settings) as resources:
        yield Deployment(settings, resources, send_test_alert)


def host(url: str) -> str:
    """As much of an address as may be shown: keys stand in the rest of some."""
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
    except ValueError:
        return "an address that cannot be read"


def is_loopback(url: str) -> bool:
    """Whether an address is on this machine."""
    name = urlsplit(url).hostname or ""
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False


def in_the_clear(url: str) -> bool:
    """Whether what is sent to an address can be read on its way over a network."""
    return urlsplit(url).scheme == "http" and not is_loopback(url)


def _why(error: Exception) -> str:
    """What went wrong with a connection, in an operator's words."""
    match error:
        case TimeoutError():
            return "it cannot be reached in time"
        case aiohttp.ClientConnectorCertificateError():
            return "its certificate is not good for this name, or nobody known has signed it"
        case aiohttp.ClientConnectorDNSError():
            return "its name is not known"
        case aiohttp.ClientSSLError():
            return "it does not speak TLS as it should"
        case aiohttp.ClientConnectorError():
            return f"it cannot be connected to ({error.os_error.strerror or 'no reason given'})"
        case aiohttp.ServerDisconnectedError():
            return "it closed the connection without an answer"
        case aiohttp.ClientResponseError():
            return f"it answered in HTTP that cannot be read ({error.message[:80]})"
        case aiohttp.InvalidURL() | ValueError():
            return "its address cannot be used"
        case _:
            return f"the connection failed ({type(error).__name__})"


def _secrets(settings: Settings) -> Iterator[str]:
    """Keys and passwords, in the settings and in the addresses they hold."""
    values = [getattr(settings, name) for name in Settings.model_fields if name != "providers"]
    keys = [value for value in values if isinstance(value, SecretStr)]
    keys += [provider.key for provider in settings.providers.values() if provider.key]
    for key in keys:
        yield from _parts(r":", key.get_secret_value())
    urls = [settings.database_url, settings.cache_url, settings.alert_webhook]
    urls += [url for each in settings.providers.values() if each.url for url in each.url.split(",")]
    for url in urls:
        yield from _in_address(url or "")


def _in_address(url: str) -> Iterator[str]:
    """A password, and what may be a key in the path or behind it."""
    # also of an address that is none, as one whose password has a slash or a bracket in it
    authority = url.partition("://")[2].rpartition("@")[0]
    if authority:
        password = authority.partition(":")[2] or authority
        yield from (word for word in {password, unquote(password)} if len(word) >= PASSWORD_LENGTH)
    with suppress(ValueError):
        parts = urlsplit(url if url.startswith("http") else "")
        yield from (word for word in re.split(r"[/?&=]", parts.path + "?" + parts.query) if _like_a_key(word))


def _like_a_key(word: str) -> bool:
    return len(word) >= 16 or (len(word) >= SECRET_LENGTH and any(map(str.isdigit, word)))


def _parts(separator: str, secret: str) -> Iterator[str]:
    yield from (part for part in [secret, *re.split(separator, secret)] if len(part) >= SECRET_LENGTH)
