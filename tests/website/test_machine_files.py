"""Files for machines: valid for real parsers, and consistent with the API."""

# lxml, protego and yaml are typed in part
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import json
import re
import struct
from datetime import datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import yaml
from browser_session import ServedSite
from buyer import decode_header
from lxml import etree
from markdown_it import MarkdownIt
from msgspec.structs import replace
from protego import Protego
from site_command import run_build
from site_fixtures import API, SITE, SiteFixture, xpath

from centgate.api.wellknown_files import read_wellknown_files as own_files
from centgate.website.discovery import has_security_contact
from centgate.website.files import build_files
from centgate.website.llms_txt import CRAWLER_NAMES
from centgate.website.social_pictures import LIST_FILE, find_picture, picture_name
from centgate.website.static_build import write_site

pytestmark = pytest.mark.extended

SOCIAL = files("centgate.website") / "social"
SITEMAP = "{http://www.sitemaps.org/schemas/sitemap/0.9}"


@pytest.fixture(params=["sepolia_site", "unpaid_site"])
def any_site(request: pytest.FixtureRequest) -> SiteFixture:
    """Each of the two websites."""
    return request.getfixturevalue(request.param)


def parse_json_ld(page: str) -> list[dict[str, Any]]:
    """Return the JSON-LD of a page."""
    (script,) = xpath(page, "//script[@type='application/ld+json']/text()")
    content = json.loads(script)
    assert content["@context"] == "https://schema.org"
    return content["@graph"]


def url_exists(sepolia_site: SiteFixture, address: str) -> bool:
    """Return True if a URL of the website or of the API exists."""
    if address.startswith(SITE):
        return (urlsplit(address).path or "/") in sepolia_site.files
    return sepolia_site.api.get(urlsplit(address).path or "/").status_code == 200


def list_headings(text: str) -> list[str]:
    """Return the headings of a text, with their levels."""
    tokens = MarkdownIt("commonmark").parse(text)
    return [
        f"{token.tag} {tokens[at + 1].content}"
        for at, token in enumerate(tokens)
        if token.type == "heading_open"
    ]


def test_llms_txt_has_the_specified_form(any_site: SiteFixture) -> None:
    text = any_site.text("/llms.txt")

    title, empty, summary = text.splitlines()[:3]
    assert title.startswith("# ")
    assert not empty
    assert summary.startswith("> ")
    assert len(text) < 50_000
    assert [each[:2] for each in list_headings(text)] == ["h1", *["h2"] * 4]


def test_llms_txt_links_to_existing_markdown(any_site: SiteFixture) -> None:
    sections = any_site.text("/llms.txt").split("\n## Optional\n")

    pages = re.findall(r"^- \[[^]]+\]\(([^)]+)\): ", sections[0], re.MULTILINE)
    optional = re.findall(r"^- (?:\[[^]]+\]\(([^)]+)\)|`([^`]+)`): ", sections[1], re.MULTILINE)

    indexes = ("/", "/search")
    assert len(pages) == len([page for page in any_site.pages if page.path not in indexes])
    assert all(page.startswith(f"{SITE}/") and page.endswith(".md") for page in pages)
    links, named = ([each for each in column if each] for column in zip(*optional, strict=True))
    assert [address for address in [*pages, *links, *named] if not url_exists(any_site, address)] == []
    # readers of llms.txt expect a page behind every link to the website
    assert all(each.endswith((".md", ".txt")) for each in links if each.startswith(f"{SITE}/"))


def test_prices_of_llms_txt_match_catalogue_and_402(sepolia_site: SiteFixture) -> None:
    offered = re.findall(r"`(\w+) (/\S+) \$(\S+)`", sepolia_site.text("/llms.txt"))

    catalogue = sepolia_site.api.get("/services").json()["services"]
    assert offered == [(each["method"], each["path"], str(each["price"])[1:]) for each in catalogue]
    for _, path, price in offered:
        terms = decode_header(sepolia_site.api.post(path).headers["PAYMENT-REQUIRED"])["accepts"][0]
        assert Decimal(price) * 10**6 == int(terms["amount"])


def test_llms_full_has_every_page_under_distinct_headings(any_site: SiteFixture) -> None:
    text = any_site.text("/llms-full.txt")

    found = list_headings(text)

    assert [each for each in found if each.startswith("h1")] == [
        f"h1 {any_site.text(path).splitlines()[0][2:]}"
        for path in any_site.markdown_paths
        if path != "/search.md"
    ]
    assert sorted(set(found)) == sorted(found)
    assert len(found) > 100


@pytest.mark.parametrize("agent", [*CRAWLER_NAMES, "curl", "somebody-new"])
def test_all_agents_may_read_all_pages(sepolia_site: SiteFixture, agent: str) -> None:
    rules = Protego.parse(sepolia_site.text("/robots.txt"))

    assert all(rules.can_fetch(f"{SITE}{page.path}", agent) for page in sepolia_site.pages)
    assert rules.can_fetch(f"{SITE}/llms.txt", agent)


def test_robots_txt_names_sitemap_in_standard_syntax(sepolia_site: SiteFixture) -> None:
    text = sepolia_site.text("/robots.txt")

    assert list(Protego.parse(text).sitemaps) == [f"{SITE}/sitemap.xml"]
    assert {line.partition(":")[0] for line in text.splitlines()} == {"User-agent", "Allow", "", "Sitemap"}


def read_sitemap(content: bytes) -> dict[str, str]:
    """Return the last change of each page of a sitemap, by path."""
    tree = etree.fromstring(content)
    addresses, times = ([str(each.text) for each in tree.iter(SITEMAP + name)] for name in ("loc", "lastmod"))
    return dict(zip((each.removeprefix(SITE) for each in addresses), times, strict=True))


def test_sitemap_has_every_page_with_build_time(sepolia_site: SiteFixture) -> None:
    changes = read_sitemap(sepolia_site.files["/sitemap.xml"].content)

    assert [*changes] == [page.path for page in sepolia_site.pages]
    assert {datetime.fromisoformat(each) for each in changes.values()} == {
        sepolia_site.deployment.read_at.replace(microsecond=0)
    }


def test_sitemap_keeps_time_of_unchanged_pages(sepolia_site: SiteFixture, tmp_path: Path) -> None:
    later = replace(sepolia_site.deployment, read_at=sepolia_site.deployment.read_at + timedelta(minutes=5))
    down = replace(later, health=None)
    write_site(sepolia_site.deployment, tmp_path)
    before = read_sitemap(sepolia_site.files["/sitemap.xml"].content)

    write_site(later, tmp_path)
    same = read_sitemap((tmp_path / "sitemap.xml").read_bytes())
    write_site(down, tmp_path)
    changed = read_sitemap((tmp_path / "sitemap.xml").read_bytes())

    assert same == before
    assert {path for path, time in changed.items() if time != before[path]} >= {"/", "/status"}
    assert changed["/paying"] == before["/paying"]


def test_api_catalog_is_linkset_with_existing_targets(any_site: SiteFixture) -> None:
    file = any_site.files["/.well-known/api-catalog"]
    catalogue, links = json.loads(file.content)["linkset"]

    targets = [target for relation, each in links.items() if relation != "anchor" for target in each]
    assert file.media_type == 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'
    assert catalogue == {"anchor": f"{SITE}/.well-known/api-catalog", "item": [{"href": API}]}
    assert links["anchor"] == API
    assert {"service-desc", "service-doc", "service-meta", "status"} <= set(links)
    assert all(set(target) == {"href", "type"} for target in targets)
    assert [target["href"] for target in targets if not url_exists(any_site, target["href"])] == []


def test_types_of_api_catalog_match_responses(sepolia_site: SiteFixture) -> None:
    _, links = json.loads(sepolia_site.text("/.well-known/api-catalog"))["linkset"]

    for relation in ("service-desc", "service-meta", "status"):
        for target in links[relation]:
            response = sepolia_site.api.get(urlsplit(target["href"]).path)
            assert response.headers["Content-Type"].partition(";")[0] == target["type"]


def test_terms_are_those_of_api(any_site: SiteFixture) -> None:
    assert json.loads(any_site.text("/.well-known/x402")) == any_site.api.get("/.well-known/x402").json()


def test_security_txt_has_contact_and_expires_within_a_year(sepolia_site: SiteFixture) -> None:
    lines = sepolia_site.text("/.well-known/security.txt").splitlines()
    fields = dict(line.split(": ", 1) for line in lines)

    left = datetime.fromisoformat(fields["Expires"]) - sepolia_site.deployment.read_at
    page, _, fragment = fields["Policy"].removeprefix(SITE).partition("#")
    assert fields["Contact"] == "mailto:desk@shop.example"
    assert fields["Canonical"] == f"{SITE}/.well-known/security.txt"
    assert timedelta(days=30) < left < timedelta(days=365)
    assert f'id="{fragment}"' in sepolia_site.text(page)


def test_security_txt_is_absent_without_contact(unpaid_site: SiteFixture) -> None:
    assert "/.well-known/security.txt" not in unpaid_site.files


def test_contact_without_tls_is_not_in_security_txt(sepolia_site: SiteFixture) -> None:
    openapi = sepolia_site.deployment.openapi
    plain = {**openapi, "info": {**openapi["info"], "contact": {"url": "http://shop.example/contact"}}}

    assert has_security_contact(sepolia_site.deployment)
    assert not has_security_contact(replace(sepolia_site.deployment, openapi=plain))


def test_skill_matches_its_index(any_site: SiteFixture) -> None:
    (skill,) = json.loads(any_site.text("/.well-known/agent-skills/index.json"))["skills"]

    content = any_site.files[urlsplit(skill["url"]).path].content
    front = yaml.safe_load(content.decode().split("---\n")[1])
    assert skill["digest"] == f"sha256:{sha256(content).hexdigest()}"
    assert front == {"name": skill["name"], "description": skill["description"]}
    assert re.fullmatch(r"[a-z0-9-]{1,64}", skill["name"])
    assert len(skill["description"]) <= 1024


def test_service_page_has_offer_with_price(sepolia_site: SiteFixture) -> None:
    for service in sepolia_site.deployment.services:
        way, offered = parse_json_ld(sepolia_site.text(f"/services/{service.slug}"))

        assert way["@type"] == "BreadcrumbList"
        assert offered["@type"] == "WebAPI"
        assert offered["url"] == f"{API}{service.path}"
        assert Decimal(offered["offers"]["price"]) == Decimal(str(service.price_usd))
        assert offered["offers"]["priceCurrency"] == "USD"
        assert all(url_exists(sepolia_site, offered[name]) for name in ("documentation", "termsOfService"))


def test_page_has_its_structured_type(sepolia_site: SiteFixture) -> None:
    for page in sepolia_site.pages:
        kind = "WebSite" if page.path == "/" else "BreadcrumbList"
        metas = xpath(sepolia_site.text(page.path), "//meta[@property]")
        properties = {each.get("property"): each.get("content") for each in metas}

        assert parse_json_ld(sepolia_site.text(page.path))[0]["@type"] == kind
        assert properties["og:url"] == f"{SITE}{page.path}"
        assert properties["og:title"] == page.title


def test_service_text_stays_in_json_ld(sepolia_site: SiteFixture) -> None:
    hostile = '</script><script src="//evil.example"></script> & "quoted" <!--'
    first = sepolia_site.deployment.services[0].model_copy(update={"summary": hostile})
    deployment = replace(sepolia_site.deployment, services=(first, *sepolia_site.deployment.services[1:]))

    page = build_files(deployment)[f"/services/{first.slug}"].content.decode()

    assert parse_json_ld(page)[1]["description"] == hostile
    assert "evil.example" not in "".join(xpath(page, "//script/@src"))


def test_pictures_show_titles_and_descriptions_of_pages(sepolia_site: SiteFixture) -> None:
    """On failure, a title or description has changed: `make social` creates the picture again."""
    taken = json.loads((SOCIAL / LIST_FILE).read_bytes())
    pictures = {page.path: find_picture(page) for page in sepolia_site.pages if page.path in taken}

    assert [path for path, picture in pictures.items() if picture is None] == []
    assert len(set(pictures.values())) == len(taken)
    for path, picture in pictures.items():
        page, content = sepolia_site.text(path), sepolia_site.files[str(picture)].content
        sides = [xpath(page, f"//meta[@property='og:image:{side}']/@content") for side in ("width", "height")]
        assert xpath(page, "//meta[@property='og:image']/@content") == [SITE + str(picture)]
        assert sides == [[str(side)] for side in struct.unpack(">2I", content[16:24])]
        assert len(content) < 40_000


def test_shipped_pictures_are_listed() -> None:
    taken = json.loads((SOCIAL / LIST_FILE).read_bytes())

    assert {file.name for file in SOCIAL.iterdir()} == {LIST_FILE, *map(picture_name, taken)}


def test_page_with_other_title_has_no_picture(sepolia_site: SiteFixture) -> None:
    page = replace(sepolia_site.pages[0], title="Facts at three cents a call")

    assert find_picture(page) is None


def test_mcp_card_is_that_of_api(sepolia_site: SiteFixture) -> None:
    card = json.loads(sepolia_site.text("/.well-known/mcp.json"))

    assert card == sepolia_site.api.get("/.well-known/mcp.json").json()
    assert card["remotes"][0]["url"] == f"{API}/mcp"


def test_icon_exists_in_both_formats(sepolia_site: SiteFixture) -> None:
    icon = sepolia_site.files["/favicon.ico"]

    reserved, kind, images = struct.unpack("<3H", icon.content[:6])
    assert (reserved, kind, images, icon.media_type) == (0, 1, 1, "image/x-icon")
    assert (
        etree.fromstring(sepolia_site.files["/favicon.svg"].content).tag == "{http://www.w3.org/2000/svg}svg"
    )


@pytest.mark.parametrize("path", ["/", "/start", "/start.md"])
def test_pages_link_to_machine_files(shop: ServedSite, path: str) -> None:
    response = httpx.get(shop.url + path)

    targets = {relation: link["url"] for relation, link in response.links.items()}
    assert {"api-catalog", "service-desc", "service-doc", "describedby", "status"} <= set(targets)
    machine = [targets[each] for each in ("api-catalog", "service-desc", "describedby", "status")]
    assert {httpx.get(target).status_code for target in machine} == {200}


@pytest.mark.parametrize(
    ("path", "media_type"),
    [
        ("/.well-known/api-catalog", "application/linkset+json"),
        ("/.well-known/agent-skills/centgate/SKILL.md", "text/markdown"),
        ("/llms.txt", "text/plain"),
        ("/sitemap.xml", "application/xml"),
        ("/favicon.ico", "image/x-icon"),
    ],
)
def test_machine_files_have_their_types(shop: ServedSite, path: str, media_type: str) -> None:
    response = httpx.get(shop.url + path)

    assert response.status_code == 200
    assert response.headers["Content-Type"].partition(";")[0] == media_type


def test_files_of_operator_are_built(sepolia_site: SiteFixture, tmp_path: Path) -> None:
    folder, out = tmp_path / "own", tmp_path / "out"
    folder.mkdir()
    (folder / "402index-verify.txt").write_bytes(b"f00d")

    write_site(sepolia_site.deployment, out, own_files(folder))

    assert (out / ".well-known" / "402index-verify.txt").read_bytes() == b"f00d"
    assert (out / ".well-known" / "x402").read_bytes() == sepolia_site.files["/.well-known/x402"].content


@pytest.mark.parametrize("name", ["x402", "agent-skills", "security.txt"])
def test_operator_file_that_replaces_ours_is_refused(
    sepolia_site: SiteFixture, tmp_path: Path, name: str
) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / name).write_text("mine")

    done = run_build(
        *("--api", str(sepolia_site.api.base_url), "--out", "out"), CENTGATE_WELL_KNOWN=str(folder)
    )

    assert done.exit_code != 0
    assert f"would hide /.well-known/{name}" in done.stderr
    assert not Path("out").exists()
