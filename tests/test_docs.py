"""The README and the pages of docs/: generated pages are current, links lead somewhere, commands exist."""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from collections.abc import Generator, Iterator
from pathlib import Path

import demo_docs
import operating_docs
import pytest
import services_docs
from package_registry import run_package_registry
from typer import Context
from typer.core import TyperGroup
from typer.main import get_command

from centgate.catalog import all_services
from centgate.cli.main import app
from centgate.cli.settings_docs import render_env_example, render_markdown

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
DECISIONS = ROOT / "docs" / "decisions"
INLINE_CODE = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"(?:\]\(|src=\"|srcset=\")([^)\"\s]+)")
CODE_BLOCK = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE_COMMAND = re.compile(r"`(centgate [^`]+)`")


def pages() -> list[Path]:
    """Return every page that is written for readers of the repository."""
    top = ("README.md", "AGENTS.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "deploy/README.md")
    return [*(ROOT / name for name in top), *sorted((ROOT / "docs").rglob("*.md"))]


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def test_the_pages_of_settings_are_current() -> None:
    assert read(ROOT / "docs" / "settings.md").rstrip() == render_markdown().rstrip()
    assert read(ROOT / ".env.example").rstrip() == render_env_example().rstrip()


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub forms them."""
    headings = re.findall(r"^#+ (.+)$", read(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> Iterator[str]:
    for link in LINK.findall(INLINE_CODE.sub("", read(page))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


def commands(text: str) -> Iterator[list[str]]:
    """Return the `centgate` commands in code blocks, transcripts and inline code."""
    blocks = [line.removeprefix("$ ") for block in CODE_BLOCK.findall(text) for line in block.splitlines()]
    for command in [*blocks, *INLINE_COMMAND.findall(text)]:
        words = shlex.split(command, comments=True) if command.startswith("centgate ") else []
        if words and not words[1].startswith("--"):
            yield words[1:]


def is_command(words: list[str]) -> bool:
    """True if a command, and its subcommand if it is a group, exist."""
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    command = group.get_command(Context(group), words[0])
    if not isinstance(command, TyperGroup) or len(words) == 1 or words[1].startswith("-"):
        return command is not None
    return all(name in command.commands for name in words[1].split("|"))


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """The page of a demonstration that reads a package registry on loopback."""
    with run_package_registry() as registry:
        registry.publish_python(
            "httpx", "0.28.1", {"README.md": "# httpx\n\n## Set a timeout\n\n```python\nTimeout(5)\n```\n"}
        )
        folder = tmp_path_factory.mktemp("demonstration")
        settings = {
            "CENTGATE_PACKAGEDOCS_PYPI_URL": registry.url,
            "CENTGATE_PACKAGEDOCS_NPM_URL": registry.url,
            "CENTGATE_PACKAGEDOCS_FOLDER": str(folder),
        }
        yield demo_docs.render_page({**os.environ, **settings})


def test_pages_of_services_are_current() -> None:
    folder = {page.name: read(page) for page in services_docs.FOLDER.glob("*.md")}

    assert folder == services_docs.render_pages()


def test_readme_table_is_that_of_the_catalogue() -> None:
    rows = re.findall(
        r"^\| \[([\w-]+)\]\(docs/services/\1\.md\) \| .+? \| \$([\d.]+) \| (?:yes|no)",
        read(README),
        re.MULTILINE,
    )

    assert read(README) == services_docs.render_readme(read(README))
    assert rows == [(service.slug, f"{service.price}") for service in all_services()]


@pytest.mark.extended
def test_output_of_commands_in_operating_is_current() -> None:
    assert read(operating_docs.PAGE) == operating_docs.render_page(read(operating_docs.PAGE))


@pytest.mark.extended
def test_demonstration_is_current(demonstration: str) -> None:
    page = read(demo_docs.PAGE)

    assert demo_docs.without_package_index(page) == demo_docs.without_package_index(demonstration)


def test_readme_shows_eight_lines_of_the_demonstration() -> None:
    command, *lines = next(
        block for block in CODE_BLOCK.findall(read(README)) if block.startswith("$ make")
    ).splitlines()
    shown = read(demo_docs.PAGE).splitlines()

    assert command == "$ make demo"
    assert len(lines) == 8
    assert [line for line in lines if line not in shown] == []


def test_readme_has_at_most_150_lines() -> None:
    assert len(read(README).splitlines()) <= 150


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_to_files_lead_somewhere(page: Path) -> None:
    assert list(broken_links(page)) == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_exist(page: Path) -> None:
    assert [words for words in commands(read(page)) if not is_command(words)] == []


def test_targets_of_make_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", read(ROOT / "Makefile"), re.MULTILINE))

    named = {
        name
        for page in pages()
        for names in re.findall(r"`make ([\w -]+)`", read(page))
        for name in names.split()
    }

    assert named - targets == set()


def test_architecture_names_every_module_and_package_of_the_first_level() -> None:
    tree = read(ROOT / "docs" / "architecture.md").split("## Tree", 1)[1].split("```")[1]
    package = ROOT / "src" / "centgate"
    modules = {each.name for each in package.glob("*.py") if not each.name.startswith("__")}
    packages = {f"{each.name}/" for each in package.iterdir() if (each / "__init__.py").exists()}
    assert modules | packages <= set(tree.split())


def test_architecture_names_every_module_of_payments_once() -> None:
    text = read(ROOT / "docs" / "architecture.md").split("## Modules of payments", 1)[1].split("\n## ")[0]
    package = ROOT / "src" / "centgate" / "payments"
    modules = [each.stem for each in package.glob("*.py") if each.stem != "__init__"]
    packages = [f"{each.parent.name}/" for each in package.glob("*/__init__.py")]
    named = re.findall(r"`([a-z_]+/?)`", text.split("| --- | --- |")[1])
    assert sorted(named) == sorted([*modules, *packages])


def test_architecture_shows_the_layers_of_the_import_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["id"] == "layers")

    shown = "\n".join(layer.replace(" : ", ", ") for layer in layers)

    assert f"```\n{shown}\n```" in (ROOT / "docs" / "architecture.md").read_text()


def test_every_decision_has_status_and_date_and_is_in_the_index() -> None:
    index = read(DECISIONS / "README.md")

    for page in sorted(DECISIONS.glob("0*.md")):
        number, title = int(page.name[:4]), read(page).splitlines()[0]
        status = re.search(r"^Status: (accepted|superseded by \[(\d{4})\])", read(page), re.MULTILINE)
        date = re.search(r"^Date: (\d{4}-\d\d-\d\d)$", read(page), re.MULTILINE)

        assert title.startswith(f"# {number}. ")
        assert status, page.name
        assert date, page.name
        state = f"superseded by {status[2]}" if status[2] else "accepted"
        row = f"| [{page.name[:4]}]({page.name}) | {title.partition('. ')[2]} | {state} | {date[1]} |"
        assert row in index


def test_every_page_is_in_the_table_of_contents() -> None:
    contents = read(ROOT / "docs" / "README.md")

    assert [page.name for page in (ROOT / "docs").glob("[!R]*.md") if f"]({page.name})" not in contents] == []
