"""`centgate mcp install`: add the MCP server to the configuration of an agent's program."""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import dropwhile
from pathlib import Path
from typing import Any, Literal, cast

from centgate.cli.buyer.exit_codes import ExitCode, read_buyer_settings, reports_errors
from centgate.cli.terminal import create_console, escape_controls, print_json, print_message, text_line
from centgate.files import replace_file

Program = Literal["claude", "claude-code", "claude-desktop", "cursor", "vscode", "codex"]
"""`claude` is Claude Code, whose command has that name."""
LABELS: Mapping[Program, str] = {
    "claude": "Claude Code",
    "claude-code": "Claude Code",
    "claude-desktop": "Claude Desktop",
    "cursor": "Cursor",
    "vscode": "VS Code",
    "codex": "Codex",
}
_WITH_TYPE: frozenset[Program] = frozenset({"claude", "claude-code", "vscode"})
"""Programs that write the transport into an entry."""
NAME = "centgate"
_FILES = ("WALLET", "LEDGER")
"""Settings that are written, if they are set, as the absolute path of a file; never the key itself."""
_PASSED_ON = (
    "CAP_PER_CALL",
    "CAP_TOTAL",
    "CAP_PER_HOUR",
    "CAP_PER_DAY",
    "ALLOWED_ASSETS",
    "PREFERRED_NETWORK",
    "PAYEE",
    "PROXY",
)
"""Settings that are written if they are set."""
_TABLE = f"mcp_servers.{NAME}"


class InstallRefused(Exception):
    """The configuration cannot be changed; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """Command with which an agent's program starts the MCP server."""

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as the programs write it in JSON."""
        entry: dict[str, Any] = {"command": self.command, "args": list(self.args)}
        return {**entry, "env": dict(self.env)} if self.env else entry


@dataclass(frozen=True, slots=True)
class Change:
    """Change of a configuration file; `before` is empty if there is no file."""

    file: Path
    before: str
    formatted: str
    """The file before, in the form that is written: lines of which only the form changes are not shown."""
    after: str

    @property
    def diff(self) -> str:
        """The changed lines alone: others may hold the keys of other servers."""
        now, then = self.formatted.splitlines(), self.after.splitlines()
        lines = difflib.unified_diff(now, then, lineterm="", n=0, fromfile="now", tofile="then")
        return "\n".join(lines)


@reports_errors
def install(
    program: Program,
    *,
    api: str | None,
    networks: tuple[str, ...],
    file: Path | None,
    yes: bool,
    json: bool,
    confirm: Callable[[str], bool],
) -> ExitCode:
    """Show the change of a program's configuration, and write it once it is confirmed."""
    try:
        change = plan_change(program, _build_entry(api, networks), file)
    except InstallRefused as error:
        print_message(str(error))
        return 1
    is_new, label = change.before != change.after, LABELS[program]
    if not json:
        _print_change(label, change)
    is_written = is_new and (yes or (not json and sys.stdin.isatty() and confirm(f"Write {change.file}?")))
    if is_written:
        _write(change)
    if json:
        content = {
            "program": label,
            "file": str(change.file),
            "change": change.diff,
            "written": is_written,
        }
        print_json(content)
    elif is_new:
        print_message(
            f"written; restart {label}" if is_written else "nothing was written: pass --yes to write it"
        )
    return 0 if is_written or not is_new else 1


def _build_entry(api: str | None, networks: tuple[str, ...]) -> ServerEntry:
    """Build the entry that starts this installation. Raises InstallRefused if it lacks the MCP library."""
    if find_spec("mcp") is None:
        raise InstallRefused(
            "`centgate mcp` needs a package that is not installed (mcp): pip install 'centgate[mcp]'"
        )
    settings = read_buyer_settings(api_url=api, networks=networks or None)
    if settings.wallet_key is not None and "CENTGATE_WALLET" not in os.environ:
        print_message(
            "CENTGATE_WALLET_KEY is not written into a configuration: put the key into a file, and name it "
            "with CENTGATE_WALLET"
        )
    chosen = [word for network in settings.networks for word in ("--network", network)]
    names = (f"CENTGATE_{name}" for name in (*_FILES, *_PASSED_ON))
    env = {name: value for name in names if (value := os.environ.get(name))}
    if "@" in env.get("CENTGATE_PROXY", ""):
        del env["CENTGATE_PROXY"]
        print_message(
            "CENTGATE_PROXY is not written into a configuration, because it holds a user or a password: give "
            "it to the server yourself if it needs the proxy"
        )
    # a program starts the server in a folder of its own choosing
    for name in env.keys() & {f"CENTGATE_{name}" for name in _FILES}:
        env[name] = str(Path(env[name]).expanduser().absolute())
    command = _find_command()
    return ServerEntry(command[0], (*command[1:], "mcp", "--api", settings.api_url, *chosen), env)


def _find_command() -> list[str]:
    """Return this installation's command, absolute: an editor has a PATH of its own."""
    script = shutil.which(NAME, path=str(Path(sys.executable).parent))
    return [script] if script else [sys.executable, "-m", NAME]


def plan_change(program: Program, entry: ServerEntry, file: Path | None) -> Change:
    """Return the change of the program's configuration. Raises InstallRefused if the file is not readable."""
    path = (file or config_file(program)).expanduser()
    path = path.resolve() if path.exists() else path
    try:
        # some editors begin a file with a byte order mark, which neither parser takes
        before = path.read_text(encoding="utf-8-sig") if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise InstallRefused(f"{path} cannot be read: {error}") from None
    if program == "codex":
        return Change(path, before, before, _edit_toml(path, before, entry))
    return _edit_json(program, path, before, entry)


def config_file(program: Program) -> Path:
    """Return the user's configuration file of a program on this system."""
    home = Path.home()
    folder = {
        "darwin": home / "Library" / "Application Support",
        "win32": Path(os.environ.get("APPDATA") or home / "AppData" / "Roaming"),
    }.get(sys.platform, Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config"))
    match program:
        case "claude" | "claude-code":  # the user's scope: its file in all projects
            return Path(os.environ.get("CLAUDE_CONFIG_DIR") or home) / ".claude.json"
        case "claude-desktop":
            return folder / "Claude" / "claude_desktop_config.json"
        case "cursor":
            return home / ".cursor" / "mcp.json"
        case "vscode":
            return folder / "Code" / "User" / "mcp.json"
        case "codex":
            return Path(os.environ.get("CODEX_HOME") or home / ".codex") / "config.toml"


def _edit_json(program: Program, file: Path, before: str, entry: ServerEntry) -> Change:
    """Return the change that adds the entry to a JSON file; everything else stays, in its order."""
    key = "servers" if program == "vscode" else "mcpServers"
    value = {"type": "stdio", **entry.to_dict()} if program in _WITH_TYPE else entry.to_dict()
    by_hand = f"add this under {key!r} yourself: {json.dumps({NAME: value})}"
    try:
        content: Any = json.loads(before) if before.strip() else {}
    except ValueError:
        raise InstallRefused(f"{file} is not plain JSON, it may have comments; {by_hand}") from None
    servers: Any = cast(dict[str, Any], content).setdefault(key, {}) if isinstance(content, dict) else None
    if not isinstance(servers, dict):
        raise InstallRefused(f"{file} has another form than expected; {by_hand}")
    if cast(dict[str, Any], servers).get(NAME) == value:
        return Change(file, before, before, before)
    indent = re.search(r"^([ \t]+)\S", before, re.MULTILINE)
    write = partial(json.dumps, indent=indent[1] if indent else 2, ensure_ascii=False)
    formatted = write(content) if before.strip() else ""
    servers[NAME] = value
    return Change(file, before, formatted, write(content) + "\n")


def _edit_toml(file: Path, before: str, entry: ServerEntry) -> str:
    """Return the TOML file with the entry's table replaced or appended; everything else stays as it is."""
    lines = [
        f"[{_TABLE}]",
        f"command = {json.dumps(entry.command)}",
        f"args = {json.dumps(list(entry.args))}",
    ]
    if entry.env:
        members = ", ".join(f"{name} = {json.dumps(value)}" for name, value in entry.env.items())
        lines.append(f"env = {{ {members} }}")
    table = "\n".join(lines) + "\n"
    # with the tables below it, such as the `env` that Codex writes
    own = re.compile(rf"(?:^\[{re.escape(_TABLE)}[].][^\n]*\n(?:(?!\[)[^\n]*(?:\n|\Z))*)+", re.MULTILINE)
    if own.search(before):
        after = own.sub(lambda found: table + _trailing_comments(found[0]), before, count=1)
    else:
        after = before.rstrip("\n") + ("\n\n" if before.strip() else "") + table
    try:
        others = _other_tables(before)
    except tomllib.TOMLDecodeError as error:
        raise InstallRefused(f"{file} is not TOML ({error}); add this yourself:\n{table}") from None
    try:
        is_kept = _other_tables(after) == others
    except tomllib.TOMLDecodeError:  # the entry is there in another notation
        is_kept = False
    if not is_kept:
        raise InstallRefused(f"{file} has another form than expected; add this yourself:\n{table}")
    return after


def _trailing_comments(tables: str) -> str:
    """Return the blank lines and comments at the end, which may belong to the next table."""
    lines = tables.splitlines(keepends=True)
    own = list(dropwhile(lambda line: not line.strip() or line.startswith("#"), reversed(lines)))
    return "".join(lines[len(own) :])


def _other_tables(text: str) -> dict[str, Any]:
    """Return a TOML file's content without the entry. Raises TOMLDecodeError."""
    content = tomllib.loads(text)
    servers: Any = content.pop("mcp_servers", {})
    if not isinstance(servers, dict):
        return {**content, "mcp_servers": servers}
    others = {name: each for name, each in cast(dict[str, Any], servers).items() if name != NAME}
    return {**content, "mcp_servers": others} if others else content


def _print_change(label: str, change: Change) -> None:
    out = create_console()
    state = "" if change.before else ", a new file"
    out.print(text_line(f"{label}: {change.file}{state}"), soft_wrap=True)
    if change.before == change.after:
        out.print(text_line("It has this entry already."))
    for line in change.diff.splitlines()[2:]:
        style = {"+": "green", "-": "red"}.get(line[:1], "dim")
        out.print(escape_controls(line), style=style, soft_wrap=True)


def _write(change: Change) -> None:
    """Write the file whole or not at all, with the permissions that it has."""
    change.file.parent.mkdir(parents=True, exist_ok=True)
    mode = change.file.stat().st_mode & 0o777 if change.before else 0o600
    with replace_file(change.file, mode=mode) as part:
        part.write_text(change.after, encoding="utf-8")
