"""Parse an address as a browser does, to find the host that it really opens."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ada_url import URL, idna_to_unicode

SCHEMES: Final = frozenset({"http", "https", "ws", "wss", "ftp"})
PAGE_SCHEMES: Final = ("http:", "https:")

# A host that the URL standard does not change, except for its case; most addresses have one
# and need no parser. A last label that starts with a digit may be a number, so it is left to the parser.
PLAIN_HOST: Final = re.compile(
    r"(?:(?:https?|wss?|ftp)://)?+((?:[a-z0-9_-]*+\.)*[a-z_-][a-z0-9_-]*+\.?)(?=[/?#]|\Z)",
    re.ASCII | re.IGNORECASE,
)
SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]*):", re.ASCII | re.IGNORECASE)
PORT: Final = re.compile(r":(?:[0-9]+(?=[/?#\\])|[0-9]*\Z)")
SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
PLAIN_PUNYCODE: Final = re.compile(r"xn--.+-")
REMOVED_CHARACTERS: Final = {ord(mark): None for mark in "\t\r\n"}
STRIPPED_CHARACTERS: Final = "".join(map(chr, range(0x21)))  # C0 controls and space


class InvalidAddress(ValueError):
    """The text is not an address that a browser could open; the message says why."""


class WebAddress(NamedTuple):
    """A parsed address: the original text and the host that it opens. (A tuple costs half the time.)"""

    text: str
    """The original text."""
    host: str
    """In ASCII and lower case, IPv6 in brackets, trailing dots unchanged."""

    @property
    def domain(self) -> str:
        """The host without the single dot that may end it."""
        return self.host.removesuffix(".")

    @property
    def pathname(self) -> str:
        """The canonical path; empty for schemes that do not open pages."""
        url = URL(add_scheme(self.text))
        return url.pathname if url.protocol in PAGE_SCHEMES else ""

    @property
    def unicode_domain(self) -> str:
        """The domain as people read it, with punycode decoded."""
        return idna_to_unicode(self.domain) if "xn--" in self.host else self.domain


def parse_address(text: str) -> WebAddress:
    """Parse a URL or a bare domain by the rules of the URL standard (https://url.spec.whatwg.org).

    A text without a scheme is parsed as if it began with `https://`, and so is `host:port`. Raises
    `InvalidAddress` for a text without a host, and for schemes other than http, https, ws, wss and ftp.
    """
    if text.isascii() and (plain_host := PLAIN_HOST.match(text)):
        host = plain_host[1].lower()
    else:
        host = parse_host(add_scheme(text), text)
    if "xn--" in host:
        reject_invalid_punycode(host, text)
    return WebAddress(text, host)


def add_scheme(text: str) -> str:
    """Complete a text as a browser's address bar does."""
    if SURROGATE.search(text):
        raise InvalidAddress("the address contains an unpaired surrogate, which is not a character")
    # the standard does this before it looks for a scheme, so `ht\ntps:` is one
    text_without_blanks = text.strip(STRIPPED_CHARACTERS).translate(REMOVED_CHARACTERS)
    if not text_without_blanks:
        raise InvalidAddress("the address is empty")
    scheme = SCHEME.match(text_without_blanks)
    if scheme is None:
        return f"https://{text_without_blanks}"
    if scheme[1].lower() in SCHEMES:
        return text_without_blanks
    if PORT.match(text_without_blanks, scheme.end() - 1):
        return f"https://{text_without_blanks}"
    raise InvalidAddress(
        f"{quote_value(text)} has the scheme {quote_value(scheme[1])}, which does not open a website"
    )


def parse_host(url: str, text: str) -> str:
    try:
        host = URL(url).hostname
    except ValueError:
        raise InvalidAddress(f"{quote_value(text)} is not a valid address") from None
    if not host.strip("."):
        raise InvalidAddress(f"{quote_value(text)} has no host")
    return host


def reject_invalid_punycode(host: str, text: str) -> None:
    # The parser accepts ASCII labels without checking their punycode; browsers do not open labels that cannot
    # be decoded. A label that ends in a hyphen encodes plain ASCII and does not change when decoded.
    for label in host.split("."):
        if (
            label.startswith("xn--")
            and not PLAIN_PUNYCODE.fullmatch(label)
            and idna_to_unicode(label) == label
        ):
            raise InvalidAddress(
                f"{quote_value(text)} has the label {quote_value(label)}, which is not valid punycode"
            )


def quote_value(text: str) -> str:
    """Return a value for a message: quoted, printable, at most one line long."""
    return repr(text if len(text) <= 80 else f"{text[:79]}…")
