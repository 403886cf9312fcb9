"""Context of the checks: the deployment's settings and open connections."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from urllib.parse import unquote, urlsplit

import aiohttp
from msgspec import Struct
from msgspec.structs import replace
from pydantic import SecretStr

from centgate.environment import PREFIX, node_variable
from centgate.providers.jsonrpc.client import RpcNode
from centgate.resources import Resources, open_resources
from centgate.settings import Settings, is_loopback_host
from centgate.upstream import Upstream

MEGABYTE = 1 << 20
SECRET_LENGTH = 6
"""Minimum length of a part of a secret setting that is redacted."""
PASSWORD_LENGTH = 4
"""Minimum length of a redacted password; a shorter one would match ordinary text."""


class HostUnreachable(Exception):
    """No response was received; the message is the reason, as a clause."""


class TimedReply(Struct, frozen=True):
    """HTTP response."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    duration: float
    estimated_time: float
    """Estimated time of the response, in seconds since 1970: half-way between request and response."""


_LIST_KEYS = {
    "PAY_TO": "payTo",
    "NETWORK": "network",
    "ASSET": "asset",
    "ASSET_NAME": "name",
    "ASSET_VERSION": "version",
}
"""Keys of an entry of `CENTGATE_ACCEPTS` by the setting of a single token."""


class DoctorContext(Struct, frozen=True, dict=True):
    """Settings and connections passed to each check."""

    settings: Settings
    resources: Resources
    send_test_alert: bool = False
    is_from_list: bool = False
    """True if the settings are those of one entry of `CENTGATE_ACCEPTS`."""

    @property
    def by_token(self) -> Mapping[str, DoctorContext]:
        """A context for each accepted token, with the settings of a deployment that accepts it alone.

        Its name is the network, with the token's address if the network has several. Without a payee there is
        this context alone.
        """
        tokens = self.settings.accepted_tokens
        networks = [each.network for each in tokens]
        names = [
            each.network if networks.count(each.network) == 1 else f"{each.network} {each.asset.address}"
            for each in tokens
        ]
        contexts = [
            replace(
                self,
                settings=self.settings.with_token(each),
                is_from_list=bool(self.settings.accepts),
            )
            for each in tokens
        ]
        return dict(zip(names, contexts, strict=True)) or {self.settings.network: self}

    @property
    def by_network(self) -> Mapping[str, DoctorContext]:
        """A context for each payment network: that of its first token."""
        contexts: dict[str, DoctorContext] = {}
        for each in self.by_token.values():
            contexts.setdefault(each.settings.network, each)
        return contexts

    def setting_name(self, name: str) -> str:
        """Return how operators set a token's `PAY_TO`, `ASSET`, `ASSET_NAME` or `ASSET_VERSION`."""
        return f"`{_LIST_KEYS[name]}` in {PREFIX}ACCEPTS" if self.is_from_list else PREFIX + name

    @cached_property
    def node(self) -> RpcNode | None:
        """Node of the payment network for settlement lookups; None if none is set."""
        url = self.settings.rpc_url
        return None if url is None else self.create_node(url)

    def create_node(self, url: str) -> RpcNode:
        """Create the client of a node of the payment network."""
        upstream = Upstream("node", "the node", self.resources.session, max_bytes=4 * MEGABYTE, max_wait=5)
        return RpcNode(url, upstream)

    @cached_property
    def node_setting(self) -> str:
        """Name of the setting with this node's URL."""
        return node_variable(self.settings.network)

    @cached_property
    def secrets(self) -> tuple[str, ...]:
        """Secrets to redact, longest first."""
        return tuple(sorted(set(_find_secrets(self.settings)), key=len, reverse=True))

    async def request(
        self, url: str, *, method: str = "GET", headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> TimedReply:
        """Send one request, without following redirects. Raises HostUnreachable if there is no response."""
        started, sent = time.perf_counter(), time.time()
        try:
            async with self.resources.session.request(
                method, url, headers=headers, data=body or None, allow_redirects=False
            ) as response:
                content = await response.content.read(MEGABYTE)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise HostUnreachable(_describe_error(error)) from error
        seconds = time.perf_counter() - started
        return TimedReply(response.status, response.headers, content, seconds, sent + seconds / 2)


@asynccontextmanager
async def open_context(settings: Settings, *, send_test_alert: bool = False) -> AsyncGenerator[DoctorContext]:
    """Open the connections of the checks, and close them."""
    async with open_resources(settings) as resources:
        yield DoctorContext(settings, resources, send_test_alert)


def display_origin(url: str) -> str:
    """Return scheme, host and port of a URL; the rest may contain keys."""
    try:
        parts = urlsplit(url)
        if not parts.hostname:
            return "an invalid URL"
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        return f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")
    except ValueError:
        return "an invalid URL"


def is_loopback(url: str) -> bool:
    """Return True if a URL is on this machine."""
    return is_loopback_host(urlsplit(url).hostname or "")


def is_unencrypted(url: str) -> bool:
    """Return True if requests to a URL cross a network unencrypted."""
    return urlsplit(url).scheme == "http" and not is_loopback(url)


def _describe_error(error: Exception) -> str:
    """Describe a connection error for operators."""
    match error:
        case TimeoutError():
            return "it did not respond in time"
        case aiohttp.ClientConnectorCertificateError():
            return "its certificate does not match this name, or is not from a trusted authority"
        case aiohttp.ClientConnectorDNSError():
            return "its name cannot be resolved"
        case aiohttp.ClientSSLError():
            return "the TLS handshake failed"
        case aiohttp.ClientConnectorError():
            return f"the connection failed ({error.os_error.strerror or 'no reason given'})"
        case aiohttp.ServerDisconnectedError():
            return "it closed the connection without a response"
        case aiohttp.ClientResponseError():
            return f"it sent invalid HTTP ({error.message[:80]})"
        case aiohttp.InvalidURL() | ValueError():
            return "its URL is invalid"
        case _:
            return f"the connection failed ({type(error).__name__})"


def _find_secrets(settings: Settings) -> Iterator[str]:
    """Find keys and passwords in the settings and in their URLs."""
    values = [getattr(settings, name) for name in Settings.model_fields if name != "providers"]
    keys = [value for value in values if isinstance(value, SecretStr)]
    keys += [provider.key for provider in settings.providers.values() if provider.key]
    for key in keys:
        yield from _split_secret(r":", key.get_secret_value())
    urls = [settings.database_url, settings.cache_url, settings.alert_webhook, settings.webhook_url]
    urls += [account.url for account in settings.facilitators]
    urls += [url for each in settings.providers.values() if each.url for url in each.url.split(",")]
    for url in urls:
        yield from _find_url_secrets(url or "")


def _find_url_secrets(url: str) -> Iterator[str]:
    """Find the password of a URL, and possible keys in its path and query."""
    # also for an invalid URL, such as one whose password contains a slash or a bracket
    authority = url.partition("://")[2].rpartition("@")[0]
    if authority:
        password = authority.partition(":")[2] or authority
        yield from (word for word in {password, unquote(password)} if len(word) >= PASSWORD_LENGTH)
    with suppress(ValueError):
        parts = urlsplit(url if url.startswith("http") else "")
        yield from (
            word for word in re.split(r"[/?&=]", parts.path + "?" + parts.query) if _looks_like_key(word)
        )


def _looks_like_key(word: str) -> bool:
    return len(word) >= 16 or (len(word) >= SECRET_LENGTH and any(map(str.isdigit, word)))


def _split_secret(separator: str, secret: str) -> Iterator[str]:
    yield from (part for part in [secret, *re.split(separator, secret)] if len(part) >= SECRET_LENGTH)
