"""Addresses that may be fetched: tables, notations, and the operator's entries."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from centgate.web.fetch.policy import PUBLIC, FetchPolicy
from centgate.web.fetch.url import parse_target

REFUSED = (
    *("0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200", "100.127.255.255"),
    *("127.0.0.1", "127.255.255.254", "168.63.129.16", "169.254.0.1", "169.254.169.254", "172.16.0.1"),
    *("172.31.255.255", "192.0.0.1", "192.0.0.8", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1"),
    *("192.168.255.255", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1"),
    *("239.255.255.255", "240.0.0.1", "255.255.255.254", "255.255.255.255"),
    *("::", "::1", "::2", "::7f00:1", "::127.0.0.1", "::8.8.8.8", "::ffff:0:127.0.0.1", "::ffff:127.0.0.1"),
    *("::ffff:10.0.0.1", "::ffff:a9fe:a9fe", "64:ff9b::127.0.0.1", "64:ff9b::8.8.8.8", "64:ff9b:1::1"),
    *("100::1", "2001::1", "2001:0:7f00:1::", "2001:10::1", "2001:20::1", "2001:1ff:ffff::", "2001:db8::1"),
    *("2002::1", "2002:7f00:1::1", "2002:808:808::1", "3fff::1", "3fff:fff::1", "4000::1", "5f00::1"),
    *("fc00::1", "fd00:ec2::254", "fd20:ce::254", "fe80::1", "fe80::a9fe:a9fe", "fe80::1%eth0", "fec0::1"),
    *("ff00::1", "ff02::1", "ff0e::1", "1fff:ffff::1", "8000::1", "2606:4700::1111%eth0"),
)
PUBLIC_ONES = (
    *("1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255"),
    *("128.0.0.0", "168.63.129.15", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0"),
    *("192.0.1.0", "192.0.3.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0"),
    *("223.255.255.255", "::ffff:8.8.8.8", "2000::1", "2001:200::1", "2001:db7::1", "2001:db9::1"),
    *("2003::1", "2606:4700::1111", "2a00:1450::1", "3ffe::1", "3fff:1000::1"),
)
LOOPBACK = (
    *("127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7F.0x0.0x0.0x1", "0x7f.1"),
    *("017700000001", "0177.0.0.1", "0177.0.0.01", "127.0.0.1.", "0000000177.0.0.1", "127.0x0.0.01"),
    *("\u2460\u2461\u2466.0.0.1", "\uff11\uff12\uff17.\uff10.\uff10.\uff11", "127\u30020\u30020\u30021"),
    *(
        "%31%32%37.0.0.1",
        "127%2e0%2e0%2e1",
        "12\u00ad7.0.0.1",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
    ),
    *("[::ffff:7f00:1]", "[0:0:0:0:0:FFFF:7F00:0001]", "[::127.0.0.1]", "[64:ff9b::7f00:1]"),
    *("[64:ff9b::127.0.0.1]", "[2002:7f00:1::]", "[2001:0:7f00:1::]", "0", "0x", "0.0", "[::]"),
)


@pytest.mark.parametrize("address", REFUSED)
def test_non_public_address_is_refused(address: str) -> None:
    assert not PUBLIC.can_connect(address, 80)
    assert not PUBLIC.can_connect(address, 443)


@pytest.mark.extended
@pytest.mark.parametrize("address", PUBLIC_ONES)
def test_public_address_is_allowed_on_web_ports(address: str) -> None:
    assert PUBLIC.can_connect(address, 80)
    assert PUBLIC.can_connect(address, 443)
    assert not PUBLIC.can_connect(address, 22)
    assert not PUBLIC.can_connect(address, 8080)


@pytest.mark.parametrize(
    "address", ["", "example.com", "127.1", "2130706433", "0177.0.0.1", "[::1]", "8.8.8.8 "]
)
def test_invalid_address_is_refused(address: str) -> None:
    assert not PUBLIC.can_connect(address, 80)


@given(st.ip_addresses())
@example(IPv6Address("64:ff9b::1"))
@example(IPv6Address("::1.2.3.4"))
def test_addresses_outside_public_internet_are_refused(address: IPv4Address | IPv6Address) -> None:
    judged = (isinstance(address, IPv6Address) and address.ipv4_mapped) or address
    bad = judged.is_private or judged.is_loopback or judged.is_link_local or judged.is_multicast
    bad = bad or judged.is_reserved or judged.is_unspecified

    admitted = PUBLIC.can_connect(str(address), 443)

    assert not (admitted and bad)
    assert not (admitted and isinstance(judged, IPv6Address) and judged.exploded[0] not in "23")
    assert admitted == (PUBLIC.rejection(f"https://{_literal(address)}/") is None)


def _literal(address: IPv4Address | IPv6Address) -> str:
    return str(address) if isinstance(address, IPv4Address) else f"[{address}]"


PARTS = ("{0}", "0x{0:x}", "0x{0:X}", "0X{0:04x}", "0{0:o}", "000{0:o}")


@pytest.mark.extended
@given(
    st.ip_addresses(v=4), st.lists(st.sampled_from(PARTS), min_size=1, max_size=4), st.sampled_from(["", "."])
)
def test_notations_of_an_address_are_equivalent(address: IPv4Address, spellings: list[str], end: str) -> None:
    last = len(spellings) - 1
    numbers = [*address.packed[:last], int.from_bytes(address.packed[last:], "big")]
    spelt = ".".join(how.format(number) for how, number in zip(spellings, numbers, strict=True))

    objection = PUBLIC.rejection(f"http://{spelt}{end}/")

    assert (objection is None) == PUBLIC.can_connect(str(address), 80)


@pytest.mark.parametrize("host", LOOPBACK)
def test_unusual_notations_of_loopback_are_refused(host: str) -> None:
    objection = PUBLIC.rejection(f"http://{host}/")

    assert objection
    assert objection.endswith("is not a public address")


@pytest.mark.parametrize(
    ("url", "objection"),
    [
        ("http://10.0.0.1/", "its host 10.0.0.1 is not a public address"),
        ("http://0xa9fea9fe/latest", "its host 169.254.169.254 is not a public address"),
        ("http://[fd00:ec2::254]/", "its host fd00:ec2::254 is not a public address"),
        ("http://10.0.0.1:8080/", "its host 10.0.0.1 is not a public address"),
        ("http://8.8.8.8:8080/", "its port 8080 is not one of 80, 443"),
        ("https://example.com:22/", "its port 22 is not one of 80, 443"),
        ("http://user@example.com/", "it contains a user name or password"),
        ("http://:secret@example.com/", "it contains a user name or password"),
        ("http://8.8.8.8@127.0.0.1/", "it contains a user name or password"),
        ("file:///etc/passwd", "its scheme file is neither http nor https"),
        ("gopher://example.com/", "its scheme gopher is neither http nor https"),
        ("ftp://example.com/", "its scheme ftp is neither http nor https"),
        ("ws://example.com/", "its scheme ws is neither http nor https"),
        ("data:text/html,x", "its scheme data is neither http nor https"),
        ("javascript:alert(1)", "its scheme javascript is neither http nor https"),
        ("view-source:http://example.com/", "its scheme view-source is neither http nor https"),
        ("jar:http://127.0.0.1!/", "its scheme jar is neither http nor https"),
        ("http://localhost/", "its host localhost is a name of private networks"),
        ("http://LOCALHOST./", "its host localhost is a name of private networks"),
        ("http://a.localhost/", "its host a.localhost is a name of private networks"),
        ("http://wiki/", "its host wiki is a name of private networks"),
        ("http://printer.local/", "its host printer.local is a name of private networks"),
        ("http://printer.local./", "its host printer.local is a name of private networks"),
        (
            "http://metadata.google.internal/",
            "its host metadata.google.internal is a name of private networks",
        ),
        ("http://router.home.arpa/", "its host router.home.arpa is a name of private networks"),
        ("http://a.onion/", "its host a.onion is a name of private networks"),
        ("http://l\u24dec\u24d0lhost/", "its host localhost is a name of private networks"),
        ("http://a..example/", "its host a..example is not a host name"),
        ("http://example.com../", "its host example.com. is not a host name"),
        ("http://a$b.example/", "its host a$b.example is not a host name"),
        (f"http://{'a' * 64}.example/", f"its host {'a' * 64}.example is not a host name"),
        ("http://[::1%25eth0]/", "it is not a valid URL"),
        ("http://[fe80::1%eth0]/", "it is not a valid URL"),
        ("http://256.1.1.1/", "it is not a valid URL"),
        ("http://", "it is not a valid URL"),
        ("example.com", "it is not a valid URL"),
        ("//example.com/", "it is not a valid URL"),
        ("", "it is not a valid URL"),
        ("http://exa\ud800mple.com/", "it is not a valid URL"),
        ("http://a.example:99999/", "it is not a valid URL"),
    ],
)
def test_refusal_has_its_reason(url: str, objection: str) -> None:
    assert PUBLIC.rejection(url) == objection


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com",
        "HTTPS://EXAMPLE.COM:443/a?b#c",
        "https://example.com./",
        "https://b\u00fccher.example/",
        "https://a_b.example-c.test/",
        "http://1.1.1.1/",
        "https://[2606:4700::1111]/",
        "http://local.example/",
        "http://internal.example/",
        "http://notlocalhost.example/",
        "http://@example.com/",
    ],
)
def test_public_url_is_accepted(url: str) -> None:
    assert PUBLIC.rejection(url) is None


def test_long_host_is_shortened_in_message() -> None:
    objection = PUBLIC.rejection(f"http://{'a.' * 900}b/")

    assert objection
    assert len(objection) < 200


@pytest.mark.parametrize(
    ("entry", "admitted", "refused"),
    [
        (
            "127.0.0.2",
            [("127.0.0.2", 80), ("::ffff:127.0.0.2", 443)],
            [("127.0.0.1", 80), ("127.0.0.2", 8080)],
        ),
        (
            "127.0.0.2:8080",
            [("127.0.0.2", 8080)],
            [("127.0.0.2", 80), ("127.0.0.3", 8080), ("8.8.8.8", 8080)],
        ),
        ("10.1.0.0/16", [("10.1.255.1", 443)], [("10.2.0.1", 443), ("10.1.0.1", 8080)]),
        ("10.1.0.0/16:8080", [("10.1.2.3", 8080)], [("10.1.2.3", 80), ("10.2.0.0", 8080)]),
        ("::1", [("::1", 80)], [("::2", 80), ("::1", 81)]),
        ("[::1]:8080", [("::1", 8080)], [("::1", 80)]),
        ("[::1]", [("::1", 80)], [("::1", 8080)]),
        ("fd00::/8", [("fd12::1", 80)], [("fc00::1", 80)]),
        ("fd00::/8:81", [("fd12::1", 81)], [("fd12::1", 80)]),
        ("[fd00::]/8:81", [("fd12::1", 81)], [("fd12::1", 80)]),
        ("::ffff:127.0.0.2", [("127.0.0.2", 80)], [("127.0.0.1", 80)]),
        ("::ffff:10.0.0.0/104", [("10.9.9.9", 80)], [("11.0.0.1", 8080), ("127.0.0.1", 80)]),
        ("8.8.8.8:8443", [("8.8.8.8", 8443), ("8.8.8.8", 443)], [("8.8.4.4", 8443)]),
    ],
)
def test_operator_entry_allows_only_its_targets(
    entry: str, admitted: list[tuple[str, int]], refused: list[tuple[str, int]]
) -> None:
    policy = FetchPolicy(allowed_networks=(entry,))

    for address, port in admitted:
        assert policy.can_connect(address, port)
    for address, port in refused:
        assert not policy.can_connect(address, port)


@pytest.mark.parametrize(
    "entry",
    [
        *("", "localhost", "127.0.0.256", "127.1", "10.0.0.1/8", "10.0.0.0/33", "127.0.0.1:", "127.0.0.1:0"),
        *(
            "127.0.0.1:65536",
            "127.0.0.1:http",
            "[::1",
            "[::1]:",
            "[::1]80",
            "[]",
            "::1/129",
            "fe80::1%eth0",
        ),
        *("[fe80::1%eth0]:80", "10.0.0.0/8:", "10.0.0.0:80/8", "*", "http://10.0.0.1", "127.0.0.1:\u0661"),
        *("[[::1]]", "[::1]:8:0", "10.0.0.0/8/8", "10.0.0.0/-1", "[127.0.0.1]x:80"),
    ],
)
def test_unreadable_entry_is_named(entry: str) -> None:
    with pytest.raises(ValueError, match="is not an address") as raised:
        FetchPolicy(allowed_networks=("127.0.0.1", entry))

    assert repr(entry) in str(raised.value)


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_invalid_port_is_named(port: int) -> None:
    with pytest.raises(ValueError, match=f"^{port} is not a port$"):
        FetchPolicy(ports=frozenset({port}))


def test_equal_policies_compare_equal() -> None:
    assert FetchPolicy(allowed_networks=("127.0.0.2",)) == FetchPolicy(allowed_networks=("127.0.0.2",))
    assert len({FetchPolicy(), PUBLIC, FetchPolicy(frozenset({80}))}) == 2


def test_name_may_have_port_allowed_by_any_entry() -> None:
    policy = FetchPolicy(allowed_networks=("127.0.0.2:8080",))

    assert policy.rejection("http://site.test:8080/") is None
    assert policy.rejection("http://127.0.0.2:8080/") is None
    assert policy.rejection("http://site.test:8081/") == "its port 8081 is not one of 80, 443"
    assert policy.rejection("http://127.0.0.2/") == "its host 127.0.0.2 is not a public address"


def test_address_is_named_if_its_port_is_a_default_port() -> None:
    policy = FetchPolicy(frozenset({80, 443, 8080}), allowed_networks=("127.0.0.2:8080",))

    assert policy.rejection("http://127.0.0.2:8080/") is None
    assert policy.rejection("http://127.0.0.2/") == "its host 127.0.0.2 is not a public address"


def test_port_is_named_if_the_address_is_allowed() -> None:
    policy = FetchPolicy(allowed_networks=("127.0.0.0/8",))

    assert policy.rejection("http://127.0.0.2:8081/") == "its port 8081 is not one of 80, 443"
    assert policy.rejection("http://127.0.0.2/") is None


@given(st.text(max_size=40), st.sampled_from(["http://", "https://x.test/", "http:", "", "https:\\\\"]))
def test_parsed_url_fits_into_request(text: str, start: str) -> None:
    target = parse_target(start + text)

    if target and target.scheme in ("http", "https"):
        line = target.path + target.authority
        assert line.isascii()
        assert line.isprintable()
        assert " " not in line
        assert target.path.startswith("/")
        assert "#" not in target.url
