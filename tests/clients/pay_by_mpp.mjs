// Pays calls with mppx, the reference client of MPP, and prints the answers and receipts as JSON.
// The 402 offers x402 too: mppx takes MPP by default, and x402 if PROTOCOL is x402.
import { Receipt } from "mppx";
import { evm, Mppx } from "mppx/client";
import { privateKeyToAccount } from "viem/accounts";

const { CENTGATE_URL, PRIVATE_KEY, TOKEN, CHAIN_ID, PROTOCOL } = process.env;
const charge = evm.charge({
  account: privateKeyToAccount(PRIVATE_KEY),
  authorization: { name: "USDC", version: "2" },
  currencies: [TOKEN],
  decimals: 6,
  maxAmount: "0.01",
  networks: [Number(CHAIN_ID)],
});
const isX402 = ({ challenge }) => challenge.id.startsWith("x402:");
const { fetch } = Mppx.create({
  methods: [charge],
  orderChallenges: (candidates) => candidates.filter((each) => isX402(each) === (PROTOCOL === "x402")),
  polyfill: false,
});

const response = await fetch(`${CENTGATE_URL}/services/phishing-check`, {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify({ url: "myetherwallet.cx" }),
});
const receipt = response.headers.has("Payment-Receipt") ? Receipt.fromResponse(response) : null;
const settlement = response.headers.get("PAYMENT-RESPONSE");
console.log(JSON.stringify({ status: response.status, answer: await response.json(), receipt, settlement }));
