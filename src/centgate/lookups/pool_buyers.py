"""Recent buyers of a token: purchases in a pool, read from event logs, and the choice of those to try."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from centgate.chains import is_burn_address
from centgate.crypto import abi
from centgate.crypto.event_logs import EventLog, EventLogs
from centgate.crypto.token.token_rule import HOLDER_CHECKS
from centgate.crypto.token.trade_probes import FEW_HOLDERS
from centgate.crypto.token.trade_records import MIN_HOLDING
from centgate.errors import NoData, ProviderFailure
from centgate.fallback import attempt
from centgate.lookups import erc20
from centgate.lookups.trade_calls import TokenMarket
from centgate.providers.rpc import Rpc

MAX_HOLDERS = 8
"""Holders that are tried: each call carries 15 KB of code."""
MAX_PROVEN_HOLDERS = 5
"""Of the holders, those that the pool itself names as buyers, if the token names others."""
HOLDER_BLOCKS = 10_000
"""Blocks in which buyers are looked for."""
HOLDER_LOG_REQUESTS = 2
SETTLED_BLOCKS = 5
"""Blocks after which a buyer is preferred: a token may demand a pause between two trades."""
SWAP_TOPICS = (
    "0xd78ad95fa46c994b6551d0da85fc275fe613ce37657fb8d5e3d130840159d822",
    "0xb3e2773606abfd36b5bd91394b3a54d1398336c65005baf7bf7a05efeffaf75b",
    "0xc42079f94a6350d7e6235f29174924f928cc2ac818eb64fed8004e115fbcca67",
    "0x19b47279256b2a23a1665c810c8d55a1758940ee09377d4f8d26497a3577dc83",
)
"""Topics of Swap of pairs (Uniswap v2; Velodrome) and of pools with ranges (Uniswap v3; PancakeSwap v3). The
second indexed argument is the recipient."""
_RANDOM = secrets.SystemRandom()


class BuyerPurchases(Struct, frozen=True):
    """Purchases of one buyer."""

    amount: int
    """Base units of the token."""
    last_block: int


class PoolPurchases(Struct, frozen=True):
    """Purchases in one pool, by buyer."""

    proven: Mapping[str, BuyerPurchases]
    """As the pool itself tells them."""
    told: Mapping[str, BuyerPurchases]
    """As the token tells them, which can make them up, or leave them out."""


async def find_purchases(rpc: Rpc, market: TokenMarket, height: int | None) -> PoolPurchases:
    """Return recent purchases in the pool, as the pool and as the token tell them.

    None are found without `height`, the latest block, or if the logs cannot be read; nothing is raised.
    """
    if height is None:
        return PoolPurchases({}, {})
    pool = market.pool
    sent_by_pool = [erc20.TRANSFER_TOPIC, abi.encode_topic(pool.address)]
    swaps, transfers = await asyncio.gather(
        read_recent_logs(rpc, market, pool.address, [SWAP_TOPICS], height),
        read_recent_logs(rpc, market, market.token, sent_by_pool, height),
    )
    if swaps is None and transfers is not None:
        rpc.trace.add_warning(
            "the pool's own events were not read, so that only the token told of its buyers, which it "
            f"can make up; not checked at others on the chain: {HOLDER_CHECKS}"
        )
    position = 0 if pool.token0 == market.token else 1
    return PoolPurchases(
        proven=_list_purchases(market, swaps, partial(_parse_bought_amount, position=position)),
        told=_list_purchases(market, transfers, parse_transfer_amount),
    )


async def read_recent_logs(
    rpc: Rpc, market: TokenMarket, address: str, topics: Sequence[str | Sequence[str] | None], height: int
) -> EventLogs | None:
    """Return a contract's logs with two indexed arguments, of HOLDER_BLOCKS blocks up to block `height`; None
    if they cannot be read.
    """
    logs = await attempt(
        rpc.event_logs,
        market.chain_id,
        topics,
        to_block=height,
        blocks=HOLDER_BLOCKS,
        requests=HOLDER_LOG_REQUESTS,
        address=address,
    )
    if isinstance(logs, NoData | ProviderFailure):
        return None
    return replace(logs, entries=tuple(log for log in logs.entries if len(log.topics) == 3))


def _list_purchases(
    market: TokenMarket, logs: EventLogs | None, read_amount: Callable[[EventLog], int]
) -> dict[str, BuyerPurchases]:
    """Return the purchases by their recipient, which is the last indexed argument."""
    purchases: dict[str, BuyerPurchases] = {}
    for log in logs.entries if logs else ():
        buyer, amount = abi.decode_address(log.topics[2]), read_amount(log)
        if amount and not is_burn_address(buyer) and buyer not in (market.token, market.pool.address):
            earlier = purchases[buyer].amount if buyer in purchases else 0
            purchases[buyer] = BuyerPurchases(earlier + amount, log.block)
    return purchases


def _parse_bought_amount(log: EventLog, *, position: int) -> int:
    """Return the tokens that a pool paid in a swap; 0 if it took them. `position` is that of the token.

    Pairs give both amounts in, then both out; pools with ranges the changes of their own two balances.
    """
    words = [int(log.data[at : at + 64], 16) for at in range(2, len(log.data) - 63, 64)]
    if log.topics[0] in SWAP_TOPICS[:2]:
        return words[2 + position] if len(words) >= 4 else 0
    change = words[position] if len(words) > position else 0
    return 2**256 - change if change >= 2**255 else 0


def parse_transfer_amount(log: EventLog) -> int:
    """Return the amount of a Transfer event, in base units; 0 if it names none."""
    return int(log.data[2:66] or "0", 16)


def choose_buyers(purchases: PoolPurchases, height: int, depth: int) -> dict[str, int]:
    """Return the buyers to try, with the amounts they bought. `depth` is what the pool has of the token.

    Amounts and depth are in base units, `height` is the latest block.
    """
    limit = MAX_PROVEN_HOLDERS if purchases.told else MAX_HOLDERS
    chosen = _pick_buyers(purchases.proven, height, depth, limit)
    others = {buyer: each for buyer, each in purchases.told.items() if buyer not in chosen}
    chosen += _pick_buyers(others, height, depth, MAX_HOLDERS - len(chosen))
    return {buyer: (purchases.proven.get(buyer) or purchases.told[buyer]).amount for buyer in chosen}


def _pick_buyers(purchases: Mapping[str, BuyerPurchases], height: int, depth: int, limit: int) -> list[str]:
    """Return at most `limit` buyers of more than dust, settled ones if these are not too few.

    Half of them bought most, so that many small purchases do not hide them; the others are taken at random.
    """
    buyers = [buyer for buyer, each in purchases.items() if each.amount >= depth * MIN_HOLDING]
    settled = [buyer for buyer in buyers if purchases[buyer].last_block <= height - SETTLED_BLOCKS]
    candidates = settled if len(settled) >= FEW_HOLDERS else buyers
    candidates = sorted(candidates, key=lambda buyer: -purchases[buyer].amount)
    largest, others = candidates[: (limit + 1) // 2], candidates[(limit + 1) // 2 :]
    return [*largest, *_RANDOM.sample(others, min(len(others), limit - len(largest)))]
