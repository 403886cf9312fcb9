// Reference server: the official x402 middleware for Express around an empty handler.
//
//     node server.mjs upfront|authorization FACILITATOR_URL
//
// Listens on a free loopback port and prints `ready http://...` once it is ready.

import express from "express";
import { paymentMiddleware, x402ResourceServer } from "@x402/express";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { HTTPFacilitatorClient } from "@x402/core/server";

const [flow, facilitator] = process.argv.slice(2);
const network = "eip155:84532";
const server = new x402ResourceServer(new HTTPFacilitatorClient({ url: facilitator })).register(
  network,
  new ExactEvmScheme(),
);
const accepts = {
  scheme: "exact",
  price: "$0.01",
  network,
  payTo: "0x" + "22".repeat(20),
  maxTimeoutSeconds: 120,
  ...(flow === "authorization" ? {} : { extra: { paymentFlow: flow } }),
};
const path = "/services/phishing-check";

const app = express();
app.use(express.json());
app.use(paymentMiddleware({ [`POST ${path}`]: { accepts, mimeType: "application/json" } }, server));
app.post(path, (request, response) => {
  response.json({ data: { domain: request.body.url, status: "unknown" } });
});

const listener = app.listen(0, "127.0.0.1", () => {
  console.log(`ready http://127.0.0.1:${listener.address().port}`);
});
