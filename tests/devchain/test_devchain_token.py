"""The token contract of the development chain: accepted calls, and revert reasons."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from eth_account import Account as Wallet
from eth_typing import HexStr
from web3 import Web3
from web3.contract import Contract
from web3.exceptions import ContractLogicError

from centgate.devchain.accounts import BUYER_ACCOUNTS, FACILITATOR_ACCOUNT, MNEMONIC, Account
from centgate.devchain.devnet import DevChain
from centgate.devchain.token import CHAIN_ID, TOKEN_ADDRESS, compile_token, load_artefact

Send = Callable[..., Any]
Someone = Callable[[], Account]

TRANSFER = "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)"
TERMS = [
    ("from", "address"),
    ("to", "address"),
    ("value", "uint256"),
    ("validAfter", "uint256"),
    ("validBefore", "uint256"),
    ("nonce", "bytes32"),
]
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


def sign_message(account: Account, primary_type: str, message: dict[str, Any]) -> tuple[int, bytes, bytes]:
    fields = TERMS if "value" in message else [("authorizer", "address"), ("nonce", "bytes32")]
    domain = {"name": "USDC", "version": "2", "chainId": CHAIN_ID, "verifyingContract": TOKEN_ADDRESS}
    types = {primary_type: [{"name": name, "type": kind} for name, kind in fields]}
    signature = Wallet.from_key(account.private_key).sign_typed_data(domain, types, message)
    return signature.v, signature.r.to_bytes(32, "big"), signature.s.to_bytes(32, "big")


def build_terms(account: Account, to: str, nonce: int, **changed: int) -> dict[str, Any]:
    message: dict[str, Any] = {"from": account.address, "to": to, "value": 10_000}
    window = {"validAfter": 0, "validBefore": int(time.time()) + 60}
    return message | window | {"nonce": nonce.to_bytes(32, "big")} | changed


def authorize(token: Contract, account: Account, message: dict[str, Any]) -> Any:
    signature = sign_message(account, "TransferWithAuthorization", message)
    return token.functions[TRANSFER](*message.values(), *signature)


@pytest.mark.extended
def test_source_compiles_to_committed_artefact():
    assert compile_token() == load_artefact()


def test_accounts_are_of_well_known_mnemonic():
    Wallet.enable_unaudited_hdwallet_features()
    derived = [Wallet.from_mnemonic(MNEMONIC, account_path=f"m/44'/60'/0'/0/{i}") for i in range(10)]

    assert [(one.address, "0x" + one.key.hex()) for one in derived] == [
        (buyer.address, buyer.private_key) for buyer in BUYER_ACCOUNTS
    ]
    assert Wallet.from_key(FACILITATOR_ACCOUNT.private_key).address == FACILITATOR_ACCOUNT.address


def test_total_supply_is_ten_thousand_tokens(token: Contract):
    assert token.functions.totalSupply().call() == 10_000_000000
    assert token.functions.decimals().call() == 6


@pytest.mark.extended
def test_each_buyer_has_thousand_tokens(token: Contract):
    held = [token.functions.balanceOf(buyer.address).call(block_identifier=0) for buyer in BUYER_ACCOUNTS]

    assert held == [1_000_000000] * 10


def test_signing_domain_is_usdc_on_base_sepolia(token: Contract):
    domain = token.functions.DOMAIN_SEPARATOR().call()

    assert domain.hex() == "71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818"


def test_authorized_transfer_moves_tokens_once(
    token: Contract, send: Send, take_account: Someone, shop: str, devchain: DevChain
):
    buyer = take_account()
    held, taken = devchain.token_balance(buyer.address), devchain.token_balance(shop)
    transfer = authorize(token, buyer, build_terms(buyer, shop, 1))

    receipt = send(FACILITATOR_ACCOUNT, transfer)

    assert receipt["status"] == 1
    assert (devchain.token_balance(buyer.address), devchain.token_balance(shop)) == (
        held - 10_000,
        taken + 10_000,
    )
    assert devchain.is_authorization_used(buyer.address, "0x" + "1".rjust(64, "0"))
    with pytest.raises(ContractLogicError, match="FiatTokenV2: authorization is used or canceled"):
        transfer.call()


@pytest.mark.extended
def test_authorized_transfer_emits_use_then_transfer(
    token: Contract, send: Send, take_account: Someone, shop: str
):
    buyer = take_account()

    receipt = send(FACILITATOR_ACCOUNT, authorize(token, buyer, build_terms(buyer, shop, 2)))

    (used,) = token.events.AuthorizationUsed().process_receipt(receipt, errors=_discard())
    (moved,) = token.events.Transfer().process_receipt(receipt, errors=_discard())
    assert used["args"] == {"authorizer": buyer.address, "nonce": (2).to_bytes(32, "big")}
    assert moved["args"] == {"sender": buyer.address, "receiver": shop, "value": 10_000}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"validBefore": 1}, "FiatTokenV2: authorization is expired"),
        ({"validAfter": 2**40}, "FiatTokenV2: authorization is not yet valid"),
        ({"value": 10**15}, "ERC20: transfer amount exceeds balance"),
    ],
)
def test_unsettleable_payment_has_circles_reason(
    token: Contract, take_account: Someone, shop: str, changed: dict[str, int], words: str
):
    buyer = take_account()

    with pytest.raises(ContractLogicError, match=words):
        authorize(token, buyer, build_terms(buyer, shop, 3, **changed)).call()


def test_signature_for_another_amount_is_invalid(token: Contract, take_account: Someone, shop: str):
    buyer = take_account()
    message = build_terms(buyer, shop, 4)
    signature = sign_message(buyer, "TransferWithAuthorization", message)

    with pytest.raises(ContractLogicError, match="FiatTokenV2: invalid signature"):
        token.functions[TRANSFER](*(message | {"value": 1}).values(), *signature).call()


def test_mirrored_signature_is_invalid(token: Contract, take_account: Someone, shop: str):
    buyer = take_account()
    message = build_terms(buyer, shop, 5)
    v, r, s = sign_message(buyer, "TransferWithAuthorization", message)
    mirrored = (ORDER - int.from_bytes(s, "big")).to_bytes(32, "big")

    with pytest.raises(ContractLogicError, match="ECRecover: invalid signature 's' value"):
        token.functions[TRANSFER](*message.values(), 55 - v, r, mirrored).call()


def test_canceled_authorization_cannot_be_used(
    token: Contract, send: Send, take_account: Someone, shop: str, devchain: DevChain
):
    buyer = take_account()
    nonce = (6).to_bytes(32, "big")
    cancellation = sign_message(buyer, "CancelAuthorization", {"authorizer": buyer.address, "nonce": nonce})

    receipt = send(
        FACILITATOR_ACCOUNT, token.functions.cancelAuthorization(buyer.address, nonce, *cancellation)
    )

    assert len(token.events.AuthorizationCanceled().process_receipt(receipt)) == 1
    assert devchain.is_authorization_used(buyer.address, "0x" + nonce.hex())
    with pytest.raises(ContractLogicError, match="authorization is used or canceled"):
        authorize(token, buyer, build_terms(buyer, shop, 6)).call()


@pytest.mark.extended
def test_only_payee_may_receive_with_authorization(
    token: Contract, send: Send, take_account: Someone, devchain: DevChain
):
    buyer, seller = take_account(), take_account()
    message = build_terms(buyer, seller.address, 7)
    signature = sign_message(buyer, "ReceiveWithAuthorization", message)
    received = token.functions.receiveWithAuthorization(*message.values(), *signature)
    held = devchain.token_balance(seller.address)

    with pytest.raises(ContractLogicError, match="FiatTokenV2: caller must be the payee"):
        received.call({"from": buyer.address})
    send(seller, received)

    assert devchain.token_balance(seller.address) == held + 10_000


@pytest.mark.extended
def test_allowance_limits_transfers(
    token: Contract, send: Send, take_account: Someone, shop: str, devchain: DevChain
):
    owner, spender = take_account(), take_account()
    taken = devchain.token_balance(shop)

    approval = send(owner, token.functions.approve(spender.address, 500))
    send(spender, token.functions.transferFrom(owner.address, shop, 400))

    assert len(token.events.Approval().process_receipt(approval)) == 1
    assert devchain.token_balance(shop) == taken + 400
    assert token.functions.allowance(owner.address, spender.address).call() == 100
    with pytest.raises(ContractLogicError, match="ERC20: transfer amount exceeds allowance"):
        token.functions.transferFrom(owner.address, shop, 101).call({"from": spender.address})


def test_unknown_function_is_refused(w3: Web3):
    with pytest.raises(ContractLogicError):
        w3.eth.call({"to": Web3.to_checksum_address(TOKEN_ADDRESS), "data": HexStr("0xdeadbeef")})


def _discard() -> Any:
    from web3.logs import DISCARD

    return DISCARD
