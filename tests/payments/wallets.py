"""Contract payers on the development chain: deployed, counterfactual, or delegating."""

# eth-account and web3 are typed in parts
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import requests
from eth_abi.abi import encode
from eth_account import Account
from web3 import HTTPProvider, Web3

from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.devchain.devnet import DevChain
from centgate.devchain.token import CHAIN_ID, TOKEN_ADDRESS, load_artefact
from centgate.signing.eip3009 import domain_separator, transfer_digest

# accepts its owner's signature with a prefix byte, so that it is not 65 bytes long (ERC-1271)
WALLET = """
owner: public(address)

@external
def set_up(owner: address):
    assert self.owner == empty(address)
    self.owner = owner

@external
@view
def isValidSignature(digest: bytes32, signature: Bytes[66]) -> bytes4:
    v: uint256 = convert(slice(signature, 65, 1), uint256)
    r: uint256 = extract32(signature, 1, output_type=uint256)
    s: uint256 = extract32(signature, 33, output_type=uint256)
    if ecrecover(digest, v, r, s) == self.owner:
        return 0x1626ba7e
    return 0xffffffff
"""
FACTORY = """
interface Wallet:
    def set_up(owner: address): nonpayable

@external
def deploy(wallet: address, owner: address) -> address:
    made: address = create_minimal_proxy_to(wallet, salt=convert(owner, bytes32))
    extcall Wallet(made).set_up(owner)
    return made
"""
# delegation target of an account that keeps signing with its own key (ERC-7702)
DELEGATE = """
@external
@view
def isValidSignature(digest: bytes32, signature: Bytes[65]) -> bytes4:
    v: uint256 = convert(slice(signature, 64, 1), uint256)
    r: uint256 = extract32(signature, 0, output_type=uint256)
    s: uint256 = extract32(signature, 32, output_type=uint256)
    if ecrecover(digest, v, r, s) == self:
        return 0x1626ba7e
    return 0xffffffff
"""
# the last 32 bytes of a signature for a contract that is not deployed yet (ERC-6492)
COUNTERFACTUAL = bytes.fromhex("6492" * 16)
GAS = {"gas": 1_000_000, "maxFeePerGas": 10**9, "maxPriorityFeePerGas": 10**6}
SPONSOR = BUYER_ACCOUNTS[9]


@dataclass(frozen=True)
class Contracts:
    """Deployed contracts that all payers use, and a connection to the chain."""

    w3: Web3
    factory: Any
    wallet: str
    delegate: str

    def deploy(self, source: str) -> str:
        """Deploy another contract and return its address."""
        return _deploy(self.w3, source).address

    def make_wallet(self, owner: str) -> str:
        """Deploy a wallet and return its address."""
        address = self.predict_wallet(owner)
        _send_call(self.w3, self.factory.functions.deploy(self.wallet, owner))
        return address

    def predict_wallet(self, owner: str) -> str:
        """Return the future address of a wallet."""
        return self.factory.functions.deploy(self.wallet, owner).call()

    def sign_counterfactual(self, owner: str, signature: bytes) -> bytes:
        """Return a signature by a wallet that must be deployed first."""
        make = bytes.fromhex(self.factory.encode_abi("deploy", [self.wallet, owner]).removeprefix("0x"))
        parts = encode(["address", "bytes", "bytes"], [self.factory.address, make, signature])
        return parts + COUNTERFACTUAL

    def delegate_account(self, to: str) -> Any:
        """Create a key whose account delegates to a contract."""
        key = Account.create()
        signed = key.sign_authorization({"chainId": CHAIN_ID, "address": to, "nonce": 0})
        # the recipient does not matter, only the list
        _send_transaction(
            self.w3, {"to": SPONSOR.address, "value": 0, "data": "0x", "authorizationList": [signed]}
        )
        return key

    def fund_payer(self, payer: str) -> None:
        """Send a payer the price of two calls."""
        token = self.w3.eth.contract(
            address=Web3.to_checksum_address(TOKEN_ADDRESS), abi=load_artefact()["abi"]
        )
        _send_call(self.w3, token.functions.transfer(payer, 20_000))


@contextmanager
def deploy_contracts(devchain: DevChain) -> Generator[Contracts]:
    """Compile the contracts and deploy them."""
    with requests.Session() as session:
        session.trust_env = False
        w3 = Web3(HTTPProvider(devchain.rpc_url, session=session))
        wallet, factory, delegate = (_deploy(w3, source) for source in (WALLET, FACTORY, DELEGATE))
        yield Contracts(w3, factory, wallet.address, delegate.address)


def sign_authorization(key: Any, authorization: dict[str, Any]) -> bytes:
    """Sign an authorization with a key (65 bytes), regardless of its payer."""
    digest = transfer_digest(
        domain_separator("USDC", "2", CHAIN_ID, TOKEN_ADDRESS),
        payer=authorization["from"],
        to=authorization["to"],
        value=int(authorization["value"]),
        valid_after=int(authorization["validAfter"]),
        valid_before=int(authorization["validBefore"]),
        nonce=authorization["nonce"],
    )
    return bytes(key.unsafe_sign_hash(digest).signature)


def _deploy(w3: Web3, source: str) -> Any:
    vyper: Any = import_module("vyper")  # untyped
    compiled = vyper.compile_code(source, output_formats=["abi", "bytecode"])
    contract = w3.eth.contract(abi=compiled["abi"], bytecode=compiled["bytecode"])
    return w3.eth.contract(
        address=_send_call(w3, contract.constructor())["contractAddress"], abi=compiled["abi"]
    )


def _send_call(w3: Web3, function: Any) -> Any:
    return _send_transaction(w3, function.build_transaction({"from": SPONSOR.address, "nonce": 0, **GAS}))


def _send_transaction(w3: Web3, transaction: dict[str, Any]) -> Any:
    """Send a transaction with gas paid by the sponsor, and return its receipt."""
    nonce = w3.eth.get_transaction_count(Web3.to_checksum_address(SPONSOR.address))
    whole = {**transaction, **GAS, "nonce": nonce, "chainId": CHAIN_ID}
    raw = Account.from_key(SPONSOR.private_key).sign_transaction(whole).raw_transaction
    receipt = w3.eth.wait_for_transaction_receipt(w3.eth.send_raw_transaction(raw))
    assert receipt["status"] == 1
    return receipt
