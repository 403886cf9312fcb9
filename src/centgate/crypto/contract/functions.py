"""Standards and functions of a contract by the selectors of its code. No I/O.

Signatures are those of the EIPs, of OpenZeppelin's contracts and of contracts in common use.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

from centgate.crypto.abi import function_selector

ContractStandard = Literal[
    "ERC-20",
    "ERC-721",
    "ERC-1155",
    "ERC-4626",
    "ERC-165",
    "ERC-1271",
    "ERC-2612",
    "ERC-3009",
    "Ownable",
    "AccessControl",
    "Pausable",
    "UUPS",
    "Diamond",
]
ControlFunction = Literal["withdraw", "self_destruct", "change_owner", "arbitrary_call"]
"""Sends out what the contract holds; removes the contract; hands over its powers; calls any contract."""

STANDARDS: Mapping[ContractStandard, tuple[str, ...]] = {
    "ERC-20": (
        *("totalSupply()", "balanceOf(address)", "transfer(address,uint256)", "allowance(address,address)"),
        *("approve(address,uint256)", "transferFrom(address,address,uint256)"),
    ),
    "ERC-721": (
        *("ownerOf(uint256)", "getApproved(uint256)", "setApprovalForAll(address,bool)"),
        "safeTransferFrom(address,address,uint256)",
    ),
    "ERC-1155": (
        *("balanceOf(address,uint256)", "balanceOfBatch(address[],uint256[])"),
        *("setApprovalForAll(address,bool)", "safeTransferFrom(address,address,uint256,uint256,bytes)"),
    ),
    "ERC-4626": (
        *("asset()", "totalAssets()", "convertToShares(uint256)", "convertToAssets(uint256)"),
        *("deposit(uint256,address)", "redeem(uint256,address,address)"),
    ),
    "ERC-165": ("supportsInterface(bytes4)",),
    "ERC-1271": ("isValidSignature(bytes32,bytes)",),
    "ERC-2612": (
        *("permit(address,address,uint256,uint256,uint8,bytes32,bytes32)", "nonces(address)"),
        "DOMAIN_SEPARATOR()",
    ),
    "ERC-3009": (
        "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)",
        "authorizationState(address,bytes32)",
    ),
    "Ownable": ("owner()", "transferOwnership(address)"),
    "AccessControl": (
        "hasRole(bytes32,address)",
        "grantRole(bytes32,address)",
        "revokeRole(bytes32,address)",
    ),
    "Pausable": ("paused()",),
    "UUPS": ("proxiableUUID()", "upgradeToAndCall(address,bytes)"),
    "Diamond": ("facets()", "facetAddresses()", "facetAddress(bytes4)"),
}
"""Functions that a contract of each standard has."""
CONTROL_SIGNATURES: Mapping[ControlFunction, tuple[str, ...]] = {
    "withdraw": (
        *("withdrawToken(address)", "withdrawToken(address,uint256)", "withdrawTokens(address,uint256)"),
        *("withdrawETH()", "withdrawEther()", "withdrawAll()"),
        *("withdrawStuckTokens(address)", "sweep(address)"),
        *("sweepToken(address,uint256,address)", "rescueTokens(address,uint256)", "rescueETH(uint256)"),
        *("rescueERC20(address,address,uint256)", "recoverERC20(address,uint256)", "clearStuckBalance()"),
    ),
    "self_destruct": ("kill()", "destroy()", "destruct()", "selfDestruct()", "selfDestruct(address)"),
    "change_owner": (
        *("transferOwnership(address)", "setOwner(address)", "changeOwner(address)"),
        "changeAdmin(address)",
        *("grantRole(bytes32,address)", "setAdmin(address)", "setGovernance(address)"),
    ),
    "arbitrary_call": (
        *("execute(address,uint256,bytes)", "exec(address,bytes)", "call(address,bytes)"),
        "execTransaction(address,uint256,bytes,uint8,uint256,uint256,uint256,address,address,bytes)",
    ),
}
_OTHER_SIGNATURES = (
    *("name()", "symbol()", "decimals()", "tokenURI(uint256)", "uri(uint256)", "version()", "mint()"),
    *("increaseAllowance(address,uint256)", "decreaseAllowance(address,uint256)", "burn(uint256)"),
    *("burnFrom(address,uint256)", "deposit()", "withdraw(uint256)", "withdraw()", "renounceOwnership()"),
    *("acceptOwnership()", "pendingOwner()", "getOwner()", "getRoleAdmin(bytes32)", "implementation()"),
    *("renounceRole(bytes32,address)", "unpause()", "initialize()"),
    *("admin()", "isApprovedForAll(address,address)"),
    *("factory()", "token0()", "token1()", "getReserves()"),
    *("swap(uint256,uint256,address,bytes)", "sync()"),
)
SIGNATURE_BY_SELECTOR: Mapping[bytes, str] = {
    function_selector(signature): signature
    for signature in (
        *_OTHER_SIGNATURES,
        *(signature for signatures in STANDARDS.values() for signature in signatures),
        *(signature for signatures in CONTROL_SIGNATURES.values() for signature in signatures),
    )
}
CONTROL_BY_SELECTOR: Mapping[bytes, ControlFunction] = {
    function_selector(signature): kind
    for kind, signatures in CONTROL_SIGNATURES.items()
    for signature in signatures
}
_SELECTORS_BY_STANDARD: Mapping[ContractStandard, frozenset[bytes]] = {
    standard: frozenset(map(function_selector, signatures)) for standard, signatures in STANDARDS.items()
}


def find_standards(selectors: Collection[bytes]) -> list[ContractStandard]:
    """Return the standards whose functions are all among the selectors."""
    found = frozenset(selectors)
    return [standard for standard, needed in _SELECTORS_BY_STANDARD.items() if needed <= found]
