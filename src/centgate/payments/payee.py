"""Addresses that cannot be paid: what is sent there is lost, or anybody's."""

from __future__ import annotations

from centgate.accepted_tokens import AcceptedToken
from centgate.devchain.accounts import BUYER_ACCOUNTS, DEFAULT_PAYEE, FACILITATOR_ACCOUNT
from centgate.environment import PREFIX
from centgate.settings import Settings
from centgate.signing.assets import TEST_NETWORKS, USDC

BURNS = frozenset(
    {
        "0x000000000000000000000000000000000000dead",
        "0xdead000000000000000042069420694206942069",
        "0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee",
        "0xffffffffffffffffffffffffffffffffffffffff",
    }
)
"""Burn addresses and placeholder addresses."""
PRECOMPILED = 0xFFFF
"""Highest address reserved for precompiled contracts."""
_PUBLIC_ACCOUNTS = frozenset(account.address for account in (*BUYER_ACCOUNTS, FACILITATOR_ACCOUNT))


def find_payee_problem(token: AcceptedToken) -> str | None:
    """Return why payments in a token to its payee would be lost, as the end of a sentence, or None."""
    payee, lower = token.pay_to, token.pay_to.lower()
    if lower in BURNS or int(lower, 16) <= PRECOMPILED:
        return "has no owner: funds sent there are lost"
    if lower in {token.asset.address.lower(), *(usdc.address.lower() for usdc in USDC.values())}:
        return "is the token contract itself, which cannot return funds"
    if token.network in TEST_NETWORKS:
        return None
    if payee == DEFAULT_PAYEE:
        return "is the development chain's payee, whose key does not exist"
    if payee in _PUBLIC_ACCOUNTS:
        return "is an account of the development chain, whose key is public"
    return None


def check_payees(settings: Settings) -> None:
    """Raise ValueError, which names the setting, for an accepted token whose payee cannot be paid."""
    for number, token in enumerate(settings.accepted_tokens, 1):
        if problem := find_payee_problem(token):
            name = f"ACCEPTS: entry {number}: payTo" if settings.accepts else "PAY_TO:"
            raise ValueError(f"{PREFIX}{name} {token.pay_to} {problem}; name an address whose key you hold")
