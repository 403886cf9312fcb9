"""JSON-RPC client for development nodes: call a node, start anvil, and install the token."""

import socket
import subprocess
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from centgate import jsonrpc
from centgate.devchain.accounts import BUYER_ACCOUNTS, BUYER_TOKEN_BALANCE, FACILITATOR_ACCOUNT, GAS_BALANCE
from centgate.devchain.http_server import HOST
from centgate.devchain.token import CHAIN_ID, TOKEN_ADDRESS, build_storage, runtime_code

START_SECONDS = 10.0


class DevNodeError(RuntimeError):
    """The node is unreachable, or unusable as a development chain."""


# requests to this machine must not go through a proxy
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def call_rpc(rpc_url: str, method: str, *params: Any) -> Any:
    """Send one JSON-RPC call and return its result. Raises `DevNodeError`."""
    body = jsonrpc.encode_request(method, params)
    request = urllib.request.Request(rpc_url, body, {"Content-Type": "application/json"})
    try:
        with _opener.open(request, timeout=30) as response:
            return jsonrpc.decode_result(response.read())
    except jsonrpc.RpcError as error:
        raise DevNodeError(f"{rpc_url} refused {method}: {error.message}") from error
    except (OSError, ValueError) as error:
        raise DevNodeError(f"{rpc_url} did not answer {method}: {error}") from error


def install_token(rpc_url: str) -> None:
    """Install the token on a node, with the buyers' balances, and fund all accounts with gas money.

    Does nothing if the node has the token. Raises `DevNodeError` for a node of another chain, or one whose
    state cannot be written, such as a public node.
    """
    chain_id = int(call_rpc(rpc_url, "eth_chainId"), 16)
    if chain_id != CHAIN_ID:
        raise DevNodeError(f"{rpc_url} is chain {chain_id}, a development chain must be {CHAIN_ID}")
    if call_rpc(rpc_url, "eth_getCode", TOKEN_ADDRESS, "latest") == runtime_code():
        return
    # hardhat's method names, which anvil also supports
    call_rpc(rpc_url, "hardhat_setCode", TOKEN_ADDRESS, runtime_code())
    for slot, value in initial_token_storage().items():
        call_rpc(rpc_url, "hardhat_setStorageAt", TOKEN_ADDRESS, hex(slot), f"0x{value:064x}")
    for account in (*BUYER_ACCOUNTS, FACILITATOR_ACCOUNT):
        call_rpc(rpc_url, "hardhat_setBalance", account.address, hex(GAS_BALANCE))


def initial_token_storage() -> dict[int, int]:
    """Return the token's storage with the buyers' balances."""
    return build_storage({buyer.address: BUYER_TOKEN_BALANCE for buyer in BUYER_ACCOUNTS})


@contextmanager
def run_anvil(binary: str, port: int) -> Generator[str]:
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
        raise DevNodeError(f"{binary} does not start: {error}") from error
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
            call_rpc(url, "eth_chainId")
        except DevNodeError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return
    raise DevNodeError(f"anvil exited with status {process.returncode}. Is the port of {url} in use?")


def _find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]
