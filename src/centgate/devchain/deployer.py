"""Account that deploys and calls contracts on an in-process chain, with signed transactions."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from eth_abi.abi import decode, encode
from eth_account import Account as Wallet

from centgate.devchain.accounts import Account
from centgate.devchain.chain import CallReverted, EvmCall, EvmChain, MinedTransaction, TransactionRejected
from centgate.signing.evm import keccak
from centgate.solidity import CompiledContract, load_contract

CONTRACTS: Final = Path(__file__).with_name("contracts")
"""Folder of the Solidity sources and their artefacts."""
_GAS: Final = 8_000_000
_FEES: Final = {"maxFeePerGas": 10**9, "maxPriorityFeePerGas": 1}


class ContractFailed(Exception):
    """A transaction was mined but failed. `data` is what the contract reverted with."""

    def __init__(self, message: str, data: bytes = b"") -> None:
        super().__init__(message)
        self.data = data


def encode_call(signature: str, *values: Any) -> bytes:
    """Encode the call of a function by its signature, such as `transfer(address,uint256)`."""
    types = _split_types(signature[signature.index("(") + 1 : -1])
    return keccak(signature.encode())[:4] + encode(types, values)


class Deployer:
    """Sends the transactions of one account, each in a block of its own."""

    def __init__(self, chain: EvmChain, account: Account) -> None:
        self.chain = chain
        self.address = account.address
        self._wallet: Any = Wallet.from_key(account.private_key)

    def deploy(self, contract: CompiledContract, *values: Any) -> str:
        """Deploy a contract with its constructor's arguments. Returns its address in lower case.

        Raises `ContractFailed` if the constructor fails.
        """
        mined = self._send(None, contract.initcode + encode(contract.constructor_types, values), 0)
        assert mined.created is not None
        return "0x" + mined.created.hex()

    def deploy_named(self, source: str, name: str, *values: Any) -> str:
        """Deploy a contract of the folder `contracts`, by its source and name."""
        return self.deploy(load_contract(CONTRACTS, source, name), *values)

    def send(self, address: str, signature: str, *values: Any, value: int = 0) -> MinedTransaction:
        """Call a function in a transaction, with `value` in wei. Raises `ContractFailed` if it fails."""
        return self._send(address, encode_call(signature, *values), value)

    def transfer_native(self, address: str, amount: int) -> MinedTransaction:
        """Send native coin, in wei."""
        return self._send(address, b"", amount)

    def read(self, address: str, signature: str, *values: Any, returns: str = "uint256") -> Any:
        """Call a view function. Returns its value, or a tuple if `returns` names several types."""
        call = EvmCall(_raw(self.address), _raw(address), encode_call(signature, *values))
        found = decode(_split_types(returns), self.chain.run_call(call))
        return found[0] if len(found) == 1 else found

    def _send(self, address: str | None, data: bytes, value: int) -> MinedTransaction:
        nonce = self.chain.state_at().get_nonce(_raw(self.address))
        transaction: dict[str, Any] = {"chainId": self.chain.chain_id, "nonce": nonce, "gas": _GAS}
        transaction |= {"data": data, "value": value}
        if address is not None:
            transaction["to"] = _raw(address)
        signed = self._wallet.sign_transaction(transaction | _FEES)
        mined = self.chain.mined_transactions[self.chain.send_transaction(bytes(signed.raw_transaction))]
        if mined.receipt.state_root != b"\x01":
            raise self._find_failure(mined)
        return mined

    def _find_failure(self, mined: MinedTransaction) -> ContractFailed:
        """Run a failed transaction again, at the state before it, to find the reason."""
        failed = mined.transaction
        call = EvmCall(_raw(self.address), failed.to, failed.data, failed.value, _GAS)
        name = f"transaction to 0x{failed.to.hex()} with {failed.data[:4].hex()} failed"
        try:
            self.chain.run_call(call, mined.block.number - 1)
        except CallReverted as error:
            return ContractFailed(f"{name}: {error.data!r}", error.data)
        except TransactionRejected as error:
            return ContractFailed(f"{name}: {error}")
        return ContractFailed(name)


def _split_types(types: str) -> list[str]:
    """Split a list of types at the commas outside of structs."""
    parts, depth = [""], 0
    for character in types:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part]


def _raw(address: str) -> Any:
    return bytes.fromhex(address[2:])
