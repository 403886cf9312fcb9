"""Rules for suspicious tokens and transfers, and honest ones that they must not report."""

# ruff: noqa: RUF001 - these tests are about letters that look like others

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from subtest_cases import each_case

from centgate.crypto.wallet.known_tokens import KNOWN_TOKENS, KnownToken
from centgate.crypto.wallet.spam_rules import (
    SPAM_RULES,
    CounterpartyEvidence,
    Lookalike,
    assess_counterparty,
    find_holding_suspicions,
    find_lookalikes,
    find_token_suspicions,
    find_transfer_suspicions,
)
from centgate.crypto.wallet.wallets import Holding, Price, Token, Transfer
from centgate.sanitize import MAX_NAME_LENGTH, clean_line

STRANGE = "0x" + "5c" * 20
WALLET = "0x" + "aa" * 20
FRIEND = "0xb0b1" + "00" * 16 + "c0c1"
IMPOSTOR = "0xb0b1" + "77" * 16 + "c0c1"
often = settings(deadline=None, database=None)
USDC = Token("0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48", "USDC", decimals=6)
GEM = Token("0x" + "9e" * 20, "GEM", "Gem", 18)
TOKENS = [(chain, token) for chain, tokens in KNOWN_TOKENS.items() for token in tokens.values()]


def find_rule_ids(token: Token, chain_id: int = 1) -> set[str]:
    """Return the rules that a token breaks."""
    return {each.id for each in find_token_suspicions(token, chain_id)}


def unknown_token(name: str, symbol: str = "TKN") -> Token:
    """Return an unknown token with this name."""
    return Token(STRANGE, symbol, name, 18)


COPY = {IMPOSTOR: Lookalike(FRIEND, is_copy=True)}


def build_transfer(
    side: str, amount: int | None, *, token: Token | None = None, out: bool = False
) -> Transfer:
    """Return a transfer between the wallet and another address."""
    pair = (WALLET, side) if out else (side, WALLET)
    return Transfer("0x" + "1f" * 32, *pair, token, amount, 7, datetime(2026, 11, 2, tzinfo=UTC))


def assess_without_price(each: Transfer) -> CounterpartyEvidence:
    """Assess the counterparty of a transfer without prices."""
    return assess_counterparty(each, WALLET, 1, None)


def build_price(usd: float, confidence: float = 0.99) -> Price:
    return Price(usd, confidence, None, None, None)


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("Visit example.com to claim", "link_in_name"),
        ("Visit example.com to claim", "reward_bait"),
        ("https://a.b", "link_in_name"),
        ("www.gift", "link_in_name"),
        ("t.me/usdtgift", "link_in_name"),
        ("get-eth.top", "link_in_name"),
        ("example\uff0ecom", "link_in_name"),
        ("example\u3002com", "link_in_name"),
        ("exam\u200bple.com", "link_in_name"),
        ("something.finance", "link_in_name"),
        ("Curve.fi but another", "link_in_name"),
        ("\uff57\uff57\uff57.example", "link_in_name"),
        ("Free claim", "reward_bait"),
        ("Claim your reward", "reward_bait"),
        ("$5,000 Airdrop", "reward_bait"),
        ("USDT Voucher", "reward_bait"),
        ("Airdrop at our site", "reward_bait"),
        ("usdc[.]com", "link_in_name"),
        ("usdc (dot) com", "link_in_name"),
        ("t . me/abc", "link_in_name"),
        ("bit.ly/abc", "link_in_name"),
        ("gift.day", "link_in_name"),
        ("подарок.рф", "link_in_name"),
        ("1000 USDC Reward", "reward_bait"),
        ("1,000USDT bonus", "reward_bait"),
        ("Visit example.com", "reward_bait"),
        ("\u2705 Verified", "unusual_characters"),
        ("\uff04 1000", "unusual_characters"),
        ("$ 1000", "unusual_characters"),
        ("Uniswар", "unusual_characters"),
        ("US\u200bDollar", "unusual_characters"),
        ("\u202emoc.elpmaxe", "unusual_characters"),
        ("example\u02f3com", "link_in_name"),
        ("example\u30fbcom", "link_in_name"),
        ("ехample.com", "link_in_name"),
        ("e x a m p l e . c o m", "link_in_name"),
        ("C l a i m  y o u r  r e w a r d", "reward_bait"),
        ("Сlаіm yоur rеwаrd", "reward_bait"),
        ("ᏟLAIM", "unusual_characters"),
        ("Uniꓢwap", "unusual_characters"),
    ],
)
def test_bait_in_name_is_suspicious(name: str, rule: str) -> None:
    assert rule in find_rule_ids(unknown_token(name))
    assert rule in find_rule_ids(Token(STRANGE, name, None, 18))


@pytest.mark.parametrize(
    "symbol",
    [
        *(
            "USDT",
            "usdt",
            "$USDT",
            "USDТ",
            "U\u200bSDT",
            "ＵＳＤＴ",
            "USD₮",
            "USD₵",
            "USD₸",
            "ЕТН",
            "ΕΤΗ",
            "WЕTH",
            "ETH",
            "USDC.",
        ),
        *(
            "U S D C",
            "U.S.D.C",
            "U-S-D-T",
            "U\u02f3S\u02f3D\u02f3C",
            "USDC\u02f3",
            "(USDT)",
            "⭐USDC⭐",
            "E·T·H",
        ),
        *("USDᏟ", "ꓴSDC", "U$DC", "W€TH", "₿TC", "DAl", "L|NK", "USDꓔ", "ᑌSDC", "U ˢ D C"),
    ],
)
def test_symbol_of_major_token_at_other_address_is_suspicious(symbol: str) -> None:
    assert "imitates_known_symbol" in find_rule_ids(unknown_token("Tether", symbol))


@pytest.mark.parametrize(
    ("name", "symbol"),
    [
        ("Wrapped Something", "wSTH"),
        ("Aave Ethereum USDC", "aEthUSDC"),
        ("USDC yVault", "yvUSDC-2"),
        ("Uniswap V2", "UNI-V2"),
        ("Liquity v2.1", "BOLD"),
        ("Bridged USD Coin", "USDC.e"),
        ("U.S. Dollar", "USDX"),
        ("Staked Reward Token", "stkRWD"),
        ("Lido DAO", "LDO2"),
        ("\u2764\ufe0f Love", "LOVE"),
        ("\U0001f469\u200d\U0001f680 Space", "SPACE"),
        ("μPad", "μPAD"),
        ("Кошка", "КОТ"),
        ("Gemini dollar", "GUSD"),
        ("Mr. Me", "MR"),
        ("1.5x Long", "L15"),
        ("Magic", "MAGIC"),
        ("ETHPlus", "ETH+"),
        ("USDC+", "USDC+"),
        ("Delta Air Lines", "DAL"),
        ("S & P 500", "SPX"),
        ("Ethereum 2x", "ETH2X"),
        ("柴犬 Shiba", "柴犬"),
        ("Shiba شيبا", "SHIBX"),
        ("Café Zürich", "CAFÉ"),
        ("Łódź Coin", "ŁDZ"),
        ("Øre", "ØRE"),
        ("ノード Node", "NODE"),
        ("Oneᐧ Vote", "VOTE"),
        ("Δelta · Ωmega", "ΔΩ"),
    ],
)
def test_honest_name_is_not_suspicious(name: str, symbol: str) -> None:
    assert not find_rule_ids(unknown_token(name, symbol))


@pytest.mark.parametrize(
    ("chain", "symbol"),
    [
        *((56, "BNB"), (137, "POL"), (8453, "ETH"), (10, "USDT"), (42161, "USDT"), (137, "ETH")),
        *((56, "WETH"), (56, "WBTC"), (1, "BTC"), (10, "EURC"), (31337, "ETH"), (7, "USDT")),
        *((chain, "BNB") for chain in (1, 8453, 137, 42161, 10)),
    ],
)
def test_major_token_is_protected_on_every_chain(chain: int, symbol: str) -> None:
    assert find_rule_ids(unknown_token("Anything", symbol), chain) == {"imitates_known_symbol"}


@pytest.mark.parametrize("name", ["ether.fi governance token", "Curve.fi LP", "Fetch.ai", "pump.fun"])
def test_link_alone_is_allowed_for_traded_token(name: str) -> None:
    assert {each.id for each in find_token_suspicions(unknown_token(name), 1)} == {"link_in_name"}
    assert not find_token_suspicions(unknown_token(name), 1, has_confident_price=True)


@pytest.mark.parametrize(
    "token",
    [
        unknown_token("Visit ether.fi"),
        unknown_token("Claim at ether.fi"),
        unknown_token("ether.fi\u200b"),
        unknown_token("ether.fi", "USDT"),
        Token(STRANGE, "X", "ether.fi", accusation="reputation: scam"),
    ],
)
def test_bait_beyond_link_counts_for_traded_token(token: Token) -> None:
    found = find_token_suspicions(token, 1, has_confident_price=True)

    assert "link_in_name" in {each.id for each in found}
    assert len(found) > 1


def test_suspicion_of_source_is_repeated() -> None:
    (found,) = find_token_suspicions(Token(STRANGE, "OK", "Okay", 18, accusation="reputation scam"), 1)

    assert (found.id, found.value) == ("flagged_by_source", "reputation scam")


@pytest.mark.parametrize(
    ("chain", "address", "name"),
    [
        (1, "0x6c3f90f043a72fa612cbac8115ee7e52bde6e490", "Curve.fi DAI/USDC/USDT"),
        (1, "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48", "USD Coin"),
        (1, "0xae7ab96520de3a18e5e111b5eaab095312d7fe84", "Liquid staked Ether 2.0"),
        (1, "0xa354f35829ae975e850e23e9615b11da1b3dc4de", "USDC yVault"),
        (1, "0xfe0c30065b384f05761f15d0cc899d4f9f9cc0eb", "ether.fi governance token"),
        (1, "0x35fa164735182de50811e8e2e824cfb9b6118ac2", "ether.fi ETH"),
        (137, "0xb0897686c545045afc77cf20ec7a532e3120e0f1", "LINK"),
        (56, "0x4db5a66e937a9f4473fa95b1caf1d1e1d62e29ea", "WETH"),
        (137, "0x0000000000000000000000000000000000001010", "POL"),
        (10, "0xdeaddeaddeaddeaddeaddeaddeaddeaddead0000", "ETH"),
        (42161, "0xfd086bc7cd5c481dcc9c85ebe478a1c0b69fcbb9", "USD₮0"),
    ],
)
def test_known_address_may_have_any_name(chain: int, address: str, name: str) -> None:
    assert not find_rule_ids(Token(address, name, name, 18), chain)


@often
@given(st.sampled_from(TOKENS), st.text(), st.text(), st.none() | st.text())
def test_known_token_is_never_suspicious(
    known: tuple[int, KnownToken], symbol: str, name: str, accused: str | None
) -> None:
    chain, token = known

    assert not find_token_suspicions(Token(token.address, symbol, name, 18, accusation=accused), chain)


@pytest.mark.extended
@each_case(("chain", "token"), TOKENS)
def test_nearly_all_known_tokens_pass_by_name_alone(chain: int, token: KnownToken) -> None:
    elsewhere = Token(STRANGE, token.symbol + "x", token.name, token.decimals)

    links = (".fi ", ".finance", "ther.fi", ".com ")
    assert not find_rule_ids(elsewhere, chain) or any(link in token.name.lower() for link in links)


@often
@given(st.text(), st.text())
def test_every_reason_is_rule_with_clean_value(symbol: str, name: str) -> None:
    explanations = {rule.id: rule.explanation for rule in SPAM_RULES}

    for found in find_token_suspicions(Token(STRANGE, symbol, name), 1):
        assert found.explanation == explanations[found.id]
        assert found.value == clean_line(found.value)


@often
@given(st.text(st.characters(), max_size=200), st.integers(1, 100))
def test_cleaning_removes_invisible_text_and_limits_length(text: str, length: int) -> None:
    cleaned = clean_line(text, length)

    assert cleaned is None or len(cleaned) <= length
    for character in cleaned or "":
        category = unicodedata.category(character)
        assert category[0] != "C", "control, bidi and zero-width characters"
        assert category[0] != "Z" or character == " "


@often
@given(st.text())
def test_cleaning_cuts_name_to_its_length(text: str) -> None:
    assert len(clean_line(text * 40) or "") <= MAX_NAME_LENGTH


@pytest.mark.parametrize(
    ("supply", "amount", "made_up"),
    [(1000, 1001, True), (0, 1, True), (1000, 1000, False), (1000, 1, False), (None, 2**256 - 1, False)],
)
def test_impossible_amount_is_suspicious(supply: int | None, amount: int, made_up: bool) -> None:  # noqa: FBT001
    holding = Holding(Token(STRANGE, "OK", "Okay", 18, supply=supply), amount)

    found = [each.id for each in find_holding_suspicions(holding, 1)]

    assert found == (["more_than_exists"] if made_up else [])


def test_known_token_may_have_any_amount() -> None:
    assert not find_holding_suspicions(Holding(Token(USDC.address, "USDC", supply=1), 2), 1)


def test_zero_transfer_from_lookalike_is_plant() -> None:
    history = [build_transfer(FRIEND, 10**18, out=True), build_transfer(IMPOSTOR, 0)]

    imitated = find_lookalikes(history, WALLET, assess_without_price)

    assert imitated == COPY
    notes = find_transfer_suspicions(history[1], WALLET, 1, imitated)
    assert [each.id for each in notes] == ["lookalike_counterparty", "zero_value"]
    assert notes[0].value == FRIEND
    assert not find_transfer_suspicions(history[0], WALLET, 1, imitated)


def test_dust_from_lookalike_is_plant() -> None:
    history = [build_transfer(FRIEND, 10**18), build_transfer(IMPOSTOR, 10**11)]

    assert find_lookalikes(history, WALLET, assess_without_price) == COPY


def test_counterfeit_token_from_lookalike_is_plant() -> None:
    fake = Token(STRANGE, "USDT", "Tether USD", 6)
    history = [build_transfer(FRIEND, 10**18), build_transfer(IMPOSTOR, 5000 * 10**6, token=fake)]

    assert find_lookalikes(history, WALLET, assess_without_price) == COPY


@pytest.mark.parametrize(
    "bait",
    [
        build_transfer(IMPOSTOR, 1000 * 10**18, token=GEM, out=True),
        build_transfer(IMPOSTOR, 1000 * 10**18, token=GEM),
        build_transfer(IMPOSTOR, 1000, token=Token(STRANGE), out=True),
        build_transfer(IMPOSTOR, None, token=GEM),
        build_transfer(IMPOSTOR, 10_000, token=USDC),
        build_transfer(IMPOSTOR, 0, token=USDC, out=True),
    ],
)
@pytest.mark.parametrize("amount", [500 * 10**6, 500_000])
def test_lookalike_of_paid_address_is_copy(bait: Transfer, amount: int) -> None:
    history = [build_transfer(FRIEND, amount, token=USDC, out=True), bait]

    assert find_lookalikes(history, WALLET, assess_without_price) == COPY


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (build_transfer(FRIEND, 10**18), build_transfer(IMPOSTOR, 10**18)),
        (
            build_transfer(FRIEND, 500_000, token=USDC, out=True),
            build_transfer(IMPOSTOR, 10**9, token=USDC, out=True),
        ),
        (build_transfer(FRIEND, 0), build_transfer(IMPOSTOR, 0)),
        (build_transfer(FRIEND, 10**18, token=GEM), build_transfer(IMPOSTOR, 10_000, token=USDC)),
    ],
)
def test_two_indistinguishable_lookalikes_are_both_reported(one: Transfer, other: Transfer) -> None:
    alike = find_lookalikes([one, other], WALLET, assess_without_price)

    assert alike == {
        FRIEND: Lookalike(IMPOSTOR, is_copy=False),
        IMPOSTOR: Lookalike(FRIEND, is_copy=False),
    }
    note = find_transfer_suspicions(one, WALLET, 1, alike)[0]
    assert (note.id, note.value) == ("lookalike_counterparty", IMPOSTOR)
    assert "compare every character" in note.explanation


def test_three_lookalikes_are_each_reported() -> None:
    third = "0xb0b1" + "88" * 16 + "c0c1"
    history = [build_transfer(FRIEND, 10**18), build_transfer(IMPOSTOR, 10**18), build_transfer(third, 0)]

    alike = find_lookalikes(history, WALLET, assess_without_price)

    assert {side: each.is_copy for side, each in alike.items()} == {
        FRIEND: False,
        IMPOSTOR: False,
        third: True,
    }


def test_lookalike_of_wallet_is_plant() -> None:
    twin = WALLET[:6] + "11" * 16 + WALLET[-4:]

    assert find_lookalikes([build_transfer(twin, 0)], WALLET, assess_without_price) == {
        twin: Lookalike(WALLET, is_copy=True)
    }
    assert find_lookalikes([build_transfer(twin, 1, out=True)], WALLET, assess_without_price) == {
        twin: Lookalike(WALLET, is_copy=False)
    }


def test_zero_addresses_do_not_imitate_each_other() -> None:
    zero, dead = "0x" + "00" * 20, "0x0000" + "12" * 16 + "0000"

    assert not find_lookalikes(
        [build_transfer(zero, 10**18), build_transfer(dead, 0)], WALLET, assess_without_price
    )


def test_lookalikes_share_first_and_last_four_digits() -> None:
    near = FRIEND[:-1] + "2"

    assert not find_lookalikes(
        [build_transfer(FRIEND, 10**18), build_transfer(near, 0)], WALLET, assess_without_price
    )


@pytest.mark.parametrize(
    ("moved", "price_of_it", "proved"),
    [
        (build_transfer(FRIEND, 0, token=USDC), None, CounterpartyEvidence.NONE),
        (build_transfer(FRIEND, 0, token=USDC, out=True), None, CounterpartyEvidence.NONE),
        (build_transfer(FRIEND, 0), None, CounterpartyEvidence.NONE),
        (build_transfer(FRIEND, 0, out=True), None, CounterpartyEvidence.STRONG),
        (build_transfer(FRIEND, None, token=USDC), None, CounterpartyEvidence.WEAK),
        (build_transfer(FRIEND, 100, token=USDC), None, CounterpartyEvidence.WEAK),
        (build_transfer(FRIEND, 500_000, token=USDC), build_price(1), CounterpartyEvidence.WEAK),
        (build_transfer(FRIEND, 500_000, token=USDC), None, CounterpartyEvidence.WEAK),
        (build_transfer(FRIEND, 5 * 10**6, token=USDC), None, CounterpartyEvidence.STRONG),
        (build_transfer(FRIEND, 10**18), None, CounterpartyEvidence.STRONG),
        (build_transfer(FRIEND, 5 * 10**6, token=USDC), build_price(1), CounterpartyEvidence.STRONG),
        (build_transfer(FRIEND, 1, token=USDC, out=True), build_price(1), CounterpartyEvidence.STRONG),
        (build_transfer(FRIEND, 10**14), build_price(60_000.0), CounterpartyEvidence.STRONG),
        (build_transfer(FRIEND, 10**14), None, CounterpartyEvidence.WEAK),
        (build_transfer(FRIEND, 10**18, token=GEM, out=True), None, CounterpartyEvidence.WEAK),
        (build_transfer(FRIEND, 10**18, token=GEM, out=True), build_price(9, 0.5), CounterpartyEvidence.WEAK),
        (build_transfer(FRIEND, 10**18, token=GEM, out=True), build_price(9), CounterpartyEvidence.STRONG),
        (
            build_transfer(FRIEND, 10**18, token=unknown_token("T", "USDT"), out=True),
            build_price(9),
            CounterpartyEvidence.WEAK,
        ),
    ],
)
def test_transfer_gives_evidence_about_counterparty(
    moved: Transfer, price_of_it: Price | None, proved: CounterpartyEvidence
) -> None:
    assert assess_counterparty(moved, WALLET, 1, price_of_it) == proved


@pytest.mark.parametrize(
    "symbol",
    [
        *("USDC\u02f3", "U S D C", "U.S.D.C", "U\u200bSDC", "USD\u03f9", "\u144cSDC", "U\u0405\U0001d403C"),
        *("🆄🆂🅳🆃", "🆄\ufe0f🆂🅳🆃", "🅴🆃🅷", "🇺🇸DC"),
    ],
)
def test_symbol_that_reads_like_major_imitates_it(symbol: str) -> None:
    assert "imitates_known_symbol" in find_rule_ids(Token("0x" + "5c" * 20, symbol=symbol))


@pytest.mark.parametrize("symbol", ["USDC.e", "ETH+", "USD+", "BTC.b", "aUSDC", "crvUSD", "UNI-V2"])
def test_symbol_that_contains_major_does_not_imitate_it(symbol: str) -> None:
    assert find_rule_ids(Token("0x" + "5c" * 20, symbol=symbol)) == set()


def test_separated_letters_are_unusual() -> None:
    assert "unusual_characters" in find_rule_ids(Token("0x" + "5c" * 20, name="c l a i m now"))
    assert find_rule_ids(Token("0x" + "5c" * 20, name="Class A B Shares")) == set()
