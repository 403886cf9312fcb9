"""The command as an operator types it: processes of their own, and nothing else."""

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
PAYER = re.compile(r"^  (0x[0-9a-fA-F]{40})  (0x[0-9a-f]{64})$")


class Running:
    """A command that goes on, and what it has said up to its `ready` line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._lines: Queue[str] = Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        self.said: list[str] = []
        while not self.said or not self.said[-1].startswith("ready "):
            line = self._lines.get(timeout=PATIENCE)
            assert line, f"it ended after {self.said}"
            self.said.append(line.rstrip("\n"))

    @property
    def url(self) -> str:
        return self.said[-1].removeprefix("ready ")

    def end(self) -> int:
        """Ask it to end, as a supervisor does; its exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(PATIENCE)

    def _listen(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")


Start = Callable[..., Running]


@contextmanager
def starting() -> Generator[Start]:
    """Starts the command and waits until it is ready; after the block it is gone."""
    processes: list[subprocess.Popen[str]] = []

    def begin(*arguments: str, **settings: str) -> Running:
        process = subprocess.Popen(
            [*CENTGATE, *arguments],
            env={**os.environ, **settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        processes.append(process)
        return Running(process)

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
    """Starts the command for one test."""
    with starting() as start:
        yield start


@pytest.fixture(scope="module", params=["1", "2"])
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Running]:
    """A server without settings, of one process and of two."""
    with pytest.MonkeyPatch.context() as patch, starting() as start:
        for name in [name for name in os.environ if name.startswith("CENTGATE_")]:
            patch.delenv(name)
        patch.chdir(tmp_path_factory.mktemp("server"))
        yield start("serve", "--port", "0", "--workers", request.param)


def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [*CENTGATE, *arguments],
        env={**os.environ, "COLUMNS": "110", **settings},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_help_names_every_command() -> None:
    shown = run("--help")

    assert shown.returncode == 0
    assert all(command in shown.stdout for command in ("serve", "dev", "demo", "settings", "phishing-list"))


def test_help_groups_commands_by_their_users() -> None:
    shown = run("--help", COLUMNS="80").stdout

    headings = [line for line in shown.splitlines() if line.startswith("For ")]
    assert headings == ["For buyers:", "For operators:", "For developers:"]
    assert re.search(
        r"For buyers:.*  call .*For operators:.*  serve .*For developers:.*  dev ", shown, re.DOTALL
    )
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("name", LAZY_COMMANDS)
def test_summary_of_a_lazy_command_is_that_of_its_module(name: str) -> None:
    group: Any = get_command(app)

    assert group.get_command(None, name).help.startswith(LAZY_COMMANDS[name].summary.removesuffix("."))


def test_version_is_that_of_the_package() -> None:
    shown = run("--version")

    assert (shown.returncode, shown.stdout) == (0, f"centgate {version('centgate')}\n")


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
def test_what_a_command_shows_can_be_json(tmp_path: Path, command: str, name: str | None) -> None:
    folders = {
        "CENTGATE_DATABASE_URL": f"sqlite:///{tmp_path / 'journal.db'}",
        "CENTGATE_SITEINDEX_FOLDER": str(tmp_path / "index"),
    }
    if name is None:
        run("index", "add", "https://example.org", **folders)
        name = "url"

    shown = run(*command.split(), "--json", **folders)

    content = json.loads(shown.stdout)
    assert name in (content[0] if isinstance(content, list) else content)


def commands_below(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command with its words, of all groups."""
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        yield (*words, name), command
        if isinstance(command, TyperGroup):
            yield from commands_below(command, (*words, name))


@pytest.mark.extended
def test_values_in_help_are_named_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for words, command in commands_below(get_command(app)):
        text = command.get_help(Context(command, info_name=" ".join(words)))

        assert not re.search(r"<(str|int|float|bool|path|list)\b", text, re.IGNORECASE), words
        assert max(map(len, text.splitlines())) <= 80, words


def test_nothing_said_shows_the_help() -> None:
    assert "Usage" in run().stderr


@pytest.mark.extended
def test_serve_says_ready_once_it_answers(running: Running) -> None:
    assert re.fullmatch(r"ready http://127\.0\.0\.1:\d+", running.said[-1])
    assert httpx.get(f"{running.url}/health").status_code == 200


def test_standard_output_holds_the_ready_line_alone(running: Running) -> None:
    assert len(running.said) == 1


def test_every_process_is_ready(running: Running) -> None:
    with httpx.Client(base_url=running.url) as client:
        assert {client.get("/readyz").status_code for _ in range(10)} == {200}


def test_every_process_limits_headers(running: Running) -> None:
    with httpx.Client(base_url=running.url) as client:
        responses = [client.get("/livez", headers={"A": "a" * 70_000}) for _ in range(10)]

    assert {response.status_code for response in responses} == {431}


def test_without_an_address_to_pay_to_it_serves_the_catalogue(running: Running) -> None:
    entry = httpx.get(f"{running.url}/services/phishing-check").json()

    assert entry["payment"]["enforced"] is False


def test_without_an_address_to_pay_to_nothing_is_sold(running: Running) -> None:
    response = httpx.post(running.url + PHISHING, json=QUESTION)

    assert response.status_code == 402
    assert response.json()["error"]["code"] == "payment_not_configured"
    assert "PAYMENT-REQUIRED" not in response.headers


@pytest.mark.extended
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_server_that_is_asked_to_end_ends(start: Start, workers: str) -> None:
    running = start("serve", "--port", "0", "--workers", workers)

    running.end()

    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{running.url}/livez")


@pytest.mark.extended
def test_with_an_address_to_pay_to_the_terms_name_it(start: Start) -> None:
    address = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
    running = start("serve", "--port", "0", CENTGATE_PAY_TO=address.lower())

    response = httpx.post(running.url + PHISHING, json=QUESTION)

    assert decode_header(response.headers["PAYMENT-REQUIRED"])["accepts"][0]["payTo"] == address


@pytest.mark.extended
def test_a_port_that_is_taken_is_said_in_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])

        refused = run("serve", "--port", port)

    assert refused.returncode == 1
    assert f"centgate: cannot listen on 127.0.0.1:{port}: Address already in use" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.extended
@pytest.mark.parametrize("command", ["serve", "dev"])
def test_a_bad_setting_is_named_in_a_sentence(command: str) -> None:
    refused = run(command, CENTGATE_PORT="eighty")

    assert refused.returncode == 2
    assert refused.stderr.startswith("centgate: CENTGATE_PORT: ")
    assert "Traceback" not in refused.stderr


@pytest.mark.extended
def test_all_bad_settings_are_named_at_once() -> None:
    bad = {
        "CENTGATE_PAY_TO": "0x12",
        "CENTGATE_NETWORK": "base",
        "CENTGATE_DATABASE_URL": "mysql://localhost",
        "CENTGATE_PORT": "eighty",
        "CENTGATE_LOG_LEVEL": "loud",
    }

    refused = run("serve", **bad)

    assert refused.returncode == 2
    assert sorted(line.split(": ")[1] for line in refused.stderr.splitlines()) == sorted(bad)
    assert all(line.startswith("centgate: ") for line in refused.stderr.splitlines())


@pytest.mark.extended
def test_a_secret_file_that_is_missing_is_named_in_a_sentence() -> None:
    refused = run("serve", CENTGATE_PAY_TO_FILE="/nowhere/address")

    assert refused.returncode in (1, 2)
    assert "centgate: CENTGATE_PAY_TO_FILE: cannot read /nowhere/address" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.extended
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_phishing_list_that_cannot_be_read_is_said_in_a_sentence(workers: str) -> None:
    refused = run("serve", "--port", "0", "--workers", workers, CENTGATE_PHISHING_LIST="/nowhere/list.xz")

    assert refused.returncode == 1
    assert "/nowhere/list.xz" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.extended
@pytest.mark.parametrize("command", ["dev", "demo"])
def test_a_development_node_that_does_not_answer_is_said_in_a_sentence(command: str) -> None:
    refused = run(command, CENTGATE_DEV_RPC="http://127.0.0.1:1")

    assert refused.returncode == 1
    assert "http://127.0.0.1:1 did not answer" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_an_unknown_command_is_refused() -> None:
    refused = run("sell")

    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr


@pytest.mark.extended
def test_dev_shows_ten_payers_before_it_is_ready(start: Start) -> None:
    running = start("dev", "--port", "0")

    payers = [match for line in running.said[:-1] if (match := PAYER.match(line))]
    assert len(payers) == 10
    assert all(Account.from_key(payer[2]).address == payer[1] for payer in payers)


@pytest.mark.extended
def test_what_dev_prints_for_the_operator_finds_its_journal(start: Start) -> None:
    running = start("dev", "--port", "0")
    (line,) = (line for line in running.said if line.strip().startswith("export "))
    settings = dict(word.split("=", 1) for word in shlex.split(line)[1:])

    listed = run("payments", "list", **settings)
    checked = run("doctor", "--only", "facilitator", "--only", "token", **settings)

    assert (listed.returncode, listed.stderr) == (0, "centgate: no payment was presented yet\n")
    assert checked.returncode == 0, checked.stdout


@pytest.mark.extended
@pytest.mark.parametrize(
    "own",
    [
        {"CENTGATE_ACCEPTS": json.dumps([{"network": "eip155:84532", "payTo": DEFAULT_PAYEE}])},
        {
            "CENTGATE_NETWORK": "eip155:84532",
            "CENTGATE_FACILITATOR_FALLBACK_URL": "http://127.0.0.1:1",
            "CENTGATE_FACILITATOR_FALLBACK_TOKEN": "secret",
        },
    ],
    ids=["list of tokens", "second facilitator"],
)
def test_what_dev_prints_replaces_the_payments_of_the_operator(start: Start, own: dict[str, str]) -> None:
    running = start("dev", "--port", "0", **own)
    (line,) = (line for line in running.said if line.strip().startswith("export "))
    settings = dict(word.split("=", 1) for word in shlex.split(line)[1:])

    listed = run("payments", "list", **(own | settings))
    checked = run("doctor", "--only", "facilitator-fallback", "--json", **(own | settings))

    assert (listed.returncode, listed.stderr) == (0, "centgate: no payment was presented yet\n")
    assert json.loads(checked.stdout)["checks"][0]["status"] == "skipped"
    assert "secret" not in line


@pytest.mark.extended
async def test_a_payer_that_dev_shows_can_pay_with_the_official_client(start: Start) -> None:
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
def test_the_demonstration_does_what_it_says() -> None:
    shown = run("demo")

    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "Done." in shown.stdout


@pytest.mark.extended
def test_the_crypto_demonstration_asks_no_third_party() -> None:
    shown = run("demo", "--crypto")

    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "Done. 9 answers, and no third party was asked." in shown.stdout
