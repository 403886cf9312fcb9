"""Read what a token says of itself, who owns it, and what its bytecode tells, in two rounds of requests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace

from centgate.crypto.contract.account_state import BEACON_SLOT, IMPLEMENTATION_CALL, POINTER_SLOTS
from centgate.crypto.contract.bytecode import (
    delegation_target,
    function_selector,
    has_delegatecall,
    match_clone,
    parse_address_word,
)
from centgate.crypto.contract.code_analysis import CodeAnalysis
from centgate.crypto.contract.owners import (
    OWNER_GETTERS,
    Owner,
    choose_owner,
    has_owner_function,
    parse_owner,
)
from centgate.crypto.token.identity import TokenIdentity
from centgate.crypto.token.powers import ContractPower, has_other_controllers, infer_flags, infer_powers
from centgate.crypto.token.security import TokenFlags
from centgate.errors import NoData
from centgate.fallback import attempt
from centgate.lookups import erc20
from centgate.lookups.accounts import read_owner
from centgate.providers.bytecode import BytecodeAnalyzer
from centgate.providers.jsonrpc.contract_calls import ContractCall
from centgate.providers.rpc import Rpc
from centgate.sanitize import clean_line


@dataclass(frozen=True, slots=True)
class OnchainToken:
    """Facts of a token that the chain states without any other source. `flags` and `powers` are inferred."""

    identity: TokenIdentity
    owner: Owner
    flags: TokenFlags
    powers: tuple[ContractPower, ...] = ()
    has_other_controllers: bool = False
    """True if the code has roles, or a power that another account than the owner may use."""
    implementation: str | None = None
    """Contract whose code a proxy, a clone or a delegated wallet runs, lower case; None if it is none of
    these, or of another kind."""
    is_pinned_clone: bool = False
    """True for a clone that always runs the code of `implementation`, which runs no other code."""


@dataclass(frozen=True, slots=True)
class _TokenState:
    """Results of the first round."""

    identity: TokenIdentity
    code: bytes
    owner: str | None
    implementation: str | None
    is_clone: bool
    """True if the code itself names the implementation."""


async def read_token(rpc: Rpc, bytecode: BytecodeAnalyzer, chain_id: int, token: str) -> OnchainToken:
    """Return what the chain tells about a token (lower case).

    Raises NoData if there is no contract, and ProviderFailure if the first round fails. What fails later is
    unknown: an owner of kind `unknown`, and flags without values.
    """
    state = await _read_state(rpc, chain_id, token)
    target = state.implementation
    owner, code = await asyncio.gather(
        read_owner(rpc, chain_id, state.owner), _read_running_code(rpc, chain_id, state)
    )
    # a clone can be upgraded only if the code that it runs delegates in turn
    is_pinned = state.is_clone and bool(code) and not (has_delegatecall(code) or delegation_target(code))
    is_proxy = target is not None and not is_pinned
    # a proxy's own functions are called before those of the code behind it
    has_own_functions = is_proxy and not (state.is_clone or delegation_target(state.code))
    codes = (code, state.code if has_own_functions else b"")
    analyses = [each for each in await asyncio.gather(*(_analyze(bytecode, each) for each in codes)) if each]
    if not analyses:
        flags = TokenFlags(proxy=False if is_pinned else is_proxy or None)
        return OnchainToken(state.identity, owner, flags, implementation=target, is_pinned_clone=is_pinned)
    if state.owner is None and any(has_owner_function(analysis.selectors) for analysis in analyses):
        owner = Owner(None, "unknown")  # it names one, and the answer is no address
    powers = tuple(power for analysis in analyses for power in infer_powers(analysis))
    main = next((analysis for analysis in analyses if analysis.functions), analyses[0])
    flags = infer_flags(main, is_proxy=is_proxy, powers=powers)
    return OnchainToken(
        state.identity,
        owner,
        replace(flags, proxy=False) if is_pinned else flags,
        powers,
        any(has_other_controllers(analysis, powers) for analysis in analyses),
        implementation=target,
        is_pinned_clone=is_pinned,
    )


async def _analyze(bytecode: BytecodeAnalyzer, code: bytes) -> CodeAnalysis | None:
    """Return the analysis of some code; None if it is empty or cannot be analysed."""
    analysis = await attempt(bytecode.analyze, code) if code else None
    return analysis if isinstance(analysis, CodeAnalysis) else None


async def _read_state(rpc: Rpc, chain_id: int, token: str) -> _TokenState:
    """Read the first round. Raises NoData and ProviderFailure."""
    calls = [
        erc20.name_call(token),
        erc20.symbol_call(token),
        erc20.decimals_call(token),
        erc20.total_supply_call(token),
        *(ContractCall(token, function_selector(getter)) for getter in OWNER_GETTERS),
    ]
    slots = [slot for slot, kind in POINTER_SLOTS if kind != "safe"]
    answers, words, (code,) = await asyncio.gather(
        rpc.call_contracts(chain_id, calls),
        rpc.storage_slots(chain_id, token, slots),
        rpc.contract_codes(chain_id, [token]),
    )
    if not code:
        raise NoData(f"there is no contract at {token} on chain {chain_id}")
    pointers = dict(zip(slots, map(parse_address_word, words), strict=True))
    name, symbol, decimals, supply, *owners = answers
    identity = TokenIdentity(
        clean_line(erc20.decode_text(name)),
        clean_line(erc20.decode_text(symbol)),
        erc20.decode_decimals(decimals),
        erc20.decode_uint(supply),
    )
    owner = choose_owner(map(parse_owner, owners))
    clone = match_clone(code)
    target = clone[0] if clone else delegation_target(code)
    target = target or await _find_implementation(rpc, chain_id, code, pointers)
    return _TokenState(identity, code, owner, target, is_clone=clone is not None)


async def _find_implementation(
    rpc: Rpc, chain_id: int, code: bytes, pointers: Mapping[str, str | None]
) -> str | None:
    """Return the contract whose code a proxy runs; `pointers` are the addresses in its slots.

    A beacon is asked, which takes a further round.
    """
    # the pointers first: to tell opcodes from data, the whole code has to be read
    if not any(pointers.values()) or not has_delegatecall(code):
        return None
    direct = (target for slot, target in pointers.items() if slot != BEACON_SLOT)
    if target := next(filter(None, direct), None):
        return target
    beacon = pointers.get(BEACON_SLOT)
    call = [ContractCall(beacon, function_selector(IMPLEMENTATION_CALL))] if beacon else []
    answers = await attempt(rpc.call_contracts, chain_id, call) if call else []
    return parse_address_word(answers[0]) if isinstance(answers, list) and answers else None


async def _read_running_code(rpc: Rpc, chain_id: int, state: _TokenState) -> bytes:
    """Return the code that runs: behind a proxy its implementation's; empty if that was not read."""
    if state.implementation is None:
        return state.code
    codes = await attempt(rpc.contract_codes, chain_id, [state.implementation])
    return codes[0] if isinstance(codes, list) else b""
