"""Simulated exchanges: published interfaces, and formulas that lose no money."""

import re
from typing import Any

import pytest
from eth_account import Account as Wallet
from exchange_market import ExchangeMarket, deploy_owner, install_market

from centgate.crypto.token.exchange_tables import EXCHANGES, PRICE_FEEDS, QUOTE_TOKENS
from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.devchain.chain import CallReverted, EvmChain
from centgate.devchain.deployer import ContractFailed, Deployer
from centgate.devchain.exchanges import OPERATOR
from centgate.devchain.token import CHAIN_ID
from centgate.devchain.well_known import BASE, ETHEREUM, POLYGON, WellKnownAddresses
from centgate.signing.evm import keccak, to_checksum_address

pytestmark = pytest.mark.extended

ETHER = 10**18
SHARE = 10**6
"""Fees are in millionths."""
STABLE, VOLATILE = True, False


@pytest.fixture(scope="module")
def exchanges() -> ExchangeMarket:
    return install_market(EvmChain(CHAIN_ID, {}))


@pytest.fixture(scope="module")
def token(exchanges: ExchangeMarket) -> str:
    exchanges.wrap(1_000 * ETHER)
    return exchanges.create_token("Plain", "PLAIN", supply=10**9 * ETHER)


@pytest.fixture(scope="module")
def v2_pair(exchanges: ExchangeMarket, token: str) -> str:
    return exchanges.add_v2_pool({token: 10**6 * ETHER, ETHEREUM.wrapped_native: 100 * ETHER})


def balance(exchanges: ExchangeMarket, token: str, holder: str = OPERATOR.address) -> int:
    return exchanges.operator.read(token, "balanceOf(address)", holder)


def order_outputs(token_in: str, token_out: str, amount: int) -> tuple[int, int]:
    """Return the two amounts that `swap` of a v2 pair takes: out of token0, and out of token1."""
    return (amount, 0) if token_out.lower() < token_in.lower() else (0, amount)


def hash_event(signature: str) -> bytes:
    return keccak(signature.encode())


def list_topics(mined: Any) -> list[bytes]:
    return [log.topics[0].to_bytes(32, "big") for log in mined.receipt.logs]


def test_wrapped_coin_is_backed(exchanges: ExchangeMarket, token: str):
    weth = ETHEREUM.wrapped_native
    before = exchanges.operator.read(weth, "totalSupply()")

    exchanges.operator.send(weth, "withdraw(uint256)", ETHER)

    assert exchanges.operator.read(weth, "totalSupply()") == before - ETHER
    assert exchanges.operator.read(weth, "symbol()", returns="string") == "WETH"


def test_only_operator_mints_stablecoins(exchanges: ExchangeMarket):
    usdc, decimals = ETHEREUM.stablecoins["USDC"]
    exchanges.operator.transfer_native(BUYER_ACCOUNTS[0].address, ETHER)
    buyer = Deployer(exchanges.operator.chain, BUYER_ACCOUNTS[0])

    assert exchanges.stablecoin("USDC", 5 * 10**6) == usdc

    assert (exchanges.operator.read(usdc, "decimals()"), decimals) == (6, 6)
    with pytest.raises(ContractFailed, match="not the owner"):
        buyer.send(usdc, "mint(address,uint256)", buyer.address, 1)


def test_v2_pair_swaps_by_formula(exchanges: ExchangeMarket, token: str, v2_pair: str):
    weth, amount = ETHEREUM.wrapped_native, ETHER // 3
    reserves = balance(exchanges, weth, v2_pair), balance(exchanges, token, v2_pair)
    out = amount * 997 * reserves[1] // (reserves[0] * 1000 + amount * 997)
    exchanges.operator.send(weth, "transfer(address,uint256)", v2_pair, amount)
    swap = "swap(uint256,uint256,address,bytes)"

    with pytest.raises(ContractFailed, match="UniswapV2: K"):
        exchanges.operator.send(
            v2_pair, swap, *order_outputs(weth, token, out + 1), BUYER_ACCOUNTS[1].address, b""
        )
    mined = exchanges.operator.send(
        v2_pair, swap, *order_outputs(weth, token, out), BUYER_ACCOUNTS[1].address, b""
    )

    assert balance(exchanges, token, BUYER_ACCOUNTS[1].address) == out
    assert list_topics(mined) == [
        hash_event("Transfer(address,address,uint256)"),
        hash_event("Sync(uint112,uint112)"),
        hash_event("Swap(address,uint256,uint256,uint256,uint256,address)"),
    ]


def test_v2_sale_reaches_recipient(exchanges: ExchangeMarket, token: str, v2_pair: str):
    before = balance(exchanges, ETHEREUM.wrapped_native, BUYER_ACCOUNTS[6].address)

    out = exchanges.swap_v2(v2_pair, token, 1_000 * ETHER, BUYER_ACCOUNTS[6].address)

    assert out > 0
    assert balance(exchanges, ETHEREUM.wrapped_native, BUYER_ACCOUNTS[6].address) - before == out


def test_v2_liquidity_is_proportional(exchanges: ExchangeMarket):
    supply = 10**6 * ETHER
    other = exchanges.create_token("Other", "OTHER", supply=supply)
    pair = exchanges.add_v2_pool({other: supply // 4, exchanges.wrap(9 * ETHER): 9 * ETHER})
    total = exchanges.operator.read(pair, "totalSupply()")
    held = balance(exchanges, pair)

    exchanges.operator.send(pair, "transfer(address,uint256)", pair, held)
    exchanges.operator.send(pair, "burn(address)", OPERATOR.address)

    assert (total, held) == (1_500 * ETHER, 1_500 * ETHER - 1000)
    lost = supply - balance(exchanges, other)
    assert 0 < lost <= supply // 4 * 1000 // total + 1


@pytest.mark.parametrize(
    ("kind", "sold", "fee"),
    [
        ("stable", "six", 500),
        ("volatile", "eighteen", 3000),
        pytest.param("stable", "eighteen", 500, marks=pytest.mark.extended),
        pytest.param("volatile", "six", 3000, marks=pytest.mark.extended),
    ],
)
def test_solidly_pool_swaps_as_quoted(exchanges: ExchangeMarket, kind: str, sold: str, fee: int):
    six = exchanges.create_token("Six", "SIX", decimals=6, supply=10**13)
    eighteen = exchanges.create_token("Eighteen", "EIGHTEEN", supply=10**7 * ETHER)
    pool = exchanges.add_solidly_pool({six: 10**12, eighteen: 10**6 * ETHER}, stable=kind == "stable")
    token_in, token_out, amount = (six, eighteen, 10**9) if sold == "six" else (eighteen, six, 1_000 * ETHER)
    out = exchanges.operator.read(pool, "getAmountOut(uint256,address)", amount, token_in)
    exchanges.operator.send(token_in, "transfer(address,uint256)", pool, amount)
    swap, buyer = "swap(uint256,uint256,address,bytes)", BUYER_ACCOUNTS[2].address
    # the finer token's units below one of the coarser token are lost in rounding
    more = out + (10**12 if sold == "six" else 1)

    with pytest.raises(ContractFailed, match="K"):
        exchanges.operator.send(pool, swap, *order_outputs(token_in, token_out, more), buyer, b"")
    exchanges.operator.send(pool, swap, *order_outputs(token_in, token_out, out), buyer, b"")

    assert balance(exchanges, token_out, buyer) == out
    fair = amount * 10**12 if token_in == six else amount // 10**12
    lost = 1 - out / fair
    assert fee / SHARE < lost < fee / SHARE + (0.000_01 if kind == "stable" else 0.001_1)


def test_solidly_factory_tells_fees_and_kinds(exchanges: ExchangeMarket):
    first = exchanges.create_token("First", "FIRST", supply=10**6)
    second = exchanges.create_token("Second", "SECOND", supply=10**6)
    pool = exchanges.add_solidly_pool({first: 10**5, second: 10**5}, stable=False)
    factory, pair = exchanges.solidly_factory, (first, second)
    find = "getPool(address,address,bool)"

    assert exchanges.operator.read(factory, find, *pair, VOLATILE, returns="address") == pool
    assert int(exchanges.operator.read(factory, find, *pair, STABLE, returns="address"), 16) == 0
    assert exchanges.operator.read(factory, "getFee(address,bool)", pool, VOLATILE) == 30
    exchanges.operator.send(factory, "setCustomFee(address,uint256)", pool, 100)
    assert exchanges.operator.read(factory, "getFee(address,bool)", pool, VOLATILE) == 100
    assert exchanges.operator.read(pool, "stable()", returns="bool") is False


def test_multicall_answers_each_call(exchanges: ExchangeMarket, token: str):
    ask = "aggregate3((address,bool,bytes)[])"
    symbol, nothing = keccak(b"symbol()")[:4], b"\x01\x02\x03\x04"

    answers = exchanges.operator.read(
        ETHEREUM.multicall,
        ask,
        [(token, False, symbol), (token, True, nothing)],
        returns="(bool,bytes)[]",
    )

    assert [ok for ok, _ in answers] == [True, False]
    assert b"PLAIN" in answers[0][1]


def test_price_feed_tells_set_time(exchanges: ExchangeMarket):
    returns = "uint80,int256,uint256,uint256,uint80"
    feed = ETHEREUM.native_feed
    now = exchanges.operator.chain.blocks[-1].header.timestamp

    _, price, _, fresh, _ = exchanges.operator.read(feed, "latestRoundData()", returns=returns)
    exchanges.set_feed(feed, 3_000 * 10**8, updated_at=now - 7200)
    _, changed, _, stale, _ = exchanges.operator.read(feed, "latestRoundData()", returns=returns)

    assert (price, changed) == (2_000 * 10**8, 3_000 * 10**8)
    assert (fresh >= now, stale) == (True, now - 7200)


def test_sanctions_list_can_be_extended(exchanges: ExchangeMarket):
    address, ask = BUYER_ACCOUNTS[5].address, "isSanctioned(address)"

    before = exchanges.operator.read(ETHEREUM.sanctions_list, ask, address, returns="bool")
    exchanges.operator.send(ETHEREUM.sanctions_list, "addToSanctionsList(address[])", [address])

    assert (before, exchanges.operator.read(ETHEREUM.sanctions_list, ask, address, returns="bool")) == (
        False,
        True,
    )


def test_ens_name_must_resolve_back(exchanges: ExchangeMarket):
    honest, liar = BUYER_ACCOUNTS[7].address, BUYER_ACCOUNTS[8].address
    ask, returns = "reverseWithGateways(bytes,uint256,string[])", "string,address,address"

    exchanges.set_ens_name(honest, "honest.eth")
    exchanges.set_ens_name(liar, "honest.eth", owner=honest)

    def read(address: str) -> str:
        account = bytes.fromhex(address[2:])
        return exchanges.operator.read(ETHEREUM.ens_resolver, ask, account, 60, [], returns=returns)[0]

    assert (read(honest), read(OPERATOR.address)) == ("honest.eth", "")
    with pytest.raises(CallReverted) as error:
        read(liar)
    assert error.value.data[:4] == keccak(b"ReverseAddressMismatch(string,bytes)")[:4]


def test_v2_forks_have_own_pairs_and_fees(exchanges: ExchangeMarket):
    first, second = (exchanges.create_token(name, name, supply=10**24) for name in ("M", "N"))
    amounts = {first: 10**21, second: 10**21}
    received: dict[str, int] = {}

    for name, (factory, fee) in ETHEREUM.v2_forks.items():
        pair = exchanges.add_v2_pool(amounts, factory=factory)
        received[name] = exchanges.swap_v2(pair, first, 10**15, OPERATOR.address, fee=fee)
        with pytest.raises(ContractFailed, match="K"):
            exchanges.swap_v2(pair, first, 10**15, OPERATOR.address, fee=fee - 1)

    assert received["PancakeSwap"] > received["SushiSwap"]


@pytest.mark.parametrize(("chain_id", "addresses"), [(1, ETHEREUM), (8453, BASE), (137, POLYGON)])
def test_known_exchanges_have_code(chain_id: int, addresses: WellKnownAddresses):
    chain = install_market(EvmChain(chain_id, {}), addresses).operator.chain
    feeds = PRICE_FEEDS[chain_id]
    known = {feeds.native_usd, feeds.sequencer, *(token.address for token in QUOTE_TOKENS[chain_id])}
    for exchange in EXCHANGES[chain_id]:
        known |= {exchange.factory, exchange.quoter, exchange.manager}

    state: Any = chain.state_at()

    assert [address for address in known if address and not state.get_code(bytes.fromhex(address[2:]))] == []


def test_permit2_approval_can_be_locked(exchanges: ExchangeMarket, token: str):
    spender, returns = BUYER_ACCOUNTS[3].address, "uint160,uint48,uint48"
    ask, pair = "allowance(address,address,address)", (token, spender)

    approved = exchanges.operator.send(
        ETHEREUM.permit2, "approve(address,address,uint160,uint48)", *pair, 50, 2_000_000_000
    )
    granted = exchanges.operator.read(ETHEREUM.permit2, ask, OPERATOR.address, *pair, returns=returns)
    locked = exchanges.operator.send(ETHEREUM.permit2, "lockdown((address,address)[])", [pair])
    left = exchanges.operator.read(ETHEREUM.permit2, ask, OPERATOR.address, *pair, returns=returns)

    assert (granted, left) == ((50, 2_000_000_000, 0), (0, 2_000_000_000, 0))
    # the hashes of the published events
    assert [hashed.hex() for hashed in list_topics(approved) + list_topics(locked)] == [
        "da9fa7c1b00402c17d0161b249b1ab8bbec047c5a52207b9c112deffd817036b",
        "89b1add15eff56b3dfe299ad94e01f2b52fbcb80ae1a3baea6ae8c04cb2b98a4",
    ]


def sign_permit(token: str, spender: str, amount: int, nonce: int) -> tuple[Any, bytes]:
    details = {"token": token, "amount": amount, "expiration": 2_000_000_000, "nonce": nonce}
    message: dict[str, Any] = {"details": details, "spender": spender, "sigDeadline": 2_000_000_000}
    member = [("token", "address"), ("amount", "uint160"), ("expiration", "uint48"), ("nonce", "uint48")]
    single = [("details", "PermitDetails"), ("spender", "address"), ("sigDeadline", "uint256")]
    types = {"PermitSingle": single, "PermitDetails": member}
    listed = {name: [{"name": key, "type": kind} for key, kind in parts] for name, parts in types.items()}
    domain = {"name": "Permit2", "chainId": CHAIN_ID, "verifyingContract": ETHEREUM.permit2}
    signed: Any = Wallet.sign_typed_data(OPERATOR.private_key, domain, listed, message)
    return ((tuple(details.values()), spender, 2_000_000_000), bytes(signed.signature))


def test_permit2_signature_counts_once(exchanges: ExchangeMarket, token: str):
    spender, ask = BUYER_ACCOUNTS[4], "allowance(address,address,address)"
    permit = "permit(address,((address,uint160,uint48,uint48),address,uint256),bytes)"
    exchanges.operator.transfer_native(spender.address, ETHER)
    exchanges.operator.send(token, "approve(address,uint256)", ETHEREUM.permit2, 2**256 - 1)
    signed, signature = sign_permit(token, spender.address, 70, 0)
    changed, _ = sign_permit(token, spender.address, 71, 0)

    with pytest.raises(ContractFailed):
        exchanges.operator.send(ETHEREUM.permit2, permit, OPERATOR.address, changed, signature)
    mined = exchanges.operator.send(ETHEREUM.permit2, permit, OPERATOR.address, signed, signature)
    with pytest.raises(ContractFailed):
        exchanges.operator.send(ETHEREUM.permit2, permit, OPERATOR.address, signed, signature)
    pull = ("transferFrom(address,address,uint160,address)", OPERATOR.address, spender.address, 30, token)
    Deployer(exchanges.operator.chain, spender).send(ETHEREUM.permit2, *pull)

    assert list_topics(mined)[0].hex() == "c6a377bfc4eb120024a8ac08eef205be16b817020812c73223e81d1bdb9708ec"
    assert balance(exchanges, token, spender.address) == 30
    pair = (OPERATOR.address, token, spender.address)
    assert exchanges.operator.read(ETHEREUM.permit2, ask, *pair, returns="uint160,uint48,uint48")[0] == 40


def test_owners_describe_themselves(exchanges: ExchangeMarket, token: str):
    operator, owners = exchanges.operator, [BUYER_ACCOUNTS[0].address, BUYER_ACCOUNTS[1].address]

    safe = deploy_owner(operator, "Safe", owners, 2)
    timelock = deploy_owner(operator, "TimelockController", 172_800, [safe], [safe], safe)
    governor = deploy_owner(operator, "Governor", "DAO", 7_200, 50_400, 10**24, token, timelock)

    found = operator.read(safe, "getOwners()", returns="address[]")
    assert [owner.lower() for owner in found] == [owner.lower() for owner in owners]
    assert operator.read(safe, "getThreshold()") == 2
    assert operator.read(timelock, "getMinDelay()") == 172_800
    proposer = keccak(b"PROPOSER_ROLE")
    assert operator.read(timelock, "hasRole(bytes32,address)", proposer, safe, returns="bool")
    assert operator.read(governor, "quorum(uint256)", 0) == 10**24
    assert operator.read(governor, "timelock()", returns="address") == timelock


def test_timelock_executes_after_delay(exchanges: ExchangeMarket):
    now = 1_800_000_000.0
    later = install_market(EvmChain(CHAIN_ID, {}, clock=lambda: now))
    operator = later.operator
    mine = [operator.address]
    timelock = deploy_owner(operator, "TimelockController", 3600, mine, mine, operator.address)
    token = later.create_token("Owned", "OWNED", supply=1)
    operator.send(token, "transferOwnership(address)", timelock)
    call = (token, 0, bytes.fromhex("f2fde38b") + bytes(12) + bytes.fromhex(OPERATOR.address[2:]))
    schedule = "schedule(address,uint256,bytes,bytes32,bytes32,uint256)"
    execute = "execute(address,uint256,bytes,bytes32,bytes32)"
    operator.send(timelock, schedule, *call, bytes(32), bytes(32), 3600)

    with pytest.raises(ContractFailed, match="not ready"):
        operator.send(timelock, execute, *call, bytes(32), bytes(32))
    now += 3600
    operator.send(timelock, execute, *call, bytes(32), bytes(32))

    assert operator.read(token, "owner()", returns="address") == OPERATOR.address.lower()


@pytest.mark.parametrize("addresses", [ETHEREUM, BASE, POLYGON])
def test_well_known_addresses_have_checksums(addresses: WellKnownAddresses):
    found = re.findall("0x[0-9a-fA-F]{40}", repr(addresses))

    assert len(found) > 10
    assert [address for address in found if to_checksum_address(address) != address] == []


def test_base_has_sequencer_feed():
    base = install_market(EvmChain(8453, {}), BASE)
    answer = "uint80,int256,uint256,uint256,uint80"

    assert base.solidly_factory == BASE.solidly_factory
    _, status, started_at, *_ = base.operator.read(BASE.sequencer_feed, "latestRoundData()", returns=answer)
    assert (status, started_at) == (0, 1)
    assert base.operator.read(BASE.wrapped_native, "decimals()") == 18
