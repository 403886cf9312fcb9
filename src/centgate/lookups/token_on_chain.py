"""Read what a token says of itself, who owns it, and what its bytecode tells, in two rounds of requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from centgate.crypto import abi
from centgate.crypto.abi import function_selector
from centgate.crypto.contract.account_state import ChainState
from centgate.crypto.contract.bytecode import has_delegatecall, is_reserved
from centgate.crypto.contract.code_analysis import CodeAnalysis
from centgate.crypto.contract.diamonds import (
    DIAMOND_CUT,
    LOUPE_CALL,
    parse_facets,
    restrict_functions,
    share_storage,
)
from centgate.crypto.contract.owners import OWNER_GETTERS, Owner, has_owner_function
from centgate.crypto.contract.proxy_standards import (
    BEACON_SLOT,
    IMPLEMENTATION_CALL,
    POINTER_SLOTS,
    find_implementation,
    list_named_slots,
    parse_coded_implementation,
)
from centgate.crypto.token.identity import TokenIdentity
from centgate.crypto.token.powers import (
    DECISIVE_SELECTORS,
    ContractPower,
    has_other_controllers,
    infer_flags,
    infer_powers,
)
from centgate.crypto.token.security import TokenFlags
from centgate.errors import NoData
from centgate.fallback import attempt, found_or_none
from centgate.lookups import erc20
from centgate.lookups.accounts import read_owner
from centgate.lookups.chain_state import find_touched_accounts
from centgate.providers.bytecode import BytecodeAnalyzer
from centgate.providers.jsonrpc.contract_calls import ContractCall
from centgate.providers.jsonrpc.multicall import MULTICALL
from centgate.providers.rpc import Rpc
from centgate.sanitize import clean_line

MAX_FACETS = 20
"""Facets of a diamond whose code is read: the first of those with functions that decide about powers."""


class OnchainToken(Struct, frozen=True):
    """Facts of a token that the chain states without any other source. `flags` and `powers` are inferred."""

    identity: TokenIdentity
    owner: Owner
    implementation: str | None
    """Contract whose code a proxy, a clone or a delegated wallet runs, lower case; None if it is none of
    these, or of another kind."""
    flags: TokenFlags = field(default_factory=TokenFlags)
    powers: tuple[ContractPower, ...] = ()
    has_other_controllers: bool = False
    """True if the code has roles, or a power that another account than the owner may use."""
    is_pinned_clone: bool = False
    """True for a clone that always runs the code of `implementation`, which runs no other code."""
    runs_implementation: bool | None = False
    """True if the code of `implementation` is known to run, and not what this one passes calls to; None if
    the storage names it and the node does not tell whether the code reads that."""


class _TokenState(Struct, frozen=True):
    """Results of the first round."""

    identity: TokenIdentity
    account: ChainState
    code: bytes
    implementation: str | None
    is_clone: bool
    """True for a minimal proxy, whose code itself names the implementation."""
    used_slot: str | None
    """Slot of the storage that names the implementation, or its beacon; None if none does."""
    facets: Mapping[str, frozenset[bytes]] = field(default_factory=dict[str, frozenset[bytes]])
    """Selectors that each facet of a diamond serves, by its address; without the diamond's own."""


async def read_token(
    rpc: Rpc, bytecode: BytecodeAnalyzer, chain_id: int, token: str
) -> AsyncGenerator[OnchainToken]:
    """Yield what the chain tells about a token (lower case) three times, each time more of it.

    First what the token says of itself, then its owner and the kind of its code, at last what its bytecode
    can do. Raises NoData if there is no contract, and ProviderFailure if the first round fails. What fails
    later is unknown: an owner of kind `unknown`, and flags without values.
    """
    state = await _read_state(rpc, chain_id, token)
    target = state.implementation
    stated_owner = state.account.stated_owner
    shown = OnchainToken(state.identity, Owner(stated_owner, "unknown"), target)
    yield shown
    owner, code, facet_codes, touched = await asyncio.gather(
        read_owner(rpc, chain_id, stated_owner),
        _read_running_code(rpc, chain_id, state),
        _read_facet_codes(rpc, chain_id, state.facets),
        find_touched_accounts(rpc, chain_id, token) if state.used_slot else asyncio.sleep(0),
    )
    is_passed_on = parse_coded_implementation(code) is not None
    # a clone can be upgraded only if the code that it runs delegates in turn
    is_pinned = state.is_clone and bool(code) and not (has_delegatecall(code) or is_passed_on)
    is_proxy = target is not None and not is_pinned
    # without diamondCut, a diamond may have a function of another name that replaces code
    is_cuttable = any(function_selector(DIAMOND_CUT) in served for served in state.facets.values())
    shown = replace(
        shown,
        owner=owner,
        flags=TokenFlags(proxy=False if is_pinned else is_proxy or is_cuttable or None),
        is_pinned_clone=is_pinned,
        runs_implementation=bool(target and code)
        and not (is_passed_on or state.facets)
        and _is_implementation_used(state, touched),
    )
    yield shown
    # a proxy's own functions are called before those of the code behind it
    has_own_functions = is_proxy and not parse_coded_implementation(state.code)
    codes = (code, state.code if has_own_functions else b"")
    analyses = [each for each in await asyncio.gather(*(_analyze(bytecode, each) for each in codes)) if each]
    facets = await _analyze_facets(bytecode, facet_codes)
    if state.facets:
        rpc.trace.add_warning(_describe_diamond(state.facets, facets))
    yield _add_analyses(shown, state, analyses, facets, is_proxy=is_proxy)


def _is_implementation_used(state: _TokenState, touched: Mapping[str, frozenset[str]] | None) -> bool | None:
    """True if the code or what calls touch names the implementation; None if likely.

    `touched` are the accounts that calls to the token touch, with their slots. A slot that the code never
    reads can name any published contract, and so can one that it reads for show, while other code runs.
    """
    account, slot = state.account, state.used_slot
    if slot is None:
        return True
    named = list_named_slots(account)
    if touched is None:
        return None if named == [slot] else False
    if [each for each in named if each in touched[account.address]] != [slot]:
        return False
    others = {each for each in touched if each != MULTICALL and not is_reserved(each)}
    return True if others == {account.address, state.implementation, account.slot_address(slot)} else None


def _add_analyses(
    shown: OnchainToken,
    state: _TokenState,
    own: Sequence[CodeAnalysis],
    facets: Mapping[str, CodeAnalysis],
    *,
    is_proxy: bool,
) -> OnchainToken:
    """Return a token with what the code can do: its own or its implementation's, and that of facets."""
    analyses, homes = [*own], [*[None] * len(own), *facets]
    if state.facets:
        served = (restrict_functions(facets[each], state.facets[each]) for each in facets)
        analyses = share_storage([*own, *served])
    if not analyses:
        return shown
    owner, stated_owner = shown.owner, state.account.stated_owner
    if stated_owner is None and any(has_owner_function(analysis.selectors) for analysis in analyses):
        owner = Owner(None, "unknown")  # it names one, and the answer is no address
    powers = tuple(
        replace(power, facet=facet)
        for facet, analysis in zip(homes, analyses, strict=True)
        for power in infer_powers(analysis)
    )
    main = next((analysis for analysis in analyses if analysis.functions), analyses[0])
    flags = infer_flags(main, is_proxy=is_proxy or bool(state.facets), powers=powers)
    is_kind_known = shown.is_pinned_clone or bool(state.facets)
    return replace(
        shown,
        owner=owner,
        flags=replace(flags, proxy=shown.flags.proxy) if is_kind_known else flags,
        powers=powers,
        has_other_controllers=any(has_other_controllers(analysis, powers) for analysis in analyses),
    )


def _describe_diamond(facets: Mapping[str, frozenset[bytes]], analyses: Mapping[str, CodeAnalysis]) -> str:
    """Return the warning on how far the powers of a diamond are known."""
    decisive = {address: each for address, served in facets.items() if (each := served & DECISIVE_SELECTORS)}
    unread = [
        address
        for address, selectors in decisive.items()
        if address not in analyses or not selectors <= analyses[address].selectors
    ]
    warning = (
        "it is a diamond (EIP-2535): its powers are inferred from the code of the facets that it lists "
        "itself, and it may run other code"
    )
    if not unread:
        return warning
    count = f"{len(unread)} of {len(decisive)}"
    return f"{warning}; not checked: {count} facets with functions that decide about powers"


async def _read_facet_codes(
    rpc: Rpc, chain_id: int, facets: Mapping[str, frozenset[bytes]]
) -> dict[str, bytes]:
    """Return the code of facets that decide about powers, by address; empty if it was not read."""
    chosen = [address for address, served in facets.items() if served & DECISIVE_SELECTORS][:MAX_FACETS]
    codes = await attempt(rpc.contract_codes, chain_id, chosen) if chosen else []
    return dict(zip(chosen, codes, strict=True)) if isinstance(codes, list) else {}


async def _analyze_facets(bytecode: BytecodeAnalyzer, codes: Mapping[str, bytes]) -> dict[str, CodeAnalysis]:
    """Return the analyses of codes by address, without those that are empty or cannot be analysed."""
    found = await asyncio.gather(*(_analyze(bytecode, code) for code in codes.values()))
    return {address: analysis for address, analysis in zip(codes, found, strict=True) if analysis}


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
        # the last, as old contracts use up the gas of a bundle for a function that they do not have
        ContractCall(token, function_selector(LOUPE_CALL)),
    ]
    slots = [slot for slot, _ in POINTER_SLOTS]
    answers, words, (code,) = await asyncio.gather(
        rpc.call_contracts(chain_id, calls),
        rpc.storage_slots(chain_id, token, slots),
        rpc.contract_codes(chain_id, [token]),
    )
    if not code:
        raise NoData(f"there is no contract at {token} on chain {chain_id}")
    name, symbol, decimals, supply, *owners, loupe = answers
    identity = TokenIdentity(
        clean_line(abi.decode_text(name)),
        clean_line(abi.decode_text(symbol)),
        erc20.decode_decimals(decimals),
        abi.decode_uint(supply),
    )
    account = ChainState(
        token,
        {token: code},
        {(token, slot): word for slot, word in zip(slots, words, strict=True)},
        {(token, getter): answer for getter, answer in zip(OWNER_GETTERS, owners, strict=True)},
    )
    coded = parse_coded_implementation(code)
    slot = None if coded else _choose_slot(account)
    facets = parse_facets(loupe)
    # code without DELEGATECALL runs no facets, whatever it lists
    if facets and not has_delegatecall(code):
        facets = {}
    facets.pop(token, None)
    return _TokenState(
        identity,
        account,
        code,
        coded[0] if coded else await _read_implementation(rpc, chain_id, account, slot),
        is_clone=coded is not None and coded[1] != "eip7702",
        used_slot=slot,
        facets=facets,
    )


def _choose_slot(account: ChainState) -> str | None:
    """Return the slot that names the code a proxy runs, or its beacon; None if it is no proxy."""
    named = list_named_slots(account)
    # the slots first: to tell opcodes from data, the whole code has to be read
    if not named or not has_delegatecall(account.code or b""):
        return None
    # a beacon last: to ask it takes a further round
    return next((slot for slot in named if slot != BEACON_SLOT), BEACON_SLOT)


async def _read_implementation(rpc: Rpc, chain_id: int, account: ChainState, slot: str | None) -> str | None:
    """Return the contract that a slot names; a beacon is asked, and its answer added to the state."""
    if slot is None:
        return None
    if slot == BEACON_SLOT and (beacon := account.slot_address(slot)):
        call = ContractCall(beacon, function_selector(IMPLEMENTATION_CALL))
        answers = found_or_none(await attempt(rpc.call_contracts, chain_id, [call]))
        account.call_results[beacon, IMPLEMENTATION_CALL] = answers[0] if answers else None
    return find_implementation(account, slot)


async def _read_running_code(rpc: Rpc, chain_id: int, state: _TokenState) -> bytes:
    """Return the code that runs: behind a proxy its implementation's; empty if that was not read."""
    if state.implementation is None:
        return state.code
    codes = await attempt(rpc.contract_codes, chain_id, [state.implementation])
    return codes[0] if isinstance(codes, list) else b""
