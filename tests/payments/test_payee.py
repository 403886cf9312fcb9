"""Payees that cannot be paid are refused at start, with the name of their setting."""

from __future__ import annotations

import json
from typing import Any

import pytest

from centgate.accepted_tokens import parse_accepted_tokens
from centgate.devchain.accounts import BUYER_ACCOUNTS, DEFAULT_PAYEE, FACILITATOR_ACCOUNT
from centgate.runtime import validate_startup
from centgate.settings import Settings
from centgate.signing.assets import USDC

BASE, SEPOLIA = "eip155:8453", "eip155:84532"
USABLE = "0x" + "11" * 20
OWN_TOKEN: dict[str, Any] = {"network": "eip155:31337", "asset": "0x" + "22" * 20, "asset_name": "Dollar"}


@pytest.mark.parametrize(
    ("payee", "problem"),
    [
        (USDC[BASE].address, "is the token contract itself"),
        (USDC["eip155:137"].address, "is the token contract itself"),
        ("0x000000000000000000000000000000000000dEaD", "has no owner"),
        ("0x0000000000000000000000000000000000000004", "has no owner"),
        (DEFAULT_PAYEE, "key does not exist"),
        (FACILITATOR_ACCOUNT.address, "key is public"),
        (BUYER_ACCOUNTS[0].address, "key is public"),
    ],
)
def test_unusable_payee_of_real_money_is_refused(payee: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^CENTGATE_PAY_TO: {payee} .*{problem}"):
        validate_startup(Settings(network=BASE, pay_to=payee))


def test_contract_of_operators_own_token_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^CENTGATE_PAY_TO: 0x22.* is the token contract itself"):
        validate_startup(Settings(pay_to="0x" + "22" * 20, **OWN_TOKEN))


def test_entry_of_list_is_named() -> None:
    entries = [
        {"network": BASE, "payTo": USABLE},
        {"network": "eip155:137", "payTo": USDC["eip155:137"].address},
    ]
    accepts = parse_accepted_tokens(json.dumps(entries))

    with pytest.raises(ValueError, match=r"^CENTGATE_ACCEPTS: entry 2: payTo 0x3c499c"):
        validate_startup(Settings(accepts=accepts))


@pytest.mark.parametrize(("network", "payee"), [(BASE, USABLE), (SEPOLIA, DEFAULT_PAYEE)])
def test_usable_payee_is_accepted(network: str, payee: str) -> None:
    validate_startup(Settings(network=network, pay_to=payee))
