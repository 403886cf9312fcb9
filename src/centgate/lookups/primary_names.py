"""Read the primary name of an account: by ENS on Ethereum, by Basenames on Base."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct

from centgate.chains import well_known_chain
from centgate.crypto import abi
from centgate.crypto.abi import function_selector, parse_address_word
from centgate.crypto.wallet.primary_names import (
    BASENAME_REGISTRIES,
    BASENAME_RESOLVERS,
    ENS_RESOLVERS,
    L2_REVERSE_REGISTRARS,
    encode_address_lookup,
    encode_base_lookup,
    encode_ens_lookup,
    hash_name,
    hash_reverse_basename,
    is_plain_basename,
    parse_base_address,
    parse_ens_name,
)
from centgate.fallback import attempt
from centgate.providers.jsonrpc.contract_calls import ContractCall
from centgate.providers.rpc import Rpc

_Answers = Mapping[str, bytes | None]
"""Result of a call by the contract's address; None if it failed."""


class PrimaryName(Struct, frozen=True):
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
        registrar = L2_REVERSE_REGISTRARS[known]
        stated = function_selector("nameForAddr(address)") + abi.encode_address(address)
        node = hash_reverse_basename(address)
        return {
            registrar: ContractCall(registrar, stated),
            **_list_record_calls(registry, node, function_selector("name(bytes32)") + node),
        }
    return {}


async def read_primary_name(
    rpc: Rpc, chain_id: int, address: str, answers: _Answers, *, deadline: float
) -> PrimaryName:
    """Return the name in the answers to `list_name_calls`, if it resolves back to the address (lower case).

    What Basenames resolve to is read in one more round, until `deadline` (a time of the event loop).
    """
    known = well_known_chain(chain_id)
    if resolver := ENS_RESOLVERS.get(known):
        return _parse_ens_answer(answers[resolver])  # the resolver has checked that it resolves back
    if known not in BASENAME_REGISTRIES:
        return PrimaryName()
    reading = _BasenameReading(rpc, chain_id, address, answers, deadline)
    # by the standard first: what Basenames' own resolver says may be older
    names = await asyncio.gather(_catch_unknown(reading.read_ens()), _catch_unknown(reading.read_own()))
    named = [each for each in names if each.text]
    return next(iter(named or [each for each in names if each.warning]), PrimaryName())


def _parse_ens_answer(returned: bytes | None) -> PrimaryName:
    name = parse_ens_name(returned)
    if name is None and abi.decode_text(returned):
        return PrimaryName(
            warning="the ENS name of the address is left out: it has other characters than a-z, 0-9 and "
            "hyphens"
        )
    return PrimaryName(name)


async def _catch_unknown(reading: Awaitable[PrimaryName]) -> PrimaryName:
    try:
        return await reading
    except _UnknownBasename as reason:
        return PrimaryName(warning=f"the Basename of the address is unknown: {reason}")


class _BasenameReading(Struct, frozen=True):
    """Reading of the Basename that an address claims. Its methods raise `_UnknownBasename`."""

    rpc: Rpc
    chain_id: int
    address: str
    """Lower case."""
    answers: _Answers
    """To `list_name_calls`."""
    deadline: float

    @property
    def _chain(self) -> int:
        return well_known_chain(self.chain_id)

    async def read_ens(self) -> PrimaryName:
        """Return the name at ENS' own registrar, if its address on Base is this one (ENSIP-19)."""
        stated = self.answers[L2_REVERSE_REGISTRARS[self._chain]]
        if stated is None:
            raise _UnknownBasename("the node did not tell")
        return await self._check(abi.decode_text(stated), encode_base_lookup, parse_base_address)

    async def read_own(self) -> PrimaryName:
        """Return the name at Basenames' own resolvers, if its address is this one."""
        stated = _find_record(BASENAME_REGISTRIES[self._chain], self.answers)
        return await self._check(abi.decode_text(stated), encode_address_lookup, parse_address_word)

    async def _check(
        self,
        claimed: str | None,
        encode_lookup: Callable[[str], bytes],
        parse_address: Callable[[bytes], str | None],
    ) -> PrimaryName:
        """Return a claimed name if it is plain and resolves back."""
        if claimed is None:
            return PrimaryName()
        if not is_plain_basename(claimed):
            return PrimaryName(
                warning="the Basename of the address is left out: it has other characters than a-z, 0-9 and "
                "hyphens, or is not under base.eth"
            )
        if parse_address(await self._resolve(claimed, encode_lookup(claimed))) != self.address:
            return PrimaryName(
                warning="the Basename of the address is left out: it does not resolve back to the address"
            )
        return PrimaryName(claimed)

    async def _resolve(self, name: str, lookup: bytes) -> bytes:
        """Return a record of a name, by the call data that reads it."""
        registry = BASENAME_REGISTRIES[self._chain]
        calls = _list_record_calls(registry, hash_name(name), lookup)
        try:
            async with self.rpc.limit_time(self.deadline):
                returned = await attempt(self.rpc.call_contracts, self.chain_id, [*calls.values()])
        except TimeoutError:
            raise _UnknownBasename("the node did not answer in time") from None
        if not isinstance(returned, list):
            raise _UnknownBasename("the node did not tell")
        return _find_record(registry, dict(zip(calls, returned, strict=True)))


def _list_record_calls(registry: str, node: bytes, lookup: bytes) -> dict[str, ContractCall]:
    """Return the calls that read the resolver of a node, and a record of it at each resolver."""
    return {
        registry: ContractCall(registry, function_selector("resolver(bytes32)") + node),
        **{resolver: ContractCall(resolver, lookup) for resolver in BASENAME_RESOLVERS},
    }


def _find_record(registry: str, answers: _Answers) -> bytes:
    """Return the record at the node's resolver; empty without one. Raises `_UnknownBasename`.

    Another resolver may have a record of a former owner.
    """
    word = answers[registry]
    if word is None or len(word) != abi.WORD:
        raise _UnknownBasename("the node did not tell")
    resolver = parse_address_word(word)
    if resolver is None:
        return b""
    if resolver not in BASENAME_RESOLVERS:
        raise _UnknownBasename("its resolver is none of Basenames' own")
    if (record := answers[resolver]) is None:
        raise _UnknownBasename("the node did not tell")
    return record
