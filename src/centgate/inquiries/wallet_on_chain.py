"""A wallet as the chain itself tells it, where no source lists what it holds: in parts, and says in which."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from centgate.chains import CHAIN_BY_ID
from centgate.errors import NoData, ProviderFailure
from centgate.facts.known_tokens import KNOWN_TOKENS
from centgate.facts.wallets import Holding, Movement, Token, newest_first
from centgate.inquiries import erc20
from centgate.providers.rpc import Log, Rpc
from centgate.readings import base_units, since_1970
from centgate.sources import attempt, together

BLOCKS = 5_000
"""Blocks whose logs are read: what most public nodes give in one call or a few."""
DEVELOPMENT_BLOCKS = 100_000
REQUESTS = 8
"""Calls for logs in each direction."""
TOKENS = 100
"""Tokens outside the list of known ones that are asked for a balance, those that moved last first."""
TIMED = 10
"""Movements whose time is looked up."""


@dataclass(frozen=True, slots=True)
class _Recent:
    logs: tuple[Log, ...]
    from_block: int
    to_block: int


class WalletOnChain:
    """One wallet: the known tokens it holds, and what recent Transfer events (EIP-20) tell of it."""

    def __init__(self, rpc: Rpc, chain_id: int, wallet: str) -> None:
        self._rpc, self._chain_id, self._wallet = rpc, chain_id, wallet
        self._recent: asyncio.Future[_Recent | NoData | ProviderFailure] | None = None

    async def holdings(self) -> list[Holding]:
        """Balances of the known tokens, and of those that moved to or from the wallet lately."""
        recent = await self._logs()
        logs = recent.logs if isinstance(recent, _Recent) else ()
        moved = dict.fromkeys(log.address for log in reversed(logs))
        known = KNOWN_TOKENS.get(self._chain_id, {})
        tokens = [*known, *[token for token in moved if token not in known][:TOKENS]]
        calls = [erc20.balance_of(token, self._wallet) for token in tokens]
        balances = [erc20.number(returned) for returned in await self._rpc.calls(self._chain_id, calls)]
        lately = (
            f" and those that moved in blocks {recent.from_block} to {recent.to_block}"
            if isinstance(recent, _Recent)
            else ", since the node gives no event logs"
        )
        self._rpc.record.warn(
            f"coverage is partial: tokens were read from the chain itself, those of a built-in list{lately}"
        )
        return [
            Holding(Token(token), balance) for token, balance in zip(tokens, balances, strict=True) if balance
        ]

    async def movements(self) -> list[Movement]:
        """Transfers of tokens in the blocks that were read, the latest first; the first few have a time."""
        recent = await self._logs()
        if not isinstance(recent, _Recent):
            raise recent
        self._rpc.record.warn(
            "coverage is partial: transfers were read from the chain itself, those of tokens in blocks "
            f"{recent.from_block} to {recent.to_block}, without those of the chain's own coin"
        )
        movements = newest_first([_movement(log) for log in recent.logs])
        numbers = sorted({each.block for each in movements[:TIMED] if each.block is not None})
        blocks = await attempt(self._rpc.blocks, self._chain_id, numbers) if numbers else []
        if isinstance(blocks, NoData | ProviderFailure):
            return movements
        times = {block.number: since_1970(block.timestamp) for block in blocks}
        timed = [replace(each, at=times.get(each.block or 0)) for each in movements[:TIMED]]
        return [*timed, *movements[TIMED:]]

    async def tokens(self, tokens: Sequence[str]) -> dict[str, Token]:
        """Symbol, name, decimals and supply by token, as the tokens say."""
        questions = (erc20.symbol, erc20.name, erc20.decimals, erc20.total_supply)
        calls = [question(token) for token in tokens for question in questions]
        answers = iter(await self._rpc.calls(self._chain_id, calls))
        return {
            token: Token(
                token,
                symbol=erc20.text(next(answers)),
                name=erc20.text(next(answers)),
                decimals=erc20.small(next(answers)),
                supply=erc20.number(next(answers)),
            )
            for token in tokens
        }

    async def _logs(self) -> _Recent | NoData | ProviderFailure:
        """Transfer events of the wallet, oldest first; asked for once, whoever needs them first."""
        if self._recent is None:
            self._recent = asyncio.create_task(self._asked())
        return await self._recent

    async def _asked(self) -> _Recent | NoData | ProviderFailure:
        return await attempt(self._read)

    async def _read(self) -> _Recent:
        latest = (await self._rpc.latest_block(self._chain_id)).number
        blocks = BLOCKS if self._chain_id in CHAIN_BY_ID else DEVELOPMENT_BLOCKS
        side = erc20.topic(self._wallet)
        async with together() as group:
            both = [
                group.create_task(
                    self._rpc.logs(self._chain_id, topics, to_block=latest, blocks=blocks, requests=REQUESTS)
                )
                for topics in ([erc20.TRANSFER, side], [erc20.TRANSFER, None, side])
            ]
        found = [task.result() for task in both]
        # one to oneself is found in both directions; transfers of NFTs have a fourth topic
        logs = {(log.block, log.index): log for logs in found for log in logs.entries if len(log.topics) == 3}
        return _Recent(
            tuple(logs[place] for place in sorted(logs)),
            from_block=max(logs.from_block for logs in found),
            to_block=latest,
        )


def _movement(log: Log) -> Movement:
    return Movement(
        transaction=log.transaction,
        sender=erc20.address_in(log.topics[1]),
        recipient=erc20.address_in(log.topics[2]),
        token=Token(log.address),
        amount=base_units(log.data[:66]),
        block=log.block,
        at=None,
        place=log.index,
    )
