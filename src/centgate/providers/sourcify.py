"""Sourcify: the public registry of verified sources."""

from __future__ import annotations

from typing import Any, cast

from centgate.errors import ProviderError
from centgate.evm import checksummed
from centgate.facts.contracts import Created, MatchLevel, ProxyClaim, ProxyKind, Published, named
from centgate.provider import About, Provider, reported
from centgate.readings import count, name
from centgate.text import cleaned
from centgate.upstream import Rate, Reply

FIELDS = "abi,compilation,proxyResolution,deployment.blockNumber"
_MATCHES: dict[str | None, MatchLevel] = {"exact_match": "exact", "match": "bytecode", None: "none"}
_KINDS: dict[str, ProxyKind] = {
    "EIP1167Proxy": "eip1167",
    "EIP1967Proxy": "eip1967",
    "GnosisSafeProxy": "safe",
    "DiamondProxy": "eip2535",
    "PROXIABLEProxy": "eip1822",
    "ZeppelinOSProxy": "zeppelinos",
}


class Sourcify(Provider):
    """How closely a contract's source matches its byte code, and what a proxy points to."""

    about = About(
        "sourcify",
        "Sourcify",
        docs_url="https://docs.sourcify.dev/docs/api",
        url="https://sourcify.dev",
        terms="Free without a key.",
        rate=Rate(5, 1),  # it publishes none, and answers 429 when it is asked too often
        max_bytes=8 << 20,
    )

    @reported
    async def published(self, chain_id: int, address: str) -> Published:
        """What is published of the code at an address; `none` also where there is no contract at all."""
        url = self.url(f"/server/v2/contract/{chain_id}/{address}")
        reply = await self.upstream.get(url, params={"fields": FIELDS}, accept=(400, 404))
        if reply.status == 400 and _code(reply) == "invalid_parameter":
            reply = await self.upstream.get(url, accept=(400, 404))
        body = reply.json()
        if "match" not in body:  # whether it is verified is said by this, under either status
            raise self._refusal(reply)
        return _published(body, chain_id, address)

    def _refusal(self, reply: Reply) -> ProviderError:
        """What a body means that is no answer."""
        said: dict[str, Any] = reply.json()
        about = cleaned(str(said.get("message") or said.get("customCode") or ""), 120)
        return self.failed(f"refuses: {about}" if about else f"answered with status {reply.status}")


def _code(reply: Reply) -> Any:
    return reply.json().get("customCode")


def _published(body: dict[str, Any], chain_id: int, address: str) -> Published:
    match = _MATCHES[body["match"]]
    if match == "none":
        return Published("sourcify", "none", proxy=_proxy(body.get("proxyResolution")))
    compilation = _object(body.get("compilation"))
    return Published(
        "sourcify",
        match,
        name=name(compilation.get("name")),
        language=name(compilation.get("language")),
        compiler_version=name(compilation.get("compilerVersion")),
        url=f"https://repo.sourcify.dev/{chain_id}/{checksummed(address)}",
        source_available=True,
        abi_available=isinstance(body["abi"], list) if "abi" in body else None,
        proxy=_proxy(body.get("proxyResolution")),
        created=_created(_object(body.get("deployment"))),
    )


def _object(value: Any) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def _created(deployment: dict[str, Any]) -> Created | None:
    block = count(deployment.get("blockNumber"))
    return None if block is None else Created(block=block)


def _proxy(resolution: Any) -> ProxyClaim | None:
    """What it found the contract to point to; None where it did not look or could not."""
    found = _object(resolution)
    is_proxy, kind = found.get("isProxy"), found.get("proxyType")
    if not isinstance(is_proxy, bool):
        return None
    said = name(kind) or str(is_proxy).lower()
    ours = _KINDS.get(kind, "other") if isinstance(kind, str) and is_proxy else None
    implementations = named(found.get("implementations"), "address")
    return ProxyClaim.told(ours, implementations, "proxyResolution", said, is_proxy=is_proxy)
