"""Commands `centgate call`, `services` and `wallet`, run as processes against working and broken APIs."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import stat
import subprocess
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from buyer import ApiFactory
from buyers_shell import COMMAND, TIMEOUT, Shell, private_key_of
from facilitators import StubFacilitator, build_settings, open_stub_facilitator, refuse_with
from hostile import (
    DATA,
    HostileApi,
    PlannedResponse,
    answer_body,
    build_offer,
    error_response,
    payment_required,
    service_entry,
)

from centgate.catalog import all_services
from centgate.cli.buyer.arguments import parse_pairs
from centgate.cli.buyer.exit_codes import exit_code
from centgate.client.errors import BuyerError, CapExceeded, Drift, NoData, NotFound, PaymentRefused
from centgate.client.shell_command import format_command
from centgate.devchain.devnet import DevChain
from centgate.json_schema import parse_schema
from centgate.server import run_in_thread
from centgate.service import AnyService
from centgate.settings import Settings

pytestmark = pytest.mark.extended

KNOWN = "url=https://wallet-ethereum.net/unlock"
CHARGED = {"state": "delivered", "charged": True, "retry": "none"}
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")
TRANSACTION = r"0x[0-9a-f]{64}"


@pytest.fixture(scope="module")
def shared_api(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[str, StubFacilitator]]:
    """URL of an API that is paid through a stub facilitator, and that facilitator."""
    with (
        open_stub_facilitator() as stub,
        run_in_thread(build_settings(tmp_path_factory.mktemp("api"), stub.url)) as url,
    ):
        yield url, stub


@pytest.fixture
def facilitator(shared_api: tuple[str, StubFacilitator]) -> StubFacilitator:
    """The facilitator of the API, with counters at zero."""
    stub = shared_api[1]
    stub.next, stub.settle_calls = [], 0
    stub.moved.clear()
    return stub


@pytest.fixture
def shell(shared_api: tuple[str, StubFacilitator], facilitator: StubFacilitator, tmp_path: Path) -> Shell:
    """A buyer with a key, at an API that is paid through the stub facilitator."""
    return Shell(tmp_path, {"CENTGATE_API_URL": shared_api[0], "CENTGATE_WALLET_KEY": private_key_of()})


@pytest.fixture
def shell_without_key(shell: Shell) -> Shell:
    """A buyer without a key at the same API."""
    return Shell(shell.home, {"CENTGATE_API_URL": shell.settings["CENTGATE_API_URL"]})


@pytest.fixture
def chain_shell(api: ApiFactory, chain_settings: Settings, tmp_path: Path) -> Shell:
    """A buyer with a key, at an API that is paid on the development chain."""
    url = str(api(chain_settings).base_url).rstrip("/")
    return Shell(tmp_path, {"CENTGATE_API_URL": url, "CENTGATE_WALLET_KEY": private_key_of()})


Answering = Callable[[str], tuple[int, Any]]


@contextmanager
def serve_api(answering: Answering) -> Generator[str]:
    """Serve an API with scripted responses by path, and return its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, content = answering(self.path)
            body = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - the name is the standard library's

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def read_errors(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the lines of standard error, which must all begin with the program's name."""
    lines = done.stderr.splitlines()
    assert lines
    assert all(line.startswith("centgate: ") for line in lines), done.stderr
    return lines


def test_answer_is_printed_with_receipt(chain_shell: Shell) -> None:
    done = chain_shell("call", "phishing-check", KNOWN)

    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert re.search(r"status +blocked", done.stdout)
    assert re.search(r"sources +phishinglist ok", done.stdout)
    assert re.search(rf"paid \$0\.01 of test money to 0xcE47\w+ in\s+{TRANSACTION}", done.stdout)


def test_call_moves_one_cent_on_chain(chain_shell: Shell, devchain: DevChain) -> None:
    payer = devchain.accounts[0].address
    before = devchain.token_balance(payer)

    chain_shell("call", "phishing-check", KNOWN)

    assert before - devchain.token_balance(payer) == 10_000


def test_json_has_envelope_and_receipt(shell: Shell) -> None:
    done = shell("call", "phishing-check", KNOWN, "--json")

    output = json.loads(done.stdout)
    assert output["data"]["status"] == "blocked"
    assert output["requestId"].startswith("req_")
    assert re.fullmatch(TRANSACTION, output["receipt"]["transaction"])
    assert output["receipt"]["amountUsd"] == "0.01"
    assert done.stderr == ""


def test_dry_run_prints_terms_without_wallet(shell_without_key: Shell, facilitator: StubFacilitator) -> None:
    done = shell_without_key("call", "phishing-check", KNOWN, "--dry-run")

    assert done.returncode == 0, done.stderr
    for word in ("$0.01 of test money", "eip155:84532", "0xcE47ca7E", "seconds", "Nothing was signed."):
        assert word in done.stdout
    assert facilitator.settle_calls == 0


def test_dry_run_as_json_has_x402_terms(shell_without_key: Shell) -> None:
    done = shell_without_key("call", "phishing-check", KNOWN, "--dry-run", "--json")

    output = json.loads(done.stdout)
    assert output["amountUsd"] == "0.01"
    assert output["offer"]["accepts"][0]["scheme"] == "exact"


def test_dry_run_above_cap_says_it_would_not_pay(shell_without_key: Shell) -> None:
    done = shell_without_key("call", "phishing-check", KNOWN, "--dry-run", "--max-price", "0.001")

    assert done.returncode == 4
    assert "would not be paid" in done.stdout


@pytest.mark.parametrize("body", ["argument", "stdin"])
def test_input_can_be_json(shell: Shell, body: str) -> None:
    text = '{"url": "https://wallet-ethereum.net/unlock"}'

    done = shell("call", "phishing-check", "--json", "--body", "-" if body == "stdin" else text, stdin=text)

    assert json.loads(done.stdout)["data"]["status"] == "blocked"


WRONG: dict[str, tuple[list[str], list[str]]] = {
    "slug": (["phishing-chek", KNOWN], ["did you mean phishing-check?"]),
    "key": (["phishing-check", "ulr=x.org"], ["unknown key 'ulr' (did you mean url?)"]),
    "no pair": (["phishing-check", "x.org"], ["'x.org' is not key=value; the keys are url"]),
    "too short": (["phishing-check", "url=x"], ["url: 'x' is outside the limits", "3 to 2000 characters"]),
    "missing": (["phishing-check"], ["url is required: A URL or a bare domain"]),
    "word": (["token-risk", "chain=bas"], ["'bas' is not known (did you mean base?)", "arbitrum, base"]),
    "integer": (["crawler-search", "query=cats", "limit=many"], ["'many' is not a whole number", "1 to 10"]),
    "twice": (["phishing-check", KNOWN, KNOWN], ["url: given 2 times, but it takes one value"]),
    "not JSON": (["phishing-check", "--body", "{"], ["the body is not JSON"]),
    "deep JSON": (["phishing-check", "--body", "[" * 50_000], ["the body is not JSON"]),
    "no object": (["phishing-check", "--body", "[1]"], ["the body is not a JSON object"]),
    "API's": (
        ["phishing-check", "--body", '{"url": 5}'],
        ["url: ", "for example: centgate call phishing-check"],
    ),
    "together": (["token-risk", "tokenAddress=0x" + "1" * 40], ["chain or chainId", "for example: "]),
    "option": (["crawler-scrape", "--body", '{"url": "https://x.org", "proxy": "stealth"}'], ["proxy"]),
    "price": (["phishing-check", KNOWN, "--max-price", "cheap"], ["--max-price is an amount in US dollars"]),
    "path": (["../health", KNOWN], ["has no service '../health'"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_invalid_input_is_reported_before_signing(
    case: str, shell: Shell, facilitator: StubFacilitator
) -> None:
    arguments, message = WRONG[case]

    done = shell("call", *arguments)

    assert done.returncode == 2, done.stderr
    assert all(word in " ".join(read_errors(done)) for word in message), done.stderr
    assert done.stdout == ""
    assert facilitator.settle_calls == 0


def test_all_problems_are_reported(shell: Shell) -> None:
    done = shell("call", "crawler-search", "query=x", "limit=50", "page=2")

    assert done.returncode == 2
    assert len(read_errors(done)) == 3


def test_missing_wallet_is_explained(shell_without_key: Shell, facilitator: StubFacilitator) -> None:
    done = shell_without_key("call", "phishing-check", KNOWN)

    assert done.returncode == 4
    assert "`centgate wallet new`" in read_errors(done)[0]
    assert facilitator.settle_calls == 0


def test_readable_key_file_is_refused(shell_without_key: Shell, facilitator: StubFacilitator) -> None:
    file = shell_without_key.home / "key"
    file.write_text(private_key_of())
    file.chmod(0o644)

    done = shell_without_key("call", "phishing-check", KNOWN, CENTGATE_WALLET=str(file))

    assert done.returncode == 4
    assert "can be read or written by others" in read_errors(done)[0]
    assert private_key_of()[2:] not in done.stderr
    assert facilitator.settle_calls == 0


def test_price_above_cap_is_refused(shell: Shell, facilitator: StubFacilitator) -> None:
    done = shell("call", "phishing-check", KNOWN, "--max-price", "0.009")

    assert done.returncode == 4
    assert "above the cap of $0.009" in read_errors(done)[0]
    assert facilitator.settle_calls == 0


@pytest.mark.parametrize(
    ("network", "message"),
    [("eip155:84532", "not the dollar token"), ("eip155:8454", "a network this client does not support")],
    ids=["unknown token", "wrong chain"],
)
def test_terms_in_other_token_are_refused(
    api: ApiFactory,
    settings: Settings,
    shell: Shell,
    facilitator: StubFacilitator,
    network: str,
    message: str,
) -> None:
    money = {"network": network, "asset": "0x" + "12" * 20, "asset_name": "USDC", "asset_version": "2"}
    other = api(settings.model_copy(update=money))

    done = shell("call", "phishing-check", KNOWN, "--api", str(other.base_url))

    assert done.returncode == 4, done.stderr
    assert message in read_errors(done)[0]
    assert facilitator.settle_calls == 0


def test_insufficient_balance_is_reported(shell: Shell, facilitator: StubFacilitator) -> None:
    facilitator.next = [refuse_with("insufficient_funds")]

    done = shell("call", "phishing-check", KNOWN)

    assert done.returncode == 4
    assert "holds less than $0.01" in read_errors(done)[0]
    assert not facilitator.moved


def test_unreachable_api_is_reported(shell: Shell) -> None:
    done = shell("call", "phishing-check", KNOWN, "--api", "http://127.0.0.1:1")

    assert done.returncode == 1
    assert "http://127.0.0.1:1 cannot be reached" in read_errors(done)[0]


ENTRY = {"slug": "phishing-check", "title": "Phishing"}
OTHERS: dict[str, Answering] = {
    "404 everywhere": lambda _path: (404, b"<h1>Not Found</h1>"),
    "HTML": lambda _path: (200, b"<!doctype html><title>A shop</title>"),
    "a list": lambda _path: (200, []),
    "another shape": lambda path: (200, ENTRY if "phishing" in path else {"services": [ENTRY]}),
    "a redirect": lambda _path: (302, b""),
    "an error": lambda _path: (500, {"oops": 1}),
}


@pytest.mark.parametrize(
    ("arguments", "case"),
    [
        *((("call", "phishing-check", KNOWN), case) for case in OTHERS),
        *((("services",), case) for case in ("404 everywhere", "another shape")),
    ],
    ids=lambda given: given if isinstance(given, str) else given[0],
)
def test_other_server_is_reported(shell: Shell, arguments: tuple[str, ...], case: str) -> None:
    with serve_api(OTHERS[case]) as url:
        done = shell(*arguments, "--api", url)

    assert done.returncode == 1, done.stderr
    assert len(read_errors(done)) == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "schema", [{"properties": 5}, {"properties": {"url": 5}}, {"type": "array"}], ids=str
)
def test_unexpected_input_schema_is_reported(shell: Shell, schema: Any) -> None:
    output = json.loads(shell("services", "phishing-check", "--json").stdout) | {"inputSchema": schema}

    with serve_api(lambda _path: (200, output)) as url:
        done = shell("call", "phishing-check", KNOWN, "--api", url)

    assert done.returncode == 1
    assert "input schema of phishing-check" in read_errors(done)[0]


@pytest.mark.parametrize("part", ["inputSchema", "outputSchema"])
@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"description": 5}}},
        {"properties": {"a": {"enum": 5}}},
        {"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/a"}}},
    ],
    ids=["description", "enum", "reference"],
)
def test_unreadable_schema_causes_no_traceback(shell: Shell, part: str, schema: Any) -> None:
    output = json.loads(shell("services", "phishing-check", "--json").stdout) | {part: schema}

    with serve_api(lambda _path: (200, output)) as url:
        done = shell("services", "phishing-check", "--api", url)

    assert "Traceback" not in done.stderr
    assert done.returncode == 0 or "schema" in read_errors(done)[0]


def test_untrusted_text_cannot_control_terminal(shell: Shell) -> None:
    output = json.loads(shell("services", "phishing-check", "--json").stdout)
    output |= {"summary": "\x1b[2J\x1b]0;owned\x07 \u202etxt", "guardrails": ["[bold]a[/bold]\x9b1m"]}

    with serve_api(lambda _path: (200, output)) as url:
        page = shell("services", "phishing-check", "--api", url)
        as_json = shell("services", "phishing-check", "--json", "--api", url)

    assert not UNSAFE.search(page.stdout + as_json.stdout)
    assert "[bold]a[/bold]" in page.stdout
    assert json.loads(as_json.stdout)["summary"] == output["summary"]


@pytest.fixture
def failing_shell(hostile: HostileApi, shell: Shell) -> Shell:
    """A buyer at an API with scripted responses, which sells `some-facts`."""
    hostile.service_response = PlannedResponse(
        200, service_entry(inputSchema={"properties": {"q": {"type": "string"}}})
    )
    return Shell(shell.home, {**shell.settings, "CENTGATE_API_URL": hostile.url})


def test_no_data_exits_3(hostile: HostileApi, failing_shell: Shell) -> None:
    hostile.paid = [error_response(404, "no_data", note=CHARGED)]

    done = failing_shell("call", "some-facts", "q=x")

    assert done.returncode == 3, done.stderr
    assert "the API has no data" in read_errors(done)[0]


def test_undelivered_call_is_paid_once_by_same_command(hostile: HostileApi, failing_shell: Shell) -> None:
    hostile.paid = [PlannedResponse(302, accepts_payment=True)]

    first, second = (failing_shell("call", "some-facts", "q=x", "--json") for _ in range(2))

    assert (first.returncode, second.returncode) == (5, 0), first.stderr + second.stderr
    assert "Make the same call again" in read_errors(first)[0]
    assert json.loads(second.stdout)["data"] == DATA
    assert len(set(hostile.payments)) == 1


def test_answer_without_receipt_has_note(hostile: HostileApi, failing_shell: Shell) -> None:
    hostile.paid = [PlannedResponse(200, answer_body(), accepts_payment=True)]

    done = failing_shell("call", "some-facts", "q=x")

    assert done.returncode == 0
    assert "water is wet" in done.stdout
    assert "the API sent no receipt" in done.stdout


def test_untrusted_answer_cannot_control_terminal(hostile: HostileApi, failing_shell: Shell) -> None:
    told = answer_body() | {
        "data": {"a\x1b[1m": ["[red]\x07", {"b": "\u202e\x9b2J"}]},
        "warnings": ["\x1b[2J"],
    }
    hostile.paid = [PlannedResponse(200, told, accepts_payment=True)]

    done = failing_shell("call", "some-facts", "q=x")

    assert done.returncode == 0, done.stderr
    assert "[red]" in done.stdout
    assert not UNSAFE.search(done.stdout)


def test_changed_payee_is_refused(hostile: HostileApi, failing_shell: Shell) -> None:
    failing_shell("call", "some-facts", "q=x")
    hostile.unpaid = [payment_required(build_offer(hostile.url, payTo="0x" + "2" * 40))]

    done = failing_shell("call", "some-facts", "q=y")

    assert done.returncode == 4, done.stderr
    assert len(hostile.payments) == 1


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BuyerError("x", money="moved"), 5),
        (BuyerError("x", money="unknown"), 5),
        (BuyerError("x"), 1),
        (NoData("x", None, money="unknown"), 3),
        (NotFound("x"), 2),
        (CapExceeded("x"), 4),
        (PaymentRefused("x", None, money="reported_not_moved"), 4),
        (PaymentRefused("x", None, money="moved"), 6),
        (Drift("x"), 1),
    ],
    ids=lambda given: f"{type(given).__name__} {given.money}" if isinstance(given, BuyerError) else "",
)
def test_exit_code_states_if_money_moved(error: BuyerError, code: int) -> None:
    assert exit_code(error) == code


def test_interrupt_after_payment_explains_next_step(shell: Shell, facilitator: StubFacilitator) -> None:
    arrived, release = threading.Event(), threading.Event()
    facilitator.next = [facilitator.reply_when_released(arrived, release)]
    process = shell.start("call", "phishing-check", KNOWN)
    assert arrived.wait(TIMEOUT)

    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=TIMEOUT)
    release.set()
    again = shell("call", "phishing-check", KNOWN, "--json")

    assert process.returncode == 5, err
    assert out == ""
    assert "it is unknown whether it moved. Run the same command again" in err
    assert "Traceback" not in err
    assert again.returncode == 0, again.stderr
    assert sum(facilitator.moved.values()) == 1


def test_services_are_listed_with_price_and_availability(shell_without_key: Shell) -> None:
    done = shell_without_key("services", COLUMNS="120")

    assert done.returncode == 0
    assert len(re.findall(r"\$0\.01", done.stdout)) == len(all_services())
    assert re.search(r"phishing-check +\$0\.01 +yes +Check if a URL", done.stdout)
    assert re.search(r"neuralweb-search +\$0\.01 +no, not set up", done.stdout)


def test_service_is_shown_in_full(shell_without_key: Shell) -> None:
    done = shell_without_key("services", "phishing-check")

    for word in ("takes", "gives", "sources", "bounds", "3 to 2000", "blocked"):
        assert word in done.stdout
    assert "centgate call phishing-check url=https://myetherwallet.cx/login" in done.stdout


@pytest.mark.parametrize("service", all_services(), ids=lambda service: service.slug)
def test_example_command_of_each_service_is_valid(service: AnyService) -> None:
    *words, slug = reversed(shlex.split(format_command(service.slug, service.input_example))[2:])

    assert slug == service.slug
    assert parse_pairs(reversed(words), parse_schema(service.input_schema(None))) == service.input_example


def test_services_as_json_equal_api(shell_without_key: Shell) -> None:
    output = json.loads(shell_without_key("services", "--json").stdout)

    assert len(output) == len(all_services())
    assert {each["slug"]: each["available"] for each in output}["phishing-check"] is True


def test_new_wallet_file_is_private(shell_without_key: Shell) -> None:
    done = shell_without_key("wallet", "new")

    file = shell_without_key.home / "config" / "centgate" / "wallet"
    assert done.returncode == 0, done.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().strip() not in done.stdout + done.stderr
    assert re.search(r"address +0x[0-9a-fA-F]{40}", done.stdout)


def test_key_is_never_overwritten(shell_without_key: Shell) -> None:
    shell_without_key("wallet", "new")
    key = (shell_without_key.home / "config" / "centgate" / "wallet").read_text()

    done = shell_without_key("wallet", "new")

    assert done.returncode == 4
    assert "never overwritten" in read_errors(done)[0]
    assert (shell_without_key.home / "config" / "centgate" / "wallet").read_text() == key


def test_wallet_shows_network_and_never_key(shell: Shell) -> None:
    done = shell("wallet", "show")

    assert done.returncode == 0, done.stderr
    assert "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266" in done.stdout
    assert "eip155:84532" in done.stdout
    assert private_key_of()[2:] not in done.stdout


def test_wallet_balance_is_read_from_node(chain_shell: Shell, devchain: DevChain) -> None:
    held = devchain.token_balance(devchain.accounts[0].address)

    done = chain_shell("wallet", "show", "--rpc", devchain.rpc_url)

    assert re.search(rf"balance +{held / 1e6:g}\d* USDC on eip155:84532", done.stdout), done.stdout


@pytest.mark.devchain
@pytest.mark.parametrize(
    "setting", ["CENTGATE_WALLET_RPC", "CENTGATE_RPC_84532_URL", "CENTGATE_RPC_8453_URL"]
)
def test_wallet_balance_is_read_from_configured_node(
    chain_shell: Shell, devchain: DevChain, setting: str
) -> None:
    urls = {"CENTGATE_RPC_84532_URL": f"{devchain.rpc_url},http://127.0.0.1:9"}

    done = chain_shell("wallet", "show", "--json", **{setting: urls.get(setting, devchain.rpc_url)})

    held = Decimal(devchain.token_balance(devchain.accounts[0].address)) / 10**6
    found = json.loads(done.stdout)["balanceUsd"]
    assert found == (None if "8453_" in setting else str(held)), done.stderr


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((200, {"result": 5}), "does not respond like an Ethereum node"),
        ((200, b"<html>"), "does not respond like an Ethereum node"),
        ((404, b""), "returned 404"),
        ((200, {"result": "0x7"}), "has no USDC"),
        ((200, {"result": "0x" + "7" * 2_000_000}), "does not respond like an Ethereum node"),
        ((200, b" " * 9_000_000), "more than 8 MB"),
    ],
    ids=["number", "HTML", "404", "chain", "endless number", "endless answer"],
)
def test_invalid_node_is_reported(shell: Shell, answer: tuple[int, Any], message: str) -> None:
    with serve_api(lambda _path: answer) as url:
        done = shell("wallet", "show", "--rpc", url)

    assert done.returncode == 1
    assert message in read_errors(done)[0]


def test_missing_wallet_is_explained_on_show(shell_without_key: Shell) -> None:
    done = shell_without_key("wallet", "show")

    assert done.returncode == 4
    assert "`centgate wallet new`" in read_errors(done)[0]


def test_receipts_show_payment_payee_and_outcome(shell: Shell) -> None:
    shell("call", "phishing-check", KNOWN)

    page, told = shell("wallet", "receipts"), shell("wallet", "receipts", "--json")

    assert re.search(
        rf"phishing-check  \$0\.01 of test money  answered\n  to 0xcE\w+ on eip155:84532\n  in {TRANSACTION}",
        page.stdout,
    )
    assert [(each["service"], each["state"], each["money"]) for each in json.loads(told.stdout)] == [
        ("phishing-check", "answered", "moved")
    ]


def test_unwritable_answer_is_not_lost(shell: Shell) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    with Path("/dev/full").open("wb") as full:
        done = shell.run_into(full, "call", "phishing-check", KNOWN)

    # the payment is closed: the same command would pay again
    assert done.returncode == 6
    assert re.search(rf"centgate wallet payments {TRANSACTION}", done.stderr)
    assert json.loads(done.stderr.partition("\n")[2])["data"]["status"] == "blocked"


def test_exit_code_is_right_without_any_output(shell: Shell) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    line = f"{shlex.join([*COMMAND, 'call', 'phishing-check', KNOWN])} >/dev/full 2>/dev/full"

    done = subprocess.run(["sh", "-c", line], env=shell.environment(), timeout=TIMEOUT, check=False)

    assert done.returncode == 6


def test_too_deep_answer_is_printed_as_it_came(hostile: HostileApi, failing_shell: Shell) -> None:
    body = json.dumps(answer_body() | {"data": {"deep": "DEEP"}}).encode()
    deep = b"[" * 1010 + b'"the bottom"' + b"]" * 1010
    hostile.paid = [PlannedResponse(200, body.replace(b'"DEEP"', deep), accepts_payment=True)]

    done = failing_shell("call", "some-facts", "q=x", "--json")

    assert done.returncode == 0, done.stderr
    assert "the bottom" in done.stdout


def test_named_wallet_is_used_whatever_environment_says(shell: Shell, tmp_path: Path) -> None:
    made = json.loads(shell("wallet", "new", "--path", "mine", "--json").stdout)

    shown = json.loads(shell("wallet", "show", "--path", made["keyFile"], "--json").stdout)
    cap = json.loads(shell("wallet", "cap", "--path", made["keyFile"], "--reset", "--json").stdout)
    missing = shell("wallet", "show", "--path", str(tmp_path / "none"))

    assert shown["address"] == cap["payer"] == made["address"]
    assert shown["key"] == made["keyFile"]
    assert missing.returncode == 4
    assert "no key file" in missing.stderr


def test_reader_may_close_output_early(shell: Shell) -> None:
    reading, writing = os.pipe()
    os.close(reading)

    process = shell.run_into(writing, "call", "phishing-check", KNOWN)
    os.close(writing)

    assert (process.returncode, process.stderr) == (0, "")


@pytest.mark.parametrize(
    "arguments", [("services",), ("wallet", "receipts"), ("wallet", "new")], ids=" ".join
)
def test_unwritable_output_is_reported(shell: Shell, arguments: tuple[str, ...]) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    with Path("/dev/full").open("wb") as full:
        done = shell.run_into(full, *arguments)

    assert (done.returncode, read_errors(done)) == (
        1,
        ["centgate: input or output failed: No space left on device"],
    )


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_closed_stream_loses_no_answer(shell: Shell, closed: str) -> None:
    line = f"{shlex.join([*COMMAND, 'call', 'phishing-check', KNOWN, '--json'])} {closed}"

    done = subprocess.run(
        ["sh", "-c", line], env=shell.environment(), capture_output=True, timeout=TIMEOUT, check=False
    )

    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(shell("wallet", "receipts", "--json").stdout)[0]["state"] == "answered"


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_unencodable_text_is_escaped(hostile: HostileApi, failing_shell: Shell) -> None:
    told = answer_body() | {"data": {"name": "Zoë 🦊"}}
    hostile.paid = [
        PlannedResponse(200, told, accepts_payment=True),
        PlannedResponse(200, told, accepts_payment=True),
    ]

    # an interpreter of their own, which reads these variables when it starts
    with failing_shell.start("call", "some-facts", "q=x", **ASCII) as page:
        text, _ = page.communicate(timeout=TIMEOUT)
    with failing_shell.start("call", "some-facts", "q=y", "--json", **ASCII) as as_json:
        json_text, _ = as_json.communicate(timeout=TIMEOUT)

    assert (page.returncode, as_json.returncode) == (0, 0)
    assert r"Zo\xeb \U0001f98a" in text
    assert json.loads(json_text)["data"] == told["data"]


def test_deep_answer_is_printed(hostile: HostileApi, failing_shell: Shell) -> None:
    deep: Any = "the bottom"
    for _ in range(200):
        deep = [deep]
    hostile.paid = [PlannedResponse(200, answer_body() | {"data": {"deep": deep}}, accepts_payment=True)]

    done = failing_shell("call", "some-facts", "q=x")

    assert done.returncode == 0, done.stderr
    assert "the bottom" in re.sub(r"\s+", " ", done.stdout)


@pytest.mark.parametrize("columns", ["0", "1", "40"])
def test_narrow_terminal_hides_nothing(shell: Shell, columns: str) -> None:
    answer = shell("call", "phishing-check", KNOWN, COLUMNS=columns)
    service = shell("services", "phishing-check", COLUMNS=columns)

    assert "wallet-ethereum.net" in re.sub(r"\s", "", answer.stdout)
    assert "…" not in answer.stdout + service.stdout


def test_long_name_leaves_room_for_values(hostile: HostileApi, failing_shell: Shell) -> None:
    hostile.paid = [
        PlannedResponse(
            200, answer_body() | {"data": {"n" * 500: "here", "fact": "water"}}, accepts_payment=True
        )
    ]

    done = failing_shell("call", "some-facts", "q=x")

    assert "here" in done.stdout
    assert "water" in done.stdout


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_body_in_other_encoding_is_read(shell: Shell, tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "body.json"
    file.write_text('{"url": "https://wallet-ethereum.net"}', encoding=encoding)

    with file.open("rb") as body:
        done = shell.run_into(
            subprocess.DEVNULL, "call", "phishing-check", "--body", "-", "--dry-run", stdin=body
        )

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [
        ((), {"CENTGATE_CAP_PER_CALL": "0.001"}),
        ((), {"CENTGATE_CAP_TOTAL": "0"}),
        ((), {"CENTGATE_WALLET_KEY": ""}),
        (("--api", "http://example.org"), {}),
    ],
    ids=["a call", "in all", "no wallet", "no TLS"],
)
def test_refusal_has_no_python_terms(
    shell: Shell, arguments: tuple[str, ...], settings: dict[str, str]
) -> None:
    done = shell("call", "phishing-check", KNOWN, *arguments, **settings)

    assert done.returncode in (2, 4)
    assert not re.search(r"`?\w+\(|=…", read_errors(done)[0])


def test_url_with_path_is_reported_with_port(shell: Shell) -> None:
    done = shell("services", "--api", "http://127.0.0.1:9/centgate/")

    assert done.returncode == 2
    assert "http://127.0.0.1:9, without a path" in read_errors(done)[0]


def test_receipts_have_no_signatures(shell: Shell) -> None:
    shell("call", "phishing-check", KNOWN)

    output = json.loads(shell("wallet", "receipts", "--json").stdout)

    assert "header" not in output[0]


def test_empty_receipts_are_reported(shell: Shell) -> None:
    assert shell("wallet", "receipts").stdout == "No payments yet.\n"


@pytest.mark.parametrize(
    ("cap", "problem"),
    [
        ("much", "'much' is not a decimal number, such as 0.02"),
        ("inf", "'inf' is not a finite number"),
        ("-1", "must be at least 0, not '-1'"),
    ],
)
def test_invalid_cap_is_repeated(shell: Shell, cap: str, problem: str) -> None:
    done = shell("call", "phishing-check", KNOWN, CENTGATE_CAP_TOTAL=cap)

    assert done.returncode == 2
    assert read_errors(done) == [f"centgate: CENTGATE_CAP_TOTAL: {problem}"]


def test_mistyped_name_of_a_cap_is_refused(shell: Shell) -> None:
    done = shell("call", "phishing-check", KNOWN, CENTGATE_CAP_TOTALS="0.05")

    assert done.returncode == 2
    assert read_errors(done) == [
        "centgate: CENTGATE_CAP_TOTALS is not a cap: the caps are CENTGATE_CAP_PER_CALL, CENTGATE_CAP_TOTAL, "
        "CENTGATE_CAP_PER_HOUR, CENTGATE_CAP_PER_DAY"
    ]


@pytest.mark.parametrize("setting", ["CENTGATE_CAP_PER_CALL", "CENTGATE_CAP_TOTAL", "CENTGATE_PAYEE"])
def test_invalid_setting_is_named(shell: Shell, setting: str) -> None:
    done = shell("call", "phishing-check", KNOWN, **{setting: "much"})

    assert done.returncode == 2
    assert read_errors(done)[0].startswith(f"centgate: {setting}: ")


def test_mistyped_payee_is_reported_before_request(shell: Shell) -> None:
    mistyped = "0xCE47ca7E00000000000000000000000000000402"

    done = shell("call", "phishing-check", KNOWN, CENTGATE_PAYEE=mistyped)

    message = f"centgate: CENTGATE_PAYEE: {mistyped} is mistyped: its checksum (EIP-55) is wrong"
    assert (done.returncode, read_errors(done)) == (2, [message])


@pytest.mark.parametrize("arguments", [("call",), ("wallet", "sell"), ("call", "x", "--cheap")], ids=" ".join)
def test_wrong_usage_exits_2(shell: Shell, arguments: tuple[str, ...]) -> None:
    done = shell(*arguments)

    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_help_lists_exit_codes(shell: Shell) -> None:
    output = shell("call", "--help").stdout

    assert [code for code in "012345" if re.search(rf"^ *{code}  \w", output, re.MULTILINE)] == list("012345")


@pytest.mark.parametrize(
    "arguments", [("--help",), ("call", "--help"), ()], ids=["help", "call", "completion"]
)
def test_help_loads_neither_server_nor_client(shell: Shell, arguments: tuple[str, ...]) -> None:
    completion = {"COMP_WORDS": "centgate\nre", "COMP_CWORD": "1", "_CENTGATE_COMPLETE": "complete_bash"}
    done = subprocess.run(
        [COMMAND[0], "-X", "importtime", "-m", "centgate", *arguments],
        env=shell.environment(**({} if arguments else completion)),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=True,
    )

    loaded = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
    ours = {name for name in loaded if name.startswith("centgate")}
    assert ours == {
        "centgate",
        "centgate.cli",
        "centgate.cli.main",
        "centgate.cli.options",
        "centgate.cli.buyer",
        "centgate.cli.buyer.commands",
        "centgate.cli.stop_signals",
    }
    assert not {"httpx2", "rich", "structlog", "starlette", "sqlalchemy"} & loaded
