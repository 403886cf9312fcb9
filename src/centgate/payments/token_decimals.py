"""Startup check of the payment token's decimals against those that prices are in."""

from __future__ import annotations

import asyncio

from centgate.payments.chain_client import ChainClients
from centgate.payments.payment_node import ChainUnreachable, open_node_session
from centgate.settings import PREFIX, Settings
from centgate.signing.assets import USDC


def check_decimals(settings: Settings) -> str | None:
    """Return a warning if the token's decimals cannot be read, None if they are right.

    Raises ValueError if they differ from those that prices are in.
    """
    if settings.pay_to is None or _is_well_known(settings):
        return None
    token = settings.token
    decimals = asyncio.run(_read_decimals(settings))
    if decimals is None:
        return (
            f"{PREFIX}ASSET: could not read the decimals of {token.address}; assuming {token.decimals}. Set "
            f"a working node in {PREFIX}RPC_{settings.chain_id}_URL to have them checked at start"
        )
    if decimals != token.decimals:
        raise ValueError(
            f"{PREFIX}ASSET: {token.address} has {decimals} decimals, and prices are in {token.decimals}, so "
            f"buyers would be asked for a wrong amount; name a dollar token with {token.decimals} decimals"
        )
    return None


def _is_well_known(settings: Settings) -> bool:
    usdc = USDC.get(settings.network)
    return usdc is not None and usdc.address.lower() == settings.token.address.lower()


async def _read_decimals(settings: Settings) -> int | None:
    """Read the decimals from the nodes of the payment network; None if they do not respond in time."""
    async with open_node_session() as session:
        chain = ChainClients(session, settings).for_network(settings.network)
        try:
            return await chain.read_decimals(settings.token.address) if chain else None
        except ChainUnreachable:
            return None
