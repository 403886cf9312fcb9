"""JSON-RPC client for development nodes: call a node, start anvil, and install the token."""

import json
import socket
import subprocess
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from centgate.devchain.accounts import BUYER_TOKENS, BUYERS, FACILITATOR, GAS_MONEY
from centgate.devchain.serving import HOST
from centgate.devchain.token import CHAIN_ID, TOKEN, runtime_code, storage_of

START_SECONDS = 10.0


class NodeFailed(RuntimeError):
    """The node is unreachable, or unusable as a development chain."""


# requests to this machine must not go through a proxy
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(rpc_url: str, method: str, *params: Any) -> Any:
    """Send one JSON-RPC call and return its result. Raises `NodeFailed`."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    request = urllib.request.Request(rpc_url, body, {"Content-Type": "application/json"})
    try:
        with _opener.open(request, timeout=30) as response:
            answer: dict[str, Any] = json.load(response)
    except (OSError, ValueError) as error:
        raise NodeFailed(f"{rpc_url} did not answer {method}: {error}") from error
    if "error" in answer:
        raise NodeFailed(f"{rpc_url} refused {method}: {answer['error'].get('message')}")
    return answer["result"]


def prepare(rpc_url: str) -> None:
    """Install the token on a node, with the buyers' balances, and fund all accounts with gas money.

    Does nothing if the node has the token. Raises `NodeFailed` for a node of another chain, or one whose
    state cannot be written, such as a public node.
    """
    chain_id = int(ask(rpc_url, "eth_chainId"), 16)
    if chain_id != CHAIN_ID:
        raise NodeFailed(f"{rpc_url} is chain {chain_id}, a development chain must be {CHAIN_ID}")
    if ask(rpc_url, "eth_getCode", TOKEN, "latest") == runtime_code():
        return
    # hardhat's method names, which anvil also supports
    ask(rpc_url, "hardhat_setCode", TOKEN, runtime_code())
    for slot, value in buyers_storage().items():
        ask(rpc_url, "hardhat_setStorageAt", TOKEN, hex(slot), f"0x{value:064x}")
    for account in (*BUYERS, FACILITATOR):
        ask(rpc_url, "hardhat_setBalance", account.address, hex(GAS_MONEY))


def buyers_storage() -> dict[int, int]:
    """Return the token's storage with the buyers' balances."""
    return storage_of({buyer.address: BUYER_TOKENS for buyer in BUYERS})


@contextmanager
def running_anvil(binary: str, port: int) -> Generator[str]:
    """Run anvil and yield its RPC URL; port 0 picks a free port."""
    port = port or _find_free_port()
    url = f"http://{HOST}:{port}"
    command = [binary, "--host", HOST, "--port", str(port), "--chain-id", str(CHAIN_ID), "--silent"]
    # mine each transaction at once, plus an empty block every second: anvil runs calls at the time of the
    # last block, and on an idle chain a new authorization would not be valid yet
    command += ["--mixed-mining", "--block-time", "1"]
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    except OSError as error:
        raise NodeFailed(f"{binary} does not start: {error}") from error
    try:
        _wait_until_ready(url, process)
        yield url
    finally:
        process.terminate()
        process.wait()


def _wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None:
        try:
            ask(url, "eth_chainId")
        except NodeFailed:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return
    raise NodeFailed(f"anvil exited with status {process.returncode}. Is the port of {url} in use?")


def _find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]
