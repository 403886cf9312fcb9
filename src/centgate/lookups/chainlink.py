"""Chainlink's price of a chain's native coin, which is not used if it is stale or the sequencer was down."""

from __future__ import annotations

import time
from collections.abc import Sequence

from centgate.chains import from_chain_seconds, well_known_chain
from centgate.crypto.abi import WORD, decode_word, function_selector
from centgate.crypto.token.exchange_tables import MAX_FEED_AGE, MIN_FEED_AGE, PRICE_FEEDS, SEQUENCER_GRACE
from centgate.crypto.wallet.wallets import Price
from centgate.provider import RequestTrace
from centgate.providers.jsonrpc.contract_calls import ContractCall
from centgate.timestamps import format_timestamp

OLD_PRICE_AGE = 3600 + 300
"""Seconds from which the age of a price that is used is named in a warning.

Feeds with a heartbeat of an hour are updated some blocks after it: that price is not old yet.
"""


def native_price_calls(chain_id: int) -> list[ContractCall]:
    """Return the calls for the price of a chain's native coin."""
    feeds = PRICE_FEEDS[well_known_chain(chain_id)]
    latest = function_selector("latestRoundData()")
    calls = [ContractCall(feeds.native_usd, latest)]
    return [*calls, ContractCall(feeds.sequencer, latest)] if feeds.sequencer else calls


def parse_native_price(trace: RequestTrace, chain_id: int, answers: Sequence[bytes | None]) -> Price | None:
    """Parse the price of the native coin; None, with a warning, if it cannot be relied on.

    `answers` are those to `native_price_calls`; none if they were not read.
    """
    feed, *sequencer = answers or [None]
    price = _parse_feed(feed, chain_id)
    if price is None:
        trace.add_warning("Chainlink's price of the native coin is missing or too old")
    elif sequencer and not (is_up := _is_sequencer_up(sequencer[0])):
        price = None
        reason = (
            "whether the chain's sequencer is up is not known"
            if is_up is None
            else "the chain's sequencer is down or has just restarted"
        )
        trace.add_warning(f"{reason}, so Chainlink's prices are not used")
    elif price.at and time.time() - price.at.timestamp() > OLD_PRICE_AGE:
        written = format_timestamp(price.at)
        trace.add_warning(f"Chainlink's price of the native coin is older than an hour: of {written}")
    return price


def _parse_feed(answer: bytes | None, chain_id: int) -> Price | None:
    """Parse `latestRoundData` of a feed with 8 decimals; None if missing, not above 0, stale or future."""
    if answer is None or len(answer) < 5 * WORD:
        return None
    units, updated_at = int.from_bytes(answer[32:64], "big", signed=True), decode_word(answer, 3)
    max_age = max(MAX_FEED_AGE * PRICE_FEEDS[well_known_chain(chain_id)].heartbeat, MIN_FEED_AGE)
    if units <= 0 or not -MIN_FEED_AGE <= time.time() - updated_at <= max_age:
        return None
    at = from_chain_seconds(updated_at, chain_id)
    return Price(units / 10**8, None, symbol=None, decimals=18, at=at, source="chainlink")


def _is_sequencer_up(answer: bytes | None) -> bool | None:
    """True if the sequencer is up, and has been for longer than the grace period; None if it is not known."""
    # a feed that was never started answers 0 for everything
    if answer is None or len(answer) < 5 * WORD or not (started_at := decode_word(answer, 2)):
        return None
    return decode_word(answer, 1) == 0 and time.time() - started_at > SEQUENCER_GRACE
