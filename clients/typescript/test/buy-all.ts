/** Buys an answer of every service, or of `SLUG`, with its own example, and prints them as JSON; then calls one with `{}`. */

import { Centgate, type Answer } from "centgate";
import { privateKeyToAccount } from "viem/accounts";

const { API_URL = "", WALLET_KEY = "", SLUG } = process.env;
const client = new Centgate(API_URL, { wallet: privateKeyToAccount(WALLET_KEY as `0x${string}`) });
const methods = client as unknown as Record<string, (request: unknown) => Promise<Answer>>;
const answers: Record<string, unknown> = {};
for (const { slug, inputExample } of await client.services()) {
  if (SLUG !== undefined && SLUG !== slug) {
    continue;
  }
  const method = slug.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
  const { data, money, receipt, notes } = (await methods[method]?.call(client, inputExample)) ?? {};
  answers[slug] = { data, money, signer: receipt?.signer, notes };
}
const spent = client.spent;
const refused = await client.call(SLUG ?? "phishing-check", {}).then(
  () => null,
  (error: unknown) => String(error),
);
console.log(JSON.stringify({ answers, spent, refused, spentAfterwards: client.spent }));
