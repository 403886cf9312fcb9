"""Answers of contracts to single calls: asked for again if one is lost, and told from a missing contract."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from centgate.crypto.abi import decode_uint
from centgate.fallback import attempt
from centgate.providers.jsonrpc.contract_calls import ContractCall
from centgate.providers.rpc import Rpc

T = TypeVar("T")


async def confirm_answer(
    rpc: Rpc,
    chain_id: int,
    call: ContractCall,
    answer: bytes | None,
    *,
    parse: Callable[[bytes | None], T | None],
    subject: str,
) -> T | None:
    """Return a parsed answer, asked for once more if it is missing; None if the contract has none.

    Raises ProviderFailure if the node could not run the call: that is no fact about the contract, and nobody
    should pay for it.
    """
    if (parsed := parse(answer)) is not None:
        return parsed
    outcome = await rpc.call_outcome(chain_id, call)
    if not (outcome.succeeded or outcome.is_refusal):
        raise rpc.invalid_response(f"could not read {subject}")
    return parse(outcome.data) if outcome.succeeded else None


async def has_any_code(rpc: Rpc, chain_id: int, addresses: Sequence[str]) -> bool:
    """True if the node has code at one of the addresses; also if there are some and it does not tell."""
    codes = await attempt(rpc.contract_codes, chain_id, addresses) if addresses else []
    return any(codes) if isinstance(codes, list) else True


def parse_address(answer: bytes | None) -> str | None:
    """Parse an address in lower case; None without one."""
    number = decode_uint(answer)
    return None if number is None or number >> 160 else f"0x{number:040x}"
