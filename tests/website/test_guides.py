"""Guides: links lead somewhere, figures are those of the code, commands and settings exist."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Generator, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
from buyer import decode_header
from msgspec.structs import replace
from site_fixtures import (
    API,
    SITE,
    SiteFixture,
    build_site_fixture,
    element_ids,
    find_addresses,
    open_site_fixture,
    read_markdown,
    xpath,
)
from typer.core import TyperGroup
from typer.main import get_command

from centgate.catalog import all_providers, all_services
from centgate.cli.main import app
from centgate.client.settings import BuyerSettings
from centgate.client_limits import WRONG_REQUESTS, WRONG_REQUESTS_BURST
from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.envelope import ERROR_SPECS
from centgate.environment import PREFIX
from centgate.errors import PaymentState, Retry
from centgate.settings import Settings
from centgate.website.payment_states import PAYMENT_STATES, RETRY_MEANINGS

pytestmark = pytest.mark.extended

CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"
GUIDES = [
    "examples",
    "start",
    "paying",
    "pricing",
    "reference",
    "errors",
    "agents",
    "status",
    "trust",
    "receipt",
    "operate",
    "changelog",
    "search",
]
KILOBYTE = 1024

each_code = pytest.mark.parametrize("code", list(ERROR_SPECS))


@pytest.fixture(scope="module")
def mainnet_site(tmp_path_factory: pytest.TempPathFactory) -> Generator[SiteFixture]:
    """Website for real money whose operator has published nothing about themselves."""
    with open_site_fixture(tmp_path_factory.mktemp("dollars"), network="eip155:8453") as found:
        yield found


@pytest.fixture(scope="module")
def unreachable_site(sepolia_site: SiteFixture) -> SiteFixture:
    """Website of an API that does not answer any more."""
    deployment = sepolia_site.deployment.as_unreachable(datetime.now(UTC))
    return build_site_fixture(deployment, sepolia_site.api)


@pytest.fixture(params=["sepolia_site", "mainnet_site", "unpaid_site", "unreachable_site"])
def any_site(request: pytest.FixtureRequest) -> SiteFixture:
    """Each kind of website."""
    return request.getfixturevalue(request.param)


def is_broken_link(any_site: SiteFixture, target: str, page: str) -> bool:
    """Return True if a link of the website is broken; `page` is the path of its HTML page."""
    path, _, fragment = target.removeprefix(SITE).partition("#")
    file = any_site.files.get(path or ("/" if target.startswith(SITE) else page))
    if file is None:
        return True
    shown = (
        any_site.files[file.alternate]
        if file.alternate and not file.media_type.startswith("text/html")
        else file
    )
    return bool(fragment) and fragment not in element_ids(shown.content.decode())


def iterate_commands(text: str) -> Iterator[list[str]]:
    """Yield every call of our command in the code of a text, as words without the program's name."""
    joined = "\n".join(read_markdown(text).code).replace("\\\n", " ")
    for words in re.findall(
        r"(?<![\w./-])(?<!npm install )centgate ([a-z][a-z-]*(?![\w./:-])[^\n|;`]*)", joined
    ):
        yield shlex.split(words)
    for found in re.findall(r'"command": "centgate",\s*"args": (\[[^\]]*\])', joined):
        yield json.loads(found)


@cache
def load_commands() -> Any:
    """Return our command with all its groups."""
    return get_command(app)


def find_unknown_part(words: list[str]) -> str | None:
    """Return the unknown part of a command line, or None if all is known."""
    command: Any = load_commands()
    while words and isinstance(command, TyperGroup):
        group: Any = command  # it asks for a context, which is not used here
        if (found := group.get_command(None, words[0])) is None:
            break
        command, words = found, words[1:]
    if words and isinstance(command, TyperGroup) and not command.invoke_without_command:
        return f"no command {words[:1]}"
    known = {option for each in command.params for option in each.opts} | {"--help"}
    return next((word for word in words if word.startswith("--") and word not in known), None)


def test_text_begins_with_title_and_link_to_page(any_site: SiteFixture) -> None:
    for twin in any_site.markdown_paths:
        title, empty, pointer, *_ = any_site.text(twin).splitlines()

        assert title.startswith("# ")
        assert not empty
        assert f"<{SITE}{any_site.files[twin].alternate}>" in pointer
        assert f"({SITE}/llms.txt)" in pointer


def test_page_links_to_its_text_before_title(any_site: SiteFixture) -> None:
    for twin in any_site.markdown_paths:
        before = xpath(any_site.text(any_site.files[twin].alternate), "//main//a[following::h1]/@href")

        assert before == [twin, "/llms.txt"]


def letters_and_digits(text: str) -> str:
    """Return the letters and digits of a text."""
    return re.sub(r"[\W_]+", "", text).lower()


def test_page_says_nothing_beyond_its_markdown(any_site: SiteFixture) -> None:
    blocks = "self::h1 or self::h2 or self::h3 or self::p or self::td or self::pre"
    own = "ancestor-or-self::*[@data-markdown-ignore or @class='label' or self::form or self::noscript]"
    for twin in any_site.markdown_paths:
        options = letters_and_digits("".join(xpath(read_markdown(any_site.text(twin)).html, "//text()")))

        shown = xpath(any_site.text(any_site.files[twin].alternate), f"//main//*[{blocks}][not({own})]")

        texts = [each.text_content() for each in shown]
        assert [each for each in texts if letters_and_digits(each) not in options] == [], twin


def test_guides_are_those_listed_here(any_site: SiteFixture) -> None:
    guides = [
        twin for twin in any_site.markdown_paths if twin != "/index.md" and not twin.startswith("/services/")
    ]

    assert guides == [f"/{name}.md" for name in GUIDES]


@pytest.mark.parametrize("name", GUIDES)
def test_guide_is_small_and_complete(any_site: SiteFixture, name: str) -> None:
    page, text = any_site.text(f"/{name}"), any_site.text(f"/{name}.md")

    assert len(page.encode()) <= 60 * KILOBYTE
    assert not re.search(r"\{\{|\{%|\bNone\b|Undefined", text)


def test_links_of_texts_lead_somewhere(any_site: SiteFixture) -> None:
    found = {
        (twin, target)
        for twin in any_site.markdown_paths
        for target in read_markdown(any_site.text(twin)).links
    }
    ours = {(twin, target) for twin, target in found if target.startswith((SITE, "#"))}

    astray = {
        (twin, target)
        for twin, target in ours
        if is_broken_link(any_site, target, any_site.files[twin].alternate)
    }

    assert len(ours) > 100
    assert not astray


def test_links_of_pages_lead_somewhere(any_site: SiteFixture) -> None:
    pages = [any_site.files[twin].alternate for twin in any_site.markdown_paths]
    found = {
        (path, str(target))
        for path in pages
        for target in xpath(any_site.text(path), "//main//@href | //head//@href | //@src")
    }
    ours = {(path, target) for path, target in found if target.startswith((SITE, "/", "#"))}

    astray = {(path, target) for path, target in ours if is_broken_link(any_site, target, path)}

    assert len(ours) > 100
    assert not astray


def test_api_urls_are_routes(sepolia_site: SiteFixture) -> None:
    texts = [
        file.content.decode() for file in sepolia_site.files.values() if file.media_type.startswith("text/")
    ]
    named = {address for text in texts for address in find_addresses(text, API)}
    paths = {address.removeprefix(API).replace("{slug}", "token-risk") or "/" for address in named}

    missing = {
        path for path in paths if sepolia_site.api.get(path).status_code == 404 and path != "/services/"
    }

    assert {"/openapi.json", "/health", "/services/token-risk", "/mcp"} <= paths
    assert not missing


def test_named_commands_exist(any_site: SiteFixture) -> None:
    options = {
        tuple(words) for twin in any_site.markdown_paths for words in iterate_commands(any_site.text(twin))
    }
    options |= {
        tuple(words)
        for words in iterate_commands(any_site.text("/.well-known/agent-skills/centgate/SKILL.md"))
    }

    unknown = {" ".join(words): found for words in options if (found := find_unknown_part(list(words)))}

    assert {"call", "dev", "mcp", "serve", "services", "settings", "site", "wallet"} <= {
        w[0] for w in options
    }
    assert not unknown


@pytest.mark.parametrize("words", [["cal"], ["call", "--frobnicate"], ["wallet", "burn"]])
def test_unknown_command_is_found(words: list[str]) -> None:
    assert find_unknown_part(words)


def test_named_settings_exist(any_site: SiteFixture) -> None:
    fields = {PREFIX + name.upper() for model in (Settings, BuyerSettings) for name in model.model_fields}
    providers = all_providers(all_services()).values()
    sources = {PREFIX + name.replace("*", "") for each in providers for name in each.info.settings}

    words = {
        word
        for twin in any_site.markdown_paths
        for word in re.findall(rf"{PREFIX}[A-Z0-9_<>]+", any_site.text(twin))
    }
    named = {word for word in words if "<" not in word}

    assert PREFIX + "CAP_PER_CALL" in named
    assert not named - fields - sources


@each_code
def test_errors_page_has_every_code(sepolia_site: SiteFixture, code: str) -> None:
    text, meaning = sepolia_site.text("/errors.md"), ERROR_SPECS[code]

    row = f"| [`{code}`](#{code}) | {meaning.status} | {meaning.charged} | {meaning.action} |"

    assert row in text
    assert f"## {code}\n\nStatus {meaning.status}. {meaning.when}\n" in text
    assert code in element_ids(sepolia_site.text("/errors"))


def test_errors_page_has_limits_of_requests(sepolia_site: SiteFixture) -> None:
    text, settings = " ".join(sepolia_site.text("/errors.md").split()), Settings()

    assert f"may send each server process {settings.free_per_minute:,} requests a minute" in text
    assert f"present one payment with {WRONG_REQUESTS} requests a minute" in text
    assert f"({WRONG_REQUESTS_BURST} at once)" in text
    assert f"may have {settings.refused_per_minute} payments refused a minute" in text


@each_code
def test_errors_page_shows_each_code_in_envelope(sepolia_site: SiteFixture, code: str) -> None:
    section = sepolia_site.text("/errors.md").split(f"## {code}\n")[1]

    example = json.loads(section.split("```json\n")[1].split("```")[0])

    assert set(example) == {"error", "requestId"}
    assert example["error"]["code"] == code


def test_envelope_of_402_has_terms_of_this_deployment(sepolia_site: SiteFixture) -> None:
    section = sepolia_site.text("/errors.md").split("## payment_required\n")[1]
    example = json.loads(section.split("```json\n")[1].split("```")[0])

    answer = sepolia_site.api.post("/services/token-risk").json()

    assert example["error"]["details"]["accepts"] == answer["error"]["details"]["accepts"]


def test_every_payment_state_is_explained(sepolia_site: SiteFixture) -> None:
    text = sepolia_site.text("/paying.md")

    assert set(PAYMENT_STATES) == set(get_args(PaymentState))
    assert set(RETRY_MEANINGS) == set(get_args(Retry))
    assert all(
        f"| `{state}` | {any_site} | {action} |" in text
        for state, (any_site, action) in PAYMENT_STATES.items()
    )


def test_explained_terms_are_those_of_402(sepolia_site: SiteFixture) -> None:
    header = sepolia_site.api.post("/services/token-risk").headers["PAYMENT-REQUIRED"]

    shown = sepolia_site.text("/paying.md").split("```json\n")[1].split("```")[0]

    assert json.loads(shown) == decode_header(header)["accepts"][0]


def test_free_responses_match_error_table(sepolia_site: SiteFixture) -> None:
    section = sepolia_site.text("/paying.md").split("## When nothing is charged\n")[1].split("\n## ")[0]

    listed = re.findall(r"\[`(\w+)`\]", section)

    assert listed == [code for code, meaning in ERROR_SPECS.items() if meaning.charged == "no"]


def test_spending_limits_match_the_client(sepolia_site: SiteFixture) -> None:
    settings = BuyerSettings()

    text = sepolia_site.text("/agents.md")

    assert f"at most ${settings.cap_per_call} for one call and ${settings.cap_total} in all" in text


@pytest.mark.parametrize("page", ["/agents.md", "/start.md", "/.well-known/agent-skills/centgate/SKILL.md"])
def test_commands_name_the_network(sepolia_site: SiteFixture, page: str) -> None:
    header = sepolia_site.api.post("/services/token-risk").headers["PAYMENT-REQUIRED"]
    network = decode_header(header)["accepts"][0]["network"]

    text = sepolia_site.text(page)

    shown = text.count(f"--network {network}") + text.count(f'"--network",\n        "{network}"')
    assert shown >= 2


def test_payee_is_that_of_402(sepolia_site: SiteFixture) -> None:
    header = sepolia_site.api.post("/services/token-risk").headers["PAYMENT-REQUIRED"]
    terms = decode_header(header)["accepts"][0]

    text = sepolia_site.text("/trust.md")

    assert (
        f"| paid to | [`{terms['payTo']}`](https://sepolia.basescan.org/address/{terms['payTo']}) |" in text
    )
    assert terms["asset"] in text


def test_proof_code_finds_the_payee(sepolia_site: SiteFixture) -> None:
    program = sepolia_site.text("/trust.md").split("```python\n")[1].split("```")[0]

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.strip() == BUYER_ACCOUNTS[0].address


def test_cache_time_is_rounded_up(sepolia_site: SiteFixture) -> None:
    deployment = sepolia_site.deployment
    services = tuple(each.model_copy(update={"cache_seconds": 90}) for each in deployment.services)

    site = build_site_fixture(replace(deployment, services=services), sepolia_site.api)

    assert re.search(r"for at most\s+2 minutes;", site.text("/trust.md"))


def test_silent_operator_has_no_claims(mainnet_site: SiteFixture) -> None:
    text = mainnet_site.text("/trust.md")

    assert "has not published a contact" in text
    assert "has published no proof" in text
    assert "security.txt" not in text


def test_source_is_named_once_with_its_terms(sepolia_site: SiteFixture) -> None:
    text = sepolia_site.text("/trust.md")

    for provider in all_providers(all_services()).values():
        rows = [row for row in text.splitlines() if row.startswith(f"| [{provider.info.label}](")]
        assert len(rows) == 1
        assert provider.info.terms in rows[0]


@pytest.mark.parametrize(
    ("kind", "state"), [("sepolia_site", "up"), ("unpaid_site", "up"), ("unreachable_site", "not reachable")]
)
def test_status_is_that_of_api(request: pytest.FixtureRequest, kind: str, state: str) -> None:
    any_site: SiteFixture = request.getfixturevalue(kind)

    assert f"| API | **{state}** |" in any_site.text("/status.md")


def test_status_of_each_service_is_shown(sepolia_site: SiteFixture) -> None:
    text, deployment = sepolia_site.text("/status.md"), sepolia_site.deployment

    rows = [f"/{each.slug}.md) | **{deployment.state(each)}** |" for each in deployment.services]

    assert all(row in text for row in rows)
    assert (
        f"{sum(map(deployment.is_up, deployment.services))} of {len(deployment.services)} can be bought"
        in text
    )


def test_services_are_not_up_without_payments(unpaid_site: SiteFixture) -> None:
    text = unpaid_site.text("/status.md")

    assert f"| services | 0 of {len(unpaid_site.deployment.services)} can be bought |" in text
    assert "Payments are disabled" in unpaid_site.text("/paying.md")


def test_test_money_is_distinguished_from_real_money(
    sepolia_site: SiteFixture, mainnet_site: SiteFixture
) -> None:
    assert "test network" in sepolia_site.text("/start.md")
    assert "test network" not in mainnet_site.text("/start.md")
    assert "Base (`eip155:8453`)" in mainnet_site.text("/start.md")


def test_reference_has_every_operation(sepolia_site: SiteFixture) -> None:
    text, document = sepolia_site.text("/reference.md"), sepolia_site.deployment.openapi
    described = {service.path for service in sepolia_site.deployment.services}

    operations = [
        f"`{method.upper()} {path}`"
        for path, methods in document["paths"].items()
        for method in methods
        if not (method == "get" and path in described)
    ]

    assert len(operations) > len(described)
    assert [operation for operation in operations if operation not in text] == []


def test_reference_has_every_request_field(sepolia_site: SiteFixture) -> None:
    text = sepolia_site.text("/reference.md")

    for service in sepolia_site.deployment.services:
        section = text.split(f"### POST {service.path}\n")[1].split("\n#")[0]
        listed = dict(re.findall(r"\| `(\w+)` \|.*\| (yes|no) \|", section))
        required = service.input_schema.get("required", [])
        wanted = {name: "yes" if name in required else "no" for name in service.input_schema["properties"]}
        assert listed == wanted


def test_reference_has_every_header(sepolia_site: SiteFixture) -> None:
    text = sepolia_site.text("/reference.md")

    headers = [*sepolia_site.deployment.openapi["components"]["headers"], "PAYMENT-SIGNATURE"]

    assert [name for name in headers if f"`{name}`" not in text] == []


def test_changelog_is_that_of_repository(sepolia_site: SiteFixture) -> None:
    options = CHANGELOG.read_text(encoding="utf-8").splitlines()

    assert sepolia_site.text("/changelog.md").splitlines()[4:] == options[2:]
