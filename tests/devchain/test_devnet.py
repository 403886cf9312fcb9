"""`open_devchain`: opening and closing chain and facilitator, on each kind of node."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from centgate.devchain.accounts import FACILITATOR_ACCOUNT
from centgate.devchain.devnet import DevChain, open_devchain
from centgate.devchain.http_server import serve_app
from centgate.devchain.rpc_client import DevNodeError, call_rpc, install_token
from centgate.devchain.token import TOKEN_ADDRESS, runtime_code

Pay = Callable[..., dict[str, Any]]

ANVIL = os.environ.get("CENTGATE_TEST_ANVIL") or shutil.which("anvil")


def test_in_process_chain_describes_itself(devchain: DevChain):
    assert devchain.kind == "in-process EVM"
    assert (devchain.chain_id, devchain.token, len(devchain.accounts)) == (84532, TOKEN_ADDRESS, 10)


@pytest.mark.extended
def test_closed_chain_does_not_listen(http: httpx.Client):
    with open_devchain() as running:
        assert http.get(running.facilitator_url + "/supported").status_code == 200

    with pytest.raises(httpx.ConnectError):
        http.get(running.facilitator_url + "/supported")
    with pytest.raises(DevNodeError, match="did not answer eth_chainId"):
        call_rpc(running.rpc_url, "eth_chainId")


@pytest.mark.extended
def test_two_chains_are_independent(devchain: DevChain, http: httpx.Client, pay: Pay, shop: str):
    with open_devchain() as other:
        payment = pay(other.accounts[0])

        settled = http.post(other.facilitator_url + "/settle", json=payment).json()

        assert settled["success"]
        assert other.token_balance(shop) == 10_000
        nonce = payment["paymentPayload"]["payload"]["authorization"]["nonce"]
        assert not devchain.is_authorization_used(other.accounts[0].address, nonce)


def test_chain_is_prepared_before_serving():
    from centgate.devchain.exchanges import install_exchanges
    from centgate.devchain.well_known import ETHEREUM

    call = {"to": ETHEREUM.wrapped_native, "data": "0x313ce567"}  # decimals()
    with open_devchain(prepare=install_exchanges) as running:
        assert int(call_rpc(running.rpc_url, "eth_call", call, "latest"), 16) == 18
        assert running.token_balance(running.accounts[0].address) == 1_000_000000


def test_port_in_use_is_reported(devchain: DevChain):
    port = int(devchain.facilitator_url.rsplit(":", 1)[1])

    with pytest.raises(OSError, match="in use"), open_devchain(facilitator_port=port):
        pass


def test_node_with_token_is_used_unchanged(devchain: DevChain, shop: str):
    with open_devchain(rpc=devchain.rpc_url) as same:
        assert same.kind == "given node"
        assert same.token_balance(shop) == devchain.token_balance(shop)


def test_unreachable_node_is_error():
    with pytest.raises(DevNodeError, match="did not answer"), open_devchain(rpc="http://127.0.0.1:9"):
        pass


def test_node_of_another_chain_is_error():
    with (
        serve_app(_serve_node({"eth_chainId": "0x1"}), 0) as url,
        pytest.raises(DevNodeError, match="is chain 1,"),
    ):
        install_token(url)


def test_public_node_is_error():
    node = _serve_node({"eth_chainId": "0x14a34", "eth_getCode": "0x60"})
    with serve_app(node, 0) as url, pytest.raises(DevNodeError, match="refused hardhat_setCode"):
        install_token(url)


def test_failing_anvil_start_is_reported():
    with pytest.raises(DevNodeError, match="does not start"), open_devchain(anvil="/nowhere/anvil"):
        pass


@pytest.mark.skipif(ANVIL is None, reason="no anvil on PATH and CENTGATE_TEST_ANVIL is unset")
def test_anvil_is_prepared_and_settles(http: httpx.Client, pay: Pay, shop: str):
    with open_devchain(anvil=ANVIL) as running:
        assert running.kind == "anvil"
        assert [running.token_balance(account.address) for account in running.accounts] == [1_000_000000] * 10
        assert running.token_balance(FACILITATOR_ACCOUNT.address) == 0
        assert call_rpc(running.rpc_url, "eth_getCode", TOKEN_ADDRESS, "latest") == runtime_code()
        payment = pay(running.accounts[0])

        first, second = (
            http.post(running.facilitator_url + "/settle", json=payment).json() for _ in range(2)
        )

        assert first["success"]
        assert first == second
        assert running.token_balance(shop) == 10_000

    with pytest.raises(DevNodeError):
        call_rpc(running.rpc_url, "eth_chainId")


def test_import_loads_no_chain_or_web3():
    code = (
        "import sys, centgate.devchain.devnet; print({'eth', 'web3', 'x402', 'uvicorn'} & set(sys.modules))"
    )

    assert _run_code(code) == ("set()\n", "")


@pytest.mark.extended
def test_opening_prints_and_logs_nothing(tmp_path: Path):
    code = """
import json, logging, urllib.request
from centgate.devchain.devnet import open_devchain
logging.basicConfig(level=logging.INFO)
with open_devchain() as running:
    word = "0x" + "11" * 32
    terms = dict(scheme="exact", network="eip155:84532", asset=running.token, amount="1", payTo=running.token,
        maxTimeoutSeconds=60, extra=dict(name="USDC", version="2"))
    window = dict(validAfter="0", validBefore="9999999999")
    authorization = dict({"from": running.token}, to=running.token, value="1", nonce=word, **window)
    payment = dict(x402Version=2, accepted=terms, payload=dict(signature=word, authorization=authorization))
    body = json.dumps(dict(paymentPayload=payment, paymentRequirements=terms)).encode()
    answer = json.load(urllib.request.urlopen(running.facilitator_url + "/settle", body))
    assert answer["success"] is False, answer
"""

    assert _run_code(code) == ("", "")


def _serve_node(answers: dict[str, str]) -> Any:
    """Serve a node that knows these methods only."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    async def endpoint(request: Request) -> Response:
        message = await request.json()
        known = answers.get(message["method"])
        told = (
            {"error": {"code": -32601, "message": "no such method"}} if known is None else {"result": known}
        )
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], **told})

    return Starlette(routes=[Route("/", endpoint, methods=["POST"])])


def _run_code(code: str) -> tuple[str, str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout, done.stderr
