"""The test USDC: its address, its compiled code, and the storage it starts with.

`python -m centgate.devchain.token` compiles `token.vy` again and writes `token.json`.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

# where the real test USDC of Base Sepolia lives: prices in dollars, wallets' spending limits and the
# signing domain then need no override in any client
TOKEN = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
CHAIN_ID = 84532

SOURCE = Path(__file__).with_name("token.vy")
ARTEFACT = Path(__file__).with_name("token.json")

# the overload that the source reads by hand in __default__, and that the compiler cannot know of
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


def artefact() -> dict[str, Any]:
    """The compiled token as `compile_token` made it."""
    return json.loads(ARTEFACT.read_text())


def runtime_code() -> str:
    """The code to install at the token's address, as 0x hex."""
    return artefact()["runtimeBytecode"]


def storage_of(balances: Mapping[str, int]) -> dict[int, int]:
    """The storage of a token that was given out as `balances` says, in base units: slot to word."""
    slots = artefact()["storage"]
    storage = {_mapping_slot(slots["balanceOf"], holder): held for holder, held in balances.items()}
    return storage | {slots["totalSupply"]: sum(balances.values())}


def balance_call(holder: str) -> str:
    """Call data that asks for the balance of an address."""
    return "0x70a08231" + _word(holder)


def authorization_state_call(payer: str, nonce: str) -> str:
    """Call data that asks whether a payer's nonce is used or canceled."""
    return "0xe94a0102" + _word(payer) + _word(nonce)


def compile_token() -> dict[str, Any]:
    """The artefact, compiled anew. Needs vyper, which runs nowhere else."""
    from importlib import import_module

    vyper: Any = import_module("vyper")  # its types are not worth having

    source = SOURCE.read_text()
    output: dict[str, Any] = vyper.compile_code(
        source, output_formats=["abi", "bytecode", "bytecode_runtime", "layout"]
    )
    layout = output["layout"]["storage_layout"]
    return {
        "compiler": {"name": "vyper", "version": vyper.__version__},
        # as the pragmas of the source say
        "settings": {"evmVersion": "cancun", "optimize": "gas"},
        "sourceSha256": sha256(source.encode()).hexdigest(),
        "abi": [*output["abi"], SIGNATURE_AS_BYTES],
        "bytecode": output["bytecode"],
        "runtimeBytecode": output["bytecode_runtime"],
        "storage": {name: place["slot"] for name, place in layout.items()},
    }


def _mapping_slot(mapping: int, address: str) -> int:
    # Vyper hashes the mapping's slot before the key, Solidity after it
    from eth_utils.crypto import keccak

    return int.from_bytes(keccak(mapping.to_bytes(32, "big") + bytes.fromhex(_word(address))), "big")


def _word(value: str) -> str:
    return value.removeprefix("0x").lower().rjust(64, "0")


if __name__ == "__main__":
    ARTEFACT.write_text(json.dumps(compile_token(), indent=1) + "\n")
