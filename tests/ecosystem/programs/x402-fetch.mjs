import assert from "node:assert/strict";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client, x402HTTPClient } from "@x402/fetch";
import { privateKeyToAccount } from "viem/accounts";
import { QUESTION, TOOL } from "./purchase.mjs";

const [api, key] = process.argv.slice(2);
const client = new x402Client();
client.register("eip155:*", new ExactEvmScheme(privateKeyToAccount(key)));
const response = await wrapFetchWithPayment(fetch, client)(`${api}/services/${TOOL}`, {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(QUESTION),
});
const receipt = new x402HTTPClient(client).getPaymentSettleResponse((name) => response.headers.get(name));
assert.equal((await response.json()).data.status, "blocked");
assert.equal(receipt.success, true);
console.log("1 answer");
