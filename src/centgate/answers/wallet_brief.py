"""Answer of wallet-brief: its fields, filled from the snapshot, the prices and the account."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from pydantic import Field

from centgate.answers.native_balance import (
    NATIVE_DECIMALS,
    NativeBalance,
    Worth,
    build_native_balance,
    build_worth,
    native_symbol,
)
from centgate.crypto.wallet.accounts import Account, WalletAccountKind
from centgate.crypto.wallet.spam_rules import (
    CounterpartyEvidence,
    Lookalike,
    Suspicion,
    SuspicionId,
    assess_counterparty,
    find_holding_suspicions,
    find_lookalikes,
    find_transfer_suspicions,
)
from centgate.crypto.wallet.transfer_kinds import TransferKind, classify_transfer, find_swaps
from centgate.crypto.wallet.valuation import (
    ValuedHolding,
    add_up,
    rank_holdings,
    value_coin,
    value_holding,
)
from centgate.crypto.wallet.wallets import (
    Price,
    Token,
    Transfer,
    WalletSource,
    format_base_units,
    to_finite_float,
    to_whole_units,
)
from centgate.lookups.token_prices import NATIVE_COIN
from centgate.lookups.wallet_fallback import MAX_RECENT_TRANSFERS, WalletSnapshot
from centgate.sanitize import clean_line
from centgate.schema import Data
from centgate.timestamps import format_timestamp

Direction = Literal["in", "out", "self"]

MAX_BALANCES = 10
"""Most token balances in a response."""
MAX_SUSPICIOUS = 50
"""Most notes on suspicious tokens in a response."""


class SuspicionReason(Data):
    """A reason to suspect a token or a transfer."""

    id: SuspicionId
    explanation: str = Field(description="One sentence.")
    value: str | None = Field(description="The value that triggered it: untrusted text, cut.")
    source: WalletSource


class WalletFunding(Data):
    """First transfer of the chain's native coin to a wallet."""

    at: str | None = Field(description="ISO 8601, UTC; null when the source gives no time.")
    transaction_hash: str
    block_number: int | None = Field(description="Block of the transfer.")
    from_address: str = Field(
        description="The sender, lower case. Anyone can send coins to any address: it proves no relation."
    )
    amount_base_units: str = Field(description="In base units (wei), a decimal string.")
    amount: float | None = Field(description="In whole coins.")
    source: WalletSource


class WalletAccount(Data):
    """Kind of account at the wallet's address, as the chain shows it now, and its first funding."""

    kind: WalletAccountKind = Field(
        description="`wallet`: no code; `delegated_wallet`: runs other code by EIP-7702, which can move "
        "everything; `safe`: a Safe with published code; `contract`: other code; `unknown`: not read. A "
        "delegation is the first of the `warnings`."
    )
    delegate_address: str | None = Field(
        description="The contract whose code a delegated wallet runs, lower case; null for all others."
    )
    safe_threshold: int | None = Field(
        description="Signatures that a transaction of the Safe needs; null if it is none."
    )
    safe_owners: int | None = Field(description="Number of the Safe's owners; null if it is none.")
    safe_has_modules: bool | None = Field(
        description="Whether the Safe lists modules: contracts that act for it without its owners' "
        "signatures; null if it is none, and when unknown."
    )
    transaction_count: int | None = Field(
        description="Transactions that the wallet has sent; null for a contract, and when unknown."
    )
    name: str | None = Field(
        description="Primary ENS name on Ethereum, Basename on Base; it resolves back to this address. Its "
        "owner chose it: it proves no identity. Null without one, on other chains, when unknown, and for "
        "names with other characters than a-z, 0-9 and hyphens."
    )
    sanctioned: bool | None = Field(
        description="True if Chainalysis' list on the chain names the address as one that OFAC has "
        "sanctioned, which is then among the first `warnings`; null when it was not read. Other lists, and "
        "addresses that dealt with this one, are not read."
    )
    first_funding: WalletFunding | None = Field(
        description="The oldest transfer of the chain's native coin to the address: since when the wallet is "
        "used, and who paid for its first transactions. Tokens do not count, as strangers send worthless "
        "ones; coins that a contract sent count only with Alchemy on Ethereum and Polygon. Null when the "
        "source lists none, and when neither Alchemy nor Blockscout tells it (a node alone cannot), which is "
        "then among the `warnings`."
    )


class TotalWorth(Data):
    """Value of the balances; tokens under suspicion and positions inside protocols are not in it."""

    usd: float | None = Field(
        description="Native coin and tokens with a price that is not doubtful, in US dollars, also those "
        "beyond the ten listed. 0 for a wallet that holds nothing, null when no such price is known. It is a "
        "lower bound while there are unpriced or unchecked tokens, or coverage is partial."
    )
    doubtful_usd: float = Field(description="Tokens with a doubtful price, in US dollars, not in `usd`.")
    unpriced_count: int = Field(description="Balances without a price, in neither figure.")
    unlisted_count: int = Field(
        description="Tokens without suspicion for which `tokenBalances` has no space; in the other figures."
    )
    unlisted_usd: float | None = Field(
        description="Part of `usd` that these tokens are worth, in US dollars; null when no price is known."
    )
    unchecked_count: int = Field(
        description="Tokens whose name and decimals were not read: not listed, and in no other figure."
    )
    suspicious_count: int = Field(
        description="Tokens under suspicion, listed or not: in no other figure, whatever they claim."
    )


class TokenBalance(Data):
    """An ERC-20 token that the wallet holds."""

    token_address: str = Field(description="Lower case.")
    symbol: str | None = Field(description="As the token calls itself: untrusted text, cut.")
    name: str | None = Field(description="As the token calls itself: untrusted text, cut.")
    amount_base_units: str = Field(description="In base units, a decimal string.")
    decimals: int | None = Field(description="Decimals between base units and the scaled amount.")
    amount: float | None = Field(description="Scaled by the decimals; null when these are unknown.")
    worth: Worth | None = Field(description="Null when no source has a price.")
    source: WalletSource


class WalletTransfer(Data):
    """A transfer into or out of the wallet."""

    transaction_hash: str
    block_number: int | None = Field(description="Block of the transfer.")
    at: str | None = Field(description="ISO 8601, UTC.")
    direction: Direction
    kind: TransferKind = Field(
        description="What it was part of, by those transfers of the same transaction that the source lists: "
        "`swap` (another asset went the other way, and one of the two is no dust of a stranger), `mint`, "
        "`burn`, `creation` of a contract, `call` without value, else `send`, `receive` or `self`. A token's "
        "contract can make up transfers of its own."
    )
    counterparty: str | None = Field(
        description="The other party, lower case; null when the wallet created a contract."
    )
    token_address: str | None = Field(description="Lower case; null for the chain's native coin.")
    symbol: str | None = Field(description="As the token calls itself: untrusted text, cut.")
    amount_base_units: str | None = Field(description="In base units, a decimal string.")
    decimals: int | None = Field(description="Decimals between base units and the scaled amount.")
    amount: float | None = Field(description="Scaled by the decimals.")
    notes: list[SuspicionReason] = Field(description="Signs of address poisoning and the like.")
    source: WalletSource


class SuspiciousToken(Data):
    """A token left out of the balances, with the reasons."""

    token_address: str = Field(description="Lower case.")
    symbol: str | None = Field(description="As the token calls itself: untrusted text, cut.")
    name: str | None = Field(description="As the token calls itself: untrusted text, cut.")
    reasons: list[SuspicionReason]


class WalletBrief(Data):
    """Overview of a wallet."""

    native_balance: NativeBalance
    token_balances: list[TokenBalance] = Field(
        max_length=10,
        description="The most valuable first, then those with a doubtful price, those without a price last; "
        "suspicious ones are left out.",
    )
    recent_transfers: list[WalletTransfer] = Field(max_length=10, description="The latest first.")
    suspicious_token_notes: list[SuspiciousToken] = Field(
        max_length=50, description="The most valuable first, by the values that they claim."
    )
    account: WalletAccount
    total: TotalWorth


def build_wallet_brief(
    snapshot: WalletSnapshot,
    prices: Mapping[str, Price],
    account: Account,
    unchecked: int,
    *,
    funding: tuple[Transfer, WalletSource] | None,
) -> tuple[WalletBrief, list[str]]:
    """Return the answer about a wallet, with warnings on doubtful prices and on what is not listed.

    `unchecked` is the number of tokens that the snapshot leaves out; `funding` is the first transfer of
    native coins to the wallet, with its source.
    """
    holdings, suspicious = _split_holdings(snapshot, prices)
    total = _build_total(
        snapshot,
        prices,
        holdings,
        unchecked=unchecked,
        suspicious=len(suspicious),
    )
    brief = WalletBrief(
        native_balance=build_native_balance(
            snapshot.chain_id, snapshot.coin, prices.get(NATIVE_COIN), snapshot.coin_source
        ),
        token_balances=[_build_balance(each, snapshot.holdings_source) for each in holdings[:MAX_BALANCES]],
        recent_transfers=_list_transfers(snapshot, prices),
        suspicious_token_notes=suspicious[:MAX_SUSPICIOUS],
        account=_build_account(account, funding),
        total=total,
    )
    return brief, list(_list_warnings(holdings[:MAX_BALANCES], len(suspicious)))


def _list_warnings(listed: Sequence[ValuedHolding], suspicious: int) -> Iterator[str]:
    # by address alone: symbols are strangers' text
    if doubtful := [each.holding.token.address for each in listed if each.quote and each.quote.is_doubtful]:
        yield f"doubtful prices, ranked after the others: {', '.join(doubtful)}"
    if suspicious > MAX_SUSPICIOUS:
        yield f"{suspicious - MAX_SUSPICIOUS} further suspicious tokens are not listed"


def _build_account(account: Account, funding: tuple[Transfer, WalletSource] | None) -> WalletAccount:
    return WalletAccount(
        kind=account.kind,
        delegate_address=account.delegate_address,
        safe_threshold=account.threshold,
        safe_owners=account.owner_count,
        safe_has_modules=account.has_modules,
        transaction_count=account.transaction_count,
        name=account.name,
        sanctioned=account.is_sanctioned,
        first_funding=_build_funding(*funding) if funding else None,
    )


def _build_funding(transfer: Transfer, source: WalletSource) -> WalletFunding:
    return WalletFunding(
        at=format_timestamp(transfer.at) if transfer.at else None,
        transaction_hash=transfer.transaction,
        block_number=transfer.block,
        from_address=transfer.sender,
        amount_base_units=str(transfer.amount),
        amount=to_finite_float(to_whole_units(transfer.amount, NATIVE_DECIMALS)),
        source=source,
    )


def _build_total(
    snapshot: WalletSnapshot,
    prices: Mapping[str, Price],
    holdings: Sequence[ValuedHolding],
    *,
    unchecked: int,
    suspicious: int,
) -> TotalWorth:
    coin = [value_coin(snapshot.coin, prices.get(NATIVE_COIN))] if snapshot.coin.amount != 0 else []
    values = [(each.quote, each.usd) if each.quote and each.usd is not None else None for each in holdings]
    total, unlisted = add_up([*coin, *values]), values[MAX_BALANCES:]
    return TotalWorth(
        usd=total.usd,
        doubtful_usd=total.doubtful_usd,
        unpriced_count=total.unpriced_count,
        unlisted_count=len(unlisted),
        unlisted_usd=add_up(unlisted).usd,
        unchecked_count=unchecked,
        suspicious_count=suspicious,
    )


def _split_holdings(
    snapshot: WalletSnapshot, prices: Mapping[str, Price]
) -> tuple[list[ValuedHolding], list[SuspiciousToken]]:
    """Split the holdings: those without suspicion, the most valuable first, and notes on the others."""
    clean: list[ValuedHolding] = []
    suspicious: list[SuspiciousToken] = []
    for each in rank_holdings(
        value_holding(holding, prices.get(holding.token.address)) for holding in snapshot.holdings
    ):
        token = each.holding.token
        if reasons := find_holding_suspicions(
            each.holding, snapshot.chain_id, has_confident_price=_has_confident_price(token, prices)
        ):
            suspicious.append(_build_suspicious_token(token, reasons, snapshot.holdings_source))
        else:
            clean.append(each)
    return clean, suspicious


def _build_balance(each: ValuedHolding, source: WalletSource) -> TokenBalance:
    token = each.holding.token
    return TokenBalance(
        token_address=token.address,
        symbol=clean_line(token.symbol),
        name=clean_line(token.name),
        amount_base_units=str(each.holding.amount),
        decimals=each.decimals,
        amount=to_finite_float(to_whole_units(each.holding.amount, each.decimals)),
        worth=build_worth(each.quote, each.usd) if each.quote and each.usd is not None else None,
        source=source,
    )


def _build_suspicious_token(
    token: Token, suspicions: Iterable[Suspicion], source: WalletSource
) -> SuspiciousToken:
    return SuspiciousToken(
        token_address=token.address,
        symbol=clean_line(token.symbol),
        name=clean_line(token.name),
        reasons=_build_reasons(suspicions, source),
    )


def _build_reasons(suspicions: Iterable[Suspicion], source: WalletSource) -> list[SuspicionReason]:
    return [
        SuspicionReason(id=each.id, explanation=each.explanation, value=each.value, source=source)
        for each in suspicions
    ]


def _list_transfers(snapshot: WalletSnapshot, prices: Mapping[str, Price]) -> list[WalletTransfer]:
    """Return the latest transfers; omit calls without value unless the counterparty is a lookalike."""

    def assess_movement(movement: Transfer) -> CounterpartyEvidence:
        price = prices.get(movement.token.address if movement.token else NATIVE_COIN)
        return assess_counterparty(movement, snapshot.wallet, snapshot.chain_id, price)

    alike = find_lookalikes(snapshot.transfers, snapshot.wallet, assess_movement)
    relevant = [
        each
        for each in snapshot.transfers
        if each.token or each.amount or each.counterparty(snapshot.wallet) in alike
    ]
    swaps = find_swaps(snapshot.transfers, snapshot.wallet, assess_movement)
    return [
        _build_transfer(each, snapshot, alike, prices, classify_transfer(each, snapshot.wallet, swaps))
        for each in relevant[:MAX_RECENT_TRANSFERS]
    ]


def _build_transfer(
    movement: Transfer,
    snapshot: WalletSnapshot,
    alike: Mapping[str, Lookalike],
    prices: Mapping[str, Price],
    kind: TransferKind,
) -> WalletTransfer:
    token, decimals = movement.token, _movement_decimals(movement)
    suspicions = find_transfer_suspicions(
        movement,
        snapshot.wallet,
        snapshot.chain_id,
        alike,
        has_confident_price=_has_confident_price(token, prices),
    )
    return WalletTransfer(
        transaction_hash=movement.transaction,
        block_number=movement.block,
        at=format_timestamp(movement.at) if movement.at else None,
        direction=_transfer_direction(movement, snapshot.wallet),
        kind=kind,
        counterparty=movement.counterparty(snapshot.wallet),
        token_address=token.address if token else None,
        symbol=clean_line(token.symbol) if token else native_symbol(snapshot.chain_id),
        amount_base_units=format_base_units(movement.amount),
        decimals=decimals,
        amount=to_finite_float(to_whole_units(movement.amount, decimals)),
        notes=_build_reasons(suspicions, snapshot.transfers_source),
        source=snapshot.transfers_source,
    )


def _has_confident_price(token: Token | None, prices: Mapping[str, Price]) -> bool:
    price = prices.get(token.address) if token else None
    return price is not None and price.is_confident


def _transfer_direction(movement: Transfer, wallet: str) -> Direction:
    if movement.sender != wallet:
        return "in"
    return "self" if movement.recipient == wallet else "out"


def _movement_decimals(movement: Transfer) -> int | None:
    return movement.token.decimals if movement.token else NATIVE_DECIMALS
