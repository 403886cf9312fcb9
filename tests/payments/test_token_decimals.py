"""A token is served only if its decimals are those that prices are in, as far as a node can tell."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from fake_upstreams import FakeUpstreams

from centgate.devchain.environment import DEFAULT_PAYEE
from centgate.payments.token_decimals import check_decimals
from centgate.settings import ProviderSettings, Settings

TOKEN = "0x1111111111111111111111111111111111111111"
CHAIN = 56


def word(number: int) -> str:
    return f"0x{number:064x}"


def node_saying(upstreams: FakeUpstreams, decimals: str | None, *, chain: int = CHAIN) -> str:
    """The address of a node that says this of a token's decimals."""
    results: dict[str, Any] = {"eth_chainId": hex(chain), "eth_call": decimals}
    upstreams.set_response_function(
        "node",
        "/",
        lambda asked: (200, {"jsonrpc": "2.0", "id": 1, "result": results[asked.body["method"]]}),
        method="POST",
    )
    return upstreams.url_of("node") + "/"


def custom(node: str | None = None) -> Settings:
    """A deployment that is paid in an unknown token."""
    return Settings(
        pay_to=DEFAULT_PAYEE,
        network=f"eip155:{CHAIN}",
        asset=TOKEN,
        asset_name="Dollar",
        providers={f"rpc_{CHAIN}": ProviderSettings(url=node)} if node else {},
    )


@pytest.mark.extended
def test_serve_ends_when_a_token_has_other_decimals(upstreams: FakeUpstreams) -> None:
    given = {
        "PAY_TO": DEFAULT_PAYEE,
        "NETWORK": f"eip155:{CHAIN}",
        "ASSET": TOKEN,
        "ASSET_NAME": "Dollar",
        f"RPC_{CHAIN}_URL": node_saying(upstreams, word(18)),
    }

    served = subprocess.run(
        [sys.executable, "-m", "centgate", "serve", "--port", "0"],
        env={**os.environ, **{f"CENTGATE_{name}": value for name, value in given.items()}},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )

    assert served.returncode != 0
    assert "CENTGATE_ASSET" in served.stderr
    assert "18 decimals" in served.stderr


def test_check_decimals_says_nothing_of_a_token_that_fits(upstreams: FakeUpstreams) -> None:
    assert check_decimals(custom(node_saying(upstreams, word(6)))) is None


@pytest.mark.parametrize("decimals", [0, 2, 18, 255])
def test_check_decimals_refuses_a_token_that_does_not_fit(upstreams: FakeUpstreams, decimals: int) -> None:
    settings = custom(node_saying(upstreams, word(decimals)))

    with pytest.raises(ValueError, match=f"has {decimals} decimals"):
        check_decimals(settings)


def test_check_decimals_asks_nobody_about_a_known_token(upstreams: FakeUpstreams) -> None:
    node = {"rpc_8453": ProviderSettings(url=node_saying(upstreams, word(18)))}

    said = check_decimals(Settings(pay_to=DEFAULT_PAYEE, providers=node))

    assert said is None
    assert upstreams.requests_of("node") == []


def test_check_decimals_without_a_node_names_what_it_assumes() -> None:
    said = check_decimals(custom())

    assert said is not None
    assert f"could not read the decimals of {TOKEN}; assuming 6." in said
    assert f"CENTGATE_RPC_{CHAIN}_URL" in said


@pytest.mark.parametrize("answer", [None, "0x", "0x06", word(256)], ids=["null", "empty", "short", "beyond"])
def test_check_decimals_without_a_clear_answer_names_what_it_assumes(
    upstreams: FakeUpstreams, answer: str | None
) -> None:
    said = check_decimals(custom(node_saying(upstreams, answer)))

    assert said is not None
    assert "assuming 6." in said


def test_check_decimals_believes_no_node_of_another_chain(upstreams: FakeUpstreams) -> None:
    said = check_decimals(custom(node_saying(upstreams, word(18), chain=1)))

    assert said is not None
    assert "assuming 6." in said
