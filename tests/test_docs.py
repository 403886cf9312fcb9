"""README and docs/: generated pages are current, links lead somewhere, commands exist."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tomllib
from collections.abc import Generator, Iterator, Mapping
from functools import cache
from pathlib import Path

import demo_docs
import operating_docs
import pytest
import services_docs
from centgate_process import run_centgate
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
CODE_PATH = re.compile(r"`([\w./-]+(?:/|\.(?:json|md|py|toml|ya?ml)))(?:#[\w-]+)?`")
EXAMPLE_FILE = re.compile(r"^# (\S+\.py)$", re.MULTILINE)
INLINE_COMMAND = re.compile(r"`(centgate [^`]+)`")


def list_pages() -> list[Path]:
    """Return every page that is written for readers of the repository."""
    top = ("README.md", "AGENTS.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "deploy/README.md")
    return [*(ROOT / name for name in top), *sorted((ROOT / "docs").rglob("*.md"))]


def read_page(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def test_settings_pages_are_current() -> None:
    assert read_page(ROOT / "docs" / "settings.md").rstrip() == render_markdown().rstrip()
    assert read_page(ROOT / ".env.example").rstrip() == render_env_example().rstrip()


def list_anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub forms them."""
    headings = re.findall(r"^#+ (.+)$", read_page(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def find_broken_links(page: Path) -> Iterator[str]:
    for link in LINK.findall(INLINE_CODE.sub("", read_page(page))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in list_anchors(target)):
            yield link


def list_commands(text: str) -> Iterator[list[str]]:
    """Return the `centgate` commands in code blocks, transcripts and inline code."""
    blocks = [line.removeprefix("$ ") for block in CODE_BLOCK.findall(text) for line in block.splitlines()]
    for command in [*blocks, *INLINE_COMMAND.findall(text)]:
        words = shlex.split(command, comments=True) if command.startswith("centgate ") else []
        if words and not words[1].startswith("--"):
            yield words[1:]


def find_missing_paths(text: str) -> Iterator[str]:
    """Return the paths in inline code that do not exist, without those of the files that a page shows.

    They are relative to the repository, to the package, or to a folder that their line names before.
    """
    examples = set(EXAMPLE_FILE.findall(text))
    for line in CODE_BLOCK.sub("", text).splitlines():
        folders = [ROOT, ROOT / "src" / "centgate"]
        for name in CODE_PATH.findall(line):
            found = next((folder / name for folder in folders if (folder / name).exists()), None)
            if found:
                folders.append(found if found.is_dir() else found.parent)
            elif name not in examples:
                yield name


@cache
def find_command(name: str) -> object:
    """Return a command of `centgate`, None if there is none; its module is imported once."""
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    return group.get_command(Context(group), name)


def is_command(words: list[str]) -> bool:
    """Return True if a command exists, and its subcommand if it is a group."""
    command = find_command(words[0])
    if not isinstance(command, TyperGroup) or len(words) == 1 or words[1].startswith("-"):
        return command is not None
    return all(name in command.commands for name in words[1].split("|"))


@pytest.fixture(scope="module")
def operator_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the documentation indexes of the operator who runs the demonstration."""
    return tmp_path_factory.mktemp("operator")


@pytest.fixture(scope="module")
def demonstration(operator_folder: Path) -> Generator[str]:
    """The page of a demonstration with a package registry on loopback."""
    with run_package_registry() as registry:
        registry.publish_python(
            "httpx", "0.28.1", {"README.md": "# httpx\n\n## Set a timeout\n\n```python\nTimeout(5)\n```\n"}
        )
        settings = {
            "CENTGATE_PACKAGEDOCS_PYPI_URL": registry.url,
            "CENTGATE_PACKAGEDOCS_NPM_URL": registry.url,
            "CENTGATE_PACKAGEDOCS_FOLDER": str(operator_folder),
        }
        yield demo_docs.render_page({**os.environ, **settings})


def test_service_pages_are_current() -> None:
    folder = {page.name: read_page(page) for page in services_docs.FOLDER.glob("*.md")}

    assert folder == services_docs.render_pages()


def test_readme_table_matches_catalogue() -> None:
    rows = re.findall(
        r"^\| \[([\w-]+)\]\(docs/services/\1\.md\) \| .+? \| \$([\d.]+) \| (?:yes|no)",
        read_page(README),
        re.MULTILINE,
    )

    assert read_page(README) == services_docs.render_readme(read_page(README))
    assert rows == [(service.slug, f"{service.price}") for service in all_services()]


@pytest.mark.extended
def test_output_of_commands_in_operating_is_current() -> None:
    page = read_page(operating_docs.PAGE)

    assert page == operating_docs.render_page(page, run_in_folder)


def run_in_folder(
    arguments: list[str], environment: Mapping[str, str], folder: Path
) -> subprocess.CompletedProcess[str]:
    return run_centgate(arguments, env=environment, cwd=folder)


@pytest.mark.extended
def test_demonstration_is_current(demonstration: str) -> None:
    page = read_page(demo_docs.PAGE)

    assert demo_docs.remove_package_index_step(page) == demo_docs.remove_package_index_step(demonstration)


@pytest.mark.extended
def test_demonstration_leaves_indexes_of_operator_alone(demonstration: str, operator_folder: Path) -> None:
    assert "7. Read a library's documentation" in demonstration
    assert not list(operator_folder.iterdir())


def test_ports_of_demonstration_are_numbered_in_order() -> None:
    output = "chain 127.0.0.1:40002, API 127.0.0.1:40001, chain 127.0.0.1:40002\n"

    assert demo_docs.normalize(output) == (
        "chain 127.0.0.1:40001, API 127.0.0.1:40002, chain 127.0.0.1:40001\n"
    )


def test_readme_shows_eight_lines_of_demonstration() -> None:
    command, *lines = next(
        block for block in CODE_BLOCK.findall(read_page(README)) if block.startswith("$ make")
    ).splitlines()
    shown = read_page(demo_docs.PAGE).splitlines()

    assert command == "$ make demo"
    assert len(lines) == 8
    assert [line for line in lines if line not in shown] == []


def test_readme_has_at_most_150_lines() -> None:
    assert len(read_page(README).splitlines()) <= 150


@pytest.mark.parametrize("page", list_pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_to_files_lead_somewhere(page: Path) -> None:
    assert list(find_broken_links(page)) == []


@pytest.mark.parametrize("page", list_pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_exist(page: Path) -> None:
    assert [words for words in list_commands(read_page(page)) if not is_command(words)] == []


@pytest.mark.parametrize("name", ["AGENTS.md", "CONTRIBUTING.md"])
def test_named_paths_exist(name: str) -> None:
    assert list(find_missing_paths(read_page(ROOT / name))) == []


def test_path_without_file_is_found() -> None:
    row = "| payments | `src/centgate/payments/`: `gate.py`, `claims.py`, `journal/claims.py` |"

    assert list(find_missing_paths(row)) == ["claims.py"]


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", read_page(ROOT / "Makefile"), re.MULTILINE))

    named = {
        name
        for page in list_pages()
        for names in re.findall(r"`make ([\w -]+)`", read_page(page))
        for name in names.split()
    }

    assert named - targets == set()


def test_architecture_names_top_level_modules_and_packages() -> None:
    tree = read_page(ROOT / "docs" / "architecture.md").split("## Tree", 1)[1].split("```")[1]
    package = ROOT / "src" / "centgate"
    modules = {each.name for each in package.glob("*.py") if not each.name.startswith("__")}
    packages = {f"{each.name}/" for each in package.iterdir() if (each / "__init__.py").exists()}
    assert modules | packages <= set(tree.split())


def test_architecture_names_payment_modules_once() -> None:
    page = read_page(ROOT / "docs" / "architecture.md")
    section = page.split("## Modules of payments", 1)[1].split("\n## ")[0]
    package = ROOT / "src" / "centgate" / "payments"
    modules = [each.stem for each in package.glob("*.py") if each.stem != "__init__"]
    packages = [f"{each.parent.name}/" for each in package.glob("*/__init__.py")]
    named = [name for name in re.findall(r"`([a-z_]+/?)`", section) if name != "payments/"]
    assert sorted(named) == sorted([*modules, *packages])


def test_architecture_shows_import_layers() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["id"] == "layers")

    shown = "\n".join(layer.replace(" : ", ", ") for layer in layers)

    assert f"```\n{shown}\n```" in (ROOT / "docs" / "architecture.md").read_text()


def test_decisions_have_status_date_and_index_entry() -> None:
    index = read_page(DECISIONS / "README.md")

    for page in sorted(DECISIONS.glob("0*.md")):
        number, title = int(page.name[:4]), read_page(page).splitlines()[0]
        status = re.search(r"^Status: (accepted|superseded by \[(\d{4})\])", read_page(page), re.MULTILINE)
        date = re.search(r"^Date: (\d{4}-\d\d-\d\d)$", read_page(page), re.MULTILINE)

        assert title.startswith(f"# {number}. ")
        assert status, page.name
        assert date, page.name
        state = f"superseded by {status[2]}" if status[2] else "accepted"
        row = f"| [{page.name[:4]}]({page.name}) | {title.partition('. ')[2]} | {state} | {date[1]} |"
        assert row in index


def test_pages_are_in_table_of_contents() -> None:
    contents = read_page(ROOT / "docs" / "README.md")

    assert [page.name for page in (ROOT / "docs").glob("[!R]*.md") if f"]({page.name})" not in contents] == []
