"""Token decimals: a token is accepted only if a node does not show other decimals than the prices have."""

from __future__ import annotations

import os
from typing import Any

import pytest
from centgate_process import run_centgate
from fake_upstreams import FakeUpstreams

from centgate.devchain.environment import DEFAULT_PAYEE
from centgate.payments.chain.token_decimals import check_decimals
from centgate.settings import ProviderSettings, Settings

TOKEN = "0x1111111111111111111111111111111111111111"
CHAIN = 56


def to_word(number: int) -> str:
    return f"0x{number:064x}"


def serve_decimals(upstreams: FakeUpstreams, decimals: str | None, *, chain: int = CHAIN) -> str:
    """Serve a node that returns these decimals of a token, and return its URL."""
    results: dict[str, Any] = {"eth_chainId": hex(chain), "eth_call": decimals}
    upstreams.set_response_function(
        "node",
        "/",
        lambda request: (200, {"jsonrpc": "2.0", "id": 1, "result": results[request.body["method"]]}),
        method="POST",
    )
    return upstreams.url_of("node") + "/"


def custom_token_settings(node: str | None = None) -> Settings:
    """Return settings for payments in an unknown token."""
    return Settings(
        pay_to=DEFAULT_PAYEE,
        network=f"eip155:{CHAIN}",
        asset=TOKEN,
        asset_name="Dollar",
        providers={f"rpc_{CHAIN}": ProviderSettings(url=node)} if node else {},
    )


@pytest.mark.extended
def test_serve_ends_on_other_decimals(upstreams: FakeUpstreams) -> None:
    given = {
        "PAY_TO": "0x" + "22" * 20,
        "NETWORK": f"eip155:{CHAIN}",
        "ASSET": TOKEN,
        "ASSET_NAME": "Dollar",
        f"RPC_{CHAIN}_URL": serve_decimals(upstreams, to_word(18)),
    }

    environment = {**os.environ, **{f"CENTGATE_{name}": value for name, value in given.items()}}
    served = run_centgate(["serve", "--port", "0"], env=environment)

    assert served.returncode != 0
    assert "CENTGATE_ASSET" in served.stderr
    assert "18 decimals" in served.stderr


def test_check_accepts_matching_decimals(upstreams: FakeUpstreams) -> None:
    assert check_decimals(custom_token_settings(serve_decimals(upstreams, to_word(6)))) is None


@pytest.mark.parametrize("decimals", [0, 2, 18, 255])
def test_check_refuses_other_decimals(upstreams: FakeUpstreams, decimals: int) -> None:
    settings = custom_token_settings(serve_decimals(upstreams, to_word(decimals)))

    with pytest.raises(ValueError, match=f"has {decimals} decimals"):
        check_decimals(settings)


def test_check_calls_no_node_for_known_token(upstreams: FakeUpstreams) -> None:
    node = {"rpc_8453": ProviderSettings(url=serve_decimals(upstreams, to_word(18)))}

    problem = check_decimals(Settings(pay_to=DEFAULT_PAYEE, providers=node))

    assert problem is None
    assert upstreams.requests_of("node") == []


def test_check_without_node_states_assumption() -> None:
    problem = check_decimals(custom_token_settings())

    assert problem is not None
    assert f"could not read the decimals of {TOKEN}; assuming 6." in problem
    assert f"CENTGATE_RPC_{CHAIN}_URL" in problem


@pytest.mark.parametrize(
    "answer", [None, "0x", "0x06", to_word(256)], ids=["null", "empty", "short", "beyond"]
)
def test_check_without_clear_answer_states_assumption(upstreams: FakeUpstreams, answer: str | None) -> None:
    problem = check_decimals(custom_token_settings(serve_decimals(upstreams, answer)))

    assert problem is not None
    assert "assuming 6." in problem


def test_check_ignores_node_of_another_chain(upstreams: FakeUpstreams) -> None:
    problem = check_decimals(custom_token_settings(serve_decimals(upstreams, to_word(18), chain=1)))

    assert problem is not None
    assert "assuming 6." in problem
