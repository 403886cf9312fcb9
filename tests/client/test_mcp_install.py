"""`centgate mcp install`: its output, and the resulting configuration file."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from buyers_shell import Shell

from centgate.cli.mcp_install import Change, InstallRefused, Program, ServerEntry, install, plan_change

pytestmark = pytest.mark.extended
PLACES = {
    "claude": ".claude.json",
    "claude-code": ".claude.json",
    "claude-desktop": "config/Claude/claude_desktop_config.json",
    "cursor": ".cursor/mcp.json",
    "vscode": "config/Code/User/mcp.json",
    "codex": ".codex/config.toml",
}
LABELS = {
    "claude": "Claude Code",
    "claude-code": "Claude Code",
    "claude-desktop": "Claude Desktop",
    "cursor": "Cursor",
    "vscode": "VS Code",
    "codex": "Codex",
}
NETWORK = ("--network", "eip155:84532")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(
        tmp_path, {"CENTGATE_API_URL": "https://api.example", "CODEX_HOME": str(tmp_path / ".codex")}
    )


def read_entry(file: Path) -> dict[str, Any]:
    text = file.read_text()
    if file.suffix == ".toml":
        return tomllib.loads(text)["mcp_servers"]["centgate"]
    content = json.loads(text)
    return (content.get("mcpServers") or content["servers"])["centgate"]


def plan(program: Program, content: str, folder: Path) -> Change:
    """Return the change of a file with a content."""
    file = folder / "configuration"
    file.write_text(content)
    return plan_change(program, ServerEntry("centgate", ("mcp",), {}), file)


@pytest.mark.parametrize("program", PLACES)
def test_server_is_added_to_programs_file(shell: Shell, tmp_path: Path, program: str) -> None:
    done = shell("mcp", "install", "--for", program, *NETWORK, "--yes", CENTGATE_CAP_PER_DAY="0.5")

    file = tmp_path / PLACES[program]
    assert done.returncode == 0, done.stderr
    assert f"{LABELS[program]}: {file}" in done.stdout
    entry = read_entry(file)
    assert entry["args"][-5:] == ["mcp", "--api", "https://api.example", *NETWORK]
    assert Path(entry["command"]).is_absolute()
    assert entry["env"] == {"CENTGATE_CAP_PER_DAY": "0.5"}
    assert (entry.get("type") == "stdio") is (program in ("claude", "claude-code", "vscode"))


@pytest.mark.parametrize("program", PLACES)
def test_nothing_is_written_before_confirmation(shell: Shell, tmp_path: Path, program: str) -> None:
    done = shell("mcp", "install", "--for", program)

    assert (done.returncode, (tmp_path / PLACES[program]).exists()) == (1, False)
    assert "https://api.example" in done.stdout
    assert "nothing was written: pass --yes to write it" in done.stderr


@pytest.mark.parametrize("program", PLACES)
def test_second_run_changes_nothing(shell: Shell, tmp_path: Path, program: str) -> None:
    shell("mcp", "install", "--for", program, "--yes")
    before = (tmp_path / PLACES[program]).read_bytes()

    again = shell("mcp", "install", "--for", program, "--yes", "--json")

    assert json.loads(again.stdout) == {
        "program": LABELS[program],
        "file": str(tmp_path / PLACES[program]),
        "change": "",
        "written": False,
    }
    assert (again.returncode, (tmp_path / PLACES[program]).read_bytes()) == (0, before)


def test_other_servers_are_kept_and_not_shown(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / PLACES["cursor"]
    file.parent.mkdir()
    other = {"command": "other", "env": {"TOKEN": "secret-of-another"}}
    file.write_text(json.dumps({"mcpServers": {"other": other}, "theme": "ü"}, indent=4, ensure_ascii=False))
    file.chmod(0o640)

    done = shell("mcp", "install", "--for", "cursor", "--yes")

    content = json.loads(file.read_text())
    assert (content["mcpServers"]["other"], content["theme"]) == (other, "ü")
    assert '\n    "mcpServers"' in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o640
    assert "secret-of-another" not in done.stdout + done.stderr


@pytest.mark.parametrize("indent", [None, "inline"])
def test_lines_that_only_change_their_form_are_not_shown(tmp_path: Path, indent: str | None) -> None:
    other = json.dumps({"mcpServers": {"other": {"env": {"TOKEN": "secret-of-another"}}}})
    content = other.replace('{"other"', '{\n  "other"') if indent else other

    change = plan("cursor", content, tmp_path)

    assert "secret-of-another" in change.after
    assert "secret-of-another" not in change.diff
    assert '+    "centgate": {' in change.diff


@pytest.mark.parametrize(("program", "content"), [("cursor", '{"a": 1}'), ("codex", "a = 1\n")])
def test_byte_order_mark_is_no_syntax_error(tmp_path: Path, program: Program, content: str) -> None:
    change = plan(program, "\ufeff" + content, tmp_path)

    assert change.after[0] == content[0]
    assert '"centgate"' in change.after


def test_private_file_stays_private_while_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mcp.json"
    file.write_text("{}")
    file.chmod(0o600)
    modes: list[int] = []
    write_text = Path.write_text

    def record_mode(path: Path, *args: Any, **options: Any) -> int:
        written = write_text(path, *args, **options)
        modes.append(path.stat().st_mode & 0o777)
        return written

    monkeypatch.setattr(Path, "write_text", record_mode)
    install(
        "cursor",
        api="https://api.example",
        networks=(),
        file=file,
        yes=True,
        json=False,
        confirm=lambda _: False,
    )

    assert "centgate" in file.read_text()
    assert modes == [0o600]


@pytest.mark.parametrize("own", ["", '[mcp_servers.centgate]\ncommand = "old"\n\n'])
def test_tables_below_the_entry_are_replaced_with_it(tmp_path: Path, own: str) -> None:
    content = f'{own}[mcp_servers.centgate.env]\nOLD = "1"\n\n[mcp_servers.other]\ncommand = "other"\n'

    change = plan("codex", content, tmp_path)

    servers = tomllib.loads(change.after)["mcp_servers"]
    assert servers["other"] == {"command": "other"}
    assert servers["centgate"] == {"command": "centgate", "args": ["mcp"]}


def test_comment_above_next_table_is_kept(tmp_path: Path) -> None:
    rest = '\n# the tracker: ask Ann for its token\n\n[mcp_servers.other]\ncommand = "other"\n'

    change = plan("codex", f'[mcp_servers.centgate]\ncommand = "old"\n{rest}', tmp_path)

    assert change.after == f'[mcp_servers.centgate]\ncommand = "centgate"\nargs = ["mcp"]\n{rest}'


@pytest.mark.parametrize(
    "content", ['mcp_servers = { centgate = { command = "x" } }', "mcp_servers = 5", "[[mcp_servers]]"]
)
def test_other_notation_is_not_called_invalid(tmp_path: Path, content: str) -> None:
    with pytest.raises(InstallRefused, match="has another form than expected"):
        plan("codex", content, tmp_path)


def test_other_tables_and_comments_are_kept(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / PLACES["codex"]
    file.parent.mkdir()
    old = '[mcp_servers.centgate]\ncommand = "old"\n\n'
    file.write_text(f'model = "o" # mine\n\n{old}[mcp_servers.other]\ncommand = "other"\n')

    shell("mcp", "install", "--for", "codex", "--yes")

    text = file.read_text()
    assert text.startswith('model = "o" # mine\n')
    assert tomllib.loads(text)["mcp_servers"]["other"] == {"command": "other"}
    assert "old" not in text


@pytest.mark.parametrize(
    ("program", "content"),
    [
        ("vscode", '{"servers": {}, // mine\n}'),
        ("cursor", "[]"),
        ("cursor", '{"mcpServers": []}'),
        ("codex", "model = "),
        ("codex", 'mcp_servers = { centgate = { command = "x" } }'),
    ],
)
def test_unsupported_file_is_unchanged(shell: Shell, tmp_path: Path, program: str, content: str) -> None:
    file = tmp_path / PLACES[program]
    file.parent.mkdir(parents=True)
    file.write_text(content)

    done = shell("mcp", "install", "--for", program, "--yes")

    assert (done.returncode, file.read_text()) == (1, content)
    assert "yourself" in done.stderr
    assert "Traceback" not in done.stderr


def test_key_is_never_written(shell: Shell, tmp_path: Path) -> None:
    key = "0x" + "12" * 32

    done = shell("mcp", "install", "--for", "cursor", "--yes", CENTGATE_WALLET_KEY=key)

    assert key not in (tmp_path / PLACES["cursor"]).read_text() + done.stdout + done.stderr
    assert "CENTGATE_WALLET_KEY is not written" in done.stderr


def test_preferred_network_is_written(shell: Shell, tmp_path: Path) -> None:
    shell("mcp", "install", "--for", "cursor", "--yes", CENTGATE_PREFERRED_NETWORK="eip155:84532")

    assert read_entry(tmp_path / PLACES["cursor"])["env"] == {"CENTGATE_PREFERRED_NETWORK": "eip155:84532"}


def test_named_token_is_written(shell: Shell, tmp_path: Path) -> None:
    assets = '[{"network": "eip155:31339", "asset": "0x' + "11" * 20 + '", "name": "USDC"}]'

    shell("mcp", "install", "--for", "codex", "--yes", CENTGATE_ALLOWED_ASSETS=assets)

    entry = tomllib.loads((tmp_path / PLACES["codex"]).read_text())["mcp_servers"]["centgate"]
    assert entry["env"] == {"CENTGATE_ALLOWED_ASSETS": assets}


@pytest.mark.parametrize("user", ["", "ann@", "ann:secret@"])
def test_only_proxy_without_password_is_written(shell: Shell, tmp_path: Path, user: str) -> None:
    proxy = f"http://{user}127.0.0.1:3128"

    done = shell("mcp", "install", "--for", "cursor", "--yes", CENTGATE_PROXY=proxy)

    entry = read_entry(tmp_path / PLACES["cursor"])
    assert entry.get("env", {}) == ({} if user else {"CENTGATE_PROXY": proxy})
    assert ("CENTGATE_PROXY is not written" in done.stderr) is bool(user)
    assert "secret" not in done.stdout + done.stderr


def test_key_in_place_of_its_file_is_refused(shell: Shell, tmp_path: Path) -> None:
    key = "0x" + "12" * 32

    done = shell("mcp", "install", "--for", "cursor", "--yes", CENTGATE_WALLET=key)

    assert done.returncode == 2
    assert "CENTGATE_WALLET: it names the file" in done.stderr
    assert key not in done.stdout + done.stderr
    assert not (tmp_path / PLACES["cursor"]).exists()


def test_files_are_named_by_absolute_paths(shell: Shell, tmp_path: Path) -> None:
    done = shell(
        "mcp", "install", "--for", "cursor", "--yes", CENTGATE_WALLET="key", CENTGATE_LEDGER="~/paid.jsonl"
    )

    assert done.returncode == 0, done.stderr
    written = read_entry(tmp_path / PLACES["cursor"])["env"]
    assert all(Path(path).is_absolute() for path in written.values())
    assert written["CENTGATE_LEDGER"] == str(tmp_path / "paid.jsonl")
