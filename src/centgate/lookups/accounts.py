"""Read what the chain tells about an account: its kind, its owners, its name and whether it is sanctioned."""

from __future__ import annotations

import asyncio

from centgate.chains import well_known_chain
from centgate.crypto.contract.bytecode import function_selector, parse_address_word
from centgate.crypto.contract.owner_kinds import GOVERNOR_CALL, OWNER_CALLS, classify_owner
from centgate.crypto.contract.owners import Owner
from centgate.crypto.wallet.accounts import (
    ENS_RESOLVERS,
    SANCTIONS_LISTS,
    Account,
    classify_account_owner,
    encode_reverse_lookup,
    parse_flag,
    parse_primary_name,
)
from centgate.fallback import attempt
from centgate.lookups import erc20
from centgate.providers.rpc import ContractCall, Rpc

_SINGLETON_SLOT = "0x" + "0" * 64
"""Slot in which a Safe keeps the address of its code."""


async def read_account(rpc: Rpc, chain_id: int, address: str) -> Account:
    """Return what the chain tells about an account (lower case), in one round of requests.

    What the node does not answer is unknown.
    """
    known = well_known_chain(chain_id)
    resolver, sanctions_list = ENS_RESOLVERS.get(known), SANCTIONS_LISTS[known]
    is_sanctioned = function_selector("isSanctioned(address)")
    calls = [ContractCall(sanctions_list, is_sanctioned + erc20.encode_address(address))]
    if resolver:
        calls.append(ContractCall(resolver, encode_reverse_lookup(address)))
    owner, counts, answers = await asyncio.gather(
        read_owner(rpc, chain_id, address),
        attempt(rpc.transaction_counts, chain_id, [address]),
        attempt(rpc.call_contracts, chain_id, calls),
    )
    flag, name = [*answers, None][:2] if isinstance(answers, list) else (None, None)
    return classify_account_owner(
        owner,
        transaction_count=counts[0] if isinstance(counts, list) else None,
        name=parse_primary_name(name),
        is_sanctioned=parse_flag(flag),
    )


async def read_owner(rpc: Rpc, chain_id: int, address: str | None) -> Owner:
    """Return the owner at an address (lower case; None: there is none), in one round of requests.

    Its kind is `unknown` if the node fails.
    """
    if address is None:
        return classify_owner(None, code=None, singleton=None, answers={})
    names = (*OWNER_CALLS, GOVERNOR_CALL)
    calls = [ContractCall(address, function_selector(name)) for name in names]
    codes, slots, answers = await asyncio.gather(
        attempt(rpc.contract_codes, chain_id, [address]),
        attempt(rpc.storage_slots, chain_id, address, [_SINGLETON_SLOT]),
        attempt(rpc.call_contracts, chain_id, calls),
    )
    if not isinstance(codes, list) or not isinstance(slots, list) or not isinstance(answers, list):
        return Owner(address, "unknown")
    return classify_owner(
        address,
        code=codes[0],
        singleton=parse_address_word(slots[0]),
        answers=dict(zip(names, answers, strict=True)),
    )
