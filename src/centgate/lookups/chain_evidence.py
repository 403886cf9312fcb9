"""Read evidence about a token from its chain: what it says of itself, its pools, and simulated trades.

There are four rounds of requests: first the token, its markets and the state of the node; then its owner and
its pools; then simulated trades; then sales of holders. Up to two more follow if the node refuses
transactions, one if a beacon is asked. The bytecode is analysed while trades are simulated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from centgate.chains import ZERO_ADDRESS, well_known_chain
from centgate.crypto import abi
from centgate.crypto.contract.owners import Owner
from centgate.crypto.token.evidence.simulations import OwnMissingReason
from centgate.crypto.token.exchange_tables import EXCHANGES
from centgate.crypto.token.identity import TokenIdentity
from centgate.crypto.token.lockers import LOCKERS
from centgate.crypto.token.pools import PoolKey
from centgate.crypto.token.powers import ContractPower
from centgate.crypto.token.security import Holder, Simulation, TokenFlags
from centgate.crypto.token.token_liquidity import Liquidity, sum_chain_liquidity
from centgate.errors import NoData, ProviderFailure
from centgate.fallback import attempt, found_or_none, open_task_group
from centgate.lookups import erc20
from centgate.lookups.chain_pools import confirm_facts, list_token_pools, read_listed_pools
from centgate.lookups.token_on_chain import OnchainToken, read_token
from centgate.lookups.trade_pools import identify_pools
from centgate.lookups.trade_simulation import NodeState, read_node_state, simulate_on_chain
from centgate.providers.bytecode import BytecodeAnalyzer
from centgate.providers.rpc import Rpc

BURN_ADDRESSES = (ZERO_ADDRESS, "0x" + "0" * 36 + "dead")
"""Addresses to which shares of a pair are sent for good."""
CLEARING_PERCENT = 50
"""Percent of locked shares from which a token is cleared of a finding."""


class ChainEvidence(Struct, frozen=True):
    """Facts of a token that the chain itself states; None for those that could not be read."""

    identity: TokenIdentity | None = None
    pools: tuple[PoolKey, ...] = ()
    """The one that holds most of the token first."""
    simulation: Simulation | None = None
    missing_reason: OwnMissingReason | None = None
    """Reason for a missing simulation."""
    lp_holders: tuple[Holder, ...] | None = None
    """Burn addresses and known lockers that hold shares of the first pool; None for pools without shares."""
    owner: Owner | None = None
    has_other_controllers: bool = False
    """True if the bytecode has roles, or a power that another account than the owner may use."""
    is_pinned_clone: bool = False
    """True for a clone that always runs the code of one contract."""
    runs_implementation: bool | None = False
    """True if a proxy or a clone is known to run the code of the contract that it names; None if likely."""
    bytecode_flags: TokenFlags | None = None
    bytecode_powers: tuple[ContractPower, ...] = ()
    liquidity: Liquidity | None = None
    usd_by_pool: Mapping[str, float] = field(default_factory=dict[str, float])
    """US dollars that pools hold, by address; without those of unknown depth."""


async def read_chain_evidence(
    rpc: Rpc,
    bytecode: BytecodeAnalyzer,
    chain_id: int,
    token: str,
    *,
    list_pools: Callable[[], Awaitable[Sequence[str]]],
    max_wait: float,
    on_implementation: Callable[[str], None] | None = None,
) -> ChainEvidence:
    """Return what the chain tells about a token within `max_wait` seconds.

    `list_pools` waits for pools that an index knows, which are used if no exchange of the tables has one.
    `on_implementation` is called once with the address (lower case) of the contract whose code a proxy or a
    clone runs, as soon as it is known. A node that fails or is slow leaves the rest unknown: nothing is
    raised.
    """
    if not rpc.is_available(chain_id):
        return ChainEvidence(missing_reason="chain_not_covered")
    reading = _ChainReading(rpc, bytecode, chain_id, token, list_pools, on_implementation)
    try:
        async with rpc.limit_time(asyncio.get_running_loop().time() + max_wait):
            await reading.read()
    except TimeoutError:
        rpc.trace.add_warning(f"the chain was not read to the end within {max_wait:g} s")
        return replace(reading.evidence, missing_reason="source_unavailable")
    return reading.evidence


class _ChainReading(Struct):
    """Rounds of requests about a token; `evidence` has what is known so far."""

    rpc: Rpc
    bytecode: BytecodeAnalyzer
    chain_id: int
    token: str
    list_pools: Callable[[], Awaitable[Sequence[str]]]
    on_implementation: Callable[[str], None] | None
    evidence: ChainEvidence = field(default_factory=ChainEvidence)

    async def read(self) -> None:
        """Read the evidence in up to four rounds; no more of it if the token itself cannot be read."""
        async with open_task_group() as group:
            market = group.create_task(self._read_market())
            if reason := await self._read_token():
                market.cancel()
        if reason:
            self.evidence = ChainEvidence(missing_reason=reason)

    async def _read_token(self) -> OwnMissingReason | None:
        """Add what the chain tells about the token itself; return the reason if that is nothing."""
        is_first = True
        try:
            async for shown in read_token(self.rpc, self.bytecode, self.chain_id, self.token):
                self._add_token(shown)
                if is_first and shown.implementation and self.on_implementation:
                    self.on_implementation(shown.implementation)
                is_first = False
        except NoData:
            return "no_contract"
        except ProviderFailure:
            return "source_unavailable"
        return None

    def _add_token(self, shown: OnchainToken) -> None:
        self._add(
            identity=None if shown.identity == TokenIdentity() else shown.identity,
            owner=shown.owner,
            has_other_controllers=shown.has_other_controllers,
            is_pinned_clone=shown.is_pinned_clone,
            runs_implementation=shown.runs_implementation,
            bytecode_flags=shown.flags,
            bytecode_powers=shown.powers,
        )

    async def _read_market(self) -> None:
        """Add the token's pools, what they hold, and simulated trades."""
        pools, node_state = await asyncio.gather(
            attempt(self._find_pools), attempt(read_node_state, self.rpc, self.chain_id)
        )
        if isinstance(pools, NoData | ProviderFailure):
            self._add(missing_reason="no_pair" if isinstance(pools, NoData) else "source_unavailable")
            return
        self._add(pools=tuple(pools))
        # a node that failed before the pools were known may have recovered
        await self._read_trades(found_or_none(node_state))

    async def _find_pools(self) -> Sequence[PoolKey]:
        """Return the pools that the chain shows, and add what they hold; else those that an index lists.

        Trades are simulated also in pools of a token that does not tell its decimals, without which it has no
        price. Raises NoData without a pool, and ProviderFailure.
        """
        listed = await attempt(list_token_pools, self.rpc, self.chain_id, self.token)
        if isinstance(listed, NoData):
            return await self._identify_pools(await self.list_pools(), listed)
        if isinstance(listed, ProviderFailure):
            raise listed
        facts = await attempt(confirm_facts, self.rpc, self.chain_id, self.token, listed)
        if isinstance(facts, NoData | ProviderFailure):
            contracts = [pool.key.address for pool in listed.pools if pool.key.pool_id is None]
            return await self._identify_pools(contracts, facts)
        states = await attempt(read_listed_pools, self.rpc, self.chain_id, self.token, listed.pools, facts)
        if isinstance(states, NoData):
            return await self._identify_pools(await self.list_pools(), states)
        if isinstance(states, ProviderFailure):
            raise states
        depths = {state.key.address: state.liquidity_usd for state in states if state.key.pool_id is None}
        self._add(
            liquidity=sum_chain_liquidity(states),
            usd_by_pool={address: usd for address, usd in depths.items() if usd is not None},
        )
        return [state.key for state in states]

    async def _identify_pools(
        self, addresses: Sequence[str], missing: NoData | ProviderFailure
    ) -> Sequence[PoolKey]:
        """Return those addresses that are pools of the token; raise what is missing if there is none."""
        found = found_or_none(await attempt(identify_pools, self.rpc, self.chain_id, self.token, addresses))
        if not found:
            raise missing
        return found

    async def _read_trades(self, node_state: NodeState | None) -> None:
        """Add simulated trades and the locked shares of the first pool."""
        pools = self.evidence.pools
        simulation, lp_holders = await asyncio.gather(
            attempt(simulate_on_chain, self.rpc, self.chain_id, self.token, pools, (), node_state=node_state),
            attempt(read_locked_shares, self.rpc, self.chain_id, pools[0]),
        )
        self._add(lp_holders=found_or_none(lp_holders))
        if isinstance(simulation, NoData | ProviderFailure):
            self._add(missing_reason="source_unavailable")
        else:
            self._add(simulation=simulation)

    def _add(self, **facts: Any) -> None:
        self.evidence = replace(self.evidence, **facts)


async def read_locked_shares(rpc: Rpc, chain_id: int, pool: PoolKey) -> tuple[Holder, ...] | None:
    """Return the burn addresses and verified lockers that hold shares of a pair, in percent of all shares.

    None for pools whose liquidity has no such shares, or if one of the numbers is not known. Also None, with
    a warning, if a pair of an unknown exchange claims that so much is locked that the token would be cleared:
    its code can claim anything.
    """
    if pool.kind not in ("v2", "solidly"):
        return None
    lockers = [each for each in LOCKERS.get(well_known_chain(chain_id), {}).values() if each.is_verified]
    addresses = [*BURN_ADDRESSES, *(locker.address for locker in lockers)]
    calls = [erc20.balance_of_call(pool.address, address) for address in addresses]
    returned = await rpc.call_contracts(chain_id, [erc20.total_supply_call(pool.address), *calls])
    total, *balances = [abi.decode_uint(answer) for answer in returned]
    if total is None or None in balances:
        rpc.trace.add_warning("the pair did not tell its shares; not checked on the chain: locked liquidity")
        return None
    if not total:
        return None
    holders = tuple(
        Holder(address, None, contract=None, locked=None, percent=round(100 * balance / total, 6))
        for address, balance in zip(addresses, balances, strict=True)
        if balance and balance <= total
    )
    is_known = any(pool.exchange == each.name for each in EXCHANGES[well_known_chain(chain_id)])
    if not is_known and sum(holder.percent or 0 for holder in holders) >= CLEARING_PERCENT:
        rpc.trace.add_warning(
            "the pair says that its liquidity is locked or burned, which does not count: its exchange is not "
            "known"
        )
        return None
    return holders
