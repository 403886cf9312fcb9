"""Pages that stand in for the page that was asked for: bot checks, and shells that scripts are to fill."""

from __future__ import annotations

import re
from itertools import islice

from centgate.pages.addresses import absolute
from centgate.pages.document import Element, found_by, text_of

LITTLE_TEXT = 1500
"""Characters of text above which a page is one, whatever it calls itself."""
SHELL_TEXT = 200
_LOOKED_AT = 256 * 1024
_TITLES = re.compile(
    r"just a moment|attention required|access (?:to this page has been )?denied|"
    r"are you (?:a )?(?:human|robot)|"
    r"robot check|pardon our interruption|human verification|security check|"
    r"verify(?:ing)? (?:you are|that you)|"
    r"ddos-guard|checking your browser|one more step|bot (?:verification|protection)|client challenge|"
    r"please wait\.\.\.|you have been blocked|request (?:blocked|rejected)|unusual traffic|captcha",
    re.IGNORECASE,
)
_MARKS = re.compile(
    rb"_cf_chl_opt|/cdn-cgi/challenge-platform/h/|cf-browser-verification|cf-error-details|cf_captcha_kind|"
    rb"captcha-delivery\.com|px-captcha|_pxAppId|_Incapsula_Resource|Incapsula incident|"
    rb"awsWafCookieDomainList|"
    rb"AwsWafIntegration|gokuProps|errors\.edgesuite\.net|distil_r_captcha|sgcaptcha|/_sec/cp_challenge|"
    rb"g-recaptcha|h-captcha|cf-turnstile|geetest_|ddos-guard",
    re.IGNORECASE,
)
_SAYS = re.compile(
    r"verify (?:that )?you are (?:a )?human|enable javascript and cookies to continue|not a robot|"
    r"unusual traffic|"
    r"automated (?:access|requests|queries)|bot (?:activity|traffic)|complete the (?:security|captcha)|"
    r"you don.t have permission to access|access denied|"
    r"your (?:ip|request) (?:address )?(?:has been|was) blocked",
    re.IGNORECASE,
)
_MISSING = re.compile(
    r"^\W*(?:(?:error|fehler|http)\W*)?404\b|\b404\W*$|page (?:was |could )?not (?:be )?found|"
    r"seite (?:wurde )?nicht gefunden|page (?:non trouv\u00e9e|introuvable)|p\u00e1gina no encontrada",
    re.IGNORECASE,
)
_REFRESH = re.compile(r"\s*(\d{1,3})(?:\.\d*)?\s*[;,]\s*(?:url\s*=\s*)?[\"']?([^\"'<>]+)", re.IGNORECASE)
_AT_ONCE = 5
"""Seconds within which a page that sends its reader on is no page of its own."""
_MOST_METAS = 50
_LONGEST_NOTE = 2000
_ROOTS = (
    "//*[@id='root' or @id='app' or @id='__next' or @id='__nuxt' or @id='app-root' or @id='react-root' or "
    "@id='___gatsby' or @id='svelte' or @id='q-app' or @id='main-app' or @ng-app or "
    "@data-reactroot or @data-server-rendered]"
    " | //app-root | //*[@ng-version]"
)
_NEEDS = re.compile(
    r"(?:enable|requires?|need|turn on|without|activate|aktivier\w*|activer|"
    r"habilit\w*)\W+(?:\w+\W+){0,4}?java\s*script|"
    r"java\s*script (?:is|must be|to be|has been)\s+(?:\w+\s+)?(?:required|enabled|disabled|turned)",
    re.IGNORECASE,
)


def is_challenge(body: bytes) -> bool:
    """Whether bytes carry the marks of a bot check; says nothing of what else is there."""
    return _MARKS.search(body[:_LOOKED_AT]) is not None


def is_wall(body: bytes, title: str | None, text: str) -> bool:
    """Whether a page is a bot check or a refusal in place of a page; `text` is all that it shows."""
    if len(text) > LITTLE_TEXT:
        return False
    titled = bool(title and len(title) < 120 and _TITLES.search(title))
    marked, says = is_challenge(body), _SAYS.search(text[:LITTLE_TEXT]) is not None
    return (titled and (marked or says or len(text) < 300)) or (marked and (says or len(text) < SHELL_TEXT))


def says_missing(title: str | None, text: str) -> bool:
    """Whether a page says that there is none, whatever its status; `text` is all that it shows."""
    return len(text) < LITTLE_TEXT and bool(title and _MISSING.search(title))


def leads_to(root: Element, base: str, text: str) -> str | None:
    """Where a page with little text sends whoever opens it, by a `refresh`."""
    if len(text) >= SHELL_TEXT:
        return None
    for meta in islice(root.iter("meta"), _MOST_METAS):
        parent = meta.getparent()
        if (meta.get("http-equiv") or "").lower() != "refresh" or (
            parent is not None and parent.tag == "noscript"
        ):
            continue
        found = _REFRESH.match((meta.get("content") or "")[:_LONGEST_NOTE])
        if found and int(found[1]) <= _AT_ONCE:
            address = absolute(base, found[2].strip())
            return address if address and address.startswith("http") else None
    return None


def needs_scripts(root: Element, text: str) -> bool:
    """Whether a page shows little text and has the signs that its scripts are to make it."""
    if len(text) >= SHELL_TEXT * 2:
        return False
    scripts = sum(1 for each in root.iter("script") if "json" not in (each.get("type") or ""))
    if not scripts:
        return False
    asked = any(_NEEDS.search(text_of(each)[:_LONGEST_NOTE]) for each in root.iter("noscript"))
    rooted = bool(found_by(root, _ROOTS))
    if asked or rooted or _NEEDS.search(text):
        return True
    return len(text) < SHELL_TEXT and scripts >= 2
