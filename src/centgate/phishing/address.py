"""Reading an address as a browser would: which host would it really open?"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ada_url import URL, idna_to_unicode

SCHEMES: Final = frozenset({"http", "https", "ws", "wss", "ftp"})
PAGES: Final = ("http:", "https:")

# A host that the URL standard leaves as it is, but for its case; most addresses have one, and need no parser.
# A last label that starts with a digit may be a number, so that is left to the parser.
PLAIN: Final = re.compile(
    r"(?:(?:https?|wss?|ftp)://)?+((?:[a-z0-9_-]*+\.)*[a-z_-][a-z0-9_-]*+\.?)(?=[/?#]|\Z)",
    re.ASCII | re.IGNORECASE,
)
SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]*):", re.ASCII | re.IGNORECASE)
PORT: Final = re.compile(r":(?:[0-9]+(?=[/?#\\])|[0-9]*\Z)")
SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
PLAIN_PUNYCODE: Final = re.compile(r"xn--.+-")
INVISIBLE: Final = {ord(mark): None for mark in "\t\r\n"}
BLANK: Final = "".join(map(chr, range(0x21)))  # C0 controls and space


class UnreadableAddress(ValueError):
    """The text is no address that a browser could open; the message says why."""


class WebAddress(NamedTuple):
    """An address as read: what was given, and the host it leads to. (A tuple is made in half the time.)"""

    text: str
    """As given."""
    host: str
    """In ASCII and lower case, IPv6 in brackets, trailing dots as given."""

    @property
    def domain(self) -> str:
        """The host without the one dot that may end it."""
        return self.host.removesuffix(".")

    @property
    def pathname(self) -> str:
        """The canonical path; empty for schemes that do not open pages."""
        url = URL(with_scheme(self.text))
        return url.pathname if url.protocol in PAGES else ""

    @property
    def unicode_domain(self) -> str:
        """The domain as people read it, punycode decoded."""
        return idna_to_unicode(self.domain) if "xn--" in self.host else self.domain


def read_address(text: str) -> WebAddress:
    """Read a URL or a bare domain by the rules of the URL standard (https://url.spec.whatwg.org).

    A text without a scheme is read as if it began with `https://`, and so is `host:port`. Raises
    `UnreadableAddress` for what has no host, and for schemes other than http, https, ws, wss and ftp.
    """
    if text.isascii() and (plain := PLAIN.match(text)):
        host = plain[1].lower()
    else:
        host = host_of(with_scheme(text), text)
    if "xn--" in host:
        refuse_invalid_punycode(host, text)
    return WebAddress(text, host)


def with_scheme(text: str) -> str:
    """The text as a browser's address bar completes it."""
    if SURROGATE.search(text):
        raise UnreadableAddress("the address contains half of a surrogate pair, which is no character")
    # the standard does this before it looks for a scheme, so `ht\ntps:` is one
    trimmed = text.strip(BLANK).translate(INVISIBLE)
    if not trimmed:
        raise UnreadableAddress("the address is empty")
    scheme = SCHEME.match(trimmed)
    if scheme is None:
        return f"https://{trimmed}"
    if scheme[1].lower() in SCHEMES:
        return trimmed
    if PORT.match(trimmed, scheme.end() - 1):
        return f"https://{trimmed}"
    raise UnreadableAddress(f"{shown(text)} has the scheme {shown(scheme[1])}, which opens no website")


def host_of(url: str, text: str) -> str:
    try:
        host = URL(url).hostname
    except ValueError:
        raise UnreadableAddress(f"{shown(text)} is not a valid address") from None
    if not host.strip("."):
        raise UnreadableAddress(f"{shown(text)} names no host")
    return host


def refuse_invalid_punycode(host: str, text: str) -> None:
    # The parser lets labels in ASCII pass whatever their punycode says; browsers open none that cannot be
    # decoded. What ends in a hyphen encodes plain ASCII, and stays as it is when decoded.
    for label in host.split("."):
        if (
            label.startswith("xn--")
            and not PLAIN_PUNYCODE.fullmatch(label)
            and idna_to_unicode(label) == label
        ):
            raise UnreadableAddress(
                f"{shown(text)} has the label {shown(label)}, which is not valid punycode"
            )


def shown(text: str) -> str:
    """The value as a message shows it: quoted, printable, not longer than a line."""
    return repr(text if len(text) <= 80 else f"{text[:79]}…")
