/** Buys from an API that accepts two networks, given by `ASSETS` and `PAYEES`, and prints the networks paid on. */

import { Centgate, Ledger, type Asset, type ClientOptions } from "centgate";
import { privateKeyToAccount } from "viem/accounts";

const { API_URL = "", WALLET_KEY = "", ASSETS = "{}", PAYEES = "{}" } = process.env;
const assets = JSON.parse(ASSETS) as Record<string, Asset>;
const payees = JSON.parse(PAYEES) as Record<string, string>;
const wallet = privateKeyToAccount(WALLET_KEY as `0x${string}`);
const second = Object.keys(assets)[1] ?? "";
const ledger = new Ledger();

async function buy(url: string, options: ClientOptions): Promise<string | undefined> {
  const client = new Centgate(API_URL, { wallet, assets, ...options });
  return (await client.phishingCheck({ url })).receipt?.network;
}

const first = await buy("https://one.example", { ledger });
const preferred = await buy("https://two.example", { preferredNetwork: second });
const pinned = await buy("https://three.example", { ledger, payee: { [second]: payees[second] ?? "" } });
const firstOnly = new Ledger({ records: ledger.records.slice(0, 1) });
const only = { [second]: assets[second] as Asset };
const refused = await buy("https://four.example", { ledger: firstOnly, assets: only, networks: [] }).catch(String);
const { spent } = new Centgate(API_URL, { ledger });
console.log(JSON.stringify({ first, preferred, pinned, refused, spent }));
