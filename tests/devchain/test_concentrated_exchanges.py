"""Simulated Uniswap v3 and v4: swaps by the published formulas, computed here independently."""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any

import pytest
from exchange_market import DYNAMIC_FEE, NATIVE_COIN, TEST_CONTRACTS, ExchangeMarket, V4Pool, install_market

from centgate.devchain.chain import EvmChain, create_contract_at
from centgate.devchain.deployer import ContractFailed
from centgate.devchain.exchanges import OPERATOR
from centgate.devchain.token import CHAIN_ID
from centgate.devchain.well_known import BASE, ETHEREUM, POLYGON
from centgate.signing.evm import keccak
from centgate.solidity import load_contract

pytestmark = pytest.mark.extended

ETHER = 10**18
ONE = 2**96
WETH = ETHEREUM.wrapped_native
QUOTED = "uint256,uint160,uint32,uint256"
SLOT0 = "uint160,int24,uint16,uint16,uint16,uint8,bool"
QUOTE_V3 = "quoteExactInputSingle((address,address,uint256,uint24,uint160))"
QUOTE_V4 = "quoteExactInputSingle(((address,address,uint24,int24,address),bool,uint128,bytes))"
SWAP_V4 = "swap((address,address,uint24,int24,address),bool,uint128)"
FIRST_FOR_SECOND = True
REFUSE = True
# an address whose bits request beforeSwap only
HOOK = "0x00000000000000000000000000000000f0000080"


@pytest.fixture(scope="module")
def exchanges() -> ExchangeMarket:
    made = install_market(EvmChain(CHAIN_ID, {}))
    made.wrap(10_000 * ETHER)
    return made


@pytest.fixture(scope="module")
def token(exchanges: ExchangeMarket) -> str:
    return exchanges.create_token("Plain", "PLAIN", supply=10**9 * ETHER)


@dataclass
class Formula:
    """Swap of an exact input within one range of liquidity, by Uniswap's whitepaper with its roundings."""

    ratio: int
    liquidity: int
    fee: int

    def swap(self, amount: int, *, sells_first: bool) -> int:
        net = amount * (10**6 - self.fee) // 10**6
        before, scaled = self.ratio, self.liquidity * ONE
        if sells_first:
            self.ratio = -(-scaled * before // (scaled + net * before))
            return self.liquidity * (before - self.ratio) // ONE
        self.ratio = before + net * ONE // self.liquidity
        return scaled * (self.ratio - before) // self.ratio // before


def calculate_tick(ratio: int) -> int:
    with localcontext(prec=60):
        exact = (Decimal(ratio) / ONE) ** 2
        return int((exact.ln() / Decimal("1.0001").ln()).to_integral_value("ROUND_FLOOR"))


def read_pool(exchanges: ExchangeMarket, pool: str) -> tuple[int, int, int]:
    ratio, tick, *_ = exchanges.operator.read(pool, "slot0()", returns=SLOT0)
    return ratio, tick, exchanges.operator.read(pool, "liquidity()")


def balance(exchanges: ExchangeMarket, token: str, holder: str = OPERATOR.address) -> int:
    return exchanges.operator.read(token, "balanceOf(address)", holder)


def deploy_test_contract(exchanges: ExchangeMarket, name: str) -> str:
    return exchanges.operator.deploy(load_contract(TEST_CONTRACTS, "Thief", name))


@pytest.mark.parametrize(
    "amount0",
    [
        1,
        10**27,
        *(pytest.param(amount, marks=pytest.mark.extended) for amount in (3 * 10**6, 7 * 10**17)),
    ],
)
def test_v3_tick_matches_price(exchanges: ExchangeMarket, amount0: int):
    first = exchanges.create_token("First", "FIRST", supply=10**30)
    second = exchanges.create_token("Second", "SECOND", supply=10**30)
    pool = exchanges.add_v3_pool({first: amount0 * 1000, second: 10**15}, fee=500)

    ratio, tick, _ = read_pool(exchanges, pool)

    assert tick == calculate_tick(ratio)
    price = Decimal(ratio) ** 2 / 2**192
    expected = Decimal(10**15) / (amount0 * 1000)
    assert min(abs(price / expected - 1), abs(price * expected - 1)) < Decimal("1e-9")


@pytest.mark.parametrize(
    ("direction", "fee"),
    [
        ("first for second", 100),
        ("second for first", 10_000),
        pytest.param("first for second", 10_000, marks=pytest.mark.extended),
        pytest.param("second for first", 100, marks=pytest.mark.extended),
    ],
)
def test_v3_swap_matches_quote_and_formula(exchanges: ExchangeMarket, token: str, fee: int, direction: str):
    other = exchanges.create_token("Other", "OTHER", supply=10**30)
    pool = exchanges.add_v3_pool({other: 10**6 * ETHER, WETH: 50 * ETHER}, fee=fee)
    ratio, _, liquidity = read_pool(exchanges, pool)
    first, second = sorted((other, WETH.lower()))
    sold, bought = (first, second) if direction == "first for second" else (second, first)
    amount = ETHER if sold == WETH.lower() else 20_000 * ETHER
    formula = Formula(ratio, liquidity, fee)
    expected = formula.swap(amount, sells_first=sold == first)

    quote = exchanges.operator.read(
        ETHEREUM.v3_quoter, QUOTE_V3, (sold, bought, amount, fee, 0), returns=QUOTED
    )
    before = balance(exchanges, sold), balance(exchanges, bought)
    exchanges.operator.send(sold, "approve(address,uint256)", exchanges.v3_router, amount)
    exchanges.operator.send(exchanges.v3_router, "swap(address,bool,uint256)", pool, sold == first, amount)

    assert quote[:2] == (expected, formula.ratio)
    assert balance(exchanges, bought) - before[1] == expected
    assert before[0] - balance(exchanges, sold) == amount
    assert read_pool(exchanges, pool)[0] == formula.ratio


def test_v3_swap_ends_with_liquidity(exchanges: ExchangeMarket, token: str):
    first, second = sorted((exchanges.create_token("A", "A", supply=10**30), token), key=str.lower)
    pool = exchanges.add_v3_pool({first: 10**21, second: 10**21}, ticks=(-600, 600))
    amount = 10**24

    out, ratio, *_ = exchanges.operator.read(
        ETHEREUM.v3_quoter,
        QUOTE_V3,
        (first, second, amount, 3000, 0),
        returns=QUOTED,
    )
    exchanges.operator.send(first, "approve(address,uint256)", exchanges.v3_router, amount)
    before = balance(exchanges, first)
    exchanges.operator.send(exchanges.v3_router, "swap(address,bool,uint256)", pool, FIRST_FOR_SECOND, amount)

    assert 0 <= 10**21 - out < 10**21 // 10**9
    # a price of 1 at the start, of 1.0001 ** -600 at the end: their mean, and the fee
    spent = before - balance(exchanges, first)
    assert spent / 10**21 == pytest.approx(1.0001**300 / 0.997, rel=1e-9)
    assert (ratio, read_pool(exchanges, pool)[2]) == (4295128740, 0)


def test_v3_swap_starts_at_liquidity(exchanges: ExchangeMarket, token: str):
    first, second = sorted((exchanges.create_token("B", "B", supply=10**30), token), key=str.lower)
    pool = exchanges.add_v3_pool({first: 10**21, second: 10**21}, ticks=(-600, 600))
    for sold in (first, second):
        exchanges.operator.send(sold, "approve(address,uint256)", exchanges.v3_router, 10**24)
    swap = ("swap(address,bool,uint256)", pool)
    exchanges.operator.send(exchanges.v3_router, *swap, FIRST_FOR_SECOND, 10**24)
    before = balance(exchanges, first), balance(exchanges, second)

    exchanges.operator.send(exchanges.v3_router, *swap, not FIRST_FOR_SECOND, 10**18)

    # all at the price of the range's end, nearly
    assert (balance(exchanges, first) - before[0]) / 10**18 == pytest.approx(0.997 * 1.0001**600, rel=1e-4)
    assert before[1] - balance(exchanges, second) == 10**18
    assert read_pool(exchanges, pool)[2] > 0


def test_unpaid_v3_swap_fails(exchanges: ExchangeMarket):
    pair = [exchanges.create_token(name, name, supply=10**24) for name in ("X", "Y")]
    pool = exchanges.add_v3_pool(dict.fromkeys(pair, 10**21))
    thief = deploy_test_contract(exchanges, "Thief")

    with pytest.raises(ContractFailed, match="IIA"):
        exchanges.operator.send(thief, "swap(address)", pool)


def test_pancakeswap_has_own_tiers_and_callback(exchanges: ExchangeMarket):
    pair = sorted((exchanges.create_token(name, name, supply=10**24) for name in ("P", "Q")), key=str.lower)
    factory = ETHEREUM.pancake_v3_factory
    pool = exchanges.add_v3_pool(dict.fromkeys(pair, 10**21), fee=2500, factory=factory)
    ratio, _, liquidity = read_pool(exchanges, pool)
    thief = deploy_test_contract(exchanges, "Thief")

    out, *_ = exchanges.operator.read(
        ETHEREUM.pancake_v3_quoter,
        QUOTE_V3,
        (*pair, 10**18, 2500, 0),
        returns=QUOTED,
    )

    assert out == Formula(ratio, liquidity, 2500).swap(10**18, sells_first=True)
    with pytest.raises(ContractFailed):  # it responds to Uniswap's callback only
        exchanges.operator.send(thief, "swap(address)", pool)
    with pytest.raises(ContractFailed, match="bad fee"):
        exchanges.add_v3_pool(dict.fromkeys(pair, 10**6), fee=3000, factory=factory)


def test_slipstream_asks_factory_for_fee():
    base = install_market(EvmChain(8453, {}), BASE)
    pair = sorted((base.create_token(name, name, supply=10**24) for name in ("P", "Q")), key=str.lower)
    pool = base.add_slipstream_pool(dict.fromkeys(pair, 10**21), tick_spacing=100)
    base.operator.send(BASE.slipstream_factory, "setCustomFee(address,uint24)", pool, 700)
    ratio, *_ = base.operator.read(pool, "slot0()", returns="uint160,int24,uint16,uint16,uint16,bool")
    liquidity = base.operator.read(pool, "liquidity()")
    expected = Formula(ratio, liquidity, 700).swap(10**18, sells_first=True)

    quote = "quoteExactInputSingle((address,address,uint256,int24,uint160))"
    out, *_ = base.operator.read(BASE.slipstream_quoter, quote, (*pair, 10**18, 100, 0), returns=QUOTED)
    base.operator.send(pair[0], "approve(address,uint256)", base.v3_router, 10**18)
    before = balance(base, pair[1])
    base.operator.send(base.v3_router, "swap(address,bool,uint256)", pool, FIRST_FOR_SECOND, 10**18)

    assert out == balance(base, pair[1]) - before == expected
    assert base.operator.read(pool, "fee()") == 700


def test_algebra_pool_tells_its_fee():
    polygon = install_market(EvmChain(137, {}), POLYGON)
    pair = sorted((polygon.create_token(name, name, supply=10**24) for name in ("P", "Q")), key=str.lower)
    pool = polygon.add_algebra_pool(dict.fromkeys(pair, 10**21), fee=1234)
    state = "uint160,int24,uint16,uint16,uint8,uint8,bool"
    ratio, tick, fee, *_ = polygon.operator.read(pool, "globalState()", returns=state)
    liquidity = polygon.operator.read(pool, "liquidity()")
    expected = Formula(ratio, liquidity, 1234).swap(10**18, sells_first=True)

    quote = "quoteExactInputSingle(address,address,uint256,uint160)"
    quoted = polygon.operator.read(POLYGON.algebra_quoter, quote, *pair, 10**18, 0, returns="uint256,uint16")
    polygon.operator.send(pair[0], "approve(address,uint256)", polygon.v3_router, 10**18)
    before = balance(polygon, pair[1])
    polygon.operator.send(polygon.v3_router, "swap(address,bool,uint256)", pool, FIRST_FOR_SECOND, 10**18)

    assert quoted == (expected, 1234)
    assert balance(polygon, pair[1]) - before == expected
    assert (tick, fee) == (calculate_tick(ratio), 1234)


@pytest.fixture(scope="module")
def v4_pool(exchanges: ExchangeMarket, token: str) -> V4Pool:
    return exchanges.add_v4_pool({NATIVE_COIN: 100 * ETHER, token: 10**6 * ETHER})


def read_v4(exchanges: ExchangeMarket, pool: V4Pool) -> tuple[Any, int]:
    pool_id, view = bytes.fromhex(pool.id[2:]), ETHEREUM.v4_state_view
    slot0 = exchanges.operator.read(view, "getSlot0(bytes32)", pool_id, returns="uint160,int24,uint24,uint24")
    return slot0, exchanges.operator.read(view, "getLiquidity(bytes32)", pool_id, returns="uint128")


def quote_v4(exchanges: ExchangeMarket, pool: V4Pool, amount: int) -> int:
    params = (pool.key, FIRST_FOR_SECOND, amount, b"")
    return exchanges.operator.read(ETHEREUM.v4_quoter, QUOTE_V4, params, returns="uint256,uint256")[0]


def test_v4_swap_matches_quote_and_formula(exchanges: ExchangeMarket, token: str, v4_pool: V4Pool):
    (ratio, tick, protocol_fee, fee), liquidity = read_v4(exchanges, v4_pool)
    formula = Formula(ratio, liquidity, fee)
    expected = formula.swap(2 * ETHER, sells_first=True)

    quoted = quote_v4(exchanges, v4_pool, 2 * ETHER)
    before = balance(exchanges, token)
    exchanges.operator.send(
        exchanges.v4_router, SWAP_V4, v4_pool.key, FIRST_FOR_SECOND, 2 * ETHER, value=2 * ETHER
    )

    assert (tick, protocol_fee, fee) == (calculate_tick(ratio), 0, 3000)
    assert balance(exchanges, token) - before == quoted == expected
    assert read_v4(exchanges, v4_pool)[0][0] == formula.ratio


def test_v4_sale_pays_native_coin(exchanges: ExchangeMarket, token: str, v4_pool: V4Pool):
    (ratio, *_), liquidity = read_v4(exchanges, v4_pool)
    expected = Formula(ratio, liquidity, 3000).swap(10_000 * ETHER, sells_first=False)
    manager = bytes.fromhex(ETHEREUM.v4_manager[2:])
    chain: Any = exchanges.operator.chain
    before = chain.state_at().get_balance(manager)

    exchanges.operator.send(exchanges.v4_router, SWAP_V4, v4_pool.key, not FIRST_FOR_SECOND, 10_000 * ETHER)

    assert before - chain.state_at().get_balance(manager) == expected


def test_v4_state_is_in_published_slots(exchanges: ExchangeMarket, v4_pool: V4Pool):
    (ratio, tick, _, fee), liquidity = read_v4(exchanges, v4_pool)
    slot = int.from_bytes(keccak(bytes.fromhex(v4_pool.id[2:]) + (6).to_bytes(32, "big")), "big")

    def load(offset: int) -> int:
        place = (slot + offset).to_bytes(32, "big")
        return exchanges.operator.read(ETHEREUM.v4_manager, "extsload(bytes32)", place)

    assert load(0) == ratio | (tick % 2**24) << 160 | fee << 208
    assert load(3) == liquidity


def test_v4_initialization_is_logged(exchanges: ExchangeMarket):
    one = exchanges.create_token("One", "ONE", supply=10**24)
    pool = exchanges.add_v4_pool({NATIVE_COIN: ETHER, one: ETHER}, fee=100, tick_spacing=1)
    topic = 0xDD466E674EA557F56295E2D0218A125EA4B4F0F6F3307B95F85E6110838D6438

    mined = exchanges.operator.chain.mined_transactions.values()

    (log,) = [log for one in mined for log in one.receipt.logs if log.topics[:2] == (topic, int(pool.id, 16))]
    assert log.topics[2:] == (0, int(one, 16))
    assert "0x" + log.address.hex() == ETHEREUM.v4_manager.lower()


def test_unsettled_v4_take_fails(exchanges: ExchangeMarket, token: str, v4_pool: V4Pool):
    thief = deploy_test_contract(exchanges, "Thief")

    with pytest.raises(ContractFailed) as error:
        exchanges.operator.send(thief, "take(address,address)", ETHEREUM.v4_manager, token)
    with pytest.raises(ContractFailed) as locked:
        exchanges.operator.send(ETHEREUM.v4_manager, "take(address,address,uint256)", token, thief, 1)

    assert bytes.fromhex("5212cba1") in error.value.data  # CurrencyNotSettled()
    assert bytes.fromhex("54e3ca0d") in locked.value.data  # ManagerLocked()


def test_v4_hook_decides_fee_and_sale(exchanges: ExchangeMarket):
    chain, hook = exchanges.operator.chain, load_contract(TEST_CONTRACTS, "Thief", "FeeHook")
    chain.change_state(lambda state: create_contract_at(state, HOOK, hook.initcode, sender=OPERATOR.address))
    one = exchanges.create_token("Hooked", "HOOKED", supply=10**24)
    pool = exchanges.add_v4_pool({NATIVE_COIN: ETHER, one: ETHER}, fee=DYNAMIC_FEE, hooks=HOOK)
    (ratio, _, _, fee), liquidity = read_v4(exchanges, pool)

    exchanges.operator.send(HOOK, "set(uint24,bool)", 50_000, not REFUSE)
    quoted = quote_v4(exchanges, pool, 10**15)
    exchanges.operator.send(HOOK, "set(uint24,bool)", 0, REFUSE)

    assert (fee, quoted) == (0, Formula(ratio, liquidity, 50_000).swap(10**15, sells_first=True))
    with pytest.raises(ContractFailed, match="sales are refused"):
        exchanges.operator.send(
            exchanges.v4_router, SWAP_V4, pool.key, FIRST_FOR_SECOND, 10**15, value=10**15
        )
