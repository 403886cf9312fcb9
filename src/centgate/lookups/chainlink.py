"""Chainlink's price of a chain's native coin, which is not used if it is stale or the sequencer was down."""

from __future__ import annotations

import time
from collections.abc import Sequence

from centgate.chains import well_known_chain
from centgate.crypto.contract.bytecode import function_selector
from centgate.crypto.token.exchange_tables import MAX_FEED_AGE, MIN_FEED_AGE, PRICE_FEEDS, SEQUENCER_GRACE
from centgate.lookups.erc20 import WORD, decode_word
from centgate.provider import RequestTrace
from centgate.providers.jsonrpc.contract_calls import ContractCall


def native_price_calls(chain_id: int) -> list[ContractCall]:
    """Return the calls for the price of a chain's native coin."""
    feeds = PRICE_FEEDS[well_known_chain(chain_id)]
    latest = function_selector("latestRoundData()")
    calls = [ContractCall(feeds.native_usd, latest)]
    return [*calls, ContractCall(feeds.sequencer, latest)] if feeds.sequencer else calls


def parse_native_price(trace: RequestTrace, chain_id: int, answers: Sequence[bytes | None]) -> float | None:
    """Parse US dollars for the native coin; None, with a warning, if they cannot be relied on."""
    feed, *sequencer = answers
    native_usd = _parse_feed(feed, PRICE_FEEDS[well_known_chain(chain_id)].heartbeat)
    if native_usd is None:
        trace.add_warning("Chainlink's price of the native coin is missing or too old")
    elif sequencer and not (is_up := _is_sequencer_up(sequencer[0])):
        native_usd = None
        reason = (
            "whether the chain's sequencer is up is not known"
            if is_up is None
            else "the chain's sequencer is down or has just restarted"
        )
        trace.add_warning(f"{reason}, so Chainlink's prices are not used")
    return native_usd


def _parse_feed(answer: bytes | None, heartbeat: int) -> float | None:
    """Parse `latestRoundData` of a feed with 8 decimals; None if missing, not above 0, stale or future."""
    if answer is None or len(answer) < 5 * WORD:
        return None
    price, updated_at = int.from_bytes(answer[32:64], "big", signed=True), decode_word(answer, 3)
    max_age = max(MAX_FEED_AGE * heartbeat, MIN_FEED_AGE)
    is_current = -MIN_FEED_AGE <= time.time() - updated_at <= max_age
    return price / 10**8 if price > 0 and is_current else None


def _is_sequencer_up(answer: bytes | None) -> bool | None:
    """True if the sequencer is up, and has been for longer than the grace period; None if it is not known."""
    # a feed that was never started answers 0 for everything
    if answer is None or len(answer) < 5 * WORD or not (started_at := decode_word(answer, 2)):
        return None
    return decode_word(answer, 1) == 0 and time.time() - started_at > SEQUENCER_GRACE
