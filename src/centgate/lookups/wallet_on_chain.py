"""Read a wallet from the chain where no source lists its holdings; coverage is partial and warned of."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from centgate.chains import CHAIN_BY_ID, from_chain_seconds
from centgate.coercion import as_base_units
from centgate.crypto import abi
from centgate.crypto.event_logs import EventLog
from centgate.crypto.wallet.known_tokens import KNOWN_TOKENS
from centgate.crypto.wallet.wallets import Holding, Token, Transfer, sort_newest_first
from centgate.errors import NoData, ProviderFailure
from centgate.fallback import attempt, open_task_group
from centgate.lookups import erc20
from centgate.lookups.block_times import read_block_times
from centgate.providers.rpc import Rpc

LOG_BLOCKS = 5_000
"""Blocks whose logs are read: most public nodes return them in one call or a few."""
DEVELOPMENT_BLOCKS = 100_000
LOG_REQUESTS = 8
"""eth_getLogs calls in each direction."""
MAX_MOVED_TOKENS = 100
"""Tokens outside the list of known ones whose balance is read, the most recently moved first."""
MAX_TIMED_TRANSFERS = 10
"""Transfers whose time is looked up."""


class _RecentLogs(Struct, frozen=True):
    logs: tuple[EventLog, ...]
    from_block: int
    to_block: int


class OnchainWallet:
    """One wallet: its balances of known tokens, and its recent Transfer events (EIP-20)."""

    def __init__(self, rpc: Rpc, chain_id: int, wallet: str) -> None:
        self._rpc, self._chain_id, self._wallet = rpc, chain_id, wallet
        self._recent: asyncio.Future[_RecentLogs | NoData | ProviderFailure] | None = None

    async def holdings(self) -> list[Holding]:
        """Read balances of the known tokens, and of those recently moved to or from the wallet."""
        recent = await self._transfer_logs()
        logs = recent.logs if isinstance(recent, _RecentLogs) else ()
        moved_tokens = dict.fromkeys(log.address for log in reversed(logs))
        known_tokens = KNOWN_TOKENS.get(self._chain_id, {})
        others = [token for token in moved_tokens if token not in known_tokens]
        tokens = [*known_tokens, *others[:MAX_MOVED_TOKENS]]
        calls = [erc20.balance_of_call(token, self._wallet) for token in tokens]
        balances = [
            abi.decode_uint(returned) for returned in await self._rpc.call_contracts(self._chain_id, calls)
        ]
        note = (
            f" and those that moved in blocks {recent.from_block} to {recent.to_block}"
            if isinstance(recent, _RecentLogs)
            else ", since the node gives no event logs"
        )
        self._rpc.trace.add_warning(
            f"coverage is partial: tokens were read from the chain itself, those of a built-in list{note}"
        )
        # anyone can send a wallet hundreds of tokens to hide another behind them
        if (left_out := len(others) - MAX_MOVED_TOKENS) > 0:
            self._rpc.trace.add_warning(
                f"the balances of {left_out} tokens were not read: those that moved longest ago"
            )
        if unread := balances.count(None):
            self._rpc.trace.add_warning(f"the balances of {unread} tokens could not be read from the chain")
        return [
            Holding(Token(token), balance) for token, balance in zip(tokens, balances, strict=True) if balance
        ]

    async def transfers(self) -> list[Transfer]:
        """Return token transfers in the blocks that were read, the latest first; the first have a time."""
        recent = await self._transfer_logs()
        if not isinstance(recent, _RecentLogs):
            raise recent
        self._rpc.trace.add_warning(
            "coverage is partial: transfers were read from the chain itself, those of tokens in blocks "
            f"{recent.from_block} to {recent.to_block}, without those of the chain's own coin"
        )
        movements = sort_newest_first([_parse_transfer(log) for log in recent.logs])
        timed, others = movements[:MAX_TIMED_TRANSFERS], movements[MAX_TIMED_TRANSFERS:]
        numbers = {each.block for each in timed if each.block is not None}
        times = await read_block_times(self._rpc, self._chain_id, numbers)
        with_times = (
            replace(each, at=from_chain_seconds(times.get(each.block or 0), self._chain_id)) for each in timed
        )
        return [*with_times, *others]

    async def token_metadata(self, tokens: Sequence[str]) -> dict[str, Token]:
        """Read symbol, name, decimals and supply of each token from its contract."""
        getters = (erc20.symbol_call, erc20.name_call, erc20.decimals_call, erc20.total_supply_call)
        calls = [getter(token) for token in tokens for getter in getters]
        answers = iter(await self._rpc.call_contracts(self._chain_id, calls))
        return {
            token: Token(
                token,
                symbol=abi.decode_text(next(answers)),
                name=abi.decode_text(next(answers)),
                decimals=erc20.decode_decimals(next(answers)),
                supply=abi.decode_uint(next(answers)),
            )
            for token in tokens
        }

    async def _transfer_logs(self) -> _RecentLogs | NoData | ProviderFailure:
        """Return Transfer events of the wallet, oldest first; read once and shared by all callers."""
        if self._recent is None:
            self._recent = asyncio.create_task(self._try_read_logs())
        return await self._recent

    async def _try_read_logs(self) -> _RecentLogs | NoData | ProviderFailure:
        return await attempt(self._read_logs)

    async def _read_logs(self) -> _RecentLogs:
        latest = (await self._rpc.latest_block(self._chain_id)).number
        blocks = LOG_BLOCKS if self._chain_id in CHAIN_BY_ID else DEVELOPMENT_BLOCKS
        wallet_topic = abi.encode_topic(self._wallet)
        async with open_task_group() as group:
            tasks = [
                group.create_task(
                    self._rpc.event_logs(
                        self._chain_id, topics, to_block=latest, blocks=blocks, requests=LOG_REQUESTS
                    )
                )
                for topics in (
                    [erc20.TRANSFER_TOPIC, wallet_topic],
                    [erc20.TRANSFER_TOPIC, None, wallet_topic],
                )
            ]
        results = [task.result() for task in tasks]
        # a transfer to oneself is found in both directions; transfers of NFTs have a fourth topic
        logs = {
            (log.block, log.index): log for logs in results for log in logs.entries if len(log.topics) == 3
        }
        return _RecentLogs(
            tuple(logs[position] for position in sorted(logs)),
            from_block=max(logs.from_block for logs in results),
            to_block=latest,
        )


def _parse_transfer(log: EventLog) -> Transfer:
    return Transfer(
        transaction=log.transaction,
        sender=abi.decode_address(log.topics[1]),
        recipient=abi.decode_address(log.topics[2]),
        token=Token(log.address),
        amount=as_base_units(log.data[:66]),
        block=log.block,
        at=None,
        position=log.index,
    )
