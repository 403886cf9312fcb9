"""Alchemy: token balances and transfers of a wallet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

from centgate import jsonrpc
from centgate.chains import parse_chain_time
from centgate.coercion import (
    as_address,
    as_base_units,
    as_block_number,
    as_decimals,
    as_hash,
    as_object,
    as_text,
    require_objects,
)
from centgate.crypto.wallet.wallets import (
    Holding,
    Token,
    Transfer,
)
from centgate.errors import ProviderFailure, ProviderRateLimited, ProviderRefused, ProviderTimeout
from centgate.fallback import attempt, open_task_group
from centgate.provider import Provider, ProviderInfo, instrumented
from centgate.providers.jsonrpc.client import run_concurrently
from centgate.sanitize import quote_line

NETWORKS: Mapping[int, str] = {
    1: "eth-mainnet",
    8453: "base-mainnet",
    56: "bnb-mainnet",
    137: "polygon-mainnet",
    42161: "arb-mainnet",
    10: "opt-mainnet",
}
MAX_PAGES = 3
"""Pages of token balances that are read, 100 tokens each."""
MAX_TRANSFERS = 50
"""Transfers requested in each direction; a call costs the same for any number."""
_INTERNAL_TRANSFER_CHAINS = frozenset({1, 137})
"""Chains on which Alchemy knows transfers of the native coin made by contracts."""
_RATE_LIMIT_WORDS = ("compute units", "rate limit", "too many requests", "throughput", "capacity limit")
_ACCESS_WORDS = ("authenticated", "api key", "not enabled", "inactive", "unauthorized", "forbidden")

JsonObject = dict[str, Any]


class Alchemy(Provider):
    """Balances, tokens with their metadata, and latest transfers of a wallet."""

    info = ProviderInfo(
        "alchemy",
        "Alchemy",
        docs_url="https://www.alchemy.com/docs",
        url="https://{network}.g.alchemy.com",
        terms="Needs a key, and every call is counted in compute units against its plan.",
        key="required",
    )

    def supports_chain(self, chain_id: int | None) -> bool:
        return chain_id in NETWORKS

    @instrumented
    async def native_balance(self, chain_id: int, wallet: str) -> int:
        """Return the current balance of the native coin, in wei."""
        balance = as_base_units(await self._call(chain_id, "eth_getBalance", [wallet, "latest"]))
        if balance is None:
            raise self.invalid_response("returned a balance that is not a number")
        return balance

    @instrumented
    async def holdings(self, chain_id: int, wallet: str) -> list[Holding]:
        """Return ERC-20 balances of a wallet, tokens by address alone; warn if not all are read."""
        rows: list[JsonObject] = []
        page_key: str | None = None
        for _ in range(MAX_PAGES):
            params: list[Any] = [wallet, "erc20"]
            page = await self._call(
                chain_id,
                "alchemy_getTokenBalances",
                [*params, {"pageKey": page_key}] if page_key else params,
            )
            if as_address(page.get("address")) not in (None, wallet):
                raise self.invalid_response("returned balances of another wallet")
            rows += require_objects(page["tokenBalances"])
            page_key = as_text(page.get("pageKey"))
            if not page_key:
                break
        holdings = [each for each in self.parse_each(rows, _parse_holding, "balances") if each.amount]
        if page_key:
            self.trace.add_warning(
                f"the wallet has more tokens than were read: {len(holdings)} with a balance were found"
            )
        return holdings

    @instrumented
    async def token_metadata(self, chain_id: int, addresses: Sequence[str]) -> dict[str, Token]:
        """Return symbol, name and decimals by token; tokens that cannot be read are missing."""
        requests = [("alchemy_getTokenMetadata", [token]) for token in addresses]
        answers = await self._call_each(chain_id, requests)
        return {
            token: _parse_token(token, answer)
            for token, answer in zip(addresses, answers, strict=True)
            if answer is not None
        }

    @instrumented
    async def transfers(self, chain_id: int, wallet: str) -> list[Transfer]:
        """Return the latest transfers of tokens and of the native coin from and to a wallet, each once."""
        async with open_task_group() as group:
            tasks = [
                group.create_task(self._latest_transfers(chain_id, {side: wallet}))
                for side in ("fromAddress", "toAddress")
            ]
        rows = {_transfer_id(row): row for task in tasks for row in task.result()}
        parse = partial(_parse_own_transfer, chain_id=chain_id, wallet=wallet)
        return self.parse_each([*rows.values()], parse, "transfers")

    @instrumented
    async def first_funding(self, chain_id: int, wallet: str) -> Transfer | None:
        """Return the oldest transfer of the native coin to a wallet, or None without any.

        Those made by contracts count on the chains on which Alchemy knows them.
        https://www.alchemy.com/docs/reference/transfers-api-quickstart
        """
        rows = await self._query_transfers(
            chain_id,
            {
                "toAddress": wallet,
                "category": _coin_categories(chain_id),
                "order": "asc",
                "maxCount": hex(1),
                "excludeZeroValue": True,
            },
        )
        if not rows:
            return None
        transfer = _parse_transfer(rows[0], chain_id)
        if transfer is None or not transfer.is_funding(wallet):
            raise ValueError("no transfer of the native coin to the wallet")
        return transfer

    @instrumented
    async def probe(self) -> str:
        """Check the key by eth_chainId, which costs no compute units.

        https://www.alchemy.com/docs/reference/compute-unit-costs
        """
        for chain_id in NETWORKS:
            if int(await self._call(chain_id, "eth_chainId", []), 16) != chain_id:
                raise self.invalid_response(f"returned another chain id than {chain_id}")
        return f"accepts the key, on {len(NETWORKS)} chains"

    async def _latest_transfers(self, chain_id: int, side: Mapping[str, str]) -> list[JsonObject]:
        return await self._query_transfers(
            chain_id,
            {
                **side,
                "category": [*_coin_categories(chain_id), "erc20"],
                "order": "desc",
                "maxCount": hex(MAX_TRANSFERS),
                # transfers of 0 are used for address poisoning, so they must be included
                "excludeZeroValue": False,
            },
        )

    async def _query_transfers(self, chain_id: int, query: JsonObject) -> list[JsonObject]:
        """Return the transfers of any block that a query finds, with their times."""
        whole_chain = {"fromBlock": "0x0", "toBlock": "latest", "withMetadata": True}
        result = await self._call(chain_id, "alchemy_getAssetTransfers", [whole_chain | query])
        return require_objects(result["transfers"])

    async def _call(self, chain_id: int, method: str, params: list[Any]) -> Any:
        """Send one request and return its result."""
        reply = await self.upstream.post(self._chain_url(chain_id), jsonrpc.build_request(method, params))
        return self._parse_result(reply.parse_json())

    async def _call_each(self, chain_id: int, requests: Sequence[tuple[str, list[Any]]]) -> list[Any]:
        """Return the result of each request, None for a failed one; in one batch if batches are accepted."""
        content = [jsonrpc.build_request(*request, number) for number, request in enumerate(requests)]
        results = await attempt(self._send_batch, chain_id, content) if len(requests) > 1 else None
        if isinstance(results, ProviderRateLimited | ProviderRefused | ProviderTimeout):
            raise results
        if not isinstance(results, list):
            calls = (attempt(self._call, chain_id, method, params) for method, params in requests)
            results = await run_concurrently(calls)
        failures = [each for each in results if isinstance(each, ProviderFailure)]
        if failures and len(failures) == len(requests):
            raise failures[0]
        return [None if isinstance(each, ProviderFailure) else each for each in results]

    async def _send_batch(self, chain_id: int, content: list[JsonObject]) -> list[Any] | None:
        """Send a batch; return results and failures in order, None if the reply is not for a batch."""
        body = (await self.upstream.post(self._chain_url(chain_id), content)).parse_json()
        try:
            responses = jsonrpc.sort_responses(jsonrpc.list_responses(body), len(content))
        except LookupError:
            return None
        return [self._parse_entry(response) for response in responses]

    def _parse_entry(self, entry: JsonObject) -> Any:
        """Return the result of a response in a batch, or its failure."""
        try:
            return self._parse_result(entry)
        except ProviderFailure as failure:
            return failure

    def _parse_result(self, entry: Any) -> Any:
        """Return the result of a response object, or raise its error."""
        try:
            return jsonrpc.require_result(entry)
        except jsonrpc.RpcError as error:
            raise self._classify_error(error) from None
        except ValueError:
            raise self.invalid_response("returned no result") from None

    def _classify_error(self, error: jsonrpc.RpcError) -> ProviderFailure:
        code, message = error.code, error.message
        lower = message.lower()
        if code == 429 or any(words in lower for words in _RATE_LIMIT_WORDS):
            return ProviderRateLimited(self.info.name, f"{self.info.label} asks to slow down")
        if code in (401, 403) or any(words in lower for words in _ACCESS_WORDS):
            return ProviderRefused(self.info.name, f"{self.info.label} refuses this deployment")
        reason = quote_line(message.replace(self.key or message, "***"), 120) or f"error {code}"
        return self.invalid_response(f"refuses: {reason}")

    def _chain_url(self, chain_id: int) -> str:
        base = (self.settings.url or self.info.url or "").replace("{network}", NETWORKS[chain_id])
        return f"{base.rstrip('/').removesuffix('/v2')}/v2/{quote(self.key or '', safe='')}"


def _coin_categories(chain_id: int) -> list[str]:
    """Return the categories of transfers of the native coin that Alchemy knows on a chain."""
    return ["external", *(["internal"] if chain_id in _INTERNAL_TRANSFER_CHAINS else [])]


def _parse_holding(row: JsonObject) -> Holding | None:
    """Parse a balance, which may be 0; None if it cannot be read."""
    token, amount = as_address(row.get("contractAddress")), as_base_units(row.get("tokenBalance"))
    if token is None or amount is None or row.get("error"):
        return None
    return Holding(Token(token), amount)


def _parse_token(token: str, answer: Any) -> Token:
    row = as_object(answer)
    return Token(
        token,
        symbol=as_text(row.get("symbol")),
        name=as_text(row.get("name")),
        decimals=as_decimals(row.get("decimals")),
    )


def _transfer_id(row: JsonObject) -> str:
    """Return an id of a transfer; a transfer to oneself is found in both directions."""
    return as_text(row.get("uniqueId")) or repr(
        (row.get("hash"), row.get("category"), row.get("from"), row.get("to"), row.get("rawContract"))
    )


def _parse_own_transfer(row: JsonObject, chain_id: int, wallet: str) -> Transfer | None:
    """Parse a transfer of a wallet; None for one between others."""
    transfer = _parse_transfer(row, chain_id)
    return transfer if transfer and transfer.is_of(wallet) else None


def _parse_transfer(row: JsonObject, chain_id: int) -> Transfer | None:
    raw, sender, transaction = (
        as_object(row.get("rawContract")),
        as_address(row.get("from")),
        as_hash(row.get("hash")),
    )
    token, recipient = as_address(raw.get("address")), as_address(row.get("to"))
    if sender is None or transaction is None:
        return None
    if row.get("category") == "erc20" and (token is None or recipient is None):
        return None
    return Transfer(
        transaction=transaction,
        sender=sender,
        recipient=recipient,
        token=Token(token, as_text(row.get("asset")), decimals=as_decimals(raw.get("decimal")))
        if row.get("category") == "erc20" and token
        else None,
        amount=as_base_units(raw.get("value")),
        block=as_block_number(row.get("blockNum")),
        at=parse_chain_time(as_object(row.get("metadata")).get("blockTimestamp"), chain_id),
        position=_log_index(row),
    )


def _log_index(row: JsonObject) -> int:
    """Return the log index, the last part of the transfer's id: `0x…:log:0x1e`."""
    return as_base_units(str(row.get("uniqueId") or "").rpartition(":")[2]) or 0
