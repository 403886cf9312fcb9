"""Addresses that a fetch connects to: redirects, names with several or changing addresses, TLS."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import pytest
from certificates import Authority
from hostile_site import (
    ALLOWED,
    ALLOWED_TOO,
    FORBIDDEN,
    Web,
    fetch,
    format_head,
    format_response,
    send_endlessly,
    serve_web,
    stay_silent,
)

from centgate.web.fetch.dns import DnsResolver
from centgate.web.fetch.fetcher import Fetcher, FetchFailed, open_fetcher
from centgate.web.fetch.policy import PUBLIC, FetchPolicy

METADATA = "169.254.169.254"


async def test_redirects_are_followed(web: Web) -> None:
    web.site.set_redirect("/a/b", "c?d=1#e", 301)
    web.site.set_redirect("/a/c", f"//other.test:{web.port}/f", 307)
    web.other.set_redirect("/f", web.url("/end"), 308)
    web.site.set_response("/end", format_response(b"here"))

    fetched = await web.fetch("/a/b#start")

    assert (fetched.body, fetched.url) == (b"here", web.url("/end"))
    assert web.resolver.queries == ["site.test", "site.test", "other.test", "site.test"]


async def test_redirect_sends_cookies_of_same_fetch(web: Web) -> None:
    cookies = (
        "a=b; Path=/; Expires=Wed, 01 Dec 2027 10:00:00 GMT\r\nSet-Cookie: s=1; Secure\r\n"
        "Set-Cookie: f=1; Domain=other.test\r\nSet-Cookie: bad\r\nSet-Cookie: c=d; HttpOnly"
    )
    web.site.set_response("/", format_head({"Location": "/next", "Set-Cookie": cookies}, 302))
    web.site.set_redirect("/next", web.url("/end", "other.test"))
    web.other.set_response("/end", format_response(b"here"))

    await web.fetch()
    await web.fetch("/next")

    sent = [request.partition("Cookie: ")[2].partition("\r\n")[0] for request in web.site.requests]
    assert sent == ["", "a=b; c=d", ""]
    assert "cookie" not in web.other.requests[0].lower()


async def test_redirect_cookie_of_domain_is_sent_to_subdomain(web: Web) -> None:
    web.resolver.answers["login.site.test"] = web.resolver.answers["site.test"]
    cookies = "all=1; Domain=.site.test\r\nSet-Cookie: own=1"
    login = {"Location": web.url("/end"), "Set-Cookie": cookies}
    web.site.set_response("/", format_head(login, 302))
    web.site.set_response("/end", format_response(b"here"))

    await web.fetch("/", "login.site.test")

    assert "Cookie: all=1\r\n" in web.site.requests[1]


@pytest.mark.parametrize("end", ["Max-Age=0", "Expires=Thu, 01-Jan-1970 00:00:01 GMT"])
async def test_redirect_cookie_that_was_ended_is_not_sent(web: Web, end: str) -> None:
    web.site.set_response("/", format_head({"Location": "/check", "Set-Cookie": "test=1; Max-Age=60"}, 302))
    ended = {"Location": "/end", "Set-Cookie": f"test=deleted; {end}\r\nSet-Cookie: ok=1"}
    web.site.set_response("/check", format_head(ended, 302))
    web.site.set_response("/end", format_response(b"here"))

    await web.fetch()

    assert "Cookie: test=1\r\n" in web.site.requests[1]
    assert "Cookie: ok=1\r\n" in web.site.requests[2]


@pytest.mark.parametrize("date", ["0", "Thu, 01 Jan 2026 00:00:00 +9999999999999999999"])
async def test_redirect_cookie_with_invalid_date_is_sent(web: Web, date: str) -> None:
    login = {"Location": "/end", "Set-Cookie": f"test=1; Expires={date}"}
    web.site.set_response("/", format_head(login, 302))
    web.site.set_response("/end", format_response(b"here"))

    await web.fetch()

    assert "Cookie: test=1\r\n" in web.site.requests[1]


async def test_redirect_cookie_of_public_suffix_is_not_sent(web: Web) -> None:
    web.resolver.answers |= dict.fromkeys(("a.github.io", "b.github.io"), web.resolver.answers["site.test"])
    login = {"Location": web.url("/end", "b.github.io"), "Set-Cookie": "all=1; Domain=github.io"}
    web.site.set_response("/", format_head(login, 302))
    web.site.set_response("/end", format_response(b"here"))

    await web.fetch("/", "a.github.io")

    assert "cookie" not in web.site.requests[1].lower()


async def test_redirect_sends_no_referer(web: Web) -> None:
    web.site.set_redirect("/", "/end")
    web.site.set_response("/end", format_response(b"here"))

    await web.fetch()

    assert "referer" not in web.site.requests[1].lower()


async def test_five_redirects_are_followed_and_sixth_is_not(web: Web) -> None:
    for hop in range(6):
        web.site.set_redirect(f"/{hop}", f"/{hop + 1}")
    web.site.set_response("/6", format_response(b"here"))

    fetched, failed = await web.fetch("/1"), await web.fetch_failure("/0")

    assert fetched.body == b"here"
    assert (failed.reason, failed.message) == ("failed", "site.test redirects more than 5 times")


async def test_redirect_loop_ends(web: Web) -> None:
    web.site.set_redirect("/", web.url("/", "other.test"))
    web.other.set_redirect("/", web.url("/", "site.test"))

    failed = await web.fetch_failure()

    assert failed.reason == "failed"
    assert web.site.connections + web.other.connections == 6


async def test_redirect_body_is_not_awaited(web: Web) -> None:
    web.site.set_handler("/", send_endlessly(format_head({"Location": "/end"}, 302), then=b"x" * 65536))
    web.site.set_response("/end", format_response(b"here"))

    assert (await web.fetch()).body == b"here"


@pytest.mark.parametrize(
    "answer",
    [
        format_head({}, 302),
        format_head({"Location": ""}, 301),
        format_head({"Location": "/x"}, 300),
        format_head({}, 305),
        format_head({}, 399),
    ],
)
async def test_redirect_without_target_is_a_failure(answer: bytes, web: Web) -> None:
    web.site.set_response("/", answer)

    failed = await web.fetch_failure()

    assert failed.reason == "failed"


@pytest.mark.parametrize("location", ["http://", "http://[::1%25eth0]/", "http://a b/", "/" + "x" * 9000])
async def test_redirect_to_invalid_url_is_a_failure(location: str, web: Web) -> None:
    web.site.set_redirect("/", location)

    failed = await web.fetch_failure()

    assert failed.reason == "failed"
    assert "site.test redirects to" in failed.message


@pytest.mark.extended
@pytest.mark.parametrize(
    "host",
    [
        *(FORBIDDEN, "localhost", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "\u2460\u2461\u2466.0.0.1"),
        *(
            "[::ffff:127.0.0.1]",
            "[::1]",
            "[64:ff9b::7f00:1]",
            "[2002:7f00:1::]",
            "0",
            METADATA,
            "[fd00:ec2::254]",
        ),
        *("site.test@127.0.0.1", "127.0.0.1\\@site.test", "wiki", "metadata.google.internal"),
    ],
)
async def test_redirect_into_private_network_is_not_followed(host: str, web: Web) -> None:
    web.site.set_redirect("/", f"http://{host}:{web.port}/secret")

    failed = await web.fetch_failure()

    assert failed.reason == "blocked_address"
    assert failed.message == "site.test redirects to an address that must not be fetched"
    assert not web.private.connections


@pytest.mark.extended
@pytest.mark.parametrize(
    "location",
    [
        *(
            "file:///etc/passwd",
            "gopher://site.test/",
            "ftp://site.test/",
            "data:text/html,x",
            "javascript:1",
        ),
        *("http://site.test:22/", "http://user:secret@site.test/", "//user@site.test/"),
    ],
)
async def test_redirect_to_other_scheme_or_port_is_refused(location: str, web: Web) -> None:
    web.site.set_redirect("/", location)

    failed = await web.fetch_failure()

    assert failed.reason == "blocked_address"
    assert web.site.connections == 1


@pytest.mark.extended
@pytest.mark.parametrize(
    "url",
    [
        *(
            f"http://{FORBIDDEN}:%d/",
            "http://2130706433:%d/",
            "http://[::ffff:7f00:1]:%d/",
            "http://localhost:%d/",
        ),
        *("http://user@site.test:%d/", f"http://site.test:%d@{FORBIDDEN}/", "ftp://site.test:%d/"),
    ],
)
async def test_url_refused_by_policy_is_not_fetched(url: str, web: Web) -> None:
    with pytest.raises(FetchFailed) as failed:
        await fetch(web.fetcher(), url % web.port, 20)

    assert failed.value.reason == "blocked_address"
    assert web.policy.rejection(url % web.port)
    assert not web.resolver.queries
    assert not web.private.connections


async def test_invalid_url_is_a_failure(web: Web) -> None:
    with pytest.raises(FetchFailed, match="is not a valid URL") as failed:
        await fetch(web.fetcher(), "site.test", 20)

    assert failed.value.reason == "failed"


@pytest.mark.extended
@pytest.mark.parametrize(
    "addresses",
    [
        [FORBIDDEN],
        [ALLOWED, FORBIDDEN],
        [FORBIDDEN, ALLOWED],
        [ALLOWED, ALLOWED_TOO, "::1"],
        [ALLOWED, "::ffff:127.0.0.1"],
        [ALLOWED, "64:ff9b::7f00:1"],
        [ALLOWED, "fe80::1%eth0"],
        [ALLOWED, METADATA],
        [ALLOWED, "fd00:ec2::254"],
        [ALLOWED, "0.0.0.0"],
        [ALLOWED, "127.1"],
        [ALLOWED, "nonsense"],
        ["10.0.0.1"] * 1000,
    ],
)
async def test_one_private_address_refuses_the_name(addresses: Sequence[str], web: Web) -> None:
    web.resolver.answers["mixed.test"] = [addresses]

    failed = await web.fetch_failure(host="mixed.test")

    assert failed.reason == "blocked_address"
    assert failed.message == "mixed.test resolves to an address that must not be fetched"
    assert web.site.connections == web.private.connections == 0


async def test_redirect_to_name_of_private_address_is_refused(web: Web) -> None:
    web.resolver.answers["inside.test"] = [[FORBIDDEN]]
    web.site.set_redirect("/", web.url("/secret", "inside.test"))

    failed = await web.fetch_failure()

    assert failed.reason == "blocked_address"
    assert not web.private.connections


async def test_name_is_resolved_once_before_connection(web: Web) -> None:
    web.resolver.answers["rebinding.test"] = [[ALLOWED], [FORBIDDEN]]
    web.site.set_response("/", format_response(b"the checked one"))

    fetched = await web.fetch(host="rebinding.test")

    assert fetched.body == b"the checked one"
    assert web.resolver.queries == ["rebinding.test"]
    assert not web.private.connections


async def test_rebound_name_is_checked_after_redirect(web: Web) -> None:
    web.resolver.answers["rebinding.test"] = [[ALLOWED], [FORBIDDEN]]
    web.site.set_redirect("/", "/secret")

    failed = await web.fetch_failure(host="rebinding.test")

    assert failed.reason == "blocked_address"
    assert not web.private.connections


async def test_mapped_address_is_connected_as_ipv4(web: Web) -> None:
    web.resolver.answers["mapped.test"] = [[f"::ffff:{ALLOWED}"]]
    web.site.set_response("/", format_response(b"here"))

    assert (await web.fetch(host="mapped.test")).body == b"here"


async def test_next_address_is_tried_after_failure(web: Web) -> None:
    web.resolver.answers["two.test"] = [["127.0.0.4", ALLOWED]]
    web.site.set_response("/", format_response(b"here"))
    policy = FetchPolicy(frozenset({web.port}), ("127.0.0.0/29",))

    fetched = await fetch(Fetcher(policy, "Tester/1", resolve=web.resolver), web.url("/", "two.test"), 20)

    assert fetched.body == b"here"


async def test_literal_address_is_not_resolved(web: Web) -> None:
    web.site.set_response("/", format_response(b"here"))

    fetched = await web.fetch(host="127.0.0.2")

    assert fetched.body == b"here"
    assert f"\r\nHost: 127.0.0.2:{web.port}\r\n" in web.site.requests[0]
    assert not web.resolver.queries


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("b\u00fccher.test", "xn--bcher-kva.test"),
        ("B\u00dcCHER.test", "xn--bcher-kva.test"),
        ("fa\u00df.test", "xn--fa-hia.test"),
        ("\u4f8b\u3048\u3002test", "xn--r8jz45g.test"),
        ("SITE.test", "site.test"),
        ("site.test.", "site.test"),
        ("s%69te.test", "site.test"),
    ],
)
async def test_names_are_resolved_in_ascii(host: str, name: str, web: Web) -> None:
    web.resolver.answers[name] = [[ALLOWED]]
    web.site.set_response("/", format_response(b"here"))

    await web.fetch(host=host)

    assert web.resolver.queries == [name]
    assert f"\r\nHost: {name}:{web.port}\r\n" in web.site.requests[0]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (socket.gaierror(socket.EAI_NONAME, "unknown"), "a.test does not exist in the DNS"),
        (socket.gaierror(socket.EAI_AGAIN, "later"), "a.test could not be resolved"),
        (OSError("broken"), "a.test could not be resolved"),
        (UnicodeError("label too long"), "a.test could not be resolved"),
        (None, "a.test has no address"),
    ],
)
async def test_name_without_addresses_is_reported(error: Exception | None, message: str, web: Web) -> None:
    async def resolve(_host: str) -> Sequence[str]:
        if error:
            raise error
        return []

    async with open_fetcher(PUBLIC, "Tester/1", resolve=resolve) as fetcher:
        with pytest.raises(FetchFailed) as failed:
            await fetcher.fetch("http://a.test/", timeout=5)

    assert (failed.value.reason, failed.value.message) == ("dns", message)


async def test_closed_port_is_unreachable(web: Web) -> None:
    policy = FetchPolicy(frozenset({web.port}), ("127.0.0.4",))

    with pytest.raises(FetchFailed) as failed:
        await fetch(Fetcher(policy, "Tester/1"), f"http://127.0.0.4:{web.port}/", 20)

    assert (failed.value.reason, failed.value.message) == ("unreachable", "127.0.0.4 could not be reached")


async def test_system_resolver_gives_addresses_or_error() -> None:
    resolver = DnsResolver()

    with pytest.raises(OSError, match=r".*"):
        await resolver("no-such-name.invalid")
    resolver.close()


@pytest.mark.parametrize("agent", ["a\r\nX: y", "\u00e4", "a\0"])
def test_user_agent_cannot_inject_headers(agent: str) -> None:
    with pytest.raises(ValueError, match="user agent"):
        Fetcher(PUBLIC, agent)


async def test_certificate_for_name_is_accepted() -> None:
    authority = Authority()
    with serve_web(authority.server("site.test")) as web:
        web.site.set_response("/", format_response(b"secure"))

        fetched = await fetch(web.fetcher(authority.client()), web.url("/", scheme="https"), 20)

    assert fetched.body == b"secure"
    assert authority.server_names == ["site.test"]
    assert f"\r\nHost: site.test:{web.port}\r\n" in web.site.requests[0]


async def test_certificate_for_address_is_accepted() -> None:
    authority = Authority()
    with serve_web(authority.server(ALLOWED)) as web:
        web.site.set_response("/", format_response(b"secure"))

        url = web.url("/", ALLOWED, scheme="https")
        fetched = await fetch(web.fetcher(authority.client()), url, 20)

    assert fetched.body == b"secure"


async def test_certificate_for_other_name_is_refused() -> None:
    authority = Authority()
    with serve_web(authority.server("other.test")) as web:
        with pytest.raises(FetchFailed) as failed:
            await fetch(web.fetcher(authority.client()), web.url("/", scheme="https"), 20)

        assert failed.value.reason == "tls"
        assert failed.value.message == (
            "the certificate of site.test is not valid: "
            "Hostname mismatch, certificate is not valid for 'site.test'"
        )
        assert not web.site.requests


async def test_certificate_of_unknown_authority_is_refused() -> None:
    authority = Authority()
    with serve_web(authority.server("site.test")) as web:
        with pytest.raises(FetchFailed) as failed:
            await fetch(web.fetcher(), web.url("/", scheme="https"), 20)

        assert failed.value.reason == "tls"
        assert not web.site.requests


async def test_expired_certificate_is_refused() -> None:
    authority = Authority()
    with serve_web(authority.server("site.test", expired=True)) as web:
        url = web.url("/", scheme="https")

        with pytest.raises(FetchFailed, match="certificate has expired") as failed:
            await fetch(web.fetcher(authority.client()), url, 20)

        assert failed.value.reason == "tls"


async def test_server_without_tls_is_a_tls_failure(web: Web) -> None:
    with pytest.raises(FetchFailed) as failed:
        await fetch(web.fetcher(), web.url("/", scheme="https"), 20)

    assert failed.value.reason == "tls"
    assert failed.value.message == "the TLS handshake with site.test failed"


@pytest.mark.extended
async def test_tls_keeps_limits_and_deadline() -> None:
    authority = Authority()
    with serve_web(authority.server("site.test")) as web:
        web.site.set_handler("/endless", send_endlessly(format_head({}), then=b"x" * 65536))
        web.site.set_handler("/silent", stay_silent)
        client = authority.client()

        with pytest.raises(FetchFailed) as endless:
            await fetch(web.fetcher(client), web.url("/endless", scheme="https"), 20)
        with pytest.raises(FetchFailed) as silent:
            await fetch(web.fetcher(client), web.url("/silent", scheme="https"), 0.5)

    assert (endless.value.reason, silent.value.reason) == ("too_large", "timeout")


@pytest.mark.extended
async def test_endless_handshake_ends_at_deadline() -> None:
    with socket.create_server((ALLOWED, 0)) as silent:
        port = silent.getsockname()[1]
        policy = FetchPolicy(allowed_networks=(f"{ALLOWED}:{port}",))

        with pytest.raises(FetchFailed) as failed:
            await fetch(Fetcher(policy, "Tester/1"), f"https://{ALLOWED}:{port}/", 0.5)

    assert failed.value.reason == "timeout"


async def test_https_may_redirect_to_http(web: Web) -> None:
    authority = Authority()
    web.site.set_response("/plain", format_response(b"plain"))
    with serve_web(authority.server("secure.test")) as secure:
        secure.site.set_redirect("/", web.url("/plain"))
        web.resolver.answers["secure.test"] = [[ALLOWED]]
        policy = FetchPolicy(allowed_networks=(f"{ALLOWED}:{web.port}", f"{ALLOWED}:{secure.port}"))
        fetcher = Fetcher(policy, "Tester/1", resolve=web.resolver, tls=authority.client())

        fetched = await fetch(fetcher, secure.url("/", "secure.test", "https"), 20)

    assert (fetched.body, fetched.url) == (b"plain", web.url("/plain"))
