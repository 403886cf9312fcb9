"""`GET /`: JSON for agents, a small page for browsers, and links for both."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import httpx
import pytest
from buyer import ApiFactory

from centgate.api.content_negotiation import is_preferred
from centgate.settings import Settings

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"
SITE = "https://shop.example"


def negotiate_type(reader: httpx.Client, accept: str) -> str:
    return reader.get("/", headers={"Accept": accept}).headers["Content-Type"].partition(";")[0]


@pytest.mark.parametrize(
    "accept", [BROWSER, "text/html", "TEXT/HTML;q=0.5", "application/json;q=0.4, text/html;q=0.5"]
)
def test_preferred_html_is_sent(reader: httpx.Client, accept: str) -> None:
    assert negotiate_type(reader, accept) == "text/html"


@pytest.mark.parametrize(
    "accept",
    [
        "",
        "*/*",
        "text/*",
        "application/json",
        "application/json, text/html",
        "text/html;q=0",
        "text/html;q=nonsense",
        "text/html;q=0.5, application/*",
        "text/markdown",
        ";;,,q=1",
    ],
)
def test_json_is_default(reader: httpx.Client, accept: str) -> None:
    assert negotiate_type(reader, accept) == "application/json"


def test_invalid_weight_is_ignored() -> None:
    assert not is_preferred("text/html;q=7, application/json;q=0.1", "text/html", "application/json")
    assert not is_preferred("text/html;q=inf", "text/html", "application/json")


@pytest.mark.parametrize("accept", [BROWSER, "*/*"])
def test_response_varies_by_accept(reader: httpx.Client, accept: str) -> None:
    response = reader.get("/", headers={"Accept": accept})

    assert "Accept" in [name.strip() for name in response.headers["Vary"].split(",")]


def test_page_and_json_agree(reader: httpx.Client) -> None:
    index = reader.get("/").json()

    page = reader.get("/", headers={"Accept": BROWSER}).text

    assert index["name"] in page
    assert index["tagline"] in page
    assert re.findall(r'<a href="([^"]+)"', page) == list(index["links"].values())


def test_page_has_metadata_for_directories(reader: httpx.Client) -> None:
    page = reader.get("/", headers={"Accept": BROWSER}).text

    assert re.search(r"<title>[^<]{10,}</title>", page)
    assert re.search(r'<meta name="description" content="[^"]{50,200}">', page)
    icon = re.search(r'<link rel="icon"[^>]*href="([^"]+)"', page)
    assert icon
    assert reader.get(icon[1]).headers["Content-Type"] == "image/svg+xml"


@pytest.mark.extended
def test_page_is_valid_html(reader: httpx.Client, npm_tools: Path) -> None:
    page = reader.get("/", headers={"Accept": BROWSER}).text
    tool = npm_tools / "node_modules" / ".bin" / "html-validate"

    done = subprocess.run(
        [tool, "--preset", "standard", "--stdin"],
        input=page,
        cwd=npm_tools,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_page_loads_only_its_icon(reader: httpx.Client) -> None:
    response = reader.get("/", headers={"Accept": BROWSER})

    policy = response.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; img-src 'self';")
    assert "unsafe" not in policy
    assert "<script" not in response.text
    assert "style" not in response.text
    assert len(response.content) < 2048


@pytest.mark.parametrize(
    ("path", "media_type", "start"),
    [("/favicon.ico", "image/x-icon", b"\0\0\1\0"), ("/favicon.svg", "image/svg+xml", b"<svg")],
)
def test_icon_is_served(reader: httpx.Client, path: str, media_type: str, start: bytes) -> None:
    response = reader.get(path)

    assert response.headers["Content-Type"] == media_type
    assert response.content.startswith(start)


def parse_links(header: str) -> dict[str, str]:
    return {relation: target for target, relation in re.findall(r'<([^>]+)>; rel="([^"]+)"', header)}


def test_links_lead_machines_to_description(reader: httpx.Client) -> None:
    found = parse_links(reader.head("/").headers["Link"])

    assert set(found) == {"service-desc", "status"}
    assert {reader.get(target).status_code for target in found.values()} == {200}


def test_configured_website_is_linked(api: ApiFactory, settings: Settings) -> None:
    client = api(settings.model_copy(update={"site_url": SITE}))

    response = client.get("/")

    found = parse_links(response.headers["Link"])
    assert found["describedby"] == f"{SITE}/llms.txt"
    assert found["api-catalog"] == f"{SITE}/.well-known/api-catalog"
    assert found["service-doc"] == f"{SITE}/"
    assert response.json()["links"]["website"] == SITE
    page = client.get("/", headers={"Accept": BROWSER}).text
    assert f'href="{SITE}"' in page
    assert f'<meta property="og:image" content="{SITE}/social/home.png">' in page


def test_page_escapes_addresses(api: ApiFactory, settings: Settings) -> None:
    client = api(settings.model_copy(update={"site_url": 'https://shop.example"><script>alert(1)</script>'}))

    page = client.get("/", headers={"Accept": BROWSER}).text

    assert "<script" not in page
