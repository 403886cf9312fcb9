"""Confirm a selected pair by the chain: its price there, and what a sale would lose."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import Struct

from centgate.crypto.token.pairs import Pair
from centgate.crypto.token.pools import PriceImpact
from centgate.errors import NoData, ProviderFailure
from centgate.lookups.chain_pools import ChainIndex
from centgate.lookups.pair_selection import SelectedPair
from centgate.provider import RequestTrace

ADDRESS_LENGTH = 42
"""Characters of an address; the ids of v4 pools are longer."""
MAX_CHAIN_SECONDS = 3.0
"""Time in which the chain has to confirm an index's price; the answer does not wait longer."""


class PairConfirmation(Struct, frozen=True):
    """A pair as the chain shows it, None if it could not, and sales of the priced token as it quotes them."""

    pair: Pair | None = None
    impacts: Sequence[PriceImpact] = ()
    is_fee_unread: bool = False
    """True if the pool's fee is missing although pools of its kind tell it."""


async def confirm_pair(
    chain: ChainIndex, chain_id: int, selected: SelectedPair, trace: RequestTrace
) -> PairConfirmation:
    """Return what the chain shows of a pair. The answer stands without it: failures are warnings."""
    pair = selected.pair
    is_from_chain = pair.source == "rpc"
    if not (is_from_chain or chain.is_available(chain_id)):
        trace.add_warning(_describe_unknown(pair, "no node is configured for the chain"))
        return PairConfirmation()
    if not is_from_chain and len(pair.address) > ADDRESS_LENGTH:
        trace.add_warning(_describe_unknown(pair, "a pool without a contract of its own is not looked up"))
        return PairConfirmation()
    reason = "the node failed"
    try:
        async with chain.limit_time(asyncio.get_running_loop().time() + MAX_CHAIN_SECONDS):
            known = pair if is_from_chain else await chain.pair(chain_id, pair.address)
            impacts = await _quote_impacts(chain, chain_id, selected, known, trace)
            return PairConfirmation(known, impacts, chain.is_fee_unread(known))
    except NoData as no_data:
        reason = no_data.message
    except TimeoutError:
        reason = "the node did not answer in time"
    except ProviderFailure:
        pass  # recorded by the provider
    trace.add_warning(_describe_unknown(pair, reason))
    return PairConfirmation()


def _describe_unknown(pair: Pair, reason: str) -> str:
    """Name the fields that only the chain could fill; an index gives the fee of some pools."""
    has_fee = pair.fee_percent is not None
    names = "chainPriceUsd and saleImpacts" if has_fee else "chainPriceUsd, saleImpacts and feePercent"
    return f"{names} are not known: {reason}"


async def _quote_impacts(
    chain: ChainIndex, chain_id: int, selected: SelectedPair, known: Pair, trace: RequestTrace
) -> Sequence[PriceImpact]:
    """Quote sales of the priced token in a pool that was read; none if it is the pool's quote token."""
    if known.base.address == selected.priced.address:
        return await chain.impacts(chain_id, known)
    trace.add_warning(
        "chainPriceUsd is null and saleImpacts empty: the chain prices and quotes the pool's base token "
        f"{known.base.address} alone"
    )
    return ()
