"""Rules that summarise simulated trades, and the format of their records."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from centgate.crypto.token.pools import PoolKey
from centgate.crypto.token.trade_probes import TradeProbes
from centgate.crypto.token.trade_records import (
    APPROVED,
    BOUGHT,
    FUNDED,
    RECORD_BYTES,
    SOLD,
    HolderProbe,
    PurchaseProbe,
    TradeRecord,
    parse_holder_probe,
    parse_purchase_and_sale,
    parse_purchase_probe,
)
from centgate.crypto.token.trade_result import summarise_trades

POOL = PoolKey("v2", "0x" + "1" * 40, "0x" + "2" * 40, "0x" + "3" * 40, "Uniswap v2", 3000)
SALE = TradeRecord(SOLD, 10, 1000, 1000, 1000, 1000, 1000, 9, 90_000, b"")
NO_SALE = replace(SALE, stage=APPROVED, left=0, pair_in=0, quote_out=0)
NO_PURCHASE = replace(NO_SALE, stage=FUNDED, received=0)
TAKEN = (
    bytes.fromhex("08c379a0")
    + b"".join(
        (word.to_bytes(32, "big") for word in (32, 9)),
    )
    + b"blacklist".ljust(32)
)
PURCHASE = PurchaseProbe(10**6, 10**6, 18, 18, SALE, SALE, SALE, SALE, None, None, None, SALE)
UNSOLD = replace(PURCHASE, small=NO_SALE, large=NO_SALE, with_code=None, other_way=NO_SALE)
UNBOUGHT = replace(PURCHASE, small=NO_PURCHASE, large=None, transfer=None, with_code=None)


def build_holder(number: int, record: TradeRecord, *, drained: bool = False) -> HolderProbe:
    return HolderProbe(f"0x{number:040x}", 1000, 1000, 10**6, record, None, None, drained)


def build_probes(purchase: PurchaseProbe | None, *records: TradeRecord) -> TradeProbes:
    """Return probes of one pool, with a holder for each record."""
    return TradeProbes(
        POOL, purchase, None, [build_holder(number, each) for number, each in enumerate(records)]
    )


@pytest.mark.parametrize(
    ("purchase", "records", "expected"),
    [
        (PURCHASE, (), False),
        (PURCHASE, (SALE, SALE), False),
        (PURCHASE, (SALE, NO_SALE, NO_SALE), False),
        # two may be blocked for their own behaviour; three count as a rule
        (PURCHASE, (NO_SALE, NO_SALE), None),
        (PURCHASE, (NO_SALE, NO_SALE, NO_SALE), True),
        # holders fail because of the code that is put at their address
        (replace(PURCHASE, with_code=NO_SALE), (NO_SALE, NO_SALE, NO_SALE), False),
        (UNSOLD, (), None),
        # a single successful seller may be exempt from the token's rule
        (UNSOLD, (SALE,), None),
        (UNSOLD, (SALE, SALE, SALE), False),
        (UNSOLD, (SALE, SALE, SALE, NO_SALE, NO_SALE, NO_SALE, NO_SALE), None),
        # without a reason, a pause between trades is possible
        (UNSOLD, (NO_SALE,), None),
        (UNSOLD, (NO_SALE, NO_SALE, NO_SALE), True),
        (replace(UNSOLD, small=replace(NO_SALE, reason=TAKEN)), (NO_SALE,), True),
        # the gas was used up before a larger sale
        (replace(PURCHASE, large=None), (SALE, SALE, SALE), None),
        # only an approval of the exact amount, or ample gas, lets it sell; or wallets cannot ask for one
        (replace(PURCHASE, as_wallet=NO_SALE), (SALE, SALE, SALE), True),
        (replace(PURCHASE, as_wallet=replace(NO_SALE, stage=BOUGHT)), (), None),
        (replace(PURCHASE, as_wallet=replace(NO_SALE, stage=BOUGHT)), (SALE, SALE, SALE), False),
        (replace(PURCHASE, as_wallet=None), (SALE, SALE, SALE), None),
        # after a large purchase nothing can be sold; with a part that can, there is a largest sale
        (replace(PURCHASE, large=NO_SALE, largest_sale=NO_SALE), (SALE, SALE, SALE), None),
        (replace(PURCHASE, large=NO_SALE, largest_sale=SALE), (SALE, SALE, SALE), False),
        (UNBOUGHT, (), None),
        (UNBOUGHT, (SALE,), None),
        (UNBOUGHT, (SALE, SALE, SALE), False),
        (UNBOUGHT, (NO_SALE, NO_SALE, NO_SALE), None),
        (None, (SALE,), None),
        (None, (SALE, SALE, SALE), False),
        (None, (NO_SALE, NO_SALE, NO_SALE), None),
        (replace(PURCHASE, tokens=0), (), None),
    ],
)
def test_honeypot_requires_both_probes(
    purchase: PurchaseProbe | None, records: tuple[TradeRecord, ...], expected: object
):
    assert summarise_trades(build_probes(purchase, *records)).honeypot is expected


def test_failure_of_one_holder_is_no_reason_for_a_failed_purchase():
    blocked = replace(NO_SALE, reason=TAKEN)

    found = summarise_trades(build_probes(UNBOUGHT, SALE, SALE, SALE, blocked))

    assert (found.honeypot, found.buy_tax, found.explanation) == (False, None, None)
    assert summarise_trades(build_probes(UNBOUGHT, blocked)).explanation is not None


def test_wallets_that_cannot_send_raise_doubt():
    tried = [replace(build_holder(number, SALE), can_send=False) for number in range(3)]
    one_sends = [replace(tried[0], can_send=True), *tried[1:]]

    assert summarise_trades(TradeProbes(POOL, PURCHASE, None, tried)).honeypot is None
    assert summarise_trades(TradeProbes(POOL, PURCHASE, None, one_sends)).honeypot is False


def test_refused_transfer_does_not_prove_that_holders_need_code():
    """A token may take tokens for its pool by routers alone, which sell for wallets without code."""
    tried = [replace(build_holder(number, SALE), can_send=False) for number in range(3)]

    explanation = summarise_trades(TradeProbes(POOL, PURCHASE, None, tried)).explanation or ""

    assert "only with code" not in explanation
    assert "whether a router could sell for them without it was not tried" in explanation


def test_wallet_of_which_nothing_is_known_clears_no_others():
    tried = [replace(build_holder(number, SALE), can_send=False) for number in range(3)]
    one_lost = [replace(tried[0], can_send=None), *tried[1:]]

    assert summarise_trades(TradeProbes(POOL, PURCHASE, None, one_lost)).honeypot is None


def test_wallets_that_cannot_send_raise_doubt_where_new_accounts_cannot_sell():
    tried = [replace(build_holder(number, SALE), can_send=False) for number in range(3)]
    one_sends = [replace(tried[0], can_send=True), *tried[1:]]

    # the trade by a contract, which would show that the token knows simulations, was lost
    assert summarise_trades(TradeProbes(POOL, UNSOLD, (SALE, SALE), tried)).honeypot is None
    assert summarise_trades(TradeProbes(POOL, UNSOLD, (SALE, SALE), one_sends)).honeypot is False


def test_sender_that_cannot_sell_raises_doubt_without_holders():
    origin = (SALE, NO_SALE)

    assert summarise_trades(TradeProbes(POOL, PURCHASE, origin)).honeypot is None
    assert summarise_trades(TradeProbes(POOL, PURCHASE, origin, [build_holder(1, SALE)])).honeypot is False


def test_sale_that_only_a_wallet_cannot_make_raises_doubt():
    verdicts = [
        summarise_trades(TradeProbes(POOL, PURCHASE, (SALE, SALE), wallet=(SALE, sale))).honeypot
        for sale in (SALE, NO_SALE, None)
    ]

    assert verdicts == [False, None, False]


def test_wallet_that_loses_more_than_it_sells_raises_doubt_unless_holders_do():
    taken = replace(SALE, amount=500)
    holder = replace(build_holder(1, SALE), drained=True)

    verdicts = [
        summarise_trades(TradeProbes(POOL, PURCHASE, (SALE, SALE), holders, wallet=(SALE, taken)))
        for holders in ([], [holder])
    ]

    assert [(each.honeypot, each.sell_tax) for each in verdicts] == [(None, None), (False, 0)]


def test_token_cannot_blame_the_simulator_for_its_own_revert():
    own = replace(NO_SALE, reason=bytes.fromhex("5503950a"), gas_used=100_000)
    without_capital = replace(own, stage=0)

    assert (own.failure.explanation, own.failure.text) == (None, "error 0x5503950a")
    assert without_capital.failure.code == "no_capital"


def test_tax_of_a_wallet_counts():
    taxed = replace(SALE, pair_in=SALE.left * 3 // 5)

    found = summarise_trades(TradeProbes(POOL, PURCHASE, (SALE, SALE), wallet=(SALE, taxed)))

    assert (found.honeypot, found.sell_tax) == (False, 40)


def test_code_check_raises_doubt_unless_wallet_can_send():
    rejects_code, origin = replace(PURCHASE, with_code=NO_SALE), (SALE, NO_SALE)
    mute = build_holder(1, NO_SALE)
    fails, sends = replace(mute, can_send=False), replace(mute, can_send=True)

    verdicts = [
        summarise_trades(TradeProbes(POOL, rejects_code, origin, holders)).honeypot
        for holders in ([], [mute], [fails], [fails, sends])
    ]

    lost = [
        summarise_trades(TradeProbes(POOL, rejects_code, None, holders, is_origin_lost=True)).honeypot
        for holders in ([], [mute], [fails, sends])
    ]

    assert verdicts == [None, None, None, False]
    assert lost == [None, None, False]
    assert summarise_trades(TradeProbes(POOL, rejects_code, (SALE, SALE))).honeypot is False


def test_holders_whose_wallets_may_send_prove_no_trap_without_new_accounts():
    fails = [replace(build_holder(number, NO_SALE), can_send=False) for number in range(3)]
    unknown, sends = replace(fails[0], can_send=None), replace(fails[0], can_send=True)

    verdicts = [
        summarise_trades(TradeProbes(POOL, None, (SALE, NO_SALE), holders)).honeypot
        for holders in (fails, [unknown, *fails[1:]], [sends, *fails[1:]])
    ]

    # the holders have code, which honest tokens refuse too
    assert verdicts == [True, None, None]


def test_dust_is_not_tried():
    dust = replace(build_holder(1, NO_SALE), balance=1, depth=10**9)

    assert not dust.is_tested
    assert replace(dust, balance=10_000).is_tested
    assert replace(dust, drained=True).is_tested


def test_price_that_falls_in_a_sale_is_a_tax():
    collapsed = replace(SALE, quote_in=10**6, pair_out=10**6, quote_out=10**5, pair_in=10**6, left=10**6)
    fees = replace(collapsed, quote_out=990_000)
    taxed = replace(collapsed, pair_in=500_000, quote_out=50_000)

    assert collapsed.sell_tax == pytest.approx(90, abs=0.001)
    assert (fees.sell_tax, fees.has_sold) == (0, True)
    # half of the tokens, of which the pool pays a tenth
    assert taxed.sell_tax == pytest.approx(95, abs=0.001)
    assert not replace(collapsed, quote_out=1).has_sold


def test_price_of_large_sale_allows_for_its_impact():
    sale = replace(SALE, quote_in=0, pair_out=0, amount=10**6, left=10**6, pair_in=10**6, quote_out=5 * 10**5)
    purchase = replace(SALE, quote_in=1000, pair_out=1000)
    holder = replace(build_holder(1, sale), full=sale, depth=10**6)

    # half of the price is what selling as much as the pool holds costs in a pair
    assert holder.priced_by(purchase, is_pair=True).full == replace(sale, quote_in=500, pair_out=1000)
    assert holder.priced_by(purchase, is_pair=False).full == sale


def test_total_tax_is_failed_sale():
    taken = replace(SALE, pair_in=5)

    found = summarise_trades(build_probes(replace(PURCHASE, small=taken, large=taken), taken))

    assert (found.honeypot, found.sell_tax) == (True, 99.5)


def test_highest_tax_of_all_sizes_is_used():
    found = summarise_trades(build_probes(replace(PURCHASE, large=replace(SALE, received=900, pair_in=700))))

    assert (found.buy_tax, found.sell_tax, found.transfer_tax) == (10, 30, 0)


@pytest.mark.parametrize(
    ("transfer", "tax", "is_blocked"),
    [
        (SALE, 0, False),
        (replace(SALE, pair_in=0), 100, False),
        (NO_SALE, None, True),
        # reports success, and moves nothing
        (replace(SALE, left=0, pair_in=0), None, True),
        (None, None, None),
    ],
)
def test_transfer_to_another_account_has_its_result(
    transfer: TradeRecord | None, tax: float | None, *, is_blocked: bool | None
):
    found = summarise_trades(build_probes(replace(PURCHASE, transfer=transfer)))

    assert (found.transfer_tax, found.transfer_blocked) == (tax, is_blocked)


def test_pause_before_transfer_is_no_block_of_transfers():
    text = b"_transfer:: Transfer Delay enabled.  Only one purchase per block allowed."
    words = b"".join(number.to_bytes(32, "big") for number in (32, len(text)))
    transfer = replace(NO_SALE, stage=BOUGHT, reason=bytes.fromhex("08c379a0") + words + text)

    assert summarise_trades(build_probes(replace(PURCHASE, transfer=transfer))).transfer_blocked is None


def test_account_that_cannot_sell_shows_no_block_of_transfers():
    found = summarise_trades(build_probes(replace(UNSOLD, transfer=NO_SALE)))

    assert found.transfer_blocked is None


def build_limited_holder(number: int, *, balance: int, largest: int) -> HolderProbe:
    """Return a holder that can sell a part, at most `largest`."""
    return HolderProbe(f"0x{number:040x}", balance, largest, 10**6, SALE, NO_SALE, None)


def test_part_that_must_be_kept_is_no_limit_and_no_pause():
    holders = [
        build_limited_holder(number, balance=balance, largest=balance * 99 // 100)
        for number, balance in enumerate((1000, 5000, 70_000))
    ]

    found = summarise_trades(TradeProbes(POOL, UNSOLD, None, holders))

    assert (found.honeypot, found.cannot_sell_all) == (False, True)
    assert (found.cooldown, found.max_sell) == (None, None)


def test_equal_limit_of_holders_is_a_largest_sale():
    holders = [
        build_limited_holder(number, balance=balance, largest=950)
        for number, balance in enumerate((1000, 5000, 70_000))
    ]

    found = summarise_trades(TradeProbes(POOL, UNSOLD, None, holders))

    assert (found.cannot_sell_all, found.cooldown) == (None, True)
    assert found.max_sell is not None


def test_sale_of_new_account_shows_that_all_can_be_sold():
    assert summarise_trades(build_probes(PURCHASE, SALE)).cannot_sell_all is False


@pytest.mark.parametrize(("pair_in", "words"), [(250, "a part of what was bought"), (200, "taxes transfers")])
def test_sale_of_a_part_in_pool_without_taxes_has_its_reason(pair_in: int, words: str):
    part = replace(SALE, amount=250, left=250, pair_in=pair_in, quote_out=2)
    pool = PoolKey("v3", "0x" + "1" * 40, "0x" + "2" * 40, "0x" + "3" * 40, "Uniswap v3", 3000)

    found = summarise_trades(TradeProbes(pool, replace(UNSOLD, other_way=part)))

    assert found.honeypot is None
    assert words in (found.explanation or "")


def test_holders_are_counted():
    taxed, siphoned = replace(SALE, pair_in=600), replace(SALE, left=2000, pair_in=2000, quote_out=18)
    tried = [
        build_holder(1, SALE),
        build_holder(2, taxed),
        build_holder(3, siphoned),
        build_holder(4, NO_SALE),
    ]
    tried.append(HolderProbe("0x" + "9" * 40, 0, 0, 10**6, None, None, None, drained=True))

    sales = summarise_trades(TradeProbes(POOL, PURCHASE, None, tried)).holder_sales

    assert sales is not None
    assert (sales.tested, sales.failed, sales.siphoned) == (5, 2, 2)
    assert (sales.average_tax, sales.highest_tax, sales.high_tax_count) == (13.3333, 40, 1)


def test_pause_between_trades_requires_more_holders():
    reason = (
        bytes.fromhex("08c379a0") + (32).to_bytes(32, "big") + (8).to_bytes(32, "big") + b"cooldown".ljust(32)
    )
    paused = replace(NO_SALE, reason=reason)
    unsold = replace(UNSOLD, small=paused)

    assert summarise_trades(build_probes(unsold, NO_SALE)).honeypot is None
    assert summarise_trades(build_probes(unsold, NO_SALE, NO_SALE, NO_SALE)).honeypot is True
    assert summarise_trades(build_probes(unsold, SALE)).cooldown is True


def test_router_restriction_is_no_honeypot():
    unsold = replace(UNSOLD, other_way=SALE)
    selling = replace(build_holder(1, NO_SALE), other_way=SALE)
    trapped = replace(build_holder(1, NO_SALE), other_way=NO_SALE)

    assert summarise_trades(TradeProbes(POOL, unsold, None, [selling])).honeypot is None
    # the approval itself fails
    assert summarise_trades(TradeProbes(POOL, unsold, None, [trapped])).honeypot is True


def test_rounding_loss_is_no_tax():
    assert replace(SALE, received=998, pair_in=999).buy_tax == 0
    assert replace(SALE, received=997).buy_tax == 0.3


@given(st.integers(0, 2**32))
def test_any_records_are_summarised(seed: int):
    random = Random(seed)
    words = [random.choice((0, 1, SOLD, 18, 1000, 2**256 - 1)) for _ in range(6 + 8 * RECORD_BYTES // 32)]
    data = b"".join(word.to_bytes(32, "big") for word in words)

    found = summarise_trades(TradeProbes(POOL, parse_purchase_probe(data), None, ()))

    assert found.buy_tax is None or 0 <= found.buy_tax <= 100
    assert found.sell_tax is None or 0 <= found.sell_tax <= 100


@pytest.mark.parametrize("size", [0, 31, 512, 4000])
def test_record_of_other_length_is_refused(size: int):
    with pytest.raises(ValueError, match="records"):
        parse_purchase_probe(bytes(size))
    with pytest.raises(ValueError, match="records"):
        parse_purchase_and_sale(bytes(size))
    with pytest.raises(ValueError, match="records"):
        parse_holder_probe("", bytes(size))
