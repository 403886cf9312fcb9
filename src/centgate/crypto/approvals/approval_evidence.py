"""What sources and the chain tell of one approval. No I/O."""

from __future__ import annotations

from msgspec import Struct

from centgate.crypto.approvals.reported import UNLIMITED_ALLOWANCE, ReportedApproval, SpenderAccountKind
from centgate.crypto.wallet.known_tokens import find_known_token
from centgate.crypto.wallet.wallets import to_whole_units, usd_value

PERMIT2 = "0x000000000022d473030f116ddee9f6b43ac78ba3"
"""Moves tokens for any holder of the owner's signature; has the same address on every chain."""
CAPPED_AT_UINT96 = frozenset(
    {
        (1, "0x1f9840a85d5af5bf1d1762f925bdaddc4201f984"),  # UNI
        (1, "0xc00e94cb662c3520282e6f5717214004a7f26888"),  # COMP
    }
)
"""Tokens that store an unlimited allowance as the largest 96-bit number."""
DAY_SECONDS = 86_400
DOUBTFUL_AMOUNT = 2**96
"""Amount in base units from which one that only an index lists may exceed a supply that was not read."""
STALE_DAYS = 180


class ApprovalEvidence(Struct, frozen=True):
    """All evidence about one approval. None: could not be read from the chain."""

    entry: ReportedApproval
    chain_id: int
    now: int
    """Seconds since 1970."""
    allowance: int | None = None
    """The current on-chain value, in base units, like `balance` and `supply`."""
    balance: int | None = None
    supply: int | None = None
    kind: SpenderAccountKind | None = None
    """Kind of account at the spender's address, read from the chain."""
    expires_at: int | None = None
    """End of a grant inside Permit2 as the chain has it, in seconds since 1970."""
    permit2_limit: int | None = None
    """What Permit2 itself may take of the token, in base units; only for a grant inside Permit2."""
    decimals: int | None = None
    price_usd: float | None = None
    """Price of one unit of the token, None also if it is doubtful."""

    @property
    def amount(self) -> int | None:
        """Amount in base units: the chain's, else the source's."""
        return self.entry.amount if self.allowance is None else self.allowance

    @property
    def holding(self) -> int | None:
        """Balance of the wallet in base units: the chain's, else the source's."""
        return self.entry.token.balance if self.balance is None else self.balance

    @property
    def is_unlimited(self) -> bool | None:
        """True if it exceeds anything the wallet could ever hold; None if unknown."""
        amount = self.amount
        if self.allowance is None and self.entry.unlimited:
            return True
        is_doubtful = self.allowance is None and self.supply is None and (amount or 0) >= DOUBTFUL_AMOUNT
        if amount is None or (is_doubtful and amount < self._max_amount):
            return None
        return amount >= self._max_amount or 0 < (self.supply or 0) < amount

    @property
    def _max_amount(self) -> int:
        token, spender = self.entry.pair
        if (self.chain_id, token) in CAPPED_AT_UINT96:
            return 2**96 - 1
        return 2**160 - 1 if spender == PERMIT2 or self.is_grant else 2**255

    @property
    def is_grant(self) -> bool:
        """True if it was given inside Permit2."""
        return self.entry.mechanism == "permit2"

    @property
    def end_time(self) -> int | None:
        """End of a grant in seconds since 1970: the chain's, else the event's."""
        return self.entry.expires_at if self.expires_at is None else self.expires_at

    @property
    def is_trusted(self) -> bool:
        """True if a source lists the spender as well known, and the chain does not show a plain wallet.

        Lists name contracts; what has no code of its own can change hands with its key.
        """
        return bool(self.entry.spender.trusted) and self.kind in (None, "contract")

    @property
    def has_known_value(self) -> bool:
        """True for a well-known token, and for one with a price of which something can be taken.

        Anyone can make other tokens, and approvals of them in any wallet's name.
        """
        token = self.entry.token.address
        return find_known_token(self.chain_id, token) is not None or bool(self.exposed_usd)

    @property
    def is_usable(self) -> bool:
        """False if nothing can be taken now: nothing is held, or Permit2 may take none of it."""
        return self.balance != 0 and not (self.is_grant and self.permit2_limit == 0)

    @property
    def is_stale(self) -> bool | None:
        """True if the latest change is more than STALE_DAYS ago; None if its time is unknown."""
        changed = self.entry.changed_at
        return None if changed is None else self.now - changed > STALE_DAYS * DAY_SECONDS

    @property
    def is_contract(self) -> bool | None:
        """True if the spender runs code of its own: by the chain, else by the source."""
        return self.entry.spender.is_contract if self.kind is None else self.kind == "contract"

    @property
    def exposed_amount(self) -> int | None:
        """Amount at risk now, in base units; None if the balance or the amount is unknown."""
        amount = UNLIMITED_ALLOWANCE if self.is_unlimited else self.amount
        limits = [amount, self.holding, *([self.permit2_limit] if self.is_grant else [])]
        known = [each for each in limits if each is not None]
        return min(known) if len(known) == len(limits) else None

    @property
    def exposed_usd(self) -> float | None:
        """Value at risk now, in US dollars; None if the amount, the decimals or the price are unknown."""
        return self.value_units(self.exposed_amount)

    def value_units(self, units: int | None) -> float | None:
        """Return the value of an amount of the token in base units, in US dollars; None if unknown."""
        if self.price_usd is None:
            return None
        return usd_value(to_whole_units(units, self.decimals), self.price_usd)

    @property
    def amounts_differ(self) -> bool:
        """True if an index lists another amount than the chain has, by more than 1 %."""
        live, listed = self.allowance, self.entry
        if live is None or listed.source != "goplus":
            return False
        if listed.unlimited:
            return not self.is_unlimited
        return listed.amount is not None and abs(live - listed.amount) * 100 > max(live, listed.amount)

    @property
    def kinds_differ(self) -> bool:
        """True if index and chain disagree on the spender being a contract."""
        listed = self.entry.spender.is_contract
        return self.kind is not None and listed is not None and listed != self.is_contract
