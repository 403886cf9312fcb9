"""Client address: that of the connection, or the one written by trusted proxies."""

from __future__ import annotations

import pytest
from starlette.types import Scope

from centgate.client_address import UNKNOWN_CLIENT, ClientAddressReader

PROXY = "10.0.0.2"


def scope_of(peer: str | None, *forwarded: str) -> Scope:
    headers = [(b"x-forwarded-for", each.encode("latin-1")) for each in forwarded]
    return {"type": "http", "client": (peer, 50_000) if peer else None, "headers": headers}


def read_address(
    peer: str | None, *forwarded: str, trusted: tuple[str, ...] = ("10.0.0.0/8", "fd00::1")
) -> str:
    return ClientAddressReader(trusted).read_client_key(scope_of(peer, *forwarded))


@pytest.mark.parametrize(
    ("peer", "name"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        (None, UNKNOWN_CLIENT),
        ("testclient", UNKNOWN_CLIENT),
    ],
)
def test_peer_is_client_without_proxies(peer: str | None, name: str) -> None:
    assert read_address(peer, "198.51.100.7", trusted=()) == name


@pytest.mark.parametrize(
    ("forwarded", "name"),
    [
        (("192.0.2.1",), "192.0.2.1"),
        (("192.0.2.66, 192.0.2.1",), "192.0.2.1"),
        (("192.0.2.66", "192.0.2.1"), "192.0.2.1"),
        (("192.0.2.66, 192.0.2.1, 10.1.1.1,fd00::1 ",), "192.0.2.1"),
        (("::ffff:192.0.2.1, ::ffff:10.1.1.1",), "192.0.2.1"),
        (("2001:db8::5",), "2001:db8::/64"),
        (("10.9.9.9, 10.1.1.1",), "10.9.9.9"),
        (("192.0.2.1, nonsense, 10.1.1.1",), "10.1.1.1"),
        (("192.0.2.1, , 10.1.1.1",), "10.1.1.1"),
        (("192.0.2.1:4711",), PROXY),
        (("1" * 1000,), PROXY),
        (("\xff",), PROXY),
        (("",), PROXY),
        ((), PROXY),
    ],
)
def test_client_behind_trusted_proxies_is_found(forwarded: tuple[str, ...], name: str) -> None:
    assert read_address(PROXY, *forwarded) == name


@pytest.mark.parametrize("peer", ["192.0.2.1", "11.0.0.2", None])
def test_header_of_untrusted_peer_is_ignored(peer: str | None) -> None:
    assert read_address(peer, "198.51.100.7") == (peer or UNKNOWN_CLIENT)


def test_mapped_peer_is_trusted_as_ipv4() -> None:
    assert read_address(f"::ffff:{PROXY}", "192.0.2.1") == "192.0.2.1"


@pytest.mark.parametrize("network", ["10.0.0.0/33", "proxy", "10.0.0.1/8", "10.0.0.1:80", "10.0.0.0/8;x"])
def test_invalid_proxy_address_is_refused(network: str) -> None:
    with pytest.raises(ValueError, match=r"not .* IPv[46]|has host bits"):
        ClientAddressReader([network])
