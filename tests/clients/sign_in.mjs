// Reads and redeems a wallet's payments with the official JavaScript packages, and prints them as JSON.
import { createSIWxClientExtension } from "@x402/extensions/sign-in-with-x";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { privateKeyToAccount } from "viem/accounts";

const { CENTGATE_URL, PRIVATE_KEY, TRANSACTION, BODY } = process.env;
const wallet = privateKeyToAccount(PRIVATE_KEY);
const client = new x402Client().registerExtension(createSIWxClientExtension({ signers: [wallet] }));
client.register("eip155:*", new ExactEvmScheme(wallet));
const send = wrapFetchWithPayment(fetch, client);

const listed = await send(`${CENTGATE_URL}/payments?limit=5`);
const shown = await send(`${CENTGATE_URL}/payments/${TRANSACTION}`);
const redeemed = await send(`${CENTGATE_URL}/payments/${TRANSACTION}`, {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: BODY,
});
const statuses = [listed.status, shown.status, redeemed.status];
const [list, payments, answer] = await Promise.all([listed.json(), shown.json(), redeemed.json()]);
console.log(JSON.stringify({ statuses, list, payments, answer }));
