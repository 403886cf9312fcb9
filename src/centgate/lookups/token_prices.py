"""Fetch prices of tokens, and warn of those that are missing, old or without a time.

Without DefiLlama, the few prices are used that the chain tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from centgate.chains import CHAIN_BY_ID, ZERO_ADDRESS
from centgate.crypto.token.exchange_tables import QUOTE_TOKENS
from centgate.crypto.token.trade_funding import trade_funding
from centgate.crypto.wallet.wallets import Price
from centgate.fallback import attempt
from centgate.lookups.chainlink import parse_native_price
from centgate.providers.defillama import DefiLlama
from centgate.timestamps import format_timestamp

NATIVE_COIN = ZERO_ADDRESS
"""Address that stands for the native coin in price queries."""
MAX_PRICED_TOKENS = 100
"""Tokens whose price is queried, in one call."""
MAX_PRICE_AGE = timedelta(hours=1)
"""Age from which a price is named in a warning."""
MAX_NAMED_TOKENS = 5
"""Tokens named in a warning."""


async def fetch_token_prices(
    defillama: DefiLlama, chain_id: int, tokens: Sequence[str]
) -> Mapping[str, Price] | None:
    """Return the prices of the first `MAX_PRICED_TOKENS` tokens by address, as far as they are known.

    None if there is no source, which a warning says, or if it fails, which its status in the answer says.
    """
    if chain_id not in CHAIN_BY_ID:
        defillama.trace.add_warning("there are no prices on a development chain")
        return None
    if not defillama.is_configured:
        defillama.trace.add_warning(
            f"{defillama.info.label} is not configured on this deployment, so its prices are missing"
        )
        return None
    prices = await attempt(defillama.token_prices, chain_id, tokens[:MAX_PRICED_TOKENS])
    if not isinstance(prices, dict):
        return None
    if len(tokens) > MAX_PRICED_TOKENS:
        defillama.trace.add_warning(
            f"the prices of {len(tokens) - MAX_PRICED_TOKENS} tokens were not queried"
        )
    _warn_of_old_prices(prices, defillama)
    return prices


def list_chain_prices(
    defillama: DefiLlama, chain_id: int, feed_answers: Sequence[bytes | None]
) -> dict[str, Price]:
    """Return the prices by address that are known without DefiLlama, which a warning names.

    They are Chainlink's of the native coin and its wrapped form, from the answers to `native_price_calls`,
    and one dollar for the chain's dollar stablecoins, as in the prices of pools. Empty on a development
    chain.
    """
    if chain_id not in CHAIN_BY_ID:
        return {}
    prices = {
        quote.address: Price(1.0, None, quote.symbol, quote.decimals, at=None, source="peg")
        for quote in QUOTE_TOKENS[chain_id]
        if not quote.is_native
    }
    coin = parse_native_price(defillama.trace, chain_id, feed_answers)
    if coin:
        prices |= {NATIVE_COIN: coin, trade_funding(chain_id).wrapped: coin}
    coin_source = "the native coin and its wrapped form have Chainlink's price, " if coin else ""
    defillama.trace.add_warning(
        f"without {defillama.info.label}, {coin_source}known dollar stablecoins that no explorer prices "
        "count as one dollar, whatever they are worth, and no other token is priced in this way"
    )
    return prices


def _warn_of_old_prices(prices: Mapping[str, Price], defillama: DefiLlama) -> None:
    """Warn of the prices that are older than MAX_PRICE_AGE, and of those without a time."""
    latest_old = datetime.now(UTC) - MAX_PRICE_AGE
    old = {token: price for token, price in prices.items() if price.at and price.at < latest_old}
    undated = [token for token, price in prices.items() if price.at is None]
    label = defillama.info.label
    if old:
        oldest = min(price.at for price in old.values() if price.at)
        defillama.trace.add_warning(
            f"prices of {label} older than an hour, the oldest of {format_timestamp(oldest)}: "
            f"{_name_tokens(old)}"
        )
    if undated:
        defillama.trace.add_warning(f"prices of {label} without a time: {_name_tokens(undated)}")


def _name_tokens(tokens: Iterable[str]) -> str:
    """Return the first tokens by address, for a warning."""
    names = ["the native coin" if token == NATIVE_COIN else token for token in tokens]
    rest = f" and {len(names) - MAX_NAMED_TOKENS} more" if len(names) > MAX_NAMED_TOKENS else ""
    return ", ".join(names[:MAX_NAMED_TOKENS]) + rest
