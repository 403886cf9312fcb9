"""x402 facilitator for development chains: the official SDK behind three HTTP routes.

It adds to the SDK: a settled payment gets the same response again and is never broadcast twice; a transaction
that would revert is not broadcast; a failed broadcast leaves no gap in the facilitator's nonces.
"""

# x402 has type annotations but no py.typed marker
# pyright: reportMissingTypeStubs=false

import asyncio
import json
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic.alias_generators import to_camel
from requests import RequestException, Session
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from web3 import HTTPProvider
from web3.exceptions import Web3Exception
from x402 import x402FacilitatorSync
from x402.mechanisms.evm.exact import ExactEvmFacilitatorScheme
from x402.mechanisms.evm.exact.facilitator import ExactEvmSchemeConfig
from x402.mechanisms.evm.signers import FacilitatorWeb3Signer
from x402.schemas import PaymentPayload, PaymentRequirements

from centgate.devchain.http_server import THREAD_PREFIX

DecimalString = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,78}$")]
Address = Annotated[str, StringConstraints(pattern=r"^0x[0-9a-fA-F]{40}$", to_lower=True)]
Bytes32 = Annotated[str, StringConstraints(pattern=r"^0x[0-9a-fA-F]{64}$", to_lower=True)]
Signature = Annotated[str, StringConstraints(pattern=r"^0x([0-9a-fA-F]{2})+$", to_lower=True)]


class WireModel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, frozen=True)


class AuthorizationBody(WireModel):
    payer: Address = Field(alias="from")
    to: Address
    value: DecimalString
    valid_after: DecimalString
    valid_before: DecimalString
    nonce: Bytes32


class SignedAuthorization(WireModel):
    signature: Signature
    authorization: AuthorizationBody


class PaymentBody(WireModel):
    x402_version: Literal[2]
    payload: SignedAuthorization


class RequirementsBody(WireModel):
    scheme: str
    network: str
    asset: Address
    amount: DecimalString
    pay_to: Address


class FacilitatorRequest(WireModel):
    """Validated part of a request body: enough to identify the payment and to pass it to the SDK."""

    payment_payload: PaymentBody
    payment_requirements: RequirementsBody


class ChainSigner(FacilitatorWeb3Signer):
    """The SDK's signer, sending one transaction at a time with the next nonce from the chain.

    The SDK counts nonces locally: after one failed broadcast all later transactions would wait for the
    missing nonce forever.
    """

    def __init__(self, private_key: str, rpc_url: str) -> None:
        super().__init__(private_key, rpc_url)
        self._sending = threading.Lock()
        # a separate session can be closed, and ignores proxy settings of the environment
        self._session = Session()
        self._session.trust_env = False
        self._w3.provider = HTTPProvider(rpc_url, session=self._session)

    def write_contract(self, *args: Any, **kwargs: Any) -> str:
        with self._sending:
            self._next_nonce = None
            return super().write_contract(*args, **kwargs)

    def close(self) -> None:
        self._session.close()


class DevFacilitator:
    """Facilitator that verifies and settles. It keeps settled payments in memory."""

    def __init__(self, rpc_urls: Mapping[str, str], private_key: str) -> None:
        """Create a facilitator; `rpc_urls` has the node of each network (CAIP-2) that it settles on."""
        # simulate again before sending, because balances change between verify and settle
        config = ExactEvmSchemeConfig(simulate_in_settle=True)
        self.networks = frozenset(rpc_urls)
        self._signers = {network: ChainSigner(private_key, url) for network, url in rpc_urls.items()}
        # one for each network: the SDK would use the first signer for every EVM chain
        self._official = {network: x402FacilitatorSync() for network in rpc_urls}
        for network, signer in self._signers.items():
            self._official[network].register([network], ExactEvmFacilitatorScheme(signer, config))
        self._threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix=f"{THREAD_PREFIX} facilitator")
        self._settled: dict[FacilitatorRequest, dict[str, Any]] = {}
        # one settlement per payer at a time: the second must see the balance after the first
        self._payers: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def list_supported(self) -> dict[str, Any]:
        """Return what every chain supports, as one answer of `GET /supported`."""
        first, *others = [_to_json(each.get_supported()) for each in self._official.values()]
        return {**first, "kinds": [kind for each in (first, *others) for kind in each["kinds"]]}

    async def verify(self, request: FacilitatorRequest, body: dict[str, Any]) -> dict[str, Any]:
        official = self._official[request.payment_requirements.network]
        return await self._call_sdk(official.verify, body)

    async def settle(self, request: FacilitatorRequest, body: dict[str, Any]) -> dict[str, Any]:
        async with self._payers[request.payment_payload.payload.authorization.payer]:
            if earlier := self._settled.get(request):
                return earlier
            official = self._official[request.payment_requirements.network]
            answer = await self._call_sdk(official.settle, body)
            if answer["success"]:
                self._settled[request] = answer
            return answer

    def close(self) -> None:
        self._threads.shutdown()
        for signer in self._signers.values():
            signer.close()

    async def _call_sdk(self, operation: Callable[..., BaseModel], body: dict[str, Any]) -> dict[str, Any]:
        payload = PaymentPayload.model_validate(body["paymentPayload"])
        requirements = PaymentRequirements.model_validate(body["paymentRequirements"])
        running = asyncio.get_running_loop().run_in_executor(self._threads, operation, payload, requirements)
        return _to_json(await running)


def create_facilitator_app(facilitator: DevFacilitator) -> Starlette:
    """Create the application: `POST /verify`, `POST /settle`, `GET /supported`, as specified by x402."""

    def make_endpoint(
        handle: Callable[[FacilitatorRequest, dict[str, Any]], Any],
    ) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            try:
                body: Any = json.loads(await request.body())
                parsed = FacilitatorRequest.model_validate(body)
                terms = parsed.payment_requirements
                if terms.scheme != "exact" or terms.network not in facilitator.networks:
                    # the SDK would accept it: its signers cover every EVM chain
                    return _error_response(400, "unsupported_scheme", f"{terms.scheme} on {terms.network}")
                return JSONResponse(await handle(parsed, body))
            except ValidationError as error:
                return _error_response(400, "invalid_payload", _first_problem(error))
            except ValueError as error:
                return _error_response(400, "invalid_payload", str(error))
            except (RequestException, Web3Exception, RuntimeError) as error:
                return _error_response(502, "chain_unreachable", str(error))

        return endpoint

    async def supported(_request: Request) -> Response:
        return JSONResponse(facilitator.list_supported())

    return Starlette(
        routes=[
            Route("/verify", make_endpoint(facilitator.verify), methods=["POST"]),
            Route("/settle", make_endpoint(facilitator.settle), methods=["POST"]),
            Route("/supported", supported, methods=["GET"]),
        ]
    )


def _error_response(status: int, reason: str, message: str) -> Response:
    return JSONResponse({"error": reason, "message": message}, status)


def _first_problem(error: ValidationError) -> str:
    problem = error.errors()[0]
    return f"{'.'.join(map(str, problem['loc'])) or 'body'}: {problem['msg']}"


def _to_json(answer: BaseModel) -> dict[str, Any]:
    return answer.model_dump(mode="json", by_alias=True, exclude_none=True)
