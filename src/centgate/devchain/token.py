"""Test USDC: its address, compiled code, and initial storage.

`python -m centgate.devchain.token` compiles `token.vy` again and writes `token.json`.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from centgate.signing.evm import encode_word

# address of the real test USDC on Base Sepolia, so that dollar prices, wallets' spending limits and the
# signing domain need no override in any client
TOKEN_ADDRESS = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
CHAIN_ID = 84532

SOURCE_FILE = Path(__file__).with_name("token.vy")
ARTEFACT_FILE = Path(__file__).with_name("token.json")

# overload that the source decodes in __default__, so the compiler's ABI lacks it
SIGNATURE_AS_BYTES: dict[str, Any] = {
    "type": "function",
    "name": "transferWithAuthorization",
    "stateMutability": "nonpayable",
    "inputs": [
        {"name": "payer", "type": "address"},
        {"name": "to", "type": "address"},
        {"name": "amount", "type": "uint256"},
        {"name": "validAfter", "type": "uint256"},
        {"name": "validBefore", "type": "uint256"},
        {"name": "nonce", "type": "bytes32"},
        {"name": "signature", "type": "bytes"},
    ],
    "outputs": [],
}


def load_artefact() -> dict[str, Any]:
    """Load the compiled token, as written by `compile_token`."""
    return json.loads(ARTEFACT_FILE.read_text())


def runtime_code() -> str:
    """Return the code to install at the token's address, as 0x hex."""
    return load_artefact()["runtimeBytecode"]


def build_storage(balances: Mapping[str, int]) -> dict[int, int]:
    """Return the storage (slot to word) of a token with these balances, in base units."""
    slots = load_artefact()["storage"]
    storage = {_mapping_slot(slots["balanceOf"], holder): balance for holder, balance in balances.items()}
    return storage | {slots["totalSupply"]: sum(balances.values())}


def encode_balance_call(holder: str) -> str:
    """Return the call data of `balanceOf`."""
    return "0x70a08231" + encode_word(holder)


def encode_authorization_state_call(payer: str, nonce: str) -> str:
    """Return the call data of `authorizationState`: True if a payer's nonce is used or canceled."""
    return "0xe94a0102" + encode_word(payer) + encode_word(nonce)


def compile_token() -> dict[str, Any]:
    """Compile the artefact again. Requires vyper, which is used only here."""
    from importlib import import_module

    vyper: Any = import_module("vyper")  # untyped: not a regular dependency

    source = SOURCE_FILE.read_text()
    output: dict[str, Any] = vyper.compile_code(
        source, output_formats=["abi", "bytecode", "bytecode_runtime", "layout"]
    )
    layout = output["layout"]["storage_layout"]
    return {
        "compiler": {"name": "vyper", "version": vyper.__version__},
        # as in the source's pragmas
        "settings": {"evmVersion": "cancun", "optimize": "gas"},
        "sourceSha256": sha256(source.encode()).hexdigest(),
        "abi": [*output["abi"], SIGNATURE_AS_BYTES],
        "bytecode": output["bytecode"],
        "runtimeBytecode": output["bytecode_runtime"],
        "storage": {name: location["slot"] for name, location in layout.items()},
    }


def _mapping_slot(mapping: int, address: str) -> int:
    # Vyper hashes the mapping's slot before the key, Solidity after it
    from eth_utils.crypto import keccak

    return int.from_bytes(keccak(mapping.to_bytes(32, "big") + bytes.fromhex(encode_word(address))), "big")


if __name__ == "__main__":
    ARTEFACT_FILE.write_text(json.dumps(compile_token(), indent=1) + "\n")
