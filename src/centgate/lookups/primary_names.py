"""Read the primary name of an account: by ENS on Ethereum, by Basenames on Base."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from centgate.chains import well_known_chain
from centgate.crypto.contract.bytecode import function_selector, parse_address_word
from centgate.crypto.wallet.primary_names import (
    BASENAME_REGISTRIES,
    BASENAME_RESOLVERS,
    ENS_RESOLVERS,
    encode_ens_lookup,
    hash_name,
    hash_reverse_basename,
    is_plain_basename,
    parse_ens_name,
)
from centgate.fallback import attempt
from centgate.lookups import erc20
from centgate.providers.jsonrpc.contract_calls import ContractCall
from centgate.providers.rpc import Rpc

_Answers = Mapping[str, bytes | None]
"""Result of a call by the contract's address; None if it failed."""


@dataclass(frozen=True, slots=True)
class PrimaryName:
    """Primary name of an address."""

    text: str | None = None
    """None without one, and if it is left out or unknown."""
    warning: str | None = None
    """Why it is left out or unknown."""


class _UnknownBasename(Exception):
    """The Basename cannot be read; the message is the reason."""


def list_name_calls(chain_id: int, address: str) -> dict[str, ContractCall]:
    """Return the calls that read the name of an address (lower case), by the address of their contract.

    There are none on a chain without names.
    """
    known = well_known_chain(chain_id)
    if resolver := ENS_RESOLVERS.get(known):
        return {resolver: ContractCall(resolver, encode_ens_lookup(address))}
    if registry := BASENAME_REGISTRIES.get(known):
        return _list_record_calls(registry, "name(bytes32)", hash_reverse_basename(address))
    return {}


async def read_primary_name(
    rpc: Rpc, chain_id: int, address: str, answers: _Answers, *, deadline: float
) -> PrimaryName:
    """Return the name in the answers to `list_name_calls`, if it resolves back to the address (lower case).

    What a Basename resolves to is read in one more round, until `deadline` (a time of the event loop).
    """
    known = well_known_chain(chain_id)
    if resolver := ENS_RESOLVERS.get(known):
        return _parse_ens_answer(answers[resolver])  # the resolver has checked that it resolves back
    if registry := BASENAME_REGISTRIES.get(known):
        try:
            claimed = erc20.decode_text(_find_record(registry, answers))
            return await _check_basename(rpc, chain_id, registry, address, claimed, deadline)
        except _UnknownBasename as reason:
            return PrimaryName(warning=f"the Basename of the address is unknown: {reason}")
    return PrimaryName()


def _parse_ens_answer(returned: bytes | None) -> PrimaryName:
    name = parse_ens_name(returned)
    if name is None and erc20.decode_text(returned):
        return PrimaryName(
            warning="the ENS name of the address is left out: it has other characters than a-z, 0-9 and "
            "hyphens"
        )
    return PrimaryName(name)


async def _check_basename(
    rpc: Rpc, chain_id: int, registry: str, address: str, claimed: str | None, deadline: float
) -> PrimaryName:
    """Return a claimed Basename if it is plain and resolves back. Raises `_UnknownBasename`."""
    if claimed is None:
        return PrimaryName()
    if not is_plain_basename(claimed):
        return PrimaryName(
            warning="the Basename of the address is left out: it has other characters than a-z, 0-9 and "
            "hyphens, or is not under base.eth"
        )
    calls = _list_record_calls(registry, "addr(bytes32)", hash_name(claimed))
    try:
        async with asyncio.timeout_at(deadline):
            returned = await attempt(rpc.call_contracts, chain_id, [*calls.values()])
    except TimeoutError:
        rpc.record_status("timeout")  # its calls were cancelled, which records nothing
        raise _UnknownBasename("the node did not answer in time") from None
    if not isinstance(returned, list):
        raise _UnknownBasename("the node did not tell")
    resolved = _find_record(registry, dict(zip(calls, returned, strict=True)))
    if parse_address_word(resolved) != address:
        return PrimaryName(
            warning="the Basename of the address is left out: it does not resolve back to the address"
        )
    return PrimaryName(claimed)


def _list_record_calls(registry: str, signature: str, node: bytes) -> dict[str, ContractCall]:
    """Return the calls that read the resolver of a node, and a record of it at each resolver."""
    record = function_selector(signature) + node
    return {
        registry: ContractCall(registry, function_selector("resolver(bytes32)") + node),
        **{resolver: ContractCall(resolver, record) for resolver in BASENAME_RESOLVERS},
    }


def _find_record(registry: str, answers: _Answers) -> bytes:
    """Return the record at the node's resolver; empty without one. Raises `_UnknownBasename`.

    Another resolver may have a record of a former owner.
    """
    word = answers[registry]
    if word is None or len(word) != erc20.WORD:
        raise _UnknownBasename("the node did not tell")
    resolver = parse_address_word(word)
    if resolver is None:
        return b""
    if resolver not in BASENAME_RESOLVERS:
        raise _UnknownBasename("its resolver is none of Basenames' own")
    if (record := answers[resolver]) is None:
        raise _UnknownBasename("the node did not tell")
    return record
