"""Sourcify: the public registry of verified sources."""

from __future__ import annotations

from typing import Any

from centgate.coercion import as_clean_name, as_count, as_object
from centgate.crypto.contract.contracts import (
    ContractCreation,
    MatchLevel,
    ProxyClaim,
    ProxyKind,
    SourceRecord,
    parse_named_addresses,
)
from centgate.crypto.contract.published_abi import parse_signatures
from centgate.errors import ProviderError
from centgate.provider import Provider, ProviderInfo, instrumented
from centgate.rate_limiter import RateLimit
from centgate.sanitize import quote_line
from centgate.signing.evm import to_checksum_address
from centgate.upstream import UpstreamResponse

FIELDS = "abi,compilation,proxyResolution,deployment.blockNumber"
_MATCH_LEVELS: dict[str | None, MatchLevel] = {"exact_match": "exact", "match": "bytecode", None: "none"}
_PROXY_KINDS: dict[str, ProxyKind] = {
    "EIP1167Proxy": "eip1167",
    "EIP1967Proxy": "eip1967",
    "GnosisSafeProxy": "safe",
    "DiamondProxy": "eip2535",
    "PROXIABLEProxy": "eip1822",
    "ZeppelinOSProxy": "zeppelinos",
}


class Sourcify(Provider):
    """Match level of a contract's source and bytecode, and the implementation behind a proxy."""

    info = ProviderInfo(
        "sourcify",
        "Sourcify",
        docs_url="https://docs.sourcify.dev/docs/api",
        url="https://sourcify.dev",
        resale="permitted",
        terms="Free without a key; its data set is published for anyone to download.",
        rate_limit=RateLimit(5, 1),  # it publishes none, and answers 429 when it is asked too often
        max_bytes=8 << 20,
    )

    @instrumented
    async def source_record(self, chain_id: int, address: str) -> SourceRecord:
        """Return the verified source of an address; match `none` also if there is no contract."""
        url = self.url(f"/server/v2/contract/{chain_id}/{address}")
        reply = await self.upstream.get(url, params={"fields": FIELDS}, accept=(400, 404))
        if reply.status == 400 and _error_code(reply) == "invalid_parameter":
            reply = await self.upstream.get(url, accept=(400, 404))
        body = reply.parse_object()
        if "match" not in body:  # present with either status, whether verified or not
            raise self._parse_error(reply)
        if not _is_about(body, chain_id, address):
            raise self.invalid_response("returned another contract than the one asked for")
        return _parse_contract(body, chain_id, address)

    def _parse_error(self, reply: UpstreamResponse) -> ProviderError:
        """Map an error body to an error."""
        body = reply.parse_object()
        reason = quote_line(str(body.get("message") or body.get("customCode") or ""), 120)
        return self.invalid_response(
            f"refuses: {reason}" if reason else f"answered with status {reply.status}"
        )


def _is_about(body: dict[str, Any], chain_id: int, address: str) -> bool:
    """True unless a body names another chain or address."""
    named_chain, named = body.get("chainId"), body.get("address")
    return str(named_chain or chain_id) == str(chain_id) and str(named or address).lower() == address


def _error_code(reply: UpstreamResponse) -> Any:
    return reply.parse_object().get("customCode")


def _parse_contract(body: dict[str, Any], chain_id: int, address: str) -> SourceRecord:
    match = _MATCH_LEVELS[body["match"]]
    if match == "none":
        return SourceRecord("sourcify", "none", proxy=_parse_proxy(body.get("proxyResolution")))
    compilation = as_object(body.get("compilation"))
    return SourceRecord(
        "sourcify",
        match,
        name=as_clean_name(compilation.get("name")),
        language=as_clean_name(compilation.get("language")),
        compiler_version=as_clean_name(compilation.get("compilerVersion")),
        url=f"https://repo.sourcify.dev/{chain_id}/{to_checksum_address(address)}",
        source_available=True,
        abi_available=isinstance(body["abi"], list) if "abi" in body else None,
        signatures=parse_signatures(body.get("abi")),
        proxy=_parse_proxy(body.get("proxyResolution")),
        created=_parse_creation(as_object(body.get("deployment"))),
    )


def _parse_creation(deployment: dict[str, Any]) -> ContractCreation | None:
    block = as_count(deployment.get("blockNumber"))
    return None if block is None else ContractCreation(block=block)


def _parse_proxy(resolution: Any) -> ProxyClaim | None:
    """Parse the proxy resolution; None if it was not attempted or failed."""
    fields = as_object(resolution)
    is_proxy, kind = fields.get("isProxy"), fields.get("proxyType")
    if not isinstance(is_proxy, bool):
        return None
    value = as_clean_name(kind) or str(is_proxy).lower()
    proxy_kind = _PROXY_KINDS.get(kind, "other") if isinstance(kind, str) and is_proxy else None
    implementations = parse_named_addresses(fields.get("implementations"), "address")
    return ProxyClaim.from_registry(proxy_kind, implementations, "proxyResolution", value, is_proxy=is_proxy)
