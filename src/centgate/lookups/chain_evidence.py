"""Read evidence about a token from its chain: what it says of itself, its pools, and simulated trades.

At most five rounds of requests, two of them before the trades.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from centgate.chains import well_known_chain
from centgate.crypto.contract.owners import Owner
from centgate.crypto.token.chain_pools import PoolKey
from centgate.crypto.token.evidence import Liquidity, MissingReason
from centgate.crypto.token.identity import TokenIdentity
from centgate.crypto.token.lockers import LOCKERS
from centgate.crypto.token.security import Holder, Simulation, TokenFlags
from centgate.errors import NoData, ProviderFailure
from centgate.fallback import attempt
from centgate.lookups import erc20
from centgate.lookups.trade_pools import decode_pools, identify_pools, list_factory_calls
from centgate.lookups.trade_simulation import simulate_on_chain
from centgate.providers.rpc import ContractCall, Rpc
from centgate.sanitize import clean_line

BURN_ADDRESSES = ("0x" + "0" * 40, "0x" + "0" * 36 + "dead")
"""Addresses to which shares of a pair are sent for good."""


@dataclass(frozen=True, slots=True)
class ChainEvidence:
    """What the chain itself tells about a token; None for what could not be read."""

    identity: TokenIdentity | None = None
    pools: tuple[PoolKey, ...] = ()
    """The one that holds most of the token first."""
    simulation: Simulation | None = None
    missing_reason: MissingReason | None = None
    """Reason for a missing simulation."""
    lp_holders: tuple[Holder, ...] | None = None
    """Burn addresses and known lockers that hold shares of the first pool; None for pools without shares."""
    owner: Owner | None = None
    bytecode_flags: TokenFlags | None = None
    liquidity: Liquidity | None = None


async def read_chain_evidence(
    rpc: Rpc, chain_id: int, token: str, list_pools: Callable[[], Awaitable[Sequence[str]]]
) -> ChainEvidence:
    """Return what the chain tells about a token; `list_pools` waits for pools that an index knows.

    A node that fails leaves the rest unknown: nothing is raised.
    """
    if not rpc.is_configured or not rpc.supports_chain(chain_id):
        return ChainEvidence(missing_reason="chain_not_covered")
    factory_calls = list_factory_calls(chain_id, token)
    calls = [*_identity_calls(token), *factory_calls]
    returned = await attempt(rpc.call_contracts, chain_id, calls)
    if isinstance(returned, NoData | ProviderFailure):
        return ChainEvidence(missing_reason="source_unavailable")
    evidence = ChainEvidence(_decode_identity(returned))
    candidates = [*decode_pools(returned[-len(factory_calls) :]), *await list_pools()]
    pools = await attempt(identify_pools, rpc, chain_id, token, candidates)
    if isinstance(pools, NoData | ProviderFailure):
        return replace(evidence, missing_reason="source_unavailable")
    if not pools:
        return replace(evidence, missing_reason="no_pair")
    simulation, lp_holders = await asyncio.gather(
        attempt(simulate_on_chain, rpc, chain_id, token, pools, ()),
        attempt(read_locked_shares, rpc, chain_id, pools[0]),
    )
    found = replace(
        evidence,
        pools=tuple(pools),
        lp_holders=None if isinstance(lp_holders, NoData | ProviderFailure) else lp_holders,
    )
    if isinstance(simulation, NoData | ProviderFailure):
        return replace(found, missing_reason="source_unavailable")
    return replace(found, simulation=simulation)


async def read_locked_shares(rpc: Rpc, chain_id: int, pool: PoolKey) -> tuple[Holder, ...] | None:
    """Return the burn addresses and verified lockers that hold shares of a pair, in percent of all shares.

    None for pools whose liquidity has no such shares, or if the number of shares is not known.
    """
    if pool.kind not in ("v2", "solidly"):
        return None
    lockers = [each for each in LOCKERS.get(well_known_chain(chain_id), {}).values() if each.is_verified]
    addresses = [*BURN_ADDRESSES, *(locker.address for locker in lockers)]
    calls = [erc20.balance_of_call(pool.address, address) for address in addresses]
    returned = await rpc.call_contracts(chain_id, [erc20.total_supply_call(pool.address), *calls])
    total, *balances = [erc20.decode_uint(answer) for answer in returned]
    if not total:
        return None
    return tuple(
        Holder(address, None, contract=None, locked=None, percent=round(100 * balance / total, 6))
        for address, balance in zip(addresses, balances, strict=True)
        if balance and balance <= total
    )


def _identity_calls(token: str) -> list[ContractCall]:
    return [
        erc20.name_call(token),
        erc20.symbol_call(token),
        erc20.decimals_call(token),
        erc20.total_supply_call(token),
    ]


def _decode_identity(returned: Sequence[bytes | None]) -> TokenIdentity | None:
    name, symbol, decimals, supply = returned[:4]
    identity = TokenIdentity(
        clean_line(erc20.decode_text(name)),
        clean_line(erc20.decode_text(symbol)),
        erc20.decode_decimals(decimals),
        erc20.decode_uint(supply),
    )
    return None if identity == TokenIdentity() else identity
