"""Startup check of the accepted tokens' decimals against those that prices are in."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from centgate.accepted_tokens import AcceptedToken
from centgate.environment import PREFIX, node_variable
from centgate.payments.chain.chain_client import ChainClients
from centgate.payments.chain.payment_node import ChainUnreachable, open_node_session
from centgate.settings import Settings


def check_decimals(settings: Settings) -> str | None:
    """Return a warning if an accepted token's decimals cannot be read, None if they are all right.

    Those of tokens that this software knows are not read. Raises ValueError for a token whose decimals differ
    from those that prices are in.
    """
    tokens = [each for each in settings.accepted_tokens if not each.is_known_usdc]
    if not tokens:
        return None
    found = asyncio.run(_read_decimals(settings, tokens))
    name = PREFIX + ("ACCEPTS" if settings.accepts else "ASSET")
    warnings = (_check_token(token, decimals, name) for token, decimals in zip(tokens, found, strict=True))
    return "; ".join(each for each in warnings if each) or None


def _check_token(token: AcceptedToken, decimals: int | None, name: str) -> str | None:
    """Return a warning for decimals that could not be read; `name` is the token's setting."""
    address, expected = token.asset.address, token.asset.decimals
    if decimals is None:
        return (
            f"{name}: could not read the decimals of {address}; assuming {expected}. Set "
            f"a working node in {node_variable(token.network)} to have them checked at start"
        )
    if decimals != expected:
        raise ValueError(
            f"{name}: {address} has {decimals} decimals, and prices are in {expected}, so "
            f"buyers would be asked for a wrong amount; name a dollar token with {expected} decimals"
        )
    return None


async def _read_decimals(settings: Settings, tokens: Sequence[AcceptedToken]) -> list[int | None]:
    """Read the decimals from the nodes of each network; None if they do not respond in time."""
    async with open_node_session() as session:
        chains = ChainClients(session, settings)

        async def read(token: AcceptedToken) -> int | None:
            chain = chains.for_network(token.network)
            try:
                return await chain.read_decimals(token.asset.address) if chain else None
            except ChainUnreachable:
                return None

        return await asyncio.gather(*map(read, tokens))
