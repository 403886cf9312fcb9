// Pays one call with the official JavaScript client, as its users would, and prints verdict and receipt as JSON.
import { wrapFetchWithPayment, x402Client, x402HTTPClient } from "@x402/fetch";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { privateKeyToAccount } from "viem/accounts";

const { CENTGATE_URL, PRIVATE_KEY } = process.env;
const client = new x402Client();
client.register("eip155:*", new ExactEvmScheme(privateKeyToAccount(PRIVATE_KEY)));

const pay = wrapFetchWithPayment(fetch, client);
const response = await pay(`${CENTGATE_URL}/services/phishing-check`, {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify({ url: "myetherwallet.cx" }),
});
const receipt = new x402HTTPClient(client).getPaymentSettleResponse((name) => response.headers.get(name));
console.log(JSON.stringify({ status: response.status, answer: await response.json(), receipt }));
