"""Blockscout: an explorer of accounts, contracts and transfers, every chain but bsc."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urljoin, urlsplit

from msgspec import Struct

from centgate.chains import parse_chain_time
from centgate.coercion import as_base_units, as_clean_name, as_price, require_objects
from centgate.crypto.contract.contracts import (
    ContractCreation,
    MatchLevel,
    NamedAddress,
    ProxyClaim,
    ProxyKind,
    SourceRecord,
    parse_named_addresses,
    parse_nonzero_address,
    spdx_license,
)
from centgate.crypto.contract.published_abi import parse_signatures
from centgate.crypto.wallet.wallets import Holding, NativeCoin, Transfer
from centgate.errors import NoData, ProviderFailure
from centgate.fallback import attempt, open_task_group
from centgate.provider import Provider, ProviderInfo, instrumented
from centgate.providers.blockscout_wallet import (
    JsonObject,
    is_failed,
    is_of_fungible,
    moves_coins,
    parse_holding,
    parse_internal_transaction,
    parse_listed_transaction,
    parse_native_transfer,
    parse_token_transfer,
)
from centgate.providers.jsonrpc.client import run_concurrently
from centgate.rate_limiter import RateLimit
from centgate.sanitize import quote_line
from centgate.upstream import Upstream, UpstreamResponse, join_url

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
"""Blockscout's own hosts, which need no key; bsc has no host."""
GATEWAY = "https://api.blockscout.com"
TRUSTED = frozenset({urlsplit(host).hostname for host in (*HOSTS.values(), GATEWAY)}) | {
    "optimism.blockscout.com"
}
"""Allowed redirect targets: some instances have moved to other operators."""
KEYED_RATE = RateLimit(5, 1)
MAX_FIRST_TRANSACTIONS = 10
"""Transactions among which the first funding of a wallet is looked for; failed ones may come before it."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_ACCEPTED = _REDIRECTS | {404, 422}

_PROXY_KINDS: dict[str, ProxyKind] = {
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


class ExplorerAccount(Struct, frozen=True):
    """The explorer's record of an address itself."""

    is_contract: bool | None
    name: str | None
    proxy: ProxyClaim | None
    creation: ContractCreation | None


class Blockscout(Provider):
    """Accounts, token balances, transfers and verified contracts.

    Each chain has its own host; with a key all are queried through the gateway. `CENTGATE_BLOCKSCOUT_URL`
    replaces either, and `CENTGATE_BLOCKSCOUT_<CHAINID>_URL` one chain's host, also for a chain without a host
    in HOSTS.
    """

    info = ProviderInfo(
        "blockscout",
        "Blockscout",
        docs_url="https://docs.blockscout.com",
        url=GATEWAY,
        terms="Its own hosts answer without a key at about 3 requests a second; the gateway needs one, and a "
        "free key has 100,000 credits a day at 20 a request.",
        key="optional",
        rate_limit=RateLimit(3, 1),
        keyed_rate_limit=KEYED_RATE,
        per_chain=True,
    )

    def __init__(self, settings: Settings, resources: Resources | None = None) -> None:
        super().__init__(settings, resources)
        chains = {*HOSTS, 56, settings.development_chain or 56}
        custom = {chain: settings.provider_settings(f"blockscout_{chain}") for chain in chains}
        self._custom_urls = {
            chain: config.url for chain, config in custom.items() if config.url and config.enabled
        }
        disabled = {chain for chain, config in custom.items() if not config.enabled}
        self._chains = ({*HOSTS} | {*self._custom_urls}) - disabled
        self._hosts: dict[int, Upstream] = {
            chain: self.open_upstream(resources, settings, part=str(chain))
            for chain in self._chains
            if not self._uses_shared_host(chain)
        }

    def supports_chain(self, chain_id: int | None) -> bool:
        return chain_id is None or chain_id in self._chains

    def upstreams_for(self, chain_id: int | None, options: Mapping[str, Any]) -> Sequence[Upstream]:
        return (self.upstream if chain_id is None else self._hosts.get(chain_id, self.upstream),)

    @instrumented
    async def source_record(self, chain_id: int, address: str) -> SourceRecord:
        """Return the verified source of an address; match `none` also if no contract is known there."""
        try:
            contract = await self._get_json(chain_id, f"/smart-contracts/{address}")
        except NoData:
            contract: dict[str, Any] = {"is_verified": False}
        if not {"is_verified", "deployed_bytecode", "creation_bytecode"} & contract.keys():
            raise ValueError("no contract")
        # it is left out for code that is not verified
        if not isinstance(contract.get("is_verified", False), bool):
            raise TypeError("not told whether it is verified")
        return _parse_contract(contract, self._explorer_page(chain_id, address))

    @instrumented
    async def explorer_account(self, chain_id: int, address: str) -> ExplorerAccount:
        """Return the record of an address; NoData if it is unknown."""
        return _parse_account(await self._get_json(chain_id, f"/addresses/{address}"))

    @instrumented
    async def transaction_time(self, chain_id: int, transaction: str) -> datetime:
        """Return the time at which a transaction was mined."""
        body = await self._get_json(chain_id, f"/transactions/{transaction}")
        mined_at = parse_chain_time(body["timestamp"], chain_id)
        if mined_at is None:
            raise self.invalid_response("returned no time for a transaction")
        return mined_at

    @instrumented
    async def native_coin(self, chain_id: int, wallet: str) -> NativeCoin:
        """Return the native balance of a wallet according to the explorer, which can lag behind the chain.

        NoData if it has no balance on record, which is not a balance of 0.
        """
        body = await self._get_json(chain_id, f"/addresses/{wallet}")
        if body["coin_balance"] is None:
            raise self.no_data("no native balance of this wallet")
        balance = as_base_units(body["coin_balance"])
        if balance is None:
            raise self.invalid_response("returned a balance that is not a number")
        return NativeCoin(balance, as_price(body.get("exchange_rate")))

    @instrumented
    async def holdings(self, chain_id: int, wallet: str) -> list[Holding]:
        """Return the ERC-20 balances of a wallet, the most valuable first; warn if one page is not enough."""
        try:
            page = await self._get_json(chain_id, f"/addresses/{wallet}/tokens", type="ERC-20")
        except NoData:
            return []
        rows = require_objects(page["items"])
        if page.get("next_page_params"):
            self.trace.add_warning(
                f"the wallet has more tokens than were read: the {len(rows)} worth most were"
            )
        balances = [row for row in rows if is_of_fungible(row)]
        return [each for each in self.parse_each(balances, parse_holding, "balances") if each.amount]

    @instrumented
    async def transfers(self, chain_id: int, wallet: str) -> list[Transfer]:
        """Return the latest transfers of tokens and of the native coin from and to a wallet."""
        async with open_task_group() as group:
            tokens = group.create_task(
                self._first_page(chain_id, f"/addresses/{wallet}/token-transfers", type="ERC-20")
            )
            coins = group.create_task(self._first_page(chain_id, f"/addresses/{wallet}/transactions"))
            internal = group.create_task(self._internal_transactions(chain_id, wallet))
        readings = [
            *(partial(parse_token_transfer, row) for row in tokens.result() if is_of_fungible(row)),
            *(partial(parse_native_transfer, row) for row in coins.result() if not is_failed(row)),
            *(partial(parse_internal_transaction, row) for row in internal.result() if moves_coins(row)),
        ]

        def parse_own(read: Callable[[int], Transfer | None]) -> Transfer | None:
            """Parse a transfer of the wallet; None for one between others."""
            transfer = read(chain_id)
            return transfer if transfer and transfer.is_of(wallet) else None

        return self.parse_each(readings, parse_own, "transfers")

    async def _internal_transactions(self, chain_id: int, wallet: str) -> list[JsonObject]:
        """Return the latest calls of contracts from and to a wallet; warn if the explorer does not list them
        in half of the time.
        """
        try:
            async with asyncio.timeout(self.remaining_seconds / 2):
                rows = await attempt(self._first_page, chain_id, f"/addresses/{wallet}/internal-transactions")
        except TimeoutError:
            rows = None
        if isinstance(rows, list):
            return rows
        self.trace.add_warning(
            f"coins that contracts sent are missing among the transfers: {self.info.label} did not list them"
        )
        return []

    async def _first_page(self, chain_id: int, path: str, **params: str) -> list[JsonObject]:
        """Return the first page of a list; empty for an unknown address."""
        try:
            return require_objects((await self._get_json(chain_id, path, **params))["items"])
        except NoData:
            return []

    @instrumented
    async def first_funding(self, chain_id: int, wallet: str) -> Transfer | None:
        """Return the oldest transaction that sent native coins to a wallet, or None without any.

        Coins that contracts sent are in another list. NoData if the first MAX_FIRST_TRANSACTIONS to the
        wallet sent none. https://docs.blockscout.com/devs/apis/rpc/account, "txlist"
        """
        body = await self._get_api(
            chain_id,
            "/api",
            module="account",
            action="txlist",
            address=wallet,
            filter_by="to",
            sort="asc",
            page="1",
            offset=str(MAX_FIRST_TRANSACTIONS),
        )
        rows, message = body["result"], str(body["message"])
        if not rows and "no transactions found" not in message.lower():
            raise self.invalid_response(f"refuses: {quote_line(message, 120)}")
        transfers = [parse_listed_transaction(row, chain_id) for row in rows if row["isError"] == "0"]
        funding = next((each for each in transfers if each.is_funding(wallet)), None)
        if funding is None and len(rows) >= MAX_FIRST_TRANSACTIONS:
            raise self.no_data("no coins among the first transactions to this wallet")
        return funding

    @instrumented
    async def probe(self) -> str:
        """Check that each chain's host responds; a query to the gateway would cost credits."""
        endpoints = {*(self._endpoint(chain, "/api/v2") for chain in self._chains if chain in self._hosts)}
        if len(self._hosts) < len(self._chains):
            endpoints.add((self.upstream, self.url("/")))
        await run_concurrently(upstream.get(url, accept=range(300, 500)) for upstream, url in endpoints)
        return f"answers for {len(self._chains)} chains" + ("; its key was not checked" if self.key else "")

    async def _get_json(self, chain_id: int, path: str, **params: str) -> Any:
        """Get the JSON at a path below `/api/v2` on a chain; errors as for `_get_api`."""
        return await self._get_api(chain_id, f"/api/v2{path}", **params)

    async def _get_api(self, chain_id: int, path: str, **params: str) -> Any:
        """Get the JSON at a path on a chain.

        NoData if the explorer says that there is nothing; ProviderFailure for any other error.
        """
        upstream, url = self._endpoint(chain_id, path)
        if self.key and chain_id not in self._custom_urls:
            params["apikey"] = self.key
        reply = await upstream.get(url, params=params, accept=_ACCEPTED)
        if reply.status in _REDIRECTS:
            target = redirect_target(url, reply.headers.get("Location"))
            if target is None:
                raise self.invalid_response("redirects to a host that is not trusted")
            reply = await upstream.get(target, accept=(404, 422))
        return self._parse_reply(upstream, reply)

    def _parse_reply(self, upstream: Upstream, reply: UpstreamResponse) -> Any:
        """Return the body of a reply, or raise the error that it stands for."""
        if reply.status not in (404, 422):
            return reply.parse_json()
        message = _error_message(reply)
        if reply.status == 422:
            raise self.invalid_response(f"refuses: {quote_line(message, 120) or 'status 422'}")
        if "not found" in message.lower():
            raise self.no_data("nothing at this address")
        raise upstream.error_for_status(reply)

    def _endpoint(self, chain_id: int, path: str) -> tuple[Upstream, str]:
        """Return upstream and URL of a path on a chain."""
        upstream = self._hosts.get(chain_id, self.upstream)
        if custom := self._custom_urls.get(chain_id):
            return upstream, join_url(custom, path)
        if self.key:
            return upstream, self.url(f"/{chain_id}{path}")
        return upstream, self.url(path) if self.settings.url else HOSTS[chain_id] + path

    def _uses_shared_host(self, chain_id: int) -> bool:
        """True if a chain is queried at a host shared with other chains."""
        return chain_id not in self._custom_urls and bool(self.key or self.settings.url)

    def _explorer_page(self, chain_id: int, address: str) -> str | None:
        """Return the explorer's web page of an address."""
        host = self._custom_urls.get(chain_id) or HOSTS.get(chain_id, "")
        return f"{host.rstrip('/')}/address/{address}" if host.startswith("https://") else None


def redirect_target(url: str, location: str | None) -> str | None:
    """Return the target of a redirect from `url`, or None if its host is not trusted."""
    target = urljoin(url, location) if location else ""
    parts = urlsplit(target)
    is_trusted = parts.scheme == "https" and parts.hostname in TRUSTED and parts.port in (None, 443)
    return target if is_trusted and parts.username is None else None


def _error_message(reply: UpstreamResponse) -> str:
    """Return the message of an error reply; empty if it is not Blockscout's."""
    try:
        body = reply.parse_json()
    except ProviderFailure:
        return ""
    if not isinstance(body, dict):
        return ""
    fields = cast(dict[str, Any], body)
    errors = fields.get("errors")
    first: Any = cast(list[Any], errors)[0] if isinstance(errors, list) and errors else None
    text = cast(dict[str, Any], first).get("detail") if isinstance(first, dict) else fields.get("message")
    return text if isinstance(text, str) else ""


def _parse_contract(contract: dict[str, Any], page: str | None) -> SourceRecord:
    """Parse the body of `/smart-contracts/{address}`."""
    source = bool(contract.get("source_code"))
    compiler = as_clean_name(contract.get("compiler_version"))
    return SourceRecord(
        "blockscout",
        match := _match_level(contract),
        name=as_clean_name(contract.get("name")) if match != "none" else None,
        similar_address=parse_nonzero_address(contract.get("verified_twin_address_hash"))
        if match == "similar"
        else None,
        language=_parse_language(contract) if match != "none" else None,
        compiler_version=compiler,
        license=spdx_license(contract.get("license_type")),
        url=page if match != "none" else None,
        source_available=source,
        abi_available=isinstance(contract.get("abi"), list),
        signatures=parse_signatures(contract.get("abi")),
        proxy=_parse_proxy(contract),
        has_code=any(contract.get(f"{what}_bytecode") for what in ("deployed", "creation")),
        is_self_destructed=contract.get("is_self_destructed") is True,
        is_code_changed=contract.get("is_changed_bytecode") is True,
    )


def _match_level(contract: dict[str, Any]) -> MatchLevel:
    if contract.get("is_verified") is not True:
        return "similar" if parse_nonzero_address(contract.get("verified_twin_address_hash")) else "none"
    if contract.get("is_fully_verified") is True:
        return "exact"
    return "bytecode" if contract.get("is_partially_verified") is True else "unspecified"


def _parse_language(contract: dict[str, Any]) -> str | None:
    if contract.get("is_vyper_contract") is True:
        return "Vyper"
    language = as_clean_name(contract.get("language"))
    return language[:1].upper() + language[1:] if language else None


def _parse_account(body: dict[str, Any]) -> ExplorerAccount:
    is_contract = body["is_contract"]
    creator = parse_nonzero_address(body.get("creator_address_hash"))
    transaction = body.get("creation_transaction_hash") or body.get("creation_tx_hash")
    has_transaction = isinstance(transaction, str) and len(transaction) == 66
    return ExplorerAccount(
        is_contract=is_contract if isinstance(is_contract, bool) else None,
        name=as_clean_name(body.get("name")),
        proxy=_parse_proxy(body),
        creation=ContractCreation(creator, transaction if has_transaction else None)
        if creator or has_transaction
        else None,
    )


def _parse_proxy(body: dict[str, Any]) -> ProxyClaim | None:
    """Parse a proxy's kind and implementations, by new names or old; None if no proxy is mentioned."""
    implementations = parse_named_addresses(body.get("implementations"), "address_hash", "address")
    implementation = parse_nonzero_address(body.get("implementation_address")) or parse_nonzero_address(
        body.get("minimal_proxy_address_hash")
    )
    if not implementations and implementation:
        implementations = (NamedAddress(implementation, as_clean_name(body.get("implementation_name"))),)
    kind = body.get("proxy_type")
    if not implementations and not (isinstance(kind, str) and kind in _PROXY_KINDS):
        return None
    proxy_kind = _PROXY_KINDS.get(kind, "other") if isinstance(kind, str) else None
    return ProxyClaim.from_registry(
        proxy_kind,
        implementations,
        "proxy_type, implementations",
        as_clean_name(kind) or "unknown",
        is_proxy=True,
    )
