/** Buys an answer, forgets it, and finds it again by a sign-in; prints what it found as JSON. */

import { Centgate, Drift, Ledger, NotFound } from "centgate";
import { privateKeyToAccount } from "viem/accounts";

const { API_URL = "", WALLET_KEY = "" } = process.env;
const wallet = privateKeyToAccount(WALLET_KEY as `0x${string}`);
const request = { url: "https://wallet-ethereum.net/unlock" };
const buyer = new Centgate(API_URL, { wallet });
const bought = await buyer.call("phishing-check", request);

const client = new Centgate(API_URL, { wallet });
const { payments, cursor } = await client.payments({ limit: 5 });
const transaction = payments[0]?.transaction ?? "";
const shown = await client.payment(transaction);
const redeemed = await client.redeem(transaction, request);
const records = buyer.ledger.records.map((each) => ({ ...each, payment: { ...each.payment, api: "https://x.example" } }));
const elsewhere = new Centgate(API_URL, { wallet, ledger: new Ledger({ records }) });
const isRefused = await elsewhere.redeem(transaction, request).catch((error: unknown) => error instanceof Drift);
const unknown = await client.payment(`0x${"12".repeat(32)}`).catch((error: unknown) => error instanceof NotFound);
console.log(
  JSON.stringify({
    next: payments.map((each) => each.next),
    cursor,
    isSame: JSON.stringify(shown[0]?.answer?.body["data"]) === JSON.stringify(bought.data),
    isRedeemed: JSON.stringify(redeemed.data) === JSON.stringify(bought.data),
    receipt: redeemed.receipt?.transaction === transaction,
    usd: redeemed.receipt?.usd,
    recorded: client.ledger.records.map((each) => each.event),
    isRefused,
    unknown,
  }),
);
