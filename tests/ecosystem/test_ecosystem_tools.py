"""The list of other people's tools: each is pinned, declared once, and in the table of docs/ecosystem.md."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ecosystem_tools import TOOLS, Tool

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "ecosystem.md"
LOCK: Mapping[str, Any] = json.loads((HERE / "package-lock.json").read_text(encoding="utf-8"))
NPM: Mapping[str, str] = json.loads((HERE / "package.json").read_text(encoding="utf-8"))["dependencies"]
PYPI = dict(
    line.split("==")
    for line in (HERE / "requirements.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
)
HELPERS = {"@sparticuz/chromium", "@x402/evm", "playwright-core", "typescript", "viem"}
"""Packages of npm that programs and compilations need beside a tool."""


def test_pinned_packages_are_declared_tools() -> None:
    used = {tool.package for tool in TOOLS}

    assert used == {*NPM, *PYPI} - HELPERS
    assert all(re.fullmatch(r"\d+(\.\d+)+", version) for version in (*NPM.values(), *PYPI.values()))


def test_tool_names_are_unique_in_registry() -> None:
    names = [(tool.registry, tool.name) for tool in TOOLS]

    assert len(set(names)) == len(names)


def test_lock_has_pinned_versions_and_no_registry() -> None:
    packages = LOCK["packages"]

    assert packages[""]["dependencies"] == NPM
    assert [each for each in packages.values() if "resolved" in each] == []


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: f"{tool.registry} {tool.name}")
def test_commands_name_existing_programs(tool: Tool) -> None:
    for program in re.findall(r"{programs}/(\S+)", " ".join(tool.commands)):
        assert (HERE / "programs" / program).is_file()


def test_page_has_row_for_every_tool() -> None:
    rows = re.findall(r"^\| (\S.*?) \| (\S+) \| .+ \| (clean|not clean) \|$", PAGE.read_text(), re.MULTILINE)

    assert [(name, version) for name, version, _ in rows] == [
        (tool.name, {**NPM, **PYPI}[tool.package]) for tool in TOOLS
    ]
