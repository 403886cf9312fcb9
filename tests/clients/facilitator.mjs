// A facilitator of the official JavaScript parts, on loopback: what they answer is passed on unchanged.
// Prints "ready <url>" when it serves.
import { createServer } from "node:http";
import { x402Facilitator } from "@x402/core/facilitator";
import { toFacilitatorEvmSigner } from "@x402/evm";
import { ExactEvmScheme } from "@x402/evm/exact/facilitator";
import { createWalletClient, defineChain, http, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";

const { RPC_URL, CHAIN_ID, PRIVATE_KEY, CONFIRMATION_TIMEOUT_MS, SIMULATE_IN_SETTLE } = process.env;
const account = privateKeyToAccount(PRIVATE_KEY);
const chain = defineChain({
  id: Number(CHAIN_ID),
  name: "development chain",
  nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
  rpcUrls: { default: { http: [RPC_URL] } },
});
// a short interval: receipts of the development chain are there at once
const client = createWalletClient({ account, chain, transport: http(RPC_URL), pollingInterval: 50 }).extend(publicActions);
const signer = toFacilitatorEvmSigner(
  { ...client, address: account.address },
  { confirmationTimeoutMs: Number(CONFIRMATION_TIMEOUT_MS) },
);
const facilitator = new x402Facilitator().register(
  `eip155:${CHAIN_ID}`,
  new ExactEvmScheme(signer, { simulateInSettle: SIMULATE_IN_SETTLE === "1" }),
);

const routes = {
  "POST /verify": ({ paymentPayload, paymentRequirements }) => facilitator.verify(paymentPayload, paymentRequirements),
  "POST /settle": ({ paymentPayload, paymentRequirements }) => facilitator.settle(paymentPayload, paymentRequirements),
  "GET /supported": () => facilitator.getSupported(),
};

async function readJson(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return chunks.length ? JSON.parse(Buffer.concat(chunks).toString()) : {};
}

async function answer(request) {
  const route = routes[`${request.method} ${request.url}`];
  if (!route) return [404, { error: "not found" }];
  try {
    return [200, await route(await readJson(request))];
  } catch (error) {
    return [500, { error: error instanceof Error ? error.message : String(error) }];
  }
}

// the SDK leaves a check of the asset behind when it refuses early, and that may fail with nobody awaiting it
process.on("unhandledRejection", (reason) => console.error("unhandled rejection:", reason?.message ?? reason));

const server = createServer(async (request, response) => {
  const [status, content] = await answer(request);
  response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(content));
});
server.listen(0, "127.0.0.1", () => console.log(`ready http://127.0.0.1:${server.address().port}`));
