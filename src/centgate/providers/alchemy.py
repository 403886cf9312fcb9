"""Alchemy: token balances and transfers of a wallet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote

from centgate.errors import ProviderFailure, ProviderRateLimited, ProviderRefused, ProviderTimeout
from centgate.facts.wallets import Holding, Movement, Token, block_number, transaction_hash
from centgate.jsonrpc.nodes import at_once
from centgate.provider import About, Provider, reported
from centgate.readings import address, base_units, decimals, moment, text
from centgate.sources import attempt, together
from centgate.text import cleaned

NETWORKS: Mapping[int, str] = {
    1: "eth-mainnet",
    8453: "base-mainnet",
    56: "bnb-mainnet",
    137: "polygon-mainnet",
    42161: "arb-mainnet",
    10: "opt-mainnet",
}
PAGES = 3
"""Pages of token balances that are read, of 100 tokens each."""
MOVEMENTS = 50
"""Transfers asked for in each direction; a call costs the same whatever their number."""
_INTERNAL = frozenset({1, 137})
"""Chains on which it knows the transfers that contracts make of the chain's own coin."""
_TOO_OFTEN = ("compute units", "rate limit", "too many requests", "throughput", "capacity limit")
_REFUSALS = ("authenticated", "api key", "not enabled", "inactive", "unauthorized", "forbidden")

Row = dict[str, Any]


class Alchemy(Provider):
    """A wallet's balances, its tokens with their metadata, and its latest transfers."""

    about = About(
        "alchemy",
        "Alchemy",
        docs_url="https://www.alchemy.com/docs",
        url="https://{network}.g.alchemy.com",
        terms="Needs a key, and every call is counted in compute units against its plan.",
        key="required",
    )

    def covers(self, chain_id: int | None) -> bool:
        return chain_id in NETWORKS

    @reported
    async def native_balance(self, chain_id: int, wallet: str) -> int:
        """The balance of the chain's own coin now, in wei."""
        balance = base_units(await self._ask(chain_id, "eth_getBalance", [wallet, "latest"]))
        if balance is None:
            raise self.failed("answered with a balance that is no number")
        return balance

    @reported
    async def holdings(self, chain_id: int, wallet: str) -> list[Holding]:
        """The ERC-20 tokens a wallet has now, by address alone; warns when there are more than are read."""
        held: list[Holding] = []
        following: str | None = None
        for _ in range(PAGES):
            params: list[Any] = [wallet, "erc20"]
            page = await self._ask(
                chain_id,
                "alchemy_getTokenBalances",
                [*params, {"pageKey": following}] if following else params,
            )
            rows = _rows(page["tokenBalances"])
            held += [holding for row in rows if (holding := _holding(row))]
            if broken := sum(1 for row in rows if row.get("error")):
                self.record.warn(f"{self.about.label} could not read the balance of {broken} tokens")
            following = text(page.get("pageKey"))
            if not following:
                return held
        self.record.warn(f"the wallet has more tokens than were read: {len(held)} with a balance were found")
        return held

    @reported
    async def tokens(self, chain_id: int, addresses: Sequence[str]) -> dict[str, Token]:
        """Symbol, name and decimals by token; tokens that cannot be read are absent."""
        asked = [("alchemy_getTokenMetadata", [token]) for token in addresses]
        answers = await self._each(chain_id, asked)
        return {
            token: _token(token, answer)
            for token, answer in zip(addresses, answers, strict=True)
            if answer is not None
        }

    @reported
    async def movements(self, chain_id: int, wallet: str) -> list[Movement]:
        """The latest transfers of tokens and of the chain's own coin from and to a wallet, each once."""
        async with together() as group:
            both = [
                group.create_task(self._moved(chain_id, {side: wallet}))
                for side in ("fromAddress", "toAddress")
            ]
        rows = {_identity(row): row for task in both for row in task.result()}
        read = [movement for row in rows.values() if (movement := _movement(row))]
        if unread := len(rows) - len(read):
            self.record.warn(f"{unread} transfers that {self.about.label} lists could not be read")
        return read

    @reported
    async def probe(self) -> str:
        """Ask for the number of a chain, which costs no compute units.

        https://www.alchemy.com/docs/reference/compute-unit-costs
        """
        for chain_id in NETWORKS:
            if int(await self._ask(chain_id, "eth_chainId", []), 16) != chain_id:
                raise self.failed(f"answers for another chain than {chain_id}")
        return f"takes the key, on {len(NETWORKS)} chains"

    async def _moved(self, chain_id: int, side: Mapping[str, str]) -> list[Row]:
        query: Row = {
            "fromBlock": "0x0",
            "toBlock": "latest",
            **side,
            "category": ["external", "erc20", *(["internal"] if chain_id in _INTERNAL else [])],
            "order": "desc",
            "maxCount": hex(MOVEMENTS),
            "withMetadata": True,
            # transfers of nothing plant false addresses, and must be seen
            "excludeZeroValue": False,
        }
        found = await self._ask(chain_id, "alchemy_getAssetTransfers", [query])
        return _rows(found["transfers"])

    async def _ask(self, chain_id: int, method: str, params: list[Any]) -> Any:
        """The result of one request."""
        reply = await self.upstream.post(self._url(chain_id), _request(0, method, params))
        return self._result(reply.json())

    async def _each(self, chain_id: int, asked: Sequence[tuple[str, list[Any]]]) -> list[Any]:
        """The result of each request, None for one that is refused; all at once where batches are taken."""
        content = [_request(number, method, params) for number, (method, params) in enumerate(asked)]
        batch = await attempt(self._batch, chain_id, content) if len(asked) > 1 else {}
        if isinstance(batch, ProviderRateLimited | ProviderRefused | ProviderTimeout):
            raise batch
        if isinstance(batch, dict) and batch:
            found = [batch.get(number) for number in range(len(asked))]
        else:
            singly = (attempt(self._ask, chain_id, method, params) for method, params in asked)
            found = await at_once(singly)
        failures = [each for each in found if isinstance(each, ProviderFailure)]
        if failures and len(failures) == len(asked):
            raise failures[0]
        return [None if isinstance(each, ProviderFailure) else each for each in found]

    async def _batch(self, chain_id: int, content: list[Row]) -> dict[Any, Any] | None:
        """Results and failures by request; None where the answer is none to a batch."""
        body = (await self.upstream.post(self._url(chain_id), content)).json()
        if not isinstance(body, list):
            return None
        entries = [_object(entry) for entry in cast(list[Any], body)]
        if len(entries) != len(content) or any("id" not in entry for entry in entries):
            return None
        found: dict[Any, Any] = {}
        for entry in entries:
            try:
                found[entry["id"]] = self._result(entry)
            except ProviderFailure as failure:
                found[entry["id"]] = failure
        return found

    def _result(self, entry: Any) -> Any:
        """The result in a response object; what its error means otherwise."""
        if error := entry.get("error"):
            raise self._refusal(error)
        if entry.get("result") is None:
            raise self.failed("answered without a result")
        return entry["result"]

    def _refusal(self, error: Any) -> ProviderFailure:
        details = cast(Row, error if isinstance(error, dict) else {"message": error})
        said = str(details.get("message") or "")
        lower = said.lower()
        if details.get("code") == 429 or any(words in lower for words in _TOO_OFTEN):
            return ProviderRateLimited(self.about.name, f"{self.about.label} asks to slow down")
        if details.get("code") in (401, 403) or any(words in lower for words in _REFUSALS):
            return ProviderRefused(self.about.name, f"{self.about.label} refuses this deployment")
        why = cleaned(said.replace(self.key or said, "***"), 120) or f"error {details.get('code')!r}"
        return self.failed(f"refuses: {why}")

    def _url(self, chain_id: int) -> str:
        base = (self.settings.url or self.about.url or "").replace("{network}", NETWORKS[chain_id])
        return f"{base.rstrip('/').removesuffix('/v2')}/v2/{quote(self.key or '', safe='')}"


def _request(number: int, method: str, params: list[Any]) -> Row:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def _rows(rows: list[Any]) -> list[Row]:
    """Those that are objects; TypeError when there are rows and none is."""
    found = [cast(Row, row) for row in rows if isinstance(row, dict)]
    if rows and not found:
        raise TypeError("rows that are no objects")
    return found


def _object(value: Any) -> Row:
    return cast(Row, value) if isinstance(value, dict) else {}


def _holding(row: Row) -> Holding | None:
    token, amount = address(row.get("contractAddress")), base_units(row.get("tokenBalance"))
    return Holding(Token(token), amount) if token and amount and not row.get("error") else None


def _token(token: str, answer: Any) -> Token:
    row = _object(answer)
    return Token(
        token,
        symbol=text(row.get("symbol")),
        name=text(row.get("name")),
        decimals=decimals(row.get("decimals")),
    )


def _identity(row: Row) -> str:
    """What tells a transfer from another: one to oneself is found in both directions."""
    return text(row.get("uniqueId")) or repr(
        (row.get("hash"), row.get("category"), row.get("from"), row.get("to"), row.get("rawContract"))
    )


def _movement(row: Row) -> Movement | None:
    raw, sender, transaction = (
        _object(row.get("rawContract")),
        address(row.get("from")),
        transaction_hash(row.get("hash")),
    )
    token = address(raw.get("address"))
    if sender is None or transaction is None or (row.get("category") == "erc20" and token is None):
        return None
    return Movement(
        transaction=transaction,
        sender=sender,
        recipient=address(row.get("to")),
        token=Token(token, text(row.get("asset")), decimals=decimals(raw.get("decimal")))
        if row.get("category") == "erc20" and token
        else None,
        amount=base_units(raw.get("value")),
        block=block_number(row.get("blockNum")),
        at=moment(_object(row.get("metadata")).get("blockTimestamp")),
        place=_place(row),
    )


def _place(row: Row) -> int:
    """The index of the log, which ends its id: `0x…:log:0x1e`."""
    return base_units(str(row.get("uniqueId") or "").rpartition(":")[2]) or 0
