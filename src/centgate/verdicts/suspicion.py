"""What makes a token, or a transfer, look like a trick: rules without any I/O.

The rules on names follow what wallets and revoke.cash publish of theirs. A token that is known by its address
is never suspicious, whatever it is called.
"""

# ruff: noqa: RUF001 - letters that are taken for others are part of what this is about

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from centgate.facts.known_tokens import NATIVE_AS_TOKEN, known_token
from centgate.facts.wallets import Holding, Movement, Price, Token, scaled, worth
from centgate.phishing.homograph import LATIN, skeleton
from centgate.text import cleaned, hidden

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

READ = 300
"""Characters of a name that are looked at."""
DUST_USD = 1.0
"""US dollars under which what comes in can be a plant. Honest transfers are that small too."""
DUST_COINS, DUST_TOKENS = 0.001, 1
"""The same in whole units, where there is no price: of the chain's own coin, and of a token."""

_MAJORS = (
    "ARB BNB BTC BUSD CBBTC DAI ETH EURC LINK MATIC OP POL PYUSD SHIB STETH UNI USDC USDE USDS USDT USDT0"
    " WBNB WBTC WETH WMATIC WPOL WSTETH"
)
MAJORS = frozenset(_MAJORS.split())
"""Symbols that are worth imitating, on every chain; others are shared by honest tokens."""

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
"""Check marks, which imitate a verified badge, and presents."""
_DOTS = re.compile(r"\s*(?:[\u3002\u2024\u00b7\u2022\u2027]|[\[({]\s*(?:\.|dot)\s*[\])}])\s*", re.IGNORECASE)
"""Dots that are none, and dots in brackets."""
_DOLLARS = re.compile("[\uff04\ufe69\U0001f4b2]|\\$\\s+\\w")
_DRAWN = re.compile("(?<=[\u00a9\u00ae\u2000-\u3300\U0001f000-\U0001faff])[\ufe0e\ufe0f\u200d]")
"""What picks the drawing of an emoji, which hides nothing."""
_CAPITALS = str.maketrans("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ₮", "ABEZHIKMNOPTYXT")
"""Greek capitals that read like Latin ones, whatever their small letters read like; and tether's sign."""
_NOTATION = frozenset("αβγδεμσω")
"""Greek letters that honest names use for themselves: alpha, micro."""


@dataclass(frozen=True, slots=True)
class Suspicion:
    """One reason to distrust. `value` is what gave rise to it, cleaned."""

    id: SuspicionId
    explanation: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Rule:
    """What a token may show that honest ones rarely do: `found` gives what it shows, None for nothing."""

    id: SuspicionId
    explanation: str
    found: Callable[[Token], str | None]
    weak: bool = False
    """Whether honest tokens do it too, so that alone it says nothing against one that trades."""


def suspicions(token: Token, chain_id: int, *, trades: bool = False) -> tuple[Suspicion, ...]:
    """Why a token looks like a trick; nothing for one that is known by its address.

    `trades`: whether there is a confident price of it.
    """
    if _is_genuine(token, chain_id):
        return ()
    found = [(rule, value) for rule in RULES if (value := rule.found(token))]
    if trades and all(rule.weak for rule, _ in found):
        return ()
    return tuple(Suspicion(rule.id, rule.explanation, cleaned(value)) for rule, value in found)


def suspicions_of_holding(holding: Holding, chain_id: int, *, trades: bool = False) -> tuple[Suspicion, ...]:
    """Why a token that a wallet holds looks like a trick, the amount it claims included."""
    found = suspicions(holding.token, chain_id, trades=trades)
    supply = holding.token.supply
    if supply is None or holding.amount <= supply or _is_genuine(holding.token, chain_id):
        return found
    boast = Suspicion(
        "more_than_exists",
        "The token claims that the wallet holds more of it than there is at all: its balances are made up.",
        f"supply {supply}",
    )
    return (*found, boast)


def _is_genuine(token: Token, chain_id: int) -> bool:
    return token.address in NATIVE_AS_TOKEN or known_token(chain_id, token.address) is not None


def _accused(token: Token) -> str | None:
    return token.accused


def _imitated(token: Token) -> str | None:
    """The symbol, when it reads like that of a major token, or of a chain's own coin."""
    return token.symbol if token.symbol and _reads(token.symbol) in _MAJORS_READ else None


def _reads(symbol: str) -> str:
    """What people read in a symbol: without what cannot be seen, in plain Latin letters."""
    plain = unicodedata.normalize("NFKC", cleaned(symbol[:READ]) or "").translate(_CAPITALS)
    return skeleton(plain.casefold().strip(" $.-_*"))


def _link(token: Token) -> str | None:
    return _first(token, lambda text: _LINK.search(_folded(text)) is not None)


def _bait(token: Token) -> str | None:
    return _first(token, lambda text: _BAIT.search(_folded(text)) is not None)


def _unusual(token: Token) -> str | None:
    return _first(token, _has_unusual)


def _has_unusual(text: str) -> bool:
    """Check marks, dollar signs that are none, letters mixed from two alphabets, or what cannot be seen."""
    return (
        _MARKS.search(text) is not None
        or _DOLLARS.search(text) is not None
        or hidden(_DRAWN.sub("", text.strip()))
        or _mixed(text)
    )


def _mixed(text: str) -> bool:
    """Whether Cyrillic or Greek letters that read like Latin ones stand among Latin ones."""
    foreign = (
        ord(letter.casefold()[:1]) in LATIN or ord(letter) in _CAPITALS
        for letter in text
        if "\u0370" <= letter <= "\u052f" and letter not in _NOTATION
    )
    return any(foreign) and any(letter.isascii() and letter.isalpha() for letter in text)


def _first(token: Token, shows: Callable[[str], bool]) -> str | None:
    """The first of name and symbol that shows something."""
    texts = (text[:READ] for text in (token.name, token.symbol) if text)
    return next((text for text in texts if shows(text)), None)


def _folded(text: str) -> str:
    """In plain letters, as they are read: wide and styled ones, and dots that are none, made usual."""
    plain = unicodedata.normalize("NFKC", cleaned(text, READ) or "")
    return _DOTS.sub(".", plain)


_MAJORS_READ = frozenset(_reads(major) for major in MAJORS)


RULES: tuple[Rule, ...] = (
    Rule("flagged_by_source", "The source itself marks this token as a scam.", _accused),
    Rule(
        "imitates_known_symbol",
        "Its symbol reads like that of a major token or of a chain's own coin, but it is another contract.",
        _imitated,
    ),
    Rule("link_in_name", "Its name contains a link.", _link, weak=True),
    Rule(
        "reward_bait", "Its name or symbol promises a reward, as bait for a site that empties wallets.", _bait
    ),
    Rule(
        "unusual_characters",
        "Its name or symbol carries marks or letters that imitate others, or that cannot be seen.",
        _unusual,
    ),
)


class Proof(IntEnum):
    """What a transfer proves of its other side."""

    NONE = 0
    """It moves nothing: anyone can make it."""
    WEAK = 1
    """Dust that came in, or a token that nobody vouches for, whose contract can name any two addresses."""
    DEALT_WITH = 2
    """The wallet itself paid or called it, or got from it what no stranger gives away."""


def proof(movement: Movement, wallet: str, chain_id: int, price: Price | None) -> Proof:
    """What a transfer proves of its other side; `price` is that of what it moves."""
    token, paid = movement.token, movement.sender == wallet
    if token is None and paid:
        return Proof.DEALT_WITH
    if movement.amount == 0:
        return Proof.NONE
    if movement.amount is None or (token and not _is_money(token, chain_id, price)):
        return Proof.WEAK
    return Proof.DEALT_WITH if paid or not _is_dust(movement, price) else Proof.WEAK


def _is_money(token: Token, chain_id: int, price: Price | None) -> bool:
    if _is_genuine(token, chain_id):
        return True
    return price is not None and price.confident and not suspicions(token, chain_id, trades=True)


def _is_dust(movement: Movement, price: Price | None) -> bool:
    units = scaled(movement.amount, movement.token.decimals if movement.token else 18)
    if units is None:
        return True
    usd = worth(units, price.usd) if price else None
    if usd is None:
        return units < (DUST_TOKENS if movement.token else DUST_COINS)
    return usd < DUST_USD


@dataclass(frozen=True, slots=True)
class Lookalike:
    """A counterparty that can be taken for another address of the history, or for the wallet."""

    of: str
    copied: bool
    """Whether it is the copy of the two; where that cannot be told, both stand under suspicion."""


def lookalikes(
    movements: Sequence[Movement], wallet: str, prove: Callable[[Movement], Proof]
) -> Mapping[str, Lookalike]:
    """Counterparties that can be taken for another: people compare the first and the last four digits.

    Of those that look the same, the one that most is proved of is the address that was meant, and the
    others are copies of it; two of which the same is proved cannot be told apart.
    """
    proved: dict[str, int] = {}
    for each in movements:
        if side := each.counterparty(wallet):
            proved[side] = max(proved.get(side, 0), prove(each))
    proved[wallet] = Proof.DEALT_WITH
    alike: dict[str, list[str]] = {}
    for side in sorted(proved, key=lambda side: (-proved[side], side != wallet, side)):
        if int(_look(side), 16):
            alike.setdefault(_look(side), []).append(side)
    found: dict[str, Lookalike] = {}
    for first, *others in alike.values():
        found |= {side: Lookalike(first, proved[side] < proved[first]) for side in others}
        if others and first != wallet and proved[others[0]] == proved[first]:
            found[first] = Lookalike(others[0], copied=False)
    return found


_COPIED = (
    "The other side begins and ends like an address that the wallet deals with, and is another: "
    "copied from the history, it sends money to a stranger."
)
_ALIKE = (
    "The other side looks like another address in this history, and which of the two is the impostor cannot "
    "be told: compare every character before you pay either."
)


def suspicions_of_transfer(
    movement: Movement,
    wallet: str,
    chain_id: int,
    alike: Mapping[str, Lookalike],
    *,
    trades: bool = False,
) -> tuple[Suspicion, ...]:
    """Why a transfer looks like a trick; `alike` as `lookalikes` gives it, `trades` as in `suspicions`."""
    found: list[Suspicion] = []
    if twin := alike.get(movement.counterparty(wallet) or ""):
        found.append(Suspicion("lookalike_counterparty", _COPIED if twin.copied else _ALIKE, twin.of))
    if movement.amount == 0 and (movement.token or movement.sender != wallet):
        found.append(
            Suspicion(
                "zero_value",
                "Nothing was moved: anyone can make such a transfer, to plant an address in the history.",
                "0",
            )
        )
    return (*found, *(suspicions(movement.token, chain_id, trades=trades) if movement.token else ()))


def _look(address: str) -> str:
    return address[2:6] + address[-4:]
