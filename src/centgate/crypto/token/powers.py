"""Powers over a token that its bytecode shows, with the function that has them. No I/O.

A function counts by its published signature, checked against the storage that it writes where that is known:
`setX(uint256)` alone says nothing. What is not found is unknown; only code of which every change of state is
accounted for is said to lack a power.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct

from centgate.crypto.abi import function_selector
from centgate.crypto.contract.bytecode import CREATING_OPCODES, DELEGATING_OPCODES
from centgate.crypto.contract.code_analysis import CodeAnalysis, CodeFunction, StorageVariable
from centgate.crypto.contract.diamonds import DIAMOND_CUT
from centgate.crypto.contract.owners import OWNER_GETTERS
from centgate.crypto.token.security import TokenFlags

PowerKind = Literal["mint", "pause", "blacklist", "change_taxes", "change_limits", "take_balances", "upgrade"]
PowerCaller = Literal["owner", "role"]

POWER_SIGNATURES: Mapping[PowerKind, tuple[str, ...]] = {
    "mint": ("mint(address,uint256)", "mint(uint256)", "mintTo(address,uint256)", "issue(uint256)"),
    "pause": ("pause()", "setPaused(bool)", "setPause(bool)", "disableTrading()", "pauseTrading()"),
    "blacklist": (
        *("blacklist(address)", "blacklist(address,bool)", "addBlackList(address)", "addBlacklist(address)"),
        *("setBlacklist(address,bool)", "addToBlacklist(address)", "blacklistAddress(address,bool)"),
        *("addBots(address[])", "setBots(address[])", "setBot(address,bool)", "freeze(address)"),
        *("freezeAccount(address,bool)", "blockAccount(address)", "banAddress(address)"),
    ),
    "change_taxes": (
        *("setTax(uint256)", "setTaxes(uint256,uint256)", "setFee(uint256)", "setFees(uint256,uint256)"),
        *("setBuyTax(uint256)", "setSellTax(uint256)", "setBuyFee(uint256)", "setSellFee(uint256)"),
        *("setTaxFeePercent(uint256)", "setLiquidityFeePercent(uint256)", "setParams(uint256,uint256)"),
        *("updateFees(uint256,uint256)", "updateTaxes(uint256,uint256)", "setTransferTax(uint256)"),
        *("updateBuyFees(uint256,uint256,uint256)", "updateSellFees(uint256,uint256,uint256)"),
        *("setBuyFees(uint256,uint256,uint256)", "setSellFees(uint256,uint256,uint256)"),
    ),
    "change_limits": (
        *("setMaxTxAmount(uint256)", "setMaxTxPercent(uint256)", "setMaxWalletSize(uint256)"),
        *("updateMaxTxnAmount(uint256)", "updateMaxWalletAmount(uint256)", "setMaxSell(uint256)"),
        *("setMaxWallet(uint256)", "setMaxTransaction(uint256)", "setCooldown(uint256)"),
    ),
    "take_balances": (
        *("destroyBlackFunds(address)", "wipeFrozenAddress(address)", "clawback(address,uint256)"),
        *("forceTransfer(address,address,uint256)", "forcedTransfer(address,address,uint256)"),
        *("seize(address,address,uint256)", "seize(address)", "wipe(address)"),
    ),
    "upgrade": (
        *("upgradeTo(address)", "upgradeToAndCall(address,bytes)", "setImplementation(address)"),
        DIAMOND_CUT,
    ),
}
"""Signatures in common use, by the power that they give."""
POWER_FLAGS: Mapping[PowerKind, str] = {
    "mint": "mintable",
    "pause": "pausable",
    "blacklist": "blacklists",
    "change_taxes": "tax_modifiable",
    "change_limits": "anti_whale_modifiable",
    "take_balances": "changes_balances",
}
"""Flags of a contract's analysis that say the same; one on upgrades says that it is a proxy, which is another
thing."""
_POWER_BY_SELECTOR: dict[bytes, tuple[PowerKind, str]] = {
    function_selector(signature): (kind, signature)
    for kind, signatures in POWER_SIGNATURES.items()
    for signature in signatures
}
_OWNER_GETTERS = frozenset(map(function_selector, OWNER_GETTERS))
_ROLE_GETTERS = frozenset({function_selector("hasRole(bytes32,address)")})
_BALANCE = function_selector("balanceOf(address)")
_SUPPLY = function_selector("totalSupply()")
_TRANSFERS = frozenset(
    map(function_selector, ("transfer(address,uint256)", "transferFrom(address,address,uint256)"))
)
DECISIVE_SELECTORS = frozenset(
    {*_POWER_BY_SELECTOR, *_OWNER_GETTERS, *_ROLE_GETTERS, *_TRANSFERS, _BALANCE, _SUPPLY}
)
"""Functions that give powers, or show what the storage is that these write and who may call them."""
_DEPOSIT, _WITHDRAW = function_selector("deposit()"), function_selector("withdraw(uint256)")
_SPENDING = frozenset(
    map(function_selector, ("transferFrom(address,address,uint256)", "burnFrom(address,uint256)"))
)
"""Functions that use the balance of an account which has allowed it to the caller."""
_MOVING = _TRANSFERS | _SPENDING | {function_selector("burn(uint256)"), _DEPOSIT, _WITHDRAW}
"""Harmless functions that change balances."""
_APPROVING = frozenset(
    map(
        function_selector,
        (
            *("approve(address,uint256)", "increaseAllowance(address,uint256)"),
            "decreaseAllowance(address,uint256)",
            "permit(address,address,uint256,uint256,uint8,bytes32,bytes32)",
        ),
    )
)
_HARMLESS = (
    _MOVING
    | _APPROVING
    | frozenset(map(function_selector, ("transferOwnership(address)", "renounceOwnership()")))
)
"""Functions that change the caller's own state, or only the owner, if they write what their name says."""
_GETTERS = (
    frozenset({_BALANCE, _SUPPLY})
    | _OWNER_GETTERS
    | frozenset(
        map(
            function_selector,
            (
                *("name()", "symbol()", "decimals()", "allowance(address,address)", "version()"),
                *("nonces(address)", "DOMAIN_SEPARATOR()", "PERMIT_TYPEHASH()", "eip712Domain()"),
                *("cap()", "supportsInterface(bytes4)"),
            ),
        )
    )
)
"""Functions that read. Others may write where the analysis does not follow the code, as behind long loops."""
_CALLING = frozenset({0xF1, 0xFA}) | DELEGATING_OPCODES  # CALL, STATICCALL
_ENVIRONMENT = frozenset(
    {
        *(0x31, 0x32, 0x3A, 0x3B, 0x3C, 0x3F),  # BALANCE, ORIGIN, GASPRICE, EXTCODESIZE, -COPY, -HASH
        *(0x40, 0x41, 0x43, 0x44, 0x47),  # BLOCKHASH, COINBASE, NUMBER, PREVRANDAO, SELFBALANCE
        *(0x48, 0x5A),  # BASEFEE, GAS
    }
)
"""What code reads to behave in another way by the block, the sender of a transaction or other accounts."""
_TIMESTAMP = 0x42
_ALLOWANCES = "mapping(address => mapping(address => uint256))"
_PERMIT = function_selector("permit(address,address,uint256,uint256,uint8,bytes32,bytes32)")
_SELFDESTRUCT = 0xFF


class ContractPower(Struct, frozen=True):
    """A power inferred from bytecode, with the function that is the evidence."""

    kind: PowerKind
    selector: str
    """0x and 8 hexadecimal digits."""
    signature: str
    """The published signature with this selector."""
    caller: PowerCaller | None
    """Account that the function checks as far as storage shows it; None is unknown."""
    facet: str | None = None
    """Facet of a diamond whose code has the function, lower case; None for other code."""


def infer_powers(analysis: CodeAnalysis) -> tuple[ContractPower, ...]:
    """Return the powers that functions of a contract give, in the order of the functions."""
    return tuple(_list_powers(analysis))


def _list_powers(analysis: CodeAnalysis) -> Iterator[ContractPower]:
    for function in analysis.functions:
        known = _POWER_BY_SELECTOR.get(function.selector)
        if known is None or not function.changes_state:
            continue
        kind, signature = known
        if _is_effective(analysis, kind, function.selector):
            caller = find_caller(analysis, function.selector)
            yield ContractPower(kind, "0x" + function.selector.hex(), signature, caller)


def _is_effective(analysis: CodeAnalysis, kind: PowerKind, selector: bytes) -> bool:
    """True if what the function writes fits the power; also if nothing is known of what it writes."""
    written = [each for each in analysis.storage if selector in each.writers]
    if kind == "upgrade" or not written:
        return True
    if kind in ("mint", "take_balances"):
        return any({_BALANCE, _SUPPLY} & each.readers for each in written)
    return any(_TRANSFERS & each.readers for each in written)


def find_caller(analysis: CodeAnalysis, selector: bytes) -> PowerCaller | None:
    """Return the account that a function checks, as far as the storage that it reads shows it."""
    read = [each for each in analysis.storage if selector in each.readers]
    if any(each.type == "address" and _OWNER_GETTERS & each.readers for each in read):
        return "owner"
    return "role" if any(_ROLE_GETTERS & each.readers for each in read) else None


def has_other_controllers(analysis: CodeAnalysis, powers: tuple[ContractPower, ...]) -> bool:
    """True if the code has roles, or a power for which no check of the owner was found."""
    has_roles = not _ROLE_GETTERS.isdisjoint(analysis.selectors)
    return has_roles or any(power.caller != "owner" for power in powers)


def infer_flags(analysis: CodeAnalysis, *, is_proxy: bool, powers: tuple[ContractPower, ...]) -> TokenFlags:
    """Return the flags that code tells, which is the code that runs: behind a proxy the implementation's.

    SELFDESTRUCT's byte may be data, so its presence tells nothing.
    """
    opcodes, kinds = analysis.opcodes, {each.kind for each in powers}
    if not analysis.functions:
        return TokenFlags(proxy=is_proxy or None)
    absent = False if not is_proxy and _has_plain_transfers(analysis, opcodes) else None
    return TokenFlags(
        proxy=True if is_proxy else None if DELEGATING_OPCODES & opcodes else False,
        mintable=True if "mint" in kinds else absent,
        pausable=True if "pause" in kinds else absent,
        blacklists=True if "blacklist" in kinds else absent,
        tax_modifiable=True if "change_taxes" in kinds else absent,
        self_destructs=None if _SELFDESTRUCT in opcodes or is_proxy else False,
    )


def _has_plain_transfers(analysis: CodeAnalysis, opcodes: frozenset[int]) -> bool:
    """True if transfers depend on balances and allowances alone, and no other function changes these.

    All functions must be known, and a transfer must not call another contract: code may compute slots in ways
    that the analysis does not follow. No account may be named: transfers could spare it.
    """
    if _calls_others(analysis, opcodes) or not analysis.selectors >= {_BALANCE, _SUPPLY, *_TRANSFERS}:
        return False
    if analysis.names_account or not all(map(_is_harmless, analysis.functions)):
        return False
    if not all(map(_is_written_by_name, analysis.storage)) or not _are_allowances_read(analysis):
        return False
    read = [each for each in analysis.storage if _TRANSFERS & each.readers]
    return any(_BALANCE in each.readers for each in read) and all(map(_is_own_entry, read))


def _is_written_by_name(variable: StorageVariable) -> bool:
    """True if balances, the supply and allowances change only in functions whose names say so."""
    if {_BALANCE, _SUPPLY} & variable.readers:
        return variable.writers <= _MOVING
    return not _TRANSFERS & variable.readers or variable.writers <= _MOVING | _APPROVING


def _are_allowances_read(analysis: CodeAnalysis) -> bool:
    """True if each function that uses the balances of others depends on what they have allowed."""
    readers = (each.readers for each in analysis.storage if each.type == _ALLOWANCES)
    return _SPENDING & analysis.selectors <= frozenset[bytes]().union(*readers)


def _is_harmless(function: CodeFunction) -> bool:
    """True for known functions that only read, or change the caller's own state; a deposit is to be paid."""
    if function.selector == _DEPOSIT:
        return function.mutability == "payable"
    known = _HARMLESS if function.changes_state else _GETTERS
    return function.selector in known


def _calls_others(analysis: CodeAnalysis, opcodes: frozenset[int]) -> bool:
    """True if the code may call or create others, or depends on more than its own state.

    `withdraw` alone may send coins, and `permit` compares the time.
    """
    if (CREATING_OPCODES | _ENVIRONMENT) & opcodes:
        return True
    if _TIMESTAMP in opcodes and _PERMIT not in analysis.selectors:
        return True
    withdraws = _WITHDRAW in analysis.selectors
    return bool((_CALLING - {0xF1} if withdraws else _CALLING) & opcodes)


def _is_own_entry(variable: StorageVariable) -> bool:
    """True for balances and allowances: entries of accounts with an amount."""
    return variable.type in ("mapping(address => uint256)", _ALLOWANCES)
