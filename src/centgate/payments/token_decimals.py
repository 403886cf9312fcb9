"""The decimals of the payment token, compared before a server starts with those that prices are in."""

from __future__ import annotations

import asyncio

import aiohttp

from centgate.dollars import USDC
from centgate.payments.onchain import Chains, ChainUnreachable
from centgate.settings import PREFIX, Settings


def check_decimals(settings: Settings) -> str | None:
    """Return a warning where the token's decimals cannot be looked up, None where they are right.

    Raises ValueError when they are not those that prices are in.
    """
    if settings.pay_to is None or _is_known(settings):
        return None
    token = settings.token
    found = asyncio.run(_read_decimals(settings))
    if found is None:
        return (
            f"{PREFIX}ASSET: {token.address} is taken to have {token.decimals} decimals; with a node in "
            f"{PREFIX}RPC_{settings.chain_id}_URL that answers, the start looks it up"
        )
    if found != token.decimals:
        raise ValueError(
            f"{PREFIX}ASSET: {token.address} has {found} decimals, and prices are in {token.decimals}, so "
            f"buyers would be asked for a wrong amount; name a dollar token with {token.decimals} decimals"
        )
    return None


def _is_known(settings: Settings) -> bool:
    known = USDC.get(settings.network)
    return known is not None and known.address.lower() == settings.token.address.lower()


async def _read_decimals(settings: Settings) -> int | None:
    """Ask the nodes of the payment network; None when they do not say it in time."""
    async with aiohttp.ClientSession(trust_env=False) as session:
        chain = Chains(session, settings).of(settings.network)
        try:
            return await chain.decimals(settings.token.address) if chain else None
        except ChainUnreachable:
            return None
