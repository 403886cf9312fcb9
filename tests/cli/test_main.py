"""The command line `centgate`, run as separate processes.

Tests of what a command prints as its first output start an interpreter; the others fork.
"""

# x402 is typed, and does not say so
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from queue import Queue
from typing import Any

import httpx
import pytest
from buyer import PHISHING, QUESTION, decode_header
from centgate_process import CentgateProcess, run_centgate
from eth_account import Account
from typer import Context
from typer.core import TyperGroup
from typer.main import get_command
from x402 import x402Client
from x402.http.clients.httpx import x402HttpxClient
from x402.mechanisms.evm.exact import register_exact_evm_client

from centgate.cli.main import LAZY_COMMANDS, app
from centgate.devchain.environment import DEFAULT_PAYEE

CENTGATE = [sys.executable, "-m", "centgate"]
PATIENCE = 60
INVALID_DATABASE = "sqlite:///:memory:"
USDC_ON_BASE = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
WITHOUT_RIGHTS_OF_ROOT = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
"""Begins a command of root for which permissions of files count."""
PAYER = re.compile(r"^  (0x[0-9a-fA-F]{40})  (0x[0-9a-f]{64})$")


class RunningCommand:
    """A command that keeps running, and its output up to the `ready` line."""

    def __init__(self, process: CentgateProcess) -> None:
        self._process = process
        self._lines: Queue[str] = Queue()
        threading.Thread(target=self._read_output, daemon=True).start()
        self.said: list[str] = []
        while not self.said or not self.said[-1].startswith("ready "):
            line = self._lines.get(timeout=PATIENCE)
            assert line, f"it ended after {self.said}"
            self.said.append(line.rstrip("\n"))

    @property
    def url(self) -> str:
        return self.said[-1].removeprefix("ready ")

    def stop(self) -> int:
        """Stop the command as a supervisor does, and return its exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(PATIENCE)

    def _read_output(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")


Start = Callable[..., RunningCommand]


@contextmanager
def open_starter() -> Generator[Start]:
    """Yield a function that starts the command and waits until it is ready; stop all at the end."""
    processes: list[CentgateProcess] = []

    def begin(*arguments: str, **settings: str) -> RunningCommand:
        process = CentgateProcess([*arguments], env={**os.environ, **settings})
        processes.append(process)
        return RunningCommand(process)

    yield begin
    for process in processes:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout
        process.stdout.close()


@pytest.fixture
def start() -> Generator[Start]:
    """Function that starts the command for one test."""
    with open_starter() as start:
        yield start


@pytest.fixture(scope="module", params=["1", "2"])
def running_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Generator[RunningCommand]:
    """A server without settings, of one process and of two."""
    with pytest.MonkeyPatch.context() as patch, open_starter() as start:
        for name in [name for name in os.environ if name.startswith("CENTGATE_")]:
            patch.delenv(name)
        patch.chdir(tmp_path_factory.mktemp("server"))
        yield start("serve", "--port", "0", "--workers", request.param)


def run_command(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    environment = {**os.environ, "COLUMNS": "110", **settings}
    return run_centgate([*arguments], env=environment, timeout=PATIENCE)


def run_interpreter(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run the command in an interpreter of its own, which imports what the command needs."""
    return subprocess.run(
        [*CENTGATE, *arguments],
        env={**os.environ, "COLUMNS": "110", **settings},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_help_names_every_command() -> None:
    result = run_interpreter("--help")

    assert result.returncode == 0
    assert all(command in result.stdout for command in ("serve", "dev", "demo", "settings", "phishing-list"))


def test_help_groups_commands_by_users() -> None:
    output = run_command("--help", COLUMNS="80").stdout

    headings = [line for line in output.splitlines() if line.startswith("For ")]
    assert headings == ["For buyers:", "For operators:", "For developers:"]
    assert re.search(
        r"For buyers:.*  call .*For operators:.*  serve .*For developers:.*  dev ", output, re.DOTALL
    )
    assert max(map(len, output.splitlines())) <= 80


@pytest.mark.parametrize("name", LAZY_COMMANDS)
def test_lazy_command_has_summary_of_its_module(name: str) -> None:
    group: Any = get_command(app)

    assert group.get_command(None, name).help.startswith(LAZY_COMMANDS[name].summary.removesuffix("."))


def test_version_is_that_of_package() -> None:
    result = run_interpreter("--version")

    assert (result.returncode, result.stdout) == (0, f"centgate {version('centgate')}\n")


@pytest.mark.parametrize("argument", ["--version", "settings"])
def test_full_output_is_reported_in_one_line(argument: str) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            [*CENTGATE, argument], stdout=full, stderr=subprocess.PIPE, timeout=PATIENCE, check=False
        )

    assert result.returncode == 1
    assert result.stderr == b"centgate: the output cannot be written: No space left on device\n"


@pytest.mark.extended
@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("settings", "name"),
        ("migrate", "schema"),
        ("phishing-list show", "blocklist"),
        ("index status", None),
    ],
)
def test_output_can_be_json(tmp_path: Path, command: str, name: str | None) -> None:
    folders = {
        "CENTGATE_DATABASE_URL": f"sqlite:///{tmp_path / 'journal.db'}",
        "CENTGATE_SITEINDEX_FOLDER": str(tmp_path / "index"),
    }
    if name is None:
        run_command("index", "add", "https://example.org", **folders)
        name = "url"

    result = run_command(*command.split(), "--json", **folders)

    content = json.loads(result.stdout)
    assert name in (content[0] if isinstance(content, list) else content)


def list_commands(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command with its words, of all groups."""
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        yield (*words, name), command
        if isinstance(command, TyperGroup):
            yield from list_commands(command, (*words, name))


@pytest.mark.extended
def test_values_in_help_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for words, command in list_commands(get_command(app)):
        text = command.get_help(Context(command, info_name=" ".join(words)))

        assert not re.search(r"<(str|int|float|bool|path|list)\b", text, re.IGNORECASE), words
        assert max(map(len, text.splitlines())) <= 80, words


def test_no_arguments_show_help() -> None:
    assert "Usage" in run_command().stderr


@pytest.mark.extended
def test_serve_prints_ready_when_it_answers(running_server: RunningCommand) -> None:
    assert re.fullmatch(r"ready http://127\.0\.0\.1:\d+", running_server.said[-1])
    assert httpx.get(f"{running_server.url}/health").status_code == 200


def test_standard_output_has_only_ready_line(running_server: RunningCommand) -> None:
    assert len(running_server.said) == 1


@pytest.mark.extended
def test_every_process_is_ready(running_server: RunningCommand) -> None:
    with httpx.Client(base_url=running_server.url) as client:
        assert {client.get("/readyz").status_code for _ in range(10)} == {200}


def test_every_process_limits_headers(running_server: RunningCommand) -> None:
    with httpx.Client(base_url=running_server.url) as client:
        responses = [client.get("/livez", headers={"A": "a" * 70_000}) for _ in range(10)]

    assert {response.status_code for response in responses} == {431}


def test_serve_without_payee_serves_catalogue(running_server: RunningCommand) -> None:
    entry = httpx.get(f"{running_server.url}/services/phishing-check").json()

    assert entry["payment"]["enforced"] is False


def test_serve_without_payee_sells_nothing(running_server: RunningCommand) -> None:
    response = httpx.post(running_server.url + PHISHING, json=QUESTION)

    assert response.status_code == 402
    assert response.json()["error"]["code"] == "payment_not_configured"
    assert "PAYMENT-REQUIRED" not in response.headers


@pytest.mark.extended
@pytest.mark.parametrize("workers", ["1", "2"])
def test_terminated_server_ends(start: Start, workers: str) -> None:
    running = start("serve", "--port", "0", "--workers", workers)

    running.stop()

    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{running.url}/livez")


@pytest.mark.extended
def test_terms_name_payee(start: Start) -> None:
    address = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
    running = start("serve", "--port", "0", CENTGATE_PAY_TO=address.lower())

    response = httpx.post(running.url + PHISHING, json=QUESTION)

    assert decode_header(response.headers["PAYMENT-REQUIRED"])["accepts"][0]["payTo"] == address


@pytest.mark.extended
@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("serve", "CENTGATE_HOST and CENTGATE_PORT"),
        ("site", "--host and --port"),
        ("console", "CENTGATE_CONSOLE_HOST and CENTGATE_CONSOLE_PORT"),
    ],
)
def test_occupied_port_is_reported_in_one_line(command: str, options: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])

        refused = run_command(command, "--port", port)

    assert refused.returncode == 1
    assert f"centgate: cannot listen on 127.0.0.1:{port}: Address already in use" in refused.stderr
    assert f"(set {options}, or end the program" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.extended
@pytest.mark.parametrize("command", ["serve", "dev"])
def test_invalid_setting_is_named_in_one_line(command: str) -> None:
    refused = run_command(command, CENTGATE_PORT="eighty")

    assert refused.returncode == 2
    assert refused.stderr.startswith("centgate: CENTGATE_PORT: ")
    assert "Traceback" not in refused.stderr


@pytest.mark.extended
def test_private_key_in_place_of_address_is_not_shown() -> None:
    key = "0x" + "5a" * 32

    refused = run_command("serve", CENTGATE_PAY_TO=key)

    assert refused.returncode == 2
    assert refused.stderr.startswith("centgate: CENTGATE_PAY_TO: the value is not valid. ")
    assert "0x and 40 hex digits" in refused.stderr
    assert key not in refused.stderr


@pytest.mark.extended
def test_all_invalid_settings_are_named() -> None:
    bad = {
        "CENTGATE_PAY_TO": "0x12",
        "CENTGATE_NETWORK": "base",
        "CENTGATE_DATABASE_URL": "mysql://localhost",
        "CENTGATE_PORT": "eighty",
        "CENTGATE_LOG_LEVEL": "loud",
    }

    refused = run_command("serve", **bad)

    assert refused.returncode == 2
    assert sorted(line.split(": ")[1] for line in refused.stderr.splitlines()) == sorted(bad)
    assert all(line.startswith("centgate: ") for line in refused.stderr.splitlines())


@pytest.mark.extended
@pytest.mark.parametrize(
    ("command", "settings", "message"),
    [
        ("serve", {"CENTGATE_PRICE_NOTHING": "0.01"}, "CENTGATE_PRICE_NOTHING: there is no such service"),
        ("serve", {"CENTGATE_PINNED": "nothing=rpc"}, "CENTGATE_PINNED: there is no service"),
        (
            "serve",
            {"CENTGATE_PAY_TO": USDC_ON_BASE},
            f"CENTGATE_PAY_TO: {USDC_ON_BASE} is the token contract",
        ),
        ("serve", {"CENTGATE_DATABASE_URL": INVALID_DATABASE}, "CENTGATE_DATABASE_URL: "),
        ("migrate", {"CENTGATE_DATABASE_URL": INVALID_DATABASE}, "CENTGATE_DATABASE_URL: "),
        ("console", {"CENTGATE_DATABASE_URL": INVALID_DATABASE}, "CENTGATE_DATABASE_URL: "),
    ],
)
def test_setting_found_wrong_after_parsing_exits_with_2(
    command: str, settings: dict[str, str], message: str
) -> None:
    refused = run_command(command, **settings)

    assert (refused.returncode, refused.stdout) == (2, "")
    assert f"centgate: {message}" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.extended
def test_missing_folder_of_journal_ends_start() -> None:
    refused = run_command("serve", CENTGATE_DATABASE_URL="sqlite:////nowhere/journal.db")

    assert (refused.returncode, refused.stdout) == (1, "")
    assert "the folder /nowhere does not exist" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.extended
@pytest.mark.parametrize("command", ["serve", "console"])
def test_folder_in_place_of_journal_ends_start(command: str, tmp_path: Path) -> None:
    refused = run_command(command, CENTGATE_DATABASE_URL=f"sqlite:///{tmp_path}")

    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"{tmp_path} is a folder: name a file of it in CENTGATE_DATABASE_URL" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.extended
@pytest.mark.parametrize(("name", "mode"), [("data", 0o500), ("data", 0o600), ("data/journal.db", 0o500)])
def test_journal_of_another_user_ends_start(name: str, mode: int, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "journal.db").touch()
    if name == "data":
        (tmp_path / "data" / "journal.db").unlink()
    (tmp_path / name).chmod(mode)

    refused = run_as_user([*CENTGATE, "serve"], journal=tmp_path / "data" / "journal.db")

    assert (refused.returncode, refused.stdout) == (1, "")
    assert (
        f"no right to write {tmp_path / name}: change its owner, or CENTGATE_DATABASE_URL" in refused.stderr
    )
    assert "Traceback" not in refused.stderr


@pytest.mark.extended
@pytest.mark.parametrize(
    ("link_folder", "file_folder", "is_usable"), [("kept", "data", True), ("data", "kept", False)]
)
def test_rights_count_where_the_link_to_a_journal_leads(
    link_folder: str, file_folder: str, *, is_usable: bool, tmp_path: Path
) -> None:
    for name in ("kept", "data"):
        (tmp_path / name).mkdir()
    (tmp_path / link_folder / "link.db").symlink_to(tmp_path / file_folder / "journal.db")
    (tmp_path / "kept").chmod(0o500)
    program = (
        "from centgate.cli.migrate import check_database; from centgate.settings import Settings;"
        "check_database(Settings())"
    )

    checked = run_as_user([sys.executable, "-c", program], journal=tmp_path / link_folder / "link.db")

    assert (checked.returncode == 0) is is_usable
    assert (f"no right to write {tmp_path / 'kept'}" in checked.stderr) is not is_usable


@pytest.mark.extended
def test_working_directory_of_another_user_holds_no_env_file(tmp_path: Path) -> None:
    """A command by `sudo -u` starts in the folder of who calls it, which its user may not search."""
    program = "from centgate.environment import read_env_file; print(read_env_file())"
    tmp_path.chmod(0o600)

    shown = run_as_user([sys.executable, "-c", program], cwd=tmp_path)

    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "{}\n", "")


def run_as_user(
    command: list[str], *, journal: Path | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command for which permissions of files count, also if the tests run as root."""
    database = {"CENTGATE_DATABASE_URL": f"sqlite:///{journal}"} if journal else {}
    return subprocess.run(
        [*(WITHOUT_RIGHTS_OF_ROOT if os.geteuid() == 0 else ()), *command],
        cwd=cwd,
        env={**os.environ, **database},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.extended
def test_missing_secret_file_is_named() -> None:
    refused = run_command("serve", CENTGATE_PAY_TO_FILE="/nowhere/address")

    assert refused.returncode == 2
    assert "centgate: CENTGATE_PAY_TO_FILE: cannot read /nowhere/address" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.extended
@pytest.mark.parametrize("workers", ["1", "2"])
def test_unreadable_phishing_list_is_reported(workers: str) -> None:
    refused = run_command(
        "serve", "--port", "0", "--workers", workers, CENTGATE_PHISHING_LIST="/nowhere/list.xz"
    )

    assert refused.returncode == 2
    assert "/nowhere/list.xz" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.extended
@pytest.mark.parametrize("command", ["dev", "demo"])
def test_silent_development_node_is_reported(command: str) -> None:
    refused = run_command(command, CENTGATE_DEV_RPC="http://127.0.0.1:1")

    assert refused.returncode == 1
    assert "http://127.0.0.1:1 did not answer" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.extended
def test_unknown_command_is_refused() -> None:
    refused = run_command("sell")

    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr


@pytest.mark.extended
def test_dev_prints_ten_payers_before_ready(start: Start) -> None:
    running = start("dev", "--port", "0")

    payers = [match for line in running.said[:-1] if (match := PAYER.match(line))]
    assert len(payers) == 10
    assert all(Account.from_key(payer[2]).address == payer[1] for payer in payers)


def read_export(running: RunningCommand, name: str) -> dict[str, str]:
    """Return the variables of the line that exports one of this name."""
    exports = [line for line in running.said if line.strip().startswith("export ")]
    (line,) = (line for line in exports if f"{name}=" in line)
    return dict(word.split("=", 1) for word in shlex.split(line)[1:])


@pytest.mark.extended
def test_printed_environment_of_dev_pays(start: Start, tmp_path: Path) -> None:
    own = {"CENTGATE_NETWORKS": "eip155:8453", "CENTGATE_LEDGER": str(tmp_path / "ledger")}
    running = start("dev", "--port", "0", **own)
    settings = own | read_export(running, "CENTGATE_API_URL")

    bought = run_command("call", "phishing-check", f"url={QUESTION['url']}", "--json", **settings)
    wallet = json.loads(run_command("wallet", "show", "--json", **settings).stdout)

    assert bought.returncode == 0, bought.stderr
    assert json.loads(bought.stdout)["receipt"]["amountUsd"] == "0.01"
    assert (wallet["api"], wallet["balanceUsd"]) == (running.url, "999.99")


@pytest.mark.extended
def test_printed_environment_of_dev_finds_journal(start: Start) -> None:
    running = start("dev", "--port", "0")
    settings = read_export(running, "CENTGATE_DATABASE_URL")
    assert httpx.get(f"{running.url}/readyz").status_code == 200  # now there is a journal

    listed = run_command("payments", "list", **settings)
    checked = run_command("doctor", "--only", "facilitator", "--only", "token", **settings)

    assert (listed.returncode, listed.stderr) == (0, "centgate: no payment was presented yet\n")
    assert checked.returncode == 0, checked.stdout


@pytest.mark.extended
def test_printed_environment_replaces_payments_of_operator(start: Start) -> None:
    own = {
        "CENTGATE_ACCEPTS": json.dumps([{"network": "eip155:84532", "payTo": DEFAULT_PAYEE}]),
        "CENTGATE_FACILITATOR_FALLBACK_URL": "http://127.0.0.1:1",
        "CENTGATE_FACILITATOR_FALLBACK_TOKEN": "secret",
    }
    running = start("dev", "--port", "0", **own)
    settings = read_export(running, "CENTGATE_DATABASE_URL")
    assert httpx.get(f"{running.url}/readyz").status_code == 200  # now there is a journal

    listed = run_command("payments", "list", **(own | settings))
    checked = run_command("doctor", "--only", "facilitator-fallback", "--json", **(own | settings))

    assert (listed.returncode, listed.stderr) == (0, "centgate: no payment was presented yet\n")
    assert json.loads(checked.stdout)["checks"][0]["status"] == "skipped"
    assert not any("secret" in line for line in running.said)


@pytest.mark.extended
async def test_payer_of_dev_pays_with_official_client(start: Start) -> None:
    running = start("dev", "--port", "0")
    key = next(match[2] for line in running.said if (match := PAYER.match(line)))
    wallet = x402Client()
    register_exact_evm_client(wallet, Account.from_key(key))

    async with x402HttpxClient(wallet, base_url=running.url, timeout=30) as http:
        response = await http.post(PHISHING, json=QUESTION)

    assert response.status_code == 200
    assert response.json()["data"]["status"] == "blocked"
    assert decode_header(response.headers["PAYMENT-RESPONSE"])["success"] is True


@pytest.mark.extended
def test_demo_completes() -> None:
    result = run_command("demo")

    assert result.returncode == 0, result.stdout + result.stderr
    assert "Done." in result.stdout


@pytest.mark.extended
def test_crypto_demo_calls_no_third_party() -> None:
    result = run_command("demo", "--crypto")

    assert result.returncode == 0, result.stdout + result.stderr
    assert "Done. 9 answers, and no third party was asked." in result.stdout
