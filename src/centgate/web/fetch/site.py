"""Site of a URL: the part of its address that its owner has to pay for."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from tld import get_tld
from tld.utils import Result

IPV6_SITE_BITS = 64
"""Prefix length that a host is usually given (RFC 6177): the addresses below it are all its own."""


def find_site(url: str) -> str:
    """Return the registrable domain of a URL, or its address; an IPv6 address stands for its /64 network.

    Subdomains cost nothing, so they count as one site. Below a public suffix that is open to all, such as
    `github.io`, each name is a site of its own.
    """
    host = (urlsplit(url).hostname or "").rstrip(".")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        found = get_tld(f"https://{host}/", as_object=True, fail_silently=True, search_private=True)
        return found.fld if isinstance(found, Result) and found.fld else ".".join(host.split(".")[-2:])
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, IPV6_SITE_BITS), strict=False))
