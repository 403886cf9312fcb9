"""Detect pages in place of the requested one: bot checks, and shells filled by scripts."""

from __future__ import annotations

import re
from itertools import islice

from centgate.web.extract.dom import Element, extract_all_text, find_by_xpath
from centgate.web.extract.elements import extract_text
from centgate.web.extract.links import resolve_link
from centgate.web.extract.truncate import classify_line

MAX_INTERSTITIAL_TEXT = 1500
"""Characters of text above which a page counts as content, whatever its title."""
MAX_SHELL_TEXT = 200
MAX_FRAME_TEXT = 3000
"""Characters of menus and footer beside an empty root of an application."""
_SCAN_BYTES = 256 * 1024
_INTERSTITIAL_TITLE = re.compile(
    r"just a moment|attention required|access (?:to this page has been )?denied|"
    r"are you (?:a )?(?:human|robot)|"
    r"robot check|pardon our interruption|human verification|security check|"
    r"verify(?:ing)? (?:you are|that you)|"
    r"ddos-guard|checking your browser|one more step|bot (?:verification|protection)|client challenge|"
    r"please wait\.\.\.|you have been blocked|request (?:blocked|rejected)|unusual traffic|captcha",
    re.IGNORECASE,
)
_CHALLENGE_MARK = re.compile(
    rb"_cf_chl_opt|/cdn-cgi/challenge-platform/h/|cf-browser-verification|cf-error-details|cf_captcha_kind|"
    rb"captcha-delivery\.com|px-captcha|_pxAppId|_Incapsula_Resource|Incapsula incident|"
    rb"awsWafCookieDomainList|"
    rb"AwsWafIntegration|gokuProps|errors\.edgesuite\.net|distil_r_captcha|sgcaptcha|/_sec/cp_challenge|"
    rb"g-recaptcha|h-captcha|cf-turnstile|geetest_|ddos-guard",
    re.IGNORECASE,
)
_CHALLENGE_TEXT = re.compile(
    r"verify (?:that )?you are (?:a )?human|enable javascript and cookies to continue|not a robot|"
    r"unusual traffic|"
    r"automated (?:access|requests|queries)|bot (?:activity|traffic)|complete the (?:security|captcha)|"
    r"you don.t have permission to access|access denied|"
    r"your (?:ip|request) (?:address )?(?:has been|was) blocked",
    re.IGNORECASE,
)
_REFRESH = re.compile(r"\s*(\d{1,3})(?:\.\d*)?\s*[;,]\s*(?:url\s*=\s*)?[\"']?([^\"'<>]+)", re.IGNORECASE)
_MAX_REFRESH_SECONDS = 5
"""Maximum delay of a `refresh` that makes a page a redirect."""
_NAVIGATION = re.compile(
    r"(?<![\w.$?&\"'-])(?<!const )(?<!let )(?<!var )(?:(?:window|document|self|top|parent)\.)?"
    r"location(?:(?:\.href)?\s*=(?![=>])|\.(?:replace|assign)\()"
)
"""Change of the page's address by a script; not a variable, a parameter or a part of an address."""
_MAX_METAS = 50
_MAX_NOTE_LENGTH = 2000
_APP_ROOTS = (
    "//*[@id='root' or @id='app' or @id='__next' or @id='__nuxt' or @id='app-root' or @id='react-root' or "
    "@id='___gatsby' or @id='svelte' or @id='q-app' or @id='main-app' or @ng-app or "
    "@data-reactroot or @data-server-rendered]"
    " | //app-root | //*[@ng-version]"
)
_SCRIPT_ROOTS = (
    "//*[@id='root' or @id='app' or @id='__next' or @id='__nuxt' or @id='react-root'] | //app-root"
)
_NEEDS_JAVASCRIPT = re.compile(
    r"(?:enable|requires?|need|turn on|without|activate|aktivier\w*|activer|"
    r"habilit\w*)\W+(?:\w+\W+){0,4}?java\s*script|"
    r"java\s*script (?:is|must be|to be|has been)\s+(?:\w+\s+)?(?:required|enabled|disabled|turned)",
    re.IGNORECASE,
)

MAX_PLACEHOLDER_LETTERS = 60
MAX_PLACEHOLDER_WORDS = 4
MAX_PLACEHOLDER_LENGTH = 100
_PLACEHOLDER = re.compile(
    r"\bloading\b|\bplease wait\b|\bone moment\b|\bredirecting\b|\binitiali[sz]ing\b|"
    r"\bgeladen\b|\bl\u00e4dt\b|"
    r"\bchargement\b|\bcargando\b|\bcaricamento\b|\bcarregando\b|\bladen\b|\u52a0\u8f7d\u4e2d|\u8aad\u307f\u8fbc\u307f\u4e2d|"
    r"\u0437\u0430\u0433\u0440\u0443\u0437\u043a\u0430",
    re.IGNORECASE,
)
_LADEN = re.compile(r"\b(?:ge)?laden\b", re.IGNORECASE)
_LOADING_LADEN = re.compile(r".*\b(?:wird|werden)\b.*\bgeladen|(?:bezig met |aan het )?laden", re.IGNORECASE)
"""Lines that say that something is loading with a word that otherwise is a shop, or full."""


def is_challenge(body: bytes) -> bool:
    """True if a body contains the marks of a bot check; it may contain content as well."""
    return _CHALLENGE_MARK.search(body[:_SCAN_BYTES]) is not None


def is_interstitial(body: bytes, title: str | None, text: str) -> bool:
    """True if a page is a bot check or a refusal; `text` is all its visible text."""
    if len(text) > MAX_INTERSTITIAL_TEXT:
        return False
    has_title = bool(title and len(title) < 120 and _INTERSTITIAL_TITLE.search(title))
    has_marks, has_phrase = (
        is_challenge(body),
        _CHALLENGE_TEXT.search(text[:MAX_INTERSTITIAL_TEXT]) is not None,
    )
    return (has_title and (has_marks or has_phrase or len(text) < 300)) or (
        has_marks and (has_phrase or len(text) < MAX_SHELL_TEXT)
    )


def find_refresh_target(root: Element, base: str, text: str) -> str | None:
    """Return the target of the `refresh` of a page with little text; None without one."""
    if len(text) >= MAX_SHELL_TEXT:
        return None
    for meta in islice(root.iter("meta"), _MAX_METAS):
        parent = meta.getparent()
        if (meta.get("http-equiv") or "").lower() != "refresh" or (
            parent is not None and parent.tag == "noscript"
        ):
            continue
        if (target := parse_refresh(meta.get("content"), base)) is not None:
            return target
    return None


def parse_refresh(value: str | None, base: str) -> str | None:
    """Return the target of an immediate `refresh` of a `meta` element or the HTTP header; None without one.

    Source: "shared declarative refresh steps" of the HTML standard, which are the same for both.
    """
    match = _REFRESH.match((value or "")[:_MAX_NOTE_LENGTH])
    if match is None or int(match[1]) > _MAX_REFRESH_SECONDS:
        return None
    address = resolve_link(base, match[2].strip())
    return address if address and address.startswith("http") else None


def needs_scripts(root: Element, text: str) -> bool:
    """True if a page shows little text and looks like a shell for its scripts."""
    if len(text) >= MAX_SHELL_TEXT * 2:
        return len(text) < MAX_FRAME_TEXT and has_empty_app_root(root)
    scripts = [each for each in root.iter("script") if _is_run(each)]
    if not scripts:
        return False
    if not text:
        return True  # a picture with a counter of visitors is rendered as well, since it has nothing to give
    has_notice = any(
        _NEEDS_JAVASCRIPT.search(extract_all_text(each)[:_MAX_NOTE_LENGTH]) for each in root.iter("noscript")
    )
    has_app_root = bool(find_by_xpath(root, _APP_ROOTS))
    if has_notice or has_app_root or _NEEDS_JAVASCRIPT.search(text):
        return True
    return len(text) < MAX_SHELL_TEXT and (len(scripts) >= 2 or _leads_elsewhere(scripts[0]))


def _leads_elsewhere(script: Element) -> bool:
    """True if a script sets the address of the page."""
    return _NAVIGATION.search((script.text or "")[:_MAX_NOTE_LENGTH]) is not None


def has_scripts(root: Element) -> bool:
    """True if a page has scripts that a browser runs."""
    return any(_is_run(each) for each in root.iter("script"))


def _is_run(script: Element) -> bool:
    return "json" not in (script.get("type") or "")


def has_empty_app_root(root: Element) -> bool:
    """True if the element that scripts fill is empty, in a page whose menus and footer are not.

    It may say that it is loading, or that it needs scripts.
    """
    sources = any(each.get("src") for each in islice(root.iter("script"), _MAX_METAS))
    roots = find_by_xpath(root, _SCRIPT_ROOTS) if sources else []
    return len(roots) == 1 and _is_empty(roots[0])


def _is_empty(app: Element) -> bool:
    text = extract_text(app).strip()
    return not text or (next(app.iter("a"), None) is None and is_placeholder(text))


def is_placeholder(text: str) -> bool:
    """True if a text only says that the page is loading, or that it needs scripts."""
    letters = sum(each.isalnum() for each in text[:_MAX_NOTE_LENGTH])
    return letters < MAX_PLACEHOLDER_LETTERS and bool(
        _PLACEHOLDER.search(text) or _NEEDS_JAVASCRIPT.search(text)
    )


def find_unloaded_part(markdown: str) -> str | None:
    """Return the line in which a page says that a part of it is loading; None without any.

    Code is not searched, which may print such a line, nor headings, which name the text below them.
    """
    kind, fence = "", ""
    for line in markdown.split("\n"):
        kind, fence = classify_line(line, "" if kind == "closing" else fence)
        text = line.strip("*_->| \t")
        if kind in ("text", "row") and not text.startswith("#") and _is_loading(text):
            return text
    return None


def _is_loading(text: str) -> bool:
    """True if a line is an ellipsis after few words that say that something is loading."""
    if len(text) > MAX_PLACEHOLDER_LENGTH or not text.endswith(("\u2026", "...")):
        return False
    if len(text.split()) > MAX_PLACEHOLDER_WORDS or not is_placeholder(text):
        return False
    return _LADEN.search(text) is None or _LOADING_LADEN.fullmatch(text.rstrip("\u2026. ")) is not None
