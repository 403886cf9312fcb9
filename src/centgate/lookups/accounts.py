"""Read what the chain tells about an account: its kind, owners and name, sanctions, and native balance."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from centgate.chains import CHAIN_BY_ID, well_known_chain
from centgate.crypto import abi
from centgate.crypto.abi import function_selector, parse_address_word
from centgate.crypto.contract.owner_kinds import OWNER_CALLS, classify_owner
from centgate.crypto.contract.owners import Owner
from centgate.crypto.wallet.accounts import SANCTIONS_LISTS, Account, classify_account_owner, parse_flag
from centgate.crypto.wallet.primary_names import NAMED_CHAINS
from centgate.crypto.wallet.wallets import NativeCoin, Price
from centgate.fallback import attempt, found_or_none
from centgate.lookups.chainlink import native_price_calls, parse_native_price
from centgate.lookups.primary_names import PrimaryName, list_name_calls, read_primary_name
from centgate.providers.jsonrpc.contract_calls import ContractCall
from centgate.providers.jsonrpc.results import OnchainAccount
from centgate.providers.rpc import Rpc

_Answers = Mapping[str, bytes | None]


async def read_account(
    rpc: Rpc, chain_id: int, address: str, *, max_wait: float
) -> tuple[Account, Sequence[bytes | None]]:
    """Return what the chain tells about an account (lower case), in one round of two requests.

    With it come the answers to `native_price_calls`, which take no request of their own; none if they were
    not read. A Basename is checked in one round more. Nothing is raised: what the node does not tell within
    `max_wait` seconds is unknown, and warned of.
    """
    reason = "no node is configured for the chain"
    if rpc.is_available(chain_id):
        try:
            deadline = asyncio.get_running_loop().time() + max_wait
            return await _read_account(rpc, chain_id, address, deadline)
        except TimeoutError:
            reason = f"the node did not answer within {max_wait:g} s"
    rpc.trace.add_warning(
        f"kind, delegation, transactions, name and sanctions of the account are unknown: {reason}"
    )
    return Account("unknown"), ()


async def read_owner(rpc: Rpc, chain_id: int, address: str | None) -> Owner:
    """Return the owner at an address (lower case; None: there is none), in one round of requests.

    Its kind is `unknown` if the node fails.
    """
    if address is None:
        return classify_owner(None, code=None, singleton=None, answers={})
    state, answers = await _read_state(rpc, chain_id, address, {})
    return _classify_owner(address, state, answers)


async def read_native_balance(
    rpc: Rpc, chain_id: int, address: str
) -> tuple[NativeCoin, Price | None] | None:
    """Return the native balance of an account, with Chainlink's price of the coin if it can be relied on.

    Takes one round of requests, which it shares with what else is read from the node at the same time. There
    is no price on a development chain. None, with a warning, if the node does not tell the balance.
    """
    amount, answers = await asyncio.gather(
        attempt(rpc.native_balance, chain_id, address),
        attempt(rpc.call_contracts, chain_id, native_price_calls(chain_id)),
    )
    if not isinstance(amount, int):
        is_available = rpc.is_available(chain_id)
        reason = "the node did not tell it" if is_available else "no node is configured for the chain"
        rpc.trace.add_warning(f"the native balance is unknown: {reason}")
        return None
    if chain_id not in CHAIN_BY_ID:
        return NativeCoin(amount), None
    return NativeCoin(amount), parse_native_price(rpc.trace, chain_id, found_or_none(answers) or ())


async def _read_account(
    rpc: Rpc, chain_id: int, address: str, deadline: float
) -> tuple[Account, Sequence[bytes | None]]:
    feed_calls = {f"feed {number}": call for number, call in enumerate(native_price_calls(chain_id))}
    calls = {**_list_account_calls(chain_id, address), **feed_calls}
    async with rpc.limit_time(deadline):
        state, answers = await _read_state(rpc, chain_id, address, calls)
    name = PrimaryName()
    if answers is not None:
        name = await read_primary_name(rpc, chain_id, address, answers, deadline=deadline)
    account = classify_account_owner(
        _classify_owner(address, state, answers),
        transaction_count=state.transaction_count if state else None,
        name=name.text,
        is_sanctioned=parse_flag((answers or {}).get("sanctions")),
    )
    if unknown := _list_unknown(chain_id, account, state, answers):
        facts = " and ".join(filter(None, (", ".join(unknown[:-1]), unknown[-1])))
        rpc.trace.add_warning(f"{facts} of the account are unknown: the node did not tell")
    if name.warning:
        rpc.trace.add_warning(name.warning)
    return account, [answers[each] for each in feed_calls] if answers else ()


def _list_account_calls(chain_id: int, address: str) -> dict[str, ContractCall]:
    sanctions_list = SANCTIONS_LISTS[well_known_chain(chain_id)]
    is_sanctioned = function_selector("isSanctioned(address)") + abi.encode_address(address)
    return {"sanctions": ContractCall(sanctions_list, is_sanctioned), **list_name_calls(chain_id, address)}


def _list_unknown(
    chain_id: int, account: Account, state: OnchainAccount | None, answers: _Answers | None
) -> list[str]:
    """Return the facts of an account that the node did not tell."""
    is_unknown = {
        "kind": account.kind == "unknown",
        "delegation": account.kind == "unknown",
        "transactions": state is None,
        "name": answers is None and well_known_chain(chain_id) in NAMED_CHAINS,
        "sanctions": account.is_sanctioned is None,
    }
    return [fact for fact, is_missing in is_unknown.items() if is_missing]


async def _read_state(
    rpc: Rpc, chain_id: int, address: str, calls: Mapping[str, ContractCall]
) -> tuple[OnchainAccount | None, _Answers | None]:
    """Return the state of an account and the results of calls and of its own getters; None if one fails.

    The getters come last: code that uses up the gas of the bundle hides nothing of the other calls.
    """
    getters = {name: ContractCall(address, data) for name, data in OWNER_CALLS.items()}
    bundle = {**calls, **getters}
    state, returned = await asyncio.gather(
        attempt(rpc.account, chain_id, address), attempt(rpc.call_contracts, chain_id, [*bundle.values()])
    )
    return (
        state if isinstance(state, OnchainAccount) else None,
        dict(zip(bundle, returned, strict=True)) if isinstance(returned, list) else None,
    )


def _classify_owner(address: str, state: OnchainAccount | None, answers: _Answers | None) -> Owner:
    """Return the owner; without answers a contract is unknown, a wallet and its delegation are not."""
    if state is None:
        return Owner(address, "unknown")
    singleton = parse_address_word(state.first_slot)
    owner = classify_owner(address, code=state.code, singleton=singleton, answers=answers or {})
    return Owner(address, "unknown") if answers is None and owner.kind == "contract" else owner
