"""Site of a URL: the domain that its owner registered."""

from __future__ import annotations

import pytest

from centgate.web.fetch.site import find_site


@pytest.mark.parametrize(
    ("url", "site"),
    [
        ("https://a.b.example.co.uk:8443/x", "example.co.uk"),
        ("https://a.EXAMPLE.com./", "example.com"),
        ("https://one.github.io/", "one.github.io"),
        ("https://two.github.io/", "two.github.io"),
        ("https://co.uk/", "co.uk"),
        ("http://localhost:8080/", "localhost"),
        ("http://192.0.2.7:80/", "192.0.2.7"),
        ("http://[2001:db8:1:2:3::4]:80/", "2001:db8:1:2::/64"),
        ("http://[2001:db8:1:2:ffff::1]/", "2001:db8:1:2::/64"),
        ("http://[::ffff:192.0.2.7]/", "192.0.2.7"),
    ],
)
def test_site_is_the_registered_domain(url: str, site: str) -> None:
    assert find_site(url) == site
