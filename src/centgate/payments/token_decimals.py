"""The decimals of the payment token, compared before a server starts with those that prices are in."""

from __future__ import annotations

import asyncio
import re

import aiohttp

from centgate.dollars import USDC
from centgate.evm import keccak
from centgate.payments.reconcile import ChainUnreachable, Node
from centgate.settings import PREFIX, Settings

MAX_WAIT = 5.0
"""Seconds that the nodes have to answer: a start waits for them."""
_DECIMALS = "0x" + keccak(b"decimals()")[:4].hex()
_UINT8 = re.compile(r"0x0{62}[0-9a-fA-F]{2}")


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
    """Ask the nodes of the payment network in turn; None when none of them says it in time."""
    urls = (settings.provider(f"rpc_{settings.chain_id}").url or "").split(",")
    timeout = aiohttp.ClientTimeout(total=MAX_WAIT)
    try:
        async with asyncio.timeout(MAX_WAIT), aiohttp.ClientSession(trust_env=False) as session:
            for url in filter(None, map(str.strip, urls)):
                node = Node(session, url, settings.chain_id, timeout)
                if (found := await _decimals_at(node, settings.token.address)) is not None:
                    return found
    except TimeoutError:
        pass
    return None


async def _decimals_at(node: Node, token: str) -> int | None:
    try:
        answer = await node.ask("eth_call", {"to": token, "data": _DECIMALS}, "latest")
    except ChainUnreachable:
        return None
    return int(answer, 16) if isinstance(answer, str) and _UINT8.fullmatch(answer) else None
