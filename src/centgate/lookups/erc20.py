"""Calls to ERC-20 tokens (EIP-20), and topics of their events."""

from __future__ import annotations

from centgate.crypto.abi import decode_uint, encode_address, event_topic, function_selector
from centgate.providers.jsonrpc.contract_calls import ContractCall

BALANCE_OF_SELECTOR = function_selector("balanceOf(address)")
ALLOWANCE_SELECTOR = function_selector("allowance(address,address)")
TOTAL_SUPPLY_SELECTOR = function_selector("totalSupply()")
DECIMALS_SELECTOR = function_selector("decimals()")
SYMBOL_SELECTOR = function_selector("symbol()")
NAME_SELECTOR = function_selector("name()")
SUPPORTS_INTERFACE_SELECTOR = function_selector("supportsInterface(bytes4)")
NFT_INTERFACE = bytes.fromhex("80ac58cd")
"""ERC-165 identifier of ERC-721."""

TRANSFER_TOPIC = event_topic("Transfer(address,address,uint256)")
"""Indexed: from, to."""
APPROVAL_TOPIC = event_topic("Approval(address,address,uint256)")
"""Indexed: owner, spender."""


def balance_of_call(token: str, owner: str) -> ContractCall:
    """Call balanceOf: the balance of `owner`, in base units."""
    return ContractCall(token, BALANCE_OF_SELECTOR + encode_address(owner))


def allowance_call(token: str, owner: str, spender: str) -> ContractCall:
    """Call allowance: the amount that `spender` may transfer from `owner`, in base units."""
    return ContractCall(token, ALLOWANCE_SELECTOR + encode_address(owner) + encode_address(spender))


def total_supply_call(token: str) -> ContractCall:
    """Call totalSupply, in base units."""
    return ContractCall(token, TOTAL_SUPPLY_SELECTOR)


def decimals_call(token: str) -> ContractCall:
    """Call decimals."""
    return ContractCall(token, DECIMALS_SELECTOR)


def symbol_call(token: str) -> ContractCall:
    """Call symbol."""
    return ContractCall(token, SYMBOL_SELECTOR)


def name_call(token: str) -> ContractCall:
    """Call name."""
    return ContractCall(token, NAME_SELECTOR)


def build_nft_call(token: str) -> ContractCall:
    """Call supportsInterface for ERC-721 (EIP-165)."""
    return ContractCall(token, SUPPORTS_INTERFACE_SELECTOR + NFT_INTERFACE.ljust(32, b"\0"))


def decode_decimals(returned: bytes | None) -> int | None:
    """Decode decimals; None above 255."""
    value = decode_uint(returned)
    return value if value is not None and value <= 255 else None
