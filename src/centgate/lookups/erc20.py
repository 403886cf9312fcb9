"""Encode calls to ERC-20 tokens (EIP-20), and words of the ABI; decode results, which may be anything."""

from __future__ import annotations

from centgate.crypto.contract.bytecode import function_selector
from centgate.crypto.event_logs import event_topic
from centgate.providers.jsonrpc.contract_calls import ContractCall

WORD = 32
"""Bytes of a word of the ABI."""
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


def encode_address(address: str) -> bytes:
    """Encode an address as an ABI word."""
    return bytes.fromhex(address[2:]).rjust(32, b"\0")


def encode_uint(number: int) -> bytes:
    """Encode a number as an ABI word."""
    return number.to_bytes(WORD, "big")


def encode_topic(address: str) -> str:
    """Encode an address as an indexed event argument."""
    return "0x" + encode_address(address).hex()


def decode_address(topic: str) -> str:
    """Decode the address in an indexed event argument, lower case."""
    return "0x" + topic[-40:].lower()


def decode_uint(returned: bytes | None) -> int | None:
    """Decode an integer; None if the call failed or returned something else."""
    return int.from_bytes(returned[:32]) if returned and len(returned) >= 32 else None


def decode_word(returned: bytes, index: int) -> int:
    """Decode the word at an index as an integer; the caller has checked the length."""
    return int.from_bytes(returned[index * WORD : (index + 1) * WORD], "big")


def decode_text(returned: bytes | None) -> str | None:
    """Decode a `string`, or `bytes32` as old tokens return it; untrusted text that the caller must clean."""
    if not returned:
        return None
    if len(returned) == WORD:
        return returned.rstrip(b"\0").decode(errors="replace") or None
    start = int.from_bytes(returned[:WORD])
    size = decode_uint(returned[start:])
    content = returned[start + WORD : start + WORD + (size or 0)]
    return content.decode(errors="replace") or None if len(content) == size else None


def decode_decimals(returned: bytes | None) -> int | None:
    """Decode decimals; None above 255."""
    value = decode_uint(returned)
    return value if value is not None and value <= 255 else None
