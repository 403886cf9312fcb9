"""Any node by JSON-RPC: ask it, start anvil as one, and put the token on it."""

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
    """The node can't be reached, or doesn't do what a development chain must."""


# a proxy meant for the internet must not get what is meant for this machine
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(rpc_url: str, method: str, *params: Any) -> Any:
    """The result of one JSON-RPC call. Raises `NodeFailed` when there is none."""
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
    """Put the token on a node, its buyers' balances with it, and give everybody gas money.

    A node that has the token already is left as it is. Raises `NodeFailed` for a node of another chain,
    and for one that doesn't let its state be written, as no public node does.
    """
    chain_id = int(ask(rpc_url, "eth_chainId"), 16)
    if chain_id != CHAIN_ID:
        raise NodeFailed(f"{rpc_url} is chain {chain_id}, a development chain must be {CHAIN_ID}")
    if ask(rpc_url, "eth_getCode", TOKEN, "latest") == runtime_code():
        return
    # the names that hardhat gave them; anvil knows them too
    ask(rpc_url, "hardhat_setCode", TOKEN, runtime_code())
    for slot, held in buyers_storage().items():
        ask(rpc_url, "hardhat_setStorageAt", TOKEN, hex(slot), f"0x{held:064x}")
    for account in (*BUYERS, FACILITATOR):
        ask(rpc_url, "hardhat_setBalance", account.address, hex(GAS_MONEY))


def buyers_storage() -> dict[int, int]:
    """The token's storage with its tokens given to the buyers."""
    return storage_of({buyer.address: BUYER_TOKENS for buyer in BUYERS})


@contextmanager
def running_anvil(binary: str, port: int) -> Generator[str]:
    """The RPC URL of an anvil that runs for as long as this lasts; port 0 takes a free one."""
    port = port or _free_port()
    url = f"http://{HOST}:{port}"
    command = [binary, "--host", HOST, "--port", str(port), "--chain-id", str(CHAIN_ID), "--silent"]
    # it mines each transaction at once, and an empty block every second besides: it runs calls at the time
    # of the last block, and on a chain that stood idle would find a fresh authorization not yet valid
    command += ["--mixed-mining", "--block-time", "1"]
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    except OSError as error:
        raise NodeFailed(f"{binary} does not start: {error}") from error
    try:
        _wait_for(url, process)
        yield url
    finally:
        process.terminate()
        process.wait()


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
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
    raise NodeFailed(f"anvil ended with status {process.returncode}, is the port of {url} in use?")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((HOST, 0))
        return free.getsockname()[1]
