"""Facilitators of docs/facilitators.md: they settle payments as printed there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from buyer import ApiFactory, Buyer, pay, sign_payload, sign_payment
from databases import reserve_port
from pydantic import SecretStr
from sdk_facilitators import PYTHON_SIGNER, TYPESCRIPT_SIGNER

from centgate.devchain.devnet import DevChain
from centgate.settings import Settings

pytestmark = pytest.mark.extended

PAGE = Path(__file__).parent.parent / "docs" / "facilitators.md"
TOKEN = "a-token-of-the-facilitator"
PATIENCE = 60.0
AT_ONCE = 8


def read_program(language: str) -> str:
    """Return the only code block of a language."""
    (program,) = re.findall(
        rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    return program


@contextmanager
def run_program(command: list[str], folder: Path, key: str, devchain: DevChain) -> Generator[str]:
    """Run a facilitator as its operator does; yields its URL."""
    with reserve_port() as port:
        pass
    environment = {
        **os.environ,
        "NETWORK": f"eip155:{devchain.chain_id}",
        "RPC_URL": devchain.rpc_url,
        "PRIVATE_KEY": key,
        "TOKEN": TOKEN,
        "PORT": str(port),
    }
    with subprocess.Popen(command, cwd=folder, env=environment) as process:
        try:
            wait_until_served(url := f"http://127.0.0.1:{port}")
            yield url
        finally:
            process.terminate()


def wait_until_served(url: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            assert httpx.get(f"{url}/supported").status_code == 200
        except httpx.TransportError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        else:
            return


def buy_at_second(api: ApiFactory, settings: Settings, url: str, buyer: Buyer) -> tuple[httpx.Response, int]:
    """Return the response to a payment while the first is down, and the second's status without a token."""
    changes = {
        "facilitator_url": "http://127.0.0.1:9",
        "facilitator_fallback_url": url,
        "facilitator_fallback_token": SecretStr(TOKEN),
    }
    client = api(settings.model_copy(update=changes))
    response = pay(client, sign_payment(client, buyer))
    return response, httpx.post(f"{url}/settle", json={}).status_code


def settle_at_once(api: ApiFactory, settings: Settings, url: str, buyer: Buyer) -> list[bool]:
    """Return for each of `AT_ONCE` payments, sent to a facilitator together, if it was settled."""
    client = api(settings)
    payments = [sign_payload(client, buyer) for _ in range(AT_ONCE)]

    def settle(payment: dict[str, object]) -> bool:
        body = {"x402Version": 2, "paymentPayload": payment, "paymentRequirements": payment["accepted"]}
        headers = {"Authorization": f"Bearer {TOKEN}"}
        answer = httpx.post(f"{url}/settle", json=body, headers=headers, timeout=PATIENCE)
        return answer.status_code == 200 and answer.json()["success"]

    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(settle, payments))


def test_python_program_settles_as_second_facilitator(
    api: ApiFactory, chain_settings: Settings, devchain: DevChain, buyer: Buyer, tmp_path: Path
) -> None:
    (tmp_path / "facilitator.py").write_text(read_program("python"), encoding="utf-8")
    before = devchain.token_balance(buyer.address)

    with run_program(
        [sys.executable, "facilitator.py"], tmp_path, PYTHON_SIGNER.private_key, devchain
    ) as url:
        response, unauthorized = buy_at_second(api, chain_settings, url, buyer)
        settled = settle_at_once(api, chain_settings, url, buyer)

    assert (response.status_code, unauthorized) == (200, 401), response.text
    assert settled == [True] * AT_ONCE
    assert before - devchain.token_balance(buyer.address) == (1 + AT_ONCE) * 10_000


def test_typescript_program_settles_as_second_facilitator(
    api: ApiFactory, chain_settings: Settings, devchain: DevChain, buyer: Buyer, typescript_sdk: Path
) -> None:
    program = typescript_sdk / "facilitator-of-the-page.mjs"
    program.write_text(read_program("js"), encoding="utf-8")
    before = devchain.token_balance(buyer.address)

    with run_program(["node", program.name], typescript_sdk, TYPESCRIPT_SIGNER.private_key, devchain) as url:
        response, unauthorized = buy_at_second(api, chain_settings, url, buyer)
        settled = settle_at_once(api, chain_settings, url, buyer)

    assert (response.status_code, unauthorized) == (200, 401), response.text
    assert settled == [True] * AT_ONCE
    assert before - devchain.token_balance(buyer.address) == (1 + AT_ONCE) * 10_000
