import asyncio

from eth_account import Account
from purchase import API, KEY, QUESTION, TOOL
from x402 import x402Client
from x402.http.clients.httpx import x402HttpxClient
from x402.mechanisms.evm.exact import ExactEvmClientScheme
from x402.mechanisms.evm.signers import EthAccountSigner


async def buy() -> None:
    client = x402Client()
    client.register("eip155:*", ExactEvmClientScheme(EthAccountSigner(Account.from_key(KEY))))
    async with x402HttpxClient(client, base_url=API, timeout=30) as http:
        response = await http.post(f"/services/{TOOL}", json=QUESTION)
    assert response.json()["data"]["status"] == "blocked"
    print("1 answer")


asyncio.run(buy())
