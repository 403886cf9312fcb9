"""The guides say what is so: links lead somewhere, figures are the code's, commands exist."""

# eth_account is typed in part
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Generator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pytest
from buyer import decode_header
from eth_account import Account
from eth_account.messages import encode_defunct
from markdown_it import MarkdownIt
from site_fixtures import (
    API,
    SITE,
    SiteFixture,
    element_ids,
    find_addresses,
    iterate_code,
    iterate_links,
    open_site_fixture,
    xpath,
)
from typer.core import TyperGroup
from typer.main import get_command

from centgate.catalog import all_providers, all_services
from centgate.cli.main import app
from centgate.client.settings import BuyerSettings
from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.envelope import ERROR_SPECS
from centgate.environment import PREFIX
from centgate.errors import PaymentState, Retry
from centgate.settings import Settings
from centgate.website.files import build_files
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


def proof() -> str:
    """A signature of the API's address by who is paid."""
    signed = Account.sign_message(encode_defunct(text=API), BUYER_ACCOUNTS[0].private_key)
    return "0x" + signed.signature.hex().removeprefix("0x")


@pytest.fixture(scope="module")
def paid(tmp_path_factory: pytest.TempPathFactory) -> Generator[SiteFixture]:
    """A deployment for test money whose operator has said everything about himself."""
    said = {
        "pay_to": BUYER_ACCOUNTS[0].address,
        "operator": "mailto:desk@shop.example",
        "ownership_proofs": (proof(),),
    }
    with open_site_fixture(tmp_path_factory.mktemp("paid"), **said) as found:
        yield found


@pytest.fixture(scope="module")
def for_dollars(tmp_path_factory: pytest.TempPathFactory) -> Generator[SiteFixture]:
    """A deployment for real money whose operator has said nothing about himself."""
    with open_site_fixture(tmp_path_factory.mktemp("dollars"), network="eip155:8453") as found:
        yield found


@pytest.fixture(scope="module")
def unpaid(tmp_path_factory: pytest.TempPathFactory) -> Generator[SiteFixture]:
    """A deployment that takes no payments."""
    with open_site_fixture(tmp_path_factory.mktemp("unpaid"), pay_to=None) as found:
        yield found


@pytest.fixture(scope="module")
def lost(paid: SiteFixture) -> SiteFixture:
    """A deployment that does not answer any more."""
    deployment = paid.deployment.as_unreachable(datetime.now(UTC))
    return SiteFixture(deployment, build_files(deployment), paid.api)


@pytest.fixture(params=["paid", "for_dollars", "unpaid", "lost"])
def told(request: pytest.FixtureRequest) -> SiteFixture:
    """Each kind of deployment."""
    return request.getfixturevalue(request.param)


def led_astray(told: SiteFixture, target: str, page: str) -> bool:
    """Return True if a link of the website is broken; `page` is the path of its HTML page."""
    path, _, fragment = target.removeprefix(SITE).partition("#")
    file = told.files.get(path or ("/" if target.startswith(SITE) else page))
    if file is None:
        return True
    shown = (
        told.files[file.alternate] if file.alternate and not file.media_type.startswith("text/html") else file
    )
    return bool(fragment) and fragment not in element_ids(shown.content.decode())


def commands(text: str) -> Iterator[list[str]]:
    """Every call of our command in the code of a text, as words without the program's name."""
    joined = "\n".join(iterate_code(text)).replace("\\\n", " ")
    for words in re.findall(
        r"(?<![\w./-])(?<!npm install )centgate ([a-z][a-z-]*(?![\w./:-])[^\n|;`]*)", joined
    ):
        yield shlex.split(words)
    for found in re.findall(r'"command": "centgate",\s*"args": (\[[^\]]*\])', joined):
        yield json.loads(found)


def objection(words: list[str]) -> str | None:
    """Return the unknown part of a command line, or None if all is known."""
    command: Any = get_command(app)
    while words and isinstance(command, TyperGroup):
        group: Any = command  # which asks for a context, and does not look at it
        if (found := group.get_command(None, words[0])) is None:
            break
        command, words = found, words[1:]
    if words and isinstance(command, TyperGroup) and not command.invoke_without_command:
        return f"no command {words[:1]}"
    known = {option for each in command.params for option in each.opts} | {"--help"}
    return next((word for word in words if word.startswith("--") and word not in known), None)


def test_every_text_begins_with_its_title_and_where_its_other_form_is(told: SiteFixture) -> None:
    for twin in told.markdown_paths:
        title, empty, pointer, *_ = told.text(twin).splitlines()

        assert title.startswith("# ")
        assert not empty
        assert f"<{SITE}{told.files[twin].alternate}>" in pointer
        assert f"({SITE}/llms.txt)" in pointer


def test_every_page_leads_to_its_text_before_its_title(told: SiteFixture) -> None:
    for twin in told.markdown_paths:
        before = xpath(told.text(told.files[twin].alternate), "//main//a[following::h1]/@href")

        assert before == [twin, "/llms.txt"]


def letters(text: str) -> str:
    """The letters and digits of a text."""
    return re.sub(r"[\W_]+", "", text).lower()


def test_every_page_says_nothing_that_its_markdown_does_not(told: SiteFixture) -> None:
    blocks = "self::h1 or self::h2 or self::h3 or self::p or self::td or self::pre"
    own = "ancestor-or-self::*[@data-markdown-ignore or @class='label' or self::form or self::noscript]"
    for twin in told.markdown_paths:
        rendered = MarkdownIt("commonmark").enable("table").render(told.text(twin))
        said = letters("".join(xpath(rendered, "//text()")))

        shown = xpath(told.text(told.files[twin].alternate), f"//main//*[{blocks}][not({own})]")

        texts = [each.text_content() for each in shown]
        assert [each for each in texts if letters(each) not in said] == [], twin


def test_the_guides_are_those_that_are_named_here(told: SiteFixture) -> None:
    guides = [
        twin for twin in told.markdown_paths if twin != "/index.md" and not twin.startswith("/services/")
    ]

    assert guides == [f"/{name}.md" for name in GUIDES]


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_is_small_and_whole(told: SiteFixture, name: str) -> None:
    page, text = told.text(f"/{name}"), told.text(f"/{name}.md")

    assert len(page.encode()) <= 60 * KILOBYTE
    assert not re.search(r"\{\{|\{%|\bNone\b|Undefined", text)


def test_every_link_of_every_text_leads_somewhere(told: SiteFixture) -> None:
    found = {(twin, target) for twin in told.markdown_paths for target in iterate_links(told.text(twin))}
    ours = {(twin, target) for twin, target in found if target.startswith((SITE, "#"))}

    astray = {(twin, target) for twin, target in ours if led_astray(told, target, told.files[twin].alternate)}

    assert len(ours) > 100
    assert not astray


def test_every_link_of_every_page_leads_somewhere(told: SiteFixture) -> None:
    pages = [told.files[twin].alternate for twin in told.markdown_paths]
    found = {
        (path, str(target))
        for path in pages
        for target in xpath(told.text(path), "//main//@href | //head//@href | //@src")
    }
    ours = {(path, target) for path, target in found if target.startswith((SITE, "/", "#"))}

    astray = {(path, target) for path, target in ours if led_astray(told, target, path)}

    assert len(ours) > 100
    assert not astray


def test_every_address_of_the_api_is_a_route_of_it(paid: SiteFixture) -> None:
    texts = [file.content.decode() for file in paid.files.values() if file.media_type.startswith("text/")]
    named = {address for text in texts for address in find_addresses(text, API)}
    paths = {address.removeprefix(API).replace("{slug}", "token-risk") or "/" for address in named}

    missing = {path for path in paths if paid.api.get(path).status_code == 404 and path != "/services/"}

    assert {"/openapi.json", "/health", "/services/token-risk", "/mcp"} <= paths
    assert not missing


def test_every_command_that_is_named_is_one(told: SiteFixture) -> None:
    said = {tuple(words) for twin in told.markdown_paths for words in commands(told.text(twin))}
    said |= {tuple(words) for words in commands(told.text("/.well-known/agent-skills/centgate/SKILL.md"))}

    unknown = {" ".join(words): found for words in said if (found := objection(list(words)))}

    assert {"call", "dev", "mcp", "serve", "services", "settings", "site", "wallet"} <= {w[0] for w in said}
    assert not unknown


@pytest.mark.parametrize("words", [["cal"], ["call", "--frobnicate"], ["wallet", "burn"]])
def test_a_command_that_is_none_would_be_found(words: list[str]) -> None:
    assert objection(words)


def test_every_setting_that_is_named_is_one(told: SiteFixture) -> None:
    fields = {PREFIX + name.upper() for model in (Settings, BuyerSettings) for name in model.model_fields}
    providers = all_providers(all_services()).values()
    sources = {PREFIX + name.replace("*", "") for each in providers for name in each.info.settings}

    words = {
        word for twin in told.markdown_paths for word in re.findall(rf"{PREFIX}[A-Z0-9_<>]+", told.text(twin))
    }
    named = {word for word in words if "<" not in word}

    assert PREFIX + "CAP_PER_CALL" in named
    assert not named - fields - sources


@each_code
def test_the_errors_page_has_every_code_as_the_code_has_it(paid: SiteFixture, code: str) -> None:
    text, meaning = paid.text("/errors.md"), ERROR_SPECS[code]

    row = f"| [`{code}`](#{code}) | {meaning.status} | {meaning.charged} | {meaning.action} |"

    assert row in text
    assert f"## {code}\n\nStatus {meaning.status}. {meaning.when}\n" in text
    assert code in element_ids(paid.text("/errors"))


@each_code
def test_the_errors_page_shows_each_code_in_an_envelope(paid: SiteFixture, code: str) -> None:
    section = paid.text("/errors.md").split(f"## {code}\n")[1]

    example = json.loads(section.split("```json\n")[1].split("```")[0])

    assert set(example) == {"error", "requestId"}
    assert example["error"]["code"] == code


def test_the_envelope_of_a_402_is_shown_with_the_terms_of_this_deployment(paid: SiteFixture) -> None:
    section = paid.text("/errors.md").split("## payment_required\n")[1]
    example = json.loads(section.split("```json\n")[1].split("```")[0])

    answer = paid.api.post("/services/token-risk").json()

    assert example["error"]["details"]["accepts"] == answer["error"]["details"]["accepts"]


def test_every_state_of_a_payment_is_told(paid: SiteFixture) -> None:
    text = paid.text("/paying.md")

    assert set(PAYMENT_STATES) == set(get_args(PaymentState))
    assert set(RETRY_MEANINGS) == set(get_args(Retry))
    assert all(
        f"| `{state}` | {told} | {action} |" in text for state, (told, action) in PAYMENT_STATES.items()
    )


def test_the_terms_that_are_explained_are_those_of_the_402(paid: SiteFixture) -> None:
    header = paid.api.post("/services/token-risk").headers["PAYMENT-REQUIRED"]

    shown = paid.text("/paying.md").split("```json\n")[1].split("```")[0]

    assert json.loads(shown) == decode_header(header)["accepts"][0]


def test_what_costs_nothing_is_what_the_error_table_says(paid: SiteFixture) -> None:
    section = paid.text("/paying.md").split("## When nothing is charged\n")[1].split("\n## ")[0]

    listed = re.findall(r"\[`(\w+)`\]", section)

    assert listed == [code for code, meaning in ERROR_SPECS.items() if meaning.charged == "no"]


def test_the_caps_that_are_told_are_those_of_the_client(paid: SiteFixture) -> None:
    settings = BuyerSettings()

    text = paid.text("/agents.md")

    assert f"at most ${settings.cap_per_call} for one call and ${settings.cap_total} in all" in text


@pytest.mark.parametrize("page", ["/agents.md", "/start.md", "/.well-known/agent-skills/centgate/SKILL.md"])
def test_what_pays_names_the_network_that_is_charged_on(paid: SiteFixture, page: str) -> None:
    header = paid.api.post("/services/token-risk").headers["PAYMENT-REQUIRED"]
    network = decode_header(header)["accepts"][0]["network"]

    text = paid.text(page)

    shown = text.count(f"--network {network}") + text.count(f'"--network",\n        "{network}"')
    assert shown >= 2


def test_who_is_paid_is_whom_the_402_names(paid: SiteFixture) -> None:
    header = paid.api.post("/services/token-risk").headers["PAYMENT-REQUIRED"]
    terms = decode_header(header)["accepts"][0]

    text = paid.text("/trust.md")

    assert (
        f"| paid to | [`{terms['payTo']}`](https://sepolia.basescan.org/address/{terms['payTo']}) |" in text
    )
    assert terms["asset"] in text


def test_the_code_that_checks_a_proof_finds_who_is_paid(paid: SiteFixture) -> None:
    program = paid.text("/trust.md").split("```python\n")[1].split("```")[0]

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.strip() == BUYER_ACCOUNTS[0].address


def test_nothing_is_claimed_of_an_operator_who_says_nothing(for_dollars: SiteFixture) -> None:
    text = for_dollars.text("/trust.md")

    assert "has not published a contact" in text
    assert "has published no proof" in text
    assert "security.txt" not in text


def test_every_source_is_named_once_with_its_terms(paid: SiteFixture) -> None:
    text = paid.text("/trust.md")

    for provider in all_providers(all_services()).values():
        rows = [row for row in text.splitlines() if row.startswith(f"| [{provider.info.label}](")]
        assert len(rows) == 1
        assert provider.info.terms in rows[0]


@pytest.mark.parametrize(("kind", "state"), [("paid", "up"), ("unpaid", "up"), ("lost", "not reachable")])
def test_the_status_is_that_of_the_api(request: pytest.FixtureRequest, kind: str, state: str) -> None:
    told: SiteFixture = request.getfixturevalue(kind)

    assert f"| API | **{state}** |" in told.text("/status.md")


def test_the_status_of_each_service_is_told(paid: SiteFixture) -> None:
    text, deployment = paid.text("/status.md"), paid.deployment

    rows = [f"/{each.slug}.md) | **{deployment.state(each)}** |" for each in deployment.services]

    assert all(row in text for row in rows)
    assert (
        f"{sum(map(deployment.is_up, deployment.services))} of {len(deployment.services)} can be bought"
        in text
    )


def test_nothing_is_up_where_nothing_is_sold(unpaid: SiteFixture) -> None:
    text = unpaid.text("/status.md")

    assert f"| services | 0 of {len(unpaid.deployment.services)} can be bought |" in text
    assert "Payments are disabled" in unpaid.text("/paying.md")


def test_test_money_is_called_so_and_real_money_is_not(paid: SiteFixture, for_dollars: SiteFixture) -> None:
    assert "test network" in paid.text("/start.md")
    assert "test network" not in for_dollars.text("/start.md")
    assert "Base (`eip155:8453`)" in for_dollars.text("/start.md")


def test_the_reference_has_every_operation(paid: SiteFixture) -> None:
    text, document = paid.text("/reference.md"), paid.deployment.openapi
    described = {service.path for service in paid.deployment.services}

    operations = [
        f"`{method.upper()} {path}`"
        for path, methods in document["paths"].items()
        for method in methods
        if not (method == "get" and path in described)
    ]

    assert len(operations) > len(described)
    assert [operation for operation in operations if operation not in text] == []


def test_the_reference_has_every_field_of_a_request(paid: SiteFixture) -> None:
    text = paid.text("/reference.md")

    for service in paid.deployment.services:
        section = text.split(f"### POST {service.path}\n")[1].split("\n#")[0]
        listed = dict(re.findall(r"\| `(\w+)` \|.*\| (yes|no) \|", section))
        required = service.input_schema.get("required", [])
        wanted = {name: "yes" if name in required else "no" for name in service.input_schema["properties"]}
        assert listed == wanted


def test_the_reference_has_every_header(paid: SiteFixture) -> None:
    text = paid.text("/reference.md")

    headers = [*paid.deployment.openapi["components"]["headers"], "PAYMENT-SIGNATURE"]

    assert [name for name in headers if f"`{name}`" not in text] == []


def test_the_changelog_is_the_repositorys(paid: SiteFixture) -> None:
    said = CHANGELOG.read_text(encoding="utf-8").splitlines()

    assert paid.text("/changelog.md").splitlines()[4:] == said[2:]
