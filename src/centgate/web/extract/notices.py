"""Detect short pages with a notice in place of content: soft 404s, consent, maintenance, sign-in."""

from __future__ import annotations

import re

from centgate.web.extract.dom import Element

MAX_NOTICE_TEXT = 1500
"""Characters of visible text above which a page counts as content, whatever its title."""


def _compile(*phrases: str) -> re.Pattern[str]:
    return re.compile("|".join(phrases), re.IGNORECASE)


_NOT_FOUND = _compile(
    r"^\W*(?:(?:error|fehler|http)\W*)?404\b|\b404\W*$",
    r"page (?:was |could )?not (?:be )?found",
    r"seite (?:wurde )?nicht gefunden|seite existiert nicht",
    r"page (?:non trouv\u00e9e|introuvable)",
    r"p\u00e1gina no (?:encontrada|existe)",
    r"p\u00e1gina n\u00e3o (?:foi )?encontrada",
    r"pagina non (?:\u00e8 stata )?trovata",
    r"pagina niet gevonden",
    r"strona nie (?:zosta\u0142a znaleziona|istnieje)|nie znaleziono strony",
    r"sidan (?:kunde inte hittas|hittades inte|finns inte)",
    r"siden (?:blev ikke fundet|(?:findes|finnes) ikke)",
    r"sayfa bulunamad\u0131",
    # Russian: the page is not found, does not exist; Ukrainian: the page is not found
    r"\u0441\u0442\u0440\u0430\u043d\u0438\u0446\u0430 "
    r"\u043d\u0435 \u043d\u0430\u0439\u0434\u0435\u043d\u0430",
    r"\u0441\u0442\u0440\u0430\u043d\u0438\u0446\u0430 "
    r"\u043d\u0435 \u0441\u0443\u0449\u0435\u0441\u0442\u0432\u0443\u0435\u0442",
    r"\u0441\u0442\u043e\u0440\u0456\u043d\u043a\u0443 "
    r"\u043d\u0435 \u0437\u043d\u0430\u0439\u0434\u0435\u043d\u043e",
    # Japanese, Chinese in both scripts, Korean, Arabic
    r"\u30da\u30fc\u30b8(?:\u304c|\u306f)"
    r"(?:\u898b\u3064\u304b\u308a\u307e\u305b\u3093|\u5b58\u5728\u3057\u307e\u305b\u3093)",
    r"(?:\u9875\u9762|\u7f51\u9875|\u9801\u9762|\u7db2\u9801)"
    r"(?:\u4e0d\u5b58\u5728|\u672a\u627e\u5230|\u627e\u4e0d\u5230)",
    r"\ud398\uc774\uc9c0\ub97c \ucc3e\uc744 \uc218 \uc5c6",
    r"\u0627\u0644\u0635\u0641\u062d\u0629 \u063a\u064a\u0631 \u0645\u0648\u062c\u0648\u062f\u0629",
)
_CONSENT = _compile(
    r"^\W*before you (?:continue|proceed) to (?:google|youtube)\b",
    r"^\W*bevor (?:du|sie) (?:zu|mit) (?:google|youtube) weiter",
    r"^\W*avant d.acc\u00e9der \u00e0 (?:google|youtube)\b",
    r"^\W*antes de ir a (?:google|youtube)\b",
    r"^\W*prima di (?:continuare|passare) (?:su|a) (?:google|youtube)\b",
    r"is part of the yahoo family|ist teil der yahoo markenfamilie",
    r"^\W*(?:cookie consent|we value your privacy|your privacy choices|privacy gate)\W*$",
)
_MAINTENANCE = _compile(
    r"^\W*(?:503\W*)?(?:(?:the |this |our )?(?:site|website|page|shop|store) (?:is )?|we(?:.re| are) )?"
    r"(?:currently )?(?:under|down for|closed for) (?:scheduled )?maintenance\W*$",
    r"^\W*(?:503\W*)?(?:(?:site|website|scheduled) maintenance|maintenance (?:mode|page))\W*$",
    r"^\W*(?:wartungsarbeiten|wartungsmodus)\W*$",
    r"^\W*(?:site en maintenance|sitio en mantenimiento|sito in manutenzione)\W*$",
    r"^\W*site em manuten\u00e7\u00e3o\W*$",
)
_SUSPENDED = _compile(
    r"^\W*(?:this |your )?(?:account|site|website|domain|hosting)(?: name)?(?: [\w-]+\.[\w.-]+)? "
    r"(?:is |has |has been |was )?(?:temporarily )?(?:suspended|expired|disabled|deactivated)\W*$",
    r"^\W*(?:509\W*)?bandwidth limit exceeded\W*$",
    r"^\W*(?:website|site) not published\W*$",
)
_FOR_SALE = _compile(
    r"^\W*(?:the |this |your )?(?:premium )?domain(?: name)?(?: [\w-]+\.[\w.-]+)? "
    r"(?:is |may be |ist |est |est\u00e1 )?(?:for sale|zu verkaufen|\u00e0 vendre|en venta|parked)\b",
    r"^\W*(?:[\w-]+\.)+[a-z]{2,} (?:is|may be|ist|est) (?:for sale|zu verkaufen|\u00e0 vendre)\b",
    r"^\W*parked domain\b|\bhugedomains(?:\.com)?\W*$",
)
_SIGN_IN = _compile(
    r"\b(?:log|sign)[ -]?(?:in|on)\b|\blogin\b",
    r"\banmelde|\banmeldung\b|\bse connecter\b|\bconnexion\b|\biniciar sesi\u00f3n\b|\baccedi\b|\bentrar\b",
    # Japanese, Chinese, Russian
    r"\u30ed\u30b0\u30a4\u30f3|\u767b\u5f55|\b\u0432\u0445\u043e\u0434\b",
)
_WARNINGS = (
    (_NOT_FOUND, "the page says that this address does not exist"),
    (_CONSENT, "the page asks for consent before it shows its content, which was not read"),
    (_MAINTENANCE, "the page says that its site is closed for maintenance"),
    (_SUSPENDED, "the page says that its site is suspended or has expired"),
    (_FOR_SALE, "the page says that its domain is for sale or parked"),
)
"""Titles of notices, and the warning about each."""
_SIGN_IN_WARNING = "the page asks to sign in; what it shows after that was not read"


def find_notice(root: Element, title: str | None, text: str) -> str | None:
    """Return a warning if a short page has a notice in place of content; `text` is all its visible text."""
    if title is None or len(text) >= MAX_NOTICE_TEXT:
        return None
    for pattern, warning in _WARNINGS:
        if pattern.search(title):
            return warning
    has_password = any((each.get("type") or "").lower() == "password" for each in root.iter("input"))
    return _SIGN_IN_WARNING if has_password and _SIGN_IN.search(title) else None
