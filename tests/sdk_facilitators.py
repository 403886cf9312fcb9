"""Facilitators built of the official SDKs alone, which settle on a development chain.

The facilitator of `centgate.devchain` is different: it remembers its settlements, simulates once more
before it sends, and corrects the SDK's count of nonces. These return the SDKs' answers as the SDKs' examples
do: an answer of the SDK with status 200, an exception with status 500.
"""

# x402 is typed, but does not declare it
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from node_packages import install_packages
from pydantic import BaseModel
from requests import Session
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from web3 import HTTPProvider
from x402 import x402FacilitatorSync
from x402.mechanisms.evm.exact import ExactEvmFacilitatorScheme
from x402.mechanisms.evm.exact.facilitator import ExactEvmSchemeConfig
from x402.mechanisms.evm.signers import FacilitatorWeb3Signer
from x402.schemas import PaymentPayload, PaymentRequirements

from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.devchain.devnet import DevChain
from centgate.devchain.http_server import serve_app

PYTHON_SIGNER, TYPESCRIPT_SIGNER = BUYER_ACCOUNTS[8:10]
"""Accounts that pay the gas: one per SDK, since the Python SDK counts nonces itself."""

CONFIRMATION_TIMEOUT = 30.0
"""Seconds that a facilitator waits for a receipt before it returns `settlement_pending`."""

_PROGRAMS = Path(__file__).parent / "clients"

Ask = Callable[[PaymentPayload, PaymentRequirements], BaseModel]


class ClosableSigner(FacilitatorWeb3Signer):
    """The SDK's signer with a closable session that ignores proxies."""

    def __init__(self, private_key: str, rpc_url: str, *, confirmation_timeout: float) -> None:
        super().__init__(private_key, rpc_url, confirmation_timeout_seconds=confirmation_timeout)
        self._session = Session()
        self._session.trust_env = False
        self._w3.provider = HTTPProvider(rpc_url, session=self._session)

    def close(self) -> None:
        """Close its connections."""
        self._session.close()


@contextmanager
def open_python_facilitator(
    chain: DevChain, *, confirmation_timeout: float = CONFIRMATION_TIMEOUT, simulate_in_settle: bool = False
) -> Generator[str]:
    """Serve the Python SDK's facilitator on a development chain; yields its URL."""
    facilitator = x402FacilitatorSync()
    with closing(
        ClosableSigner(PYTHON_SIGNER.private_key, chain.rpc_url, confirmation_timeout=confirmation_timeout)
    ) as signer:
        config = ExactEvmSchemeConfig(simulate_in_settle=simulate_in_settle)
        facilitator.register([f"eip155:{chain.chain_id}"], ExactEvmFacilitatorScheme(signer, config))
        with serve_app(_python_app(facilitator), 0) as url:
            yield url


def _python_app(facilitator: x402FacilitatorSync) -> Starlette:
    def create_endpoint(ask: Ask) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            body = json.loads(await request.body())
            try:
                payload = PaymentPayload.model_validate(body["paymentPayload"])
                requirements = PaymentRequirements.model_validate(body["paymentRequirements"])
                answer = await run_in_threadpool(ask, payload, requirements)
            except Exception as error:  # noqa: BLE001 - the SDK's examples return status 500 for any error
                return JSONResponse({"detail": str(error)}, 500)
            return JSONResponse(_dump(answer))

        return endpoint

    async def get_supported(_request: Request) -> Response:
        return JSONResponse(_dump(facilitator.get_supported()))

    return Starlette(
        routes=[
            Route("/verify", create_endpoint(facilitator.verify), methods=["POST"]),
            Route("/settle", create_endpoint(facilitator.settle), methods=["POST"]),
            Route("/supported", get_supported, methods=["GET"]),
        ]
    )


def _dump(answer: BaseModel) -> dict[str, Any]:
    return answer.model_dump(mode="json", by_alias=True, exclude_none=True)


def install_typescript_packages(factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the TypeScript SDK and the facilitator's program; skips where there is no npm."""
    files = (_PROGRAMS / "facilitator.mjs", *_PROGRAMS.glob("*.json"))
    return install_packages(factory, "clients", files, "ci")


@contextmanager
def open_typescript_facilitator(
    packages: Path,
    chain: DevChain,
    *,
    confirmation_timeout: float = CONFIRMATION_TIMEOUT,
    simulate_in_settle: bool = False,
) -> Generator[str]:
    """Run the TypeScript SDK's facilitator on a development chain; yields its URL.

    `packages` is the folder of `install_typescript_packages`.
    """
    environment = {
        **os.environ,
        "RPC_URL": chain.rpc_url,
        "CHAIN_ID": str(chain.chain_id),
        "PRIVATE_KEY": TYPESCRIPT_SIGNER.private_key,
        "CONFIRMATION_TIMEOUT_MS": str(int(confirmation_timeout * 1000)),
        "SIMULATE_IN_SETTLE": "1" if simulate_in_settle else "0",
    }
    with subprocess.Popen(
        ["node", "facilitator.mjs"], cwd=packages, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield _read_url(process)
        finally:
            process.terminate()


def _read_url(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    word, _, url = process.stdout.readline().strip().partition(" ")
    assert word == "ready", "the facilitator's program did not start"
    return url
