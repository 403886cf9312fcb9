"""Reasons that a contract gives for a failed call. They are strangers' text: known ones become our words."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from centgate.sanitize import clean_line

MAX_REASON_LENGTH = 80
"""Characters of a stranger's reason that are kept."""

FailureCode = Literal[
    "returned_false",
    "nothing_moved",
    "nothing_arrived",
    "nothing_received",
    "nothing_paid",
    "no_capital",
    "out_of_gas",
    "not_open",
    "paused",
    "blocked",
    "cooldown",
    "wallet_limit",
    "trade_limit",
    "no_allowance",
    "no_balance",
    "transfer_failed",
    "pool_short",
    "pool_locked",
    "arithmetic",
]

FAILURE_TEXTS: dict[FailureCode, str] = {
    "returned_false": "the token's transfer returned false",
    "nothing_moved": "the transfer reported success and moved nothing",
    "nothing_arrived": "the tokens left the seller, and the pool received none",
    "nothing_received": "the pool paid out tokens and none arrived",
    "nothing_paid": "the sale brought nothing",
    "no_capital": "the pair's other token could not be bought for the simulation",
    "out_of_gas": "the transfer uses more gas than a sale may cost",
    "not_open": "trading is not open",
    "paused": "transfers are paused",
    "blocked": "the token blocks the seller",
    "cooldown": "the token demands a pause between two trades",
    "wallet_limit": "more than the token lets one wallet hold",
    "trade_limit": "more than the token lets one trade move",
    "no_allowance": "the token's approval has no effect",
    "no_balance": "the seller's balance is gone",
    "transfer_failed": "the token's transfer fails",
    "pool_short": "less reached the pool than was sent, which this kind of pool refuses",
    "pool_locked": "the token trades in the pool during the sale",
    "arithmetic": "the token's arithmetic fails",
}
"""Our words for each known failure, as clauses."""

_OWN_ERRORS: dict[str, FailureCode] = {
    "b1333217": "returned_false",  # ReturnedFalse()
    "62af86ad": "nothing_arrived",  # NothingArrived()
    "b5c74a27": "nothing_received",  # NothingReceived()
    "56baacf6": "nothing_paid",  # NothingPaid()
    "5503950a": "no_capital",  # NoCapital()
    "fad607ef": "no_allowance",  # ApprovalIgnored()
}
_KNOWN_ERRORS: dict[str, FailureCode] = {
    "e450d38c": "no_balance",  # ERC20InsufficientBalance(address,uint256,uint256), ERC-6093
    "fb8f41b2": "no_allowance",  # ERC20InsufficientAllowance(address,uint256,uint256)
    "d93c0665": "paused",  # EnforcedPause(), OpenZeppelin 5
    "90b8ec18": "transfer_failed",  # TransferFailed(), Solady
    "7939f424": "transfer_failed",  # TransferFromFailed(), Solady
    "13be252b": "no_allowance",  # InsufficientAllowance(), Solady
    "f4d678b8": "no_balance",  # InsufficientBalance(), Solady
    "5212cba1": "pool_short",  # CurrencyNotSettled(), Uniswap v4
}
_ERROR, _PANIC = "08c379a0", "4e487b71"
_PATTERNS: tuple[tuple[str, FailureCode], ...] = (
    (r"paused", "paused"),
    (r"(trad\w*|launch\w*|market) .{0,12}(not|isn't|yet)\b", "not_open"),
    (r"not (open|enabled|active|live|launched)|disabled", "not_open"),
    (r"cool.?down|same block|wait|too (soon|fast|early)|delay", "cooldown"),
    (r"black.?list|deny.?list|\b(bot|sniper|blocked|banned|frozen|restricted)s?\b", "blocked"),
    (r"max\w* ?wallet|wallet (limit|size|amount)|max\w* (hold|balance)", "wallet_limit"),
    (r"max\w* ?(tx|trans|sell|buy|amount)|(tx|transaction|transfer|sell) limit", "trade_limit"),
    (r"insufficient.?allowance|exceeds allowance|not approved", "no_allowance"),
    (r"exceeds balance|insufficient.?balance", "no_balance"),
    (r"^(uniswapv2: k|pancake: k|k|iia|uniswapv2: insufficient_input_amount)$", "pool_short"),
    (r"^(uniswapv2: |pancake: |algebra: )?(locked|lok|reentrancyguard: reentrant call)$", "pool_locked"),
    (r"transfer.?helper|transfer_?from_?failed|transfer_failed|^stf$|^tf$", "transfer_failed"),
)
"""Words of known reasons, in lower case, the more specific first."""
_WORDS: tuple[tuple[re.Pattern[str], FailureCode], ...] = tuple(
    (re.compile(pattern), code) for pattern, code in _PATTERNS
)


class FailureReason(Struct, frozen=True):
    """Reason of a failed call: our code if it is known, and the stranger's text if there is one."""

    code: FailureCode | None
    text: str | None
    """Untrusted: cleaned and cut, never part of a sentence unless quoted."""

    @property
    def is_specific(self) -> bool:
        """True if it says more than that a transfer failed."""
        return self.code != "transfer_failed" and (self.code is not None or self.text is not None)

    @property
    def explanation(self) -> str | None:
        """Our words for it, as a clause; None if it is not known."""
        return FAILURE_TEXTS[self.code] if self.code else None


def parse_failure(data: bytes) -> FailureReason:
    """Parse the revert data of a call, of which the end may be missing."""
    selector = data[:4].hex()
    if code := _OWN_ERRORS.get(selector) or _KNOWN_ERRORS.get(selector):
        return FailureReason(code, None)
    if selector == _PANIC:
        return FailureReason("arithmetic", None)
    if selector == _ERROR:
        text = clean_line(_decode_text(data[4:]), MAX_REASON_LENGTH)
        return FailureReason(_recognise(text), text)
    if len(data) >= 4 and any(data):
        return FailureReason(None, f"error 0x{selector}")
    return FailureReason(None, None)


def explain_reason(text: str | None) -> str | None:
    """Return our words for a reason that is given as text, as a clause; None if it is not a known one."""
    code = _recognise(text)
    return FAILURE_TEXTS[code] if code else None


def _recognise(text: str | None) -> FailureCode | None:
    lowered = (text or "").lower()
    return next((code for pattern, code in _WORDS if pattern.search(lowered)), None)


def _decode_text(data: bytes) -> str:
    """Decode an ABI-encoded string whose end may be missing."""
    length = int.from_bytes(data[32:64], "big")
    return data[64 : 64 + min(length, len(data))].decode(errors="ignore")
