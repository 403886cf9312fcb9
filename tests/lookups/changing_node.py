"""Node of a development chain that changes what calls return, as a broken node or gateway does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import httpx
from eth_abi.abi import decode, encode
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from tampering_proxy import rpc_error

from centgate.crypto.abi import function_selector
from centgate.devchain.chain import EvmChain
from centgate.devchain.rpc import create_rpc_app
from centgate.providers.jsonrpc.contract_calls import ContractCall
from centgate.providers.jsonrpc.multicall import MULTICALL, SELECTOR

Change = Callable[[ContractCall, bytes | None], bytes | None]
"""Returns the changed answer to a call for the true one; None for a call that failed."""
CALLS, RESULTS = "(address,bool,bytes)[]", "(bool,bytes)[]"


class ChangingNode:
    """The web application of a chain; each call is changed by itself, also within Multicall3's bundles."""

    def __init__(self, chain: EvmChain) -> None:
        self.change: Change = lambda _call, answer: answer
        self.failure: tuple[int, str] = (-32000, "out of gas")
        """Code and message of a failed call outside of a bundle."""
        self._chain = httpx.AsyncClient(
            transport=httpx.ASGITransport(create_rpc_app(chain)), base_url="http://chain.example"
        )
        self.app = Starlette(routes=[Route("/", self._answer, methods=["POST"])])

    def lose_answers(self, is_lost: Callable[[ContractCall, bytes | None], bool]) -> None:
        """Let calls fail, chosen by the call and its true answer."""
        self.change = lambda call, answer: None if is_lost(call, answer) else answer

    async def _answer(self, request: Request) -> JSONResponse:
        message = await request.json()
        reply = (await self._chain.post("/", json=message)).json()
        if not isinstance(message, list):
            return JSONResponse(self._change_reply(message, reply))
        batch = zip(cast(list[Any], message), reply, strict=True)
        return JSONResponse([self._change_reply(*each) for each in batch])

    def _change_reply(self, request: dict[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
        if request["method"] != "eth_call" or "to" not in request["params"][0]:
            return reply
        sent = request["params"][0]
        call = ContractCall(sent["to"].lower(), bytes.fromhex(sent["data"][2:]))
        returned = bytes.fromhex(reply["result"][2:]) if "result" in reply else None
        if call.to == MULTICALL and call.data[:4] == SELECTOR and returned:
            changed = self._change_bundle(call.data[4:], returned)
        else:
            changed = self.change(call, returned)
        if changed == returned:
            return reply
        answer = rpc_error(*self.failure) if changed is None else {"result": "0x" + changed.hex()}
        return {"jsonrpc": "2.0", **answer, "id": reply["id"]}

    def _change_bundle(self, arguments: bytes, returned: bytes) -> bytes:
        (calls,), (results,) = decode([CALLS], arguments), decode([RESULTS], returned)
        changed = [
            self.change(ContractCall(to, data), answer if succeeded else None)
            for (to, _, data), (succeeded, answer) in zip(calls, results, strict=True)
        ]
        return encode([RESULTS], [[(answer is not None, answer or b"") for answer in changed]])


def is_call_of(call: ContractCall, *signatures: str) -> bool:
    """True if a call is of one of these functions."""
    return call.data[:4] in map(function_selector, signatures)
