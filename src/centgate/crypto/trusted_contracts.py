"""Contracts whose code is known to change nothing when it is read. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from centgate.chains import well_known_chain
from centgate.crypto.approvals.approval_evidence import PERMIT2
from centgate.crypto.token.exchange_tables import EXCHANGES, PRICE_FEEDS
from centgate.crypto.wallet.accounts import SANCTIONS_LISTS
from centgate.crypto.wallet.known_tokens import KNOWN_TOKENS
from centgate.crypto.wallet.primary_names import BASENAME_REGISTRIES, BASENAME_RESOLVERS, ENS_RESOLVERS


def trusted_contracts(chain_id: int) -> frozenset[str]:
    """Return the addresses (lower case) of exchanges, price feeds, known tokens and the like."""
    return _trusted_addresses(well_known_chain(chain_id))


@cache
def _trusted_addresses(chain_id: int) -> frozenset[str]:
    return frozenset(_list_addresses(chain_id))


def _list_addresses(chain_id: int) -> Iterator[str]:
    yield from (PERMIT2, SANCTIONS_LISTS[chain_id])
    yield from KNOWN_TOKENS.get(chain_id, {})
    if resolver := ENS_RESOLVERS.get(chain_id):
        yield resolver
    if registry := BASENAME_REGISTRIES.get(chain_id):
        yield from (registry, *BASENAME_RESOLVERS)
    for exchange in EXCHANGES[chain_id]:
        yield from filter(None, (exchange.factory, exchange.quoter))
    feeds = PRICE_FEEDS[chain_id]
    yield from filter(None, (feeds.native_usd, feeds.sequencer))
