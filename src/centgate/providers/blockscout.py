"""Blockscout: an explorer of accounts, contracts and transfers, every chain but bsc."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urljoin, urlsplit

from centgate.errors import NoData, ProviderFailure
from centgate.facts.contracts import (
    Created,
    MatchLevel,
    NamedAddress,
    ProxyClaim,
    ProxyKind,
    Published,
    an_address,
    licence,
    named,
)
from centgate.facts.wallets import Coin, Holding, Movement
from centgate.jsonrpc.nodes import at_once
from centgate.provider import About, Provider, reported
from centgate.providers.blockscout_wallet import (
    JsonObject,
    page_rows,
    parse_holding,
    parse_native_transfer,
    parse_token_transfer,
)
from centgate.readings import base_units, moment, name, price
from centgate.sources import together
from centgate.text import cleaned
from centgate.upstream import Rate, Reply, Upstream, joined

if TYPE_CHECKING:
    from centgate.resources import Resources
    from centgate.settings import Settings

HOSTS = {
    1: "https://eth.blockscout.com",
    8453: "https://base.blockscout.com",
    137: "https://polygon.blockscout.com",
    42161: "https://arbitrum.blockscout.com",
    10: "https://explorer.optimism.io",
}
"""Its own hosts, which answer without a key; there is none for bsc."""
GATEWAY = "https://api.blockscout.com"
TRUSTED = frozenset({urlsplit(host).hostname for host in (*HOSTS.values(), GATEWAY)}) | {
    "optimism.blockscout.com"
}
"""Hosts that a redirect may lead to: some instances have moved to other operators."""
KEYED = Rate(5, 1)
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_SPEAKING = _REDIRECTS | {404, 422}

_KINDS: dict[str, ProxyKind] = {
    "eip1167": "eip1167",
    "minimal_proxy": "eip1167",
    "eip1967": "eip1967",
    "eip1822": "eip1822",
    "eip1967_oz": "zeppelinos",
    "eip1967_beacon": "eip1967_beacon",
    "master_copy": "safe",
    "eip2535": "eip2535",
    "clone_with_immutable_arguments": "clone_with_immutable_args",
    "eip7702": "eip7702",
}


@dataclass(frozen=True, slots=True)
class ExploredAccount:
    """What the explorer says of an address itself."""

    is_contract: bool | None
    name: str | None
    proxy: ProxyClaim | None
    created: Created | None


class Blockscout(Provider):
    """Accounts, token balances, transfers and verified contracts.

    Each chain has a host of its own; with a key all are asked through the gateway. `CENTGATE_BLOCKSCOUT_URL`
    stands in for either, and `CENTGATE_BLOCKSCOUT_<CHAINID>_URL` for one chain's host, also of a chain that
    has none here.
    """

    about = About(
        "blockscout",
        "Blockscout",
        docs_url="https://docs.blockscout.com",
        url=GATEWAY,
        terms="Its own hosts answer without a key at about 3 requests a second; the gateway needs one, and a "
        "free key has 100,000 credits a day at 20 a request.",
        key="optional",
        rate=Rate(3, 1),
        per_chain=True,
    )

    def __init__(self, settings: Settings, resources: Resources | None = None) -> None:
        super().__init__(settings, resources)
        chains = {*HOSTS, 56, settings.development_chain or 56}
        own = {chain: settings.provider(f"blockscout_{chain}") for chain in chains}
        self._own = {chain: given.url for chain, given in own.items() if given.url and given.enabled}
        off = {chain for chain, given in own.items() if not given.enabled}
        self._chains = ({*HOSTS} | {*self._own}) - off
        self._hosts: dict[int, Upstream] = {
            chain: self.way_out(resources, settings, part=str(chain))
            for chain in self._chains
            if not self._shares(chain)
        }

    @property
    def rate(self) -> Rate | None:
        """As every provider's, but a key allows more calls."""
        return super().rate if self.key is None or self.settings.per_minute else KEYED

    def covers(self, chain_id: int | None) -> bool:
        return chain_id is None or chain_id in self._chains

    def upstreams_for(self, chain_id: int | None, asked: Mapping[str, Any]) -> Sequence[Upstream]:
        return (self.upstream if chain_id is None else self._hosts.get(chain_id, self.upstream),)

    @reported
    async def published(self, chain_id: int, address: str) -> Published:
        """What is published of the code at an address; `none` also where it knows of no contract at all."""
        try:
            contract = await self._get(chain_id, f"/smart-contracts/{address}")
        except NoData:
            contract: dict[str, Any] = {"is_verified": False}
        if not {"is_verified", "deployed_bytecode", "creation_bytecode"} & contract.keys():
            raise ValueError("no contract")
        return _published(contract, self._page(chain_id, address))

    @reported
    async def account(self, chain_id: int, address: str) -> ExploredAccount:
        """What stands at an address; NoData where it never saw it."""
        return _account(await self._get(chain_id, f"/addresses/{address}"))

    @reported
    async def time_of(self, chain_id: int, transaction: str) -> datetime:
        """When a transaction was mined."""
        found = await self._get(chain_id, f"/transactions/{transaction}")
        told = moment(found["timestamp"])
        if told and told.timestamp() > 0:
            return told
        raise self.failed("answered with no time of a transaction")

    @reported
    async def coin(self, chain_id: int, wallet: str) -> Coin:
        """The chain's own coin that a wallet has, as the explorer knows it; it can lag behind the chain.

        NoData where it has no balance on record, which is not the same as a balance of nothing.
        """
        found = await self._get(chain_id, f"/addresses/{wallet}")
        if found["coin_balance"] is None:
            raise self.nothing("no balance of this wallet in the chain's own coin")
        balance = base_units(found["coin_balance"])
        if balance is None:
            raise self.failed("answered with a balance that is no number")
        return Coin(balance, price(found.get("exchange_rate")))

    @reported
    async def holdings(self, chain_id: int, wallet: str) -> list[Holding]:
        """The ERC-20 tokens a wallet has, the most valuable first; warns when one page does not hold them."""
        try:
            page = await self._get(chain_id, f"/addresses/{wallet}/tokens", type="ERC-20")
        except NoData:
            return []
        rows = page_rows(page)
        if page.get("next_page_params"):
            self.record.warn(f"the wallet has more tokens than were read: the {len(rows)} worth most were")
        return [held for row in rows if (held := parse_holding(row))]

    @reported
    async def movements(self, chain_id: int, wallet: str) -> list[Movement]:
        """The latest transfers of tokens and of the chain's own coin from and to a wallet."""
        async with together() as group:
            tokens = group.create_task(
                self._rows(chain_id, f"/addresses/{wallet}/token-transfers", type="ERC-20")
            )
            coins = group.create_task(self._rows(chain_id, f"/addresses/{wallet}/transactions"))
        read = [*map(parse_token_transfer, tokens.result()), *map(parse_native_transfer, coins.result())]
        return [movement for movement in read if movement]

    async def _rows(self, chain_id: int, path: str, **params: Any) -> list[JsonObject]:
        """The first page of a list; empty for an address it never saw."""
        try:
            return page_rows(await self._get(chain_id, path, **params))
        except NoData:
            return []

    @reported
    async def probe(self) -> str:
        """See that each chain's host is there; a question to the gateway would cost credits."""
        asked = {*(self._address(chain, "") for chain in self._chains if chain in self._hosts)}
        if len(self._hosts) < len(self._chains):
            asked.add((self.upstream, self.url("/")))
        await at_once(upstream.get(url, accept=range(300, 500)) for upstream, url in asked)
        return f"answers for {len(self._chains)} chains" + ("; its key was not tried" if self.key else "")

    async def _get(self, chain_id: int, path: str, **params: Any) -> Any:
        """The JSON at a path below `/api/v2` on a chain; parameters that are None are left out.

        NoData when it is known that there is nothing; ProviderFailure for everything else that is no answer.
        """
        upstream, url = self._address(chain_id, path)
        asked = {name: _written(value) for name, value in params.items() if value is not None}
        if self.key and chain_id not in self._own:
            asked["apikey"] = self.key
        reply = await upstream.get(url, params=asked, accept=_SPEAKING)
        if reply.status in _REDIRECTS:
            onward = redirected(url, reply.headers.get("Location"))
            if onward is None:
                raise self.failed("redirects to a place that is not known here")
            reply = await upstream.get(onward, accept=(404, 422))
        return self._read(upstream, reply)

    def _read(self, upstream: Upstream, reply: Reply) -> Any:
        """The body of a reply, or what it means that there is none."""
        if reply.status not in (404, 422):
            return reply.json()
        said = _said(reply)
        if reply.status == 422:
            raise self.failed(f"refuses the question: {cleaned(said, 120) or 'status 422'}")
        if "not found" in said.lower():
            raise self.nothing("nothing there")
        raise upstream.failure(reply)

    def _address(self, chain_id: int, path: str) -> tuple[Upstream, str]:
        """How to ask for a path below `/api/v2` on a chain."""
        upstream = self._hosts.get(chain_id, self.upstream)
        below = f"/api/v2{path}"
        if own := self._own.get(chain_id):
            return upstream, joined(own, below)
        if self.key:
            return upstream, self.url(f"/{chain_id}{below}")
        return upstream, self.url(below) if self.settings.url else HOSTS[chain_id] + below

    def _shares(self, chain_id: int) -> bool:
        """Whether a chain is asked at the address that other chains are asked at too."""
        return chain_id not in self._own and bool(self.key or self.settings.url)

    def _page(self, chain_id: int, address: str) -> str | None:
        """The page of an address for people."""
        host = self._own.get(chain_id) or HOSTS.get(chain_id, "")
        return f"{host.rstrip('/')}/address/{address}" if host.startswith("https://") else None


def redirected(url: str, location: str | None) -> str | None:
    """Where a redirect from `url` leads, if that is a host that is trusted."""
    onward = urljoin(url, location) if location else ""
    parts = urlsplit(onward)
    trusted = parts.scheme == "https" and parts.hostname in TRUSTED and parts.port in (None, 443)
    return onward if trusted and parts.username is None else None


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _said(reply: Reply) -> str:
    """The message of a reply that is no answer; empty where it is not Blockscout's."""
    try:
        body = reply.json()
    except ProviderFailure:
        return ""
    if not isinstance(body, dict):
        return ""
    said = cast(dict[str, Any], body)
    errors = said.get("errors")
    first: Any = cast(list[Any], errors)[0] if isinstance(errors, list) and errors else None
    text = cast(dict[str, Any], first).get("detail") if isinstance(first, dict) else said.get("message")
    return text if isinstance(text, str) else ""


def _published(contract: dict[str, Any], page: str | None) -> Published:
    """What the body of `/smart-contracts/{address}` says."""
    source = bool(contract.get("source_code"))
    compiler = name(contract.get("compiler_version"))
    return Published(
        "blockscout",
        match := _match(contract),
        name=name(contract.get("name")) if match != "none" else None,
        similar_address=an_address(contract.get("verified_twin_address_hash"))
        if match == "similar"
        else None,
        language=_language(contract) if match != "none" else None,
        compiler_version=compiler,
        license=licence(contract.get("license_type")),
        url=page if match != "none" else None,
        source_available=source,
        abi_available=isinstance(contract.get("abi"), list),
        proxy=_proxy(contract),
        code_seen=any(contract.get(f"{what}_bytecode") for what in ("deployed", "creation")),
        self_destructed=contract.get("is_self_destructed") is True,
        changed=contract.get("is_changed_bytecode") is True,
    )


def _match(contract: dict[str, Any]) -> MatchLevel:
    if contract.get("is_verified") is not True:
        return "similar" if an_address(contract.get("verified_twin_address_hash")) else "none"
    if contract.get("is_fully_verified") is True:
        return "exact"
    return "bytecode" if contract.get("is_partially_verified") is True else "unspecified"


def _language(contract: dict[str, Any]) -> str | None:
    if contract.get("is_vyper_contract") is True:
        return "Vyper"
    language = name(contract.get("language"))
    return language[:1].upper() + language[1:] if language else None


def _account(body: dict[str, Any]) -> ExploredAccount:
    is_contract = body["is_contract"]
    creator = an_address(body.get("creator_address_hash"))
    transaction = body.get("creation_transaction_hash") or body.get("creation_tx_hash")
    known = isinstance(transaction, str) and len(transaction) == 66
    return ExploredAccount(
        is_contract=is_contract if isinstance(is_contract, bool) else None,
        name=name(body.get("name")),
        proxy=_proxy(body),
        created=Created(creator, transaction if known else None) if creator or known else None,
    )


def _proxy(body: dict[str, Any]) -> ProxyClaim | None:
    """A proxy's kind and implementations, by new names or old; None when it says nothing of a proxy."""
    found = named(body.get("implementations"), "address_hash", "address")
    old = an_address(body.get("implementation_address")) or an_address(body.get("minimal_proxy_address_hash"))
    if not found and old:
        found = (NamedAddress(old, name(body.get("implementation_name"))),)
    kind = body.get("proxy_type")
    if not found and not (isinstance(kind, str) and kind in _KINDS):
        return None
    ours = _KINDS.get(kind, "other") if isinstance(kind, str) else None
    return ProxyClaim.told(ours, found, "proxy_type, implementations", name(kind) or "unknown", is_proxy=True)
