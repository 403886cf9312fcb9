/** Sets `buy` in a page: buys an answer, as a program in a browser does. */

import { Centgate } from "centgate";
import { privateKeyToAccount } from "viem/accounts";

async function buy(api: string, key: `0x${string}`, url: string): Promise<unknown> {
  const client = new Centgate(api, { wallet: privateKeyToAccount(key) });
  const { data, money, transaction } = await client.phishingCheck({ url });
  return { status: data.status, money, transaction };
}

Object.assign(globalThis, { buy });
