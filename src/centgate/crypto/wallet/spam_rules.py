"""Rules for spam tokens and suspicious transfers, such as address poisoning. No I/O.

The name rules follow the rules that wallets and revoke.cash publish. A token that is known by its address is
never suspicious, regardless of its name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from functools import partial
from typing import Literal

from msgspec import Struct

from centgate.crypto.wallet.confusables import fold_confusables, has_mixed_alphabets, join_spaced_letters
from centgate.crypto.wallet.known_tokens import NATIVE_COIN_ADDRESSES, find_known_token
from centgate.crypto.wallet.wallets import Holding, Price, Token, Transfer, to_whole_units, usd_value
from centgate.phishing.homograph import skeleton
from centgate.sanitize import clean_line, has_invisible

SuspicionId = Literal[
    "flagged_by_source",
    "imitates_known_symbol",
    "link_in_name",
    "lookalike_counterparty",
    "more_than_exists",
    "reward_bait",
    "unusual_characters",
    "zero_value",
]

MAX_NAME_CHARACTERS = 300
"""Most characters of a name that are examined."""
DUST_USD = 1.0
"""Incoming transfers below this many US dollars may be planted. Honest transfers can be as small."""
DUST_COINS, DUST_TOKENS = 0.001, 1
"""The same without a price, in whole units: of the chain's native coin, and of a token."""

_MAJORS = (
    "ARB BNB BTC BUSD CBBTC DAI ETH EURC LINK MATIC OP POL PYUSD SHIB STETH UNI USDC USDE USDS USDT USDT0"
    " WBNB WBTC WETH WMATIC WPOL WSTETH"
)
MAJOR_SYMBOLS = frozenset(_MAJORS.split())
"""Symbols that are worth imitating, on every chain; honest tokens share others."""

_ENDINGS = (
    "ai|app|bid|biz|bond|cash|cc|cfd|city|claims?|click|cloud|club|co|com|cyou|day|dev|events?|exchange|fi|"
    "finance|fun|games?|gifts?|gg|icu|info|ink|io|lat|life|link|live|lol|ly|market|me|net|network|new|online|"
    "org|page|pm|pro|promo|pw|quest|rewards?|rip|ru|run|sbs|shop|site|space|store|team|tech|to|today|token|"
    "top|tv|us|vip|vision|website|wiki|win|wtf|world|xyz|zone|рф"
)
_LINK = re.compile(rf"https?:|www\.|\b[\w-]+\.(?:{_ENDINGS})\b(?!\.[a-z0-9])|\bt\s?\.\s?me\b", re.IGNORECASE)
_BAIT = re.compile(
    r"\bvisit\b.*(?:\b(?:claim|reward|redeem|site|get|airdrop)|\w\.\w)"
    r"|\bclaims? (?:at|on|your?|free|now|here|bonus|rewards?|airdrop|until|via|by|from|in|the)\b"
    r"|\b(?:to|and|free|please|you can|can be|2) claim(?:ed)?\b"
    r"|\bairdrops? (?:at|on|voucher|reward|bonus|claim|ticket|for|event|from)\b"
    r"|\b(?:free|your|bonus|exclusive|official|special) (?:airdrop|reward|voucher|bonus|gift|mint)s?\b"
    r"|\b(?:rewards?|bonus|prizes?|vouchers?|gifts?|giveaway) (?:at|on|claim|voucher|ticket|from|pass|here)\b"
    r"|\b(?:voucher|giveaway|eligible|congratulations|you won)\b"
    r"|\b\d[\d.,]*k?\s?(?:usd[ct]|dai|w?eth|w?btc|bnb|arb|op|pol)\b"
    r".*\b(?:claim|reward|bonus|airdrop|gift|voucher|free)"
    r"|[$€]\s?\d.*\b(?:claim|reward|bonus|airdrop|gift|voucher|free)"
    r"|\b(?:claim|reward|bonus|airdrop|gift|voucher|free)s?\b.*[$€]\s?\d",
    re.IGNORECASE,
)
_MARKS = re.compile("[\u2611\u2705\u2713\u2714\U0001f381\U0001f5f8]")
"""Check marks, which imitate a verified badge, and gift symbols."""
_DOTS = re.compile(r"\s*(?:[\u3002\u2024\u00b7\u2022\u2027]|[\[({]\s*(?:\.|dot)\s*[\])}])\s*", re.IGNORECASE)
"""Characters that look like dots, and dots in brackets."""
_FAKE_DOLLARS = re.compile("[\uff04\ufe69\U0001f4b2]|\\$\\s+\\w")
_EMOJI_MODIFIERS = re.compile("(?<=[\u00a9\u00ae\u2000-\u3300\U0001f000-\U0001faff])[\ufe0e\ufe0f\u200d]")
"""Emoji variation selectors and joiners, which hide nothing."""
_SPACED_LETTERS = re.compile(r"(?<!\w)(?:\w\s){3,}\w(?!\w)")
"""Four letters or more that are drawn apart, so that a search for the word misses them."""
_SEPARATORS = re.compile(r"[^\w+]|_")
"""All but letters, digits and the plus sign, which tells honest tokens apart: ETH+ is not ETH."""


class Suspicion(Struct, frozen=True):
    """One reason for suspicion. `value` is the sanitized text that triggered it."""

    id: SuspicionId
    explanation: str
    value: str | None


class SpamRule(Struct, frozen=True):
    """A sign of spam that honest tokens rarely show. The callable returns the matching text, or None."""

    id: SuspicionId
    explanation: str
    find_match: Callable[[Token], str | None]
    is_weak: bool = False
    """True if honest tokens show it too: alone it does not count against a token with a confident price."""


def find_token_suspicions(
    token: Token, chain_id: int, *, has_confident_price: bool = False
) -> tuple[Suspicion, ...]:
    """Return the reasons to suspect a token; () if it is known by its address.

    The flag is true if the token has a confident price.
    """
    if _is_genuine(token, chain_id):
        return ()
    matches = [(rule, value) for rule in SPAM_RULES if (value := rule.find_match(token))]
    if has_confident_price and all(rule.is_weak for rule, _ in matches):
        return ()
    return tuple(Suspicion(rule.id, rule.explanation, clean_line(value)) for rule, value in matches)


def is_imitation(token: Token, chain_id: int) -> bool:
    """True if the symbol looks like that of a major token or a native coin, and the token is another one."""
    return not _is_genuine(token, chain_id) and _find_imitated_symbol(token) is not None


def find_holding_suspicions(
    holding: Holding, chain_id: int, *, has_confident_price: bool = False
) -> tuple[Suspicion, ...]:
    """Return the reasons to suspect a holding: those of its token, and an impossible amount."""
    reasons = find_token_suspicions(holding.token, chain_id, has_confident_price=has_confident_price)
    supply = holding.token.supply
    if supply is None or holding.amount <= supply or _is_genuine(holding.token, chain_id):
        return reasons
    impossible_amount = Suspicion(
        "more_than_exists",
        "The token claims that the wallet holds more than its total supply: its balances are made up.",
        f"supply {supply}",
    )
    return (*reasons, impossible_amount)


def _is_genuine(token: Token, chain_id: int) -> bool:
    return token.address in NATIVE_COIN_ADDRESSES or find_known_token(chain_id, token.address) is not None


def _find_accusation(token: Token) -> str | None:
    return token.accusation


def _find_imitated_symbol(token: Token) -> str | None:
    """Return the symbol if it looks like that of a major token or of a chain's native coin."""
    return token.symbol if token.symbol and _normalize_symbol(token.symbol) in _NORMALIZED_MAJORS else None


def _normalize_symbol(symbol: str) -> str:
    """Return a symbol as people read it: plain Latin letters without what stands between or around them."""
    folded = fold_confusables(clean_line(symbol[:MAX_NAME_CHARACTERS]) or "").strip("$")
    if not any(map(str.islower, folded.replace("l", ""))):
        folded = folded.replace("l", "I")  # among capitals it is taken for one
    plain = _SEPARATORS.sub("", folded.replace("|", "I").replace("$", "S"))
    return skeleton(plain.casefold())


def _find_pattern(pattern: re.Pattern[str], token: Token) -> str | None:
    return _find_first(token, lambda text: any(map(pattern.search, _list_forms(text))))


def _find_unusual(token: Token) -> str | None:
    return _find_first(token, _has_unusual)


def _has_unusual(text: str) -> bool:
    """True for check marks, fake dollar signs, mixed alphabets, letters apart, or invisible characters."""
    return (
        _MARKS.search(text) is not None
        or _FAKE_DOLLARS.search(text) is not None
        or has_invisible(_EMOJI_MODIFIERS.sub("", text.strip()))
        or _SPACED_LETTERS.search(text) is not None
        or has_mixed_alphabets(text)
    )


def _find_first(token: Token, matches: Callable[[str], bool]) -> str | None:
    """Return the first of name and symbol for which `matches` is true."""
    texts = (text[:MAX_NAME_CHARACTERS] for text in (token.name, token.symbol) if text)
    return next((text for text in texts if matches(text)), None)


def _list_forms(text: str) -> tuple[str, ...]:
    """Return the ways to read a text: as it is, and with letters that imitate others or are drawn apart."""
    plain = _normalize_text(text)
    joined = _normalize_text(join_spaced_letters(fold_confusables(text)))
    return (plain,) if joined == plain else (plain, joined)


def _normalize_text(text: str) -> str:
    """Normalize to plain letters as people read them: wide and styled letters, lookalike dots."""
    plain = unicodedata.normalize("NFKC", clean_line(text, MAX_NAME_CHARACTERS) or "")
    return _DOTS.sub(".", plain)


# all are ASCII, so that the table of confusables is not read at import
_NORMALIZED_MAJORS = frozenset(_normalize_symbol(major) for major in MAJOR_SYMBOLS)


SPAM_RULES: tuple[SpamRule, ...] = (
    SpamRule("flagged_by_source", "The source itself marks this token as a scam.", _find_accusation),
    SpamRule(
        "imitates_known_symbol",
        "Its symbol looks like that of a major token or of a chain's native coin, but it is another "
        "contract.",
        _find_imitated_symbol,
    ),
    SpamRule("link_in_name", "Its name contains a link.", partial(_find_pattern, _LINK), is_weak=True),
    SpamRule(
        "reward_bait",
        "Its name or symbol promises a reward, as bait for a site that drains wallets.",
        partial(_find_pattern, _BAIT),
    ),
    SpamRule(
        "unusual_characters",
        "Its name or symbol has marks or letters that imitate others, are drawn apart or are invisible.",
        _find_unusual,
    ),
)


class CounterpartyEvidence(IntEnum):
    """Strength of the evidence that a transfer gives about its counterparty."""

    NONE = 0
    """It moves nothing: anyone can send it."""
    WEAK = 1
    """Incoming dust, or an unknown token, whose contract can name any two addresses."""
    STRONG = 2
    """The wallet itself paid or called it, or received from it more than a stranger would give away."""


def assess_counterparty(
    movement: Transfer, wallet: str, chain_id: int, price: Price | None
) -> CounterpartyEvidence:
    """Return the evidence that a transfer gives about its counterparty; `price` is the moved asset's."""
    token, is_outgoing = movement.token, movement.sender == wallet
    if token is None and is_outgoing:
        return CounterpartyEvidence.STRONG
    if movement.amount == 0:
        return CounterpartyEvidence.NONE
    if movement.amount is None or (token and not _is_money(token, chain_id, price)):
        return CounterpartyEvidence.WEAK
    return (
        CounterpartyEvidence.STRONG
        if is_outgoing or not _is_dust(movement, price)
        else CounterpartyEvidence.WEAK
    )


def _is_money(token: Token, chain_id: int, price: Price | None) -> bool:
    if _is_genuine(token, chain_id):
        return True
    return (
        price is not None
        and price.is_confident
        and not find_token_suspicions(token, chain_id, has_confident_price=True)
    )


def _is_dust(movement: Transfer, price: Price | None) -> bool:
    units = to_whole_units(movement.amount, movement.token.decimals if movement.token else 18)
    if units is None:
        return True
    usd = usd_value(units, price.usd) if price else None
    if usd is None:
        return units < (DUST_TOKENS if movement.token else DUST_COINS)
    return usd < DUST_USD


class Lookalike(Struct, frozen=True):
    """A counterparty that can be mistaken for another address of the history, or for the wallet."""

    other_address: str
    is_copy: bool
    """True if it is the copy of the two; if that cannot be determined, both are suspicious."""


def find_lookalikes(
    movements: Sequence[Transfer], wallet: str, assess: Callable[[Transfer], CounterpartyEvidence]
) -> Mapping[str, Lookalike]:
    """Find counterparties that look like another one: people compare the first and the last four digits.

    Of tokens that look the same, the one with the strongest evidence is the original, and the others are
    copies. Two with equal evidence cannot be distinguished.
    """
    strength: dict[str, int] = {}
    for each in movements:
        if side := each.counterparty(wallet):
            strength[side] = max(strength.get(side, 0), assess(each))
    strength[wallet] = CounterpartyEvidence.STRONG
    alike: dict[str, list[str]] = {}
    for side in sorted(strength, key=lambda side: (-strength[side], side != wallet, side)):
        if int(_visible_part(side), 16):
            alike.setdefault(_visible_part(side), []).append(side)
    result: dict[str, Lookalike] = {}
    for first, *others in alike.values():
        result |= {side: Lookalike(first, strength[side] < strength[first]) for side in others}
        if others and first != wallet and strength[others[0]] == strength[first]:
            result[first] = Lookalike(others[0], is_copy=False)
    return result


_COPY_EXPLANATION = (
    "The counterparty begins and ends like an address that the wallet deals with, but is another one: "
    "copied from the history, it sends money to a stranger."
)
_AMBIGUOUS_EXPLANATION = (
    "The counterparty looks like another address in this history, and it is not known which of the two is "
    "fake: compare every character before you pay either."
)


def find_transfer_suspicions(
    movement: Transfer,
    wallet: str,
    chain_id: int,
    lookalikes: Mapping[str, Lookalike],
    *,
    has_confident_price: bool = False,
) -> tuple[Suspicion, ...]:
    """Return the reasons to suspect a transfer: a lookalike counterparty, a zero value, its token."""
    reasons: list[Suspicion] = []
    if twin := lookalikes.get(movement.counterparty(wallet) or ""):
        reasons.append(
            Suspicion(
                "lookalike_counterparty",
                _COPY_EXPLANATION if twin.is_copy else _AMBIGUOUS_EXPLANATION,
                twin.other_address,
            )
        )
    if movement.amount == 0 and (movement.token or movement.sender != wallet):
        reasons.append(
            Suspicion(
                "zero_value",
                "Nothing was moved: anyone can send such a transfer to plant an address in the history.",
                "0",
            )
        )
    return (
        *reasons,
        *(
            find_token_suspicions(movement.token, chain_id, has_confident_price=has_confident_price)
            if movement.token
            else ()
        ),
    )


def _visible_part(address: str) -> str:
    return address[2:6] + address[-4:]
