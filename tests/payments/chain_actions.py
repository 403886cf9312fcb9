"""On-chain actions of payers and facilitators that bypass the API."""

# eth-account is typed in parts
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

import time
from typing import Any

import httpx
from buyer import Buyer
from eth_account import Account
from facilitators import Reply

from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.devchain.accounts import Account as Wallet
from centgate.devchain.devnet import DevChain
from centgate.devchain.rpc_client import call_rpc
from centgate.devchain.token import CHAIN_ID, TOKEN_ADDRESS
from centgate.signing.evm import keccak


def settle_then_reply(devchain: DevChain, reply: Reply) -> Reply:
    """Return a reply that settles on the chain first, then answers with `reply`."""

    async def settle_and_reply(body: dict[str, Any]) -> Any:
        async with httpx.AsyncClient() as client:
            response = await client.post(devchain.facilitator_url + "/settle", json=body)
        assert response.json()["success"]
        return await reply(body)

    return settle_and_reply


def settle_elsewhere(devchain: DevChain, payload: dict[str, Any]) -> None:
    """Settle a payment for another seller with the same recipient."""
    body = {"x402Version": 2, "paymentPayload": payload, "paymentRequirements": payload["accepted"]}
    answer = httpx.post(devchain.facilitator_url + "/settle", json=body, timeout=30).json()
    assert answer["success"], answer


def cancel_authorization(devchain: DevChain, buyer: Buyer, nonce: str) -> None:
    """Cancel an authorization on the chain, signed by its payer; mines a block."""
    signed = Account.sign_typed_data(
        BUYER_ACCOUNTS[buyer.number].private_key,
        domain_data={"name": "USDC", "version": "2", "chainId": CHAIN_ID, "verifyingContract": TOKEN_ADDRESS},
        message_types={
            "CancelAuthorization": [
                {"name": "authorizer", "type": "address"},
                {"name": "nonce", "type": "bytes32"},
            ]
        },
        message_data={"authorizer": buyer.address, "nonce": nonce},
    )
    selector = keccak(b"cancelAuthorization(address,bytes32,uint8,bytes32,bytes32)")[:4].hex()
    words = [int(buyer.address, 16), int(nonce, 16), signed.v, signed.r, signed.s]
    data = "0x" + selector + "".join(f"{word:064x}" for word in words)
    assert _send_to_token(devchain, BUYER_ACCOUNTS[9], data)["status"] == "0x1"


def send_reverted_transfer(devchain: DevChain, nonce: str) -> str:
    """Send a transfer under a nonce that the token reverts; return its hash."""
    types = "address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32"
    selector = keccak(f"transferWithAuthorization({types})".encode())[:4].hex()
    payer, recipient = int(BUYER_ACCOUNTS[7].address, 16), int(BUYER_ACCOUNTS[9].address, 16)
    words = [payer, recipient, 1, 0, 2**40, int(nonce, 16), 27, 1, 1]
    receipt = _send_to_token(
        devchain, BUYER_ACCOUNTS[9], "0x" + selector + "".join(f"{word:064x}" for word in words)
    )
    assert receipt["status"] == "0x0"
    return receipt["transactionHash"]


def transfer_tokens(devchain: DevChain, buyer: Buyer, to: str, amount: int) -> str:
    """Send tokens by a plain transfer; return its hash."""
    selector = keccak(b"transfer(address,uint256)")[:4].hex()
    data = f"0x{selector}{int(to, 16):064x}{amount:064x}"
    receipt = _send_to_token(devchain, BUYER_ACCOUNTS[buyer.number], data)
    assert receipt["status"] == "0x1"
    return receipt["transactionHash"]


def _send_to_token(devchain: DevChain, sender: Wallet, data: str) -> dict[str, Any]:
    """Send a transaction to the token and return its receipt."""
    transaction = {
        "to": TOKEN_ADDRESS,
        "data": data,
        "value": 0,
        "gas": 200_000,
        "maxFeePerGas": 10**9,
        "maxPriorityFeePerGas": 10**6,
        "nonce": int(call_rpc(devchain.rpc_url, "eth_getTransactionCount", sender.address, "latest"), 16),
        "chainId": CHAIN_ID,
    }
    raw = Account.sign_transaction(transaction, sender.private_key).raw_transaction.hex()
    sent = call_rpc(devchain.rpc_url, "eth_sendRawTransaction", "0x" + raw.removeprefix("0x"))
    return call_rpc(devchain.rpc_url, "eth_getTransactionReceipt", sent)


def pay_other_recipient(devchain: DevChain, terms: str, buyer: Buyer, nonce: str) -> None:
    """Pay another recipient with the nonce of an authorization; `terms` are those of a 402 response."""
    recipient = "0x3333333333333333333333333333333333333333"
    payload = buyer.payload(terms, now=int(time.time()), nonce=nonce, to=recipient)
    requirements = payload["accepted"] | {"payTo": recipient}
    body = {
        "x402Version": 2,
        "paymentPayload": payload | {"accepted": requirements},
        "paymentRequirements": requirements,
    }
    assert httpx.post(devchain.facilitator_url + "/settle", json=body, timeout=30).json()["success"]
