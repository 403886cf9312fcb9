/** Payments that are redeemed: which one of several in a transaction is recorded. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Centgate, type FetchFunction, InvalidInput, Ledger } from "centgate";
import { fail, open, plan, reply, SLUG } from "./hostile.js";

const TRANSACTION = `0x${"bb".repeat(32)}`;
const UNANSWERED = reply({ takes: true, fault: "no_response" });
const ANSWER = { service: SLUG, requestId: "req_3", cache: { hit: false }, providers: [], warnings: [], data: {} };

/** Return a payment as the API shows it, whose answer is owed. */
function shownPayment(nonce: string): Record<string, unknown> {
  return {
    transaction: TRANSACTION,
    network: "eip155:84532",
    asset: "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
    nonce,
    amount: "10000",
    payTo: "0x1111111111111111111111111111111111111111",
    service: SLUG,
    state: "settled",
    charged: true,
    retry: "same_payment",
    next: "redeem",
    createdAt: "2026-11-24T10:00:00Z",
    answer: null,
  };
}

/** A `fetch` that shows these payments, whatever is asked for, and answers what is redeemed. */
function redeemingFetch(nonces: readonly string[], paths: string[]): FetchFunction {
  return async (url, init) => {
    const { pathname } = new URL(url);
    if (!pathname.startsWith("/payments/")) {
      return fetch(url, init);
    }
    paths.push(`${init?.method ?? "GET"} ${pathname}`);
    return Response.json(init?.method === "POST" ? ANSWER : { payments: nonces.map(shownPayment) });
  };
}

/** Pay for two requests that get no answer; return their nonces. */
async function leaveTwoOwed(client: Centgate): Promise<readonly string[]> {
  await plan({ paid: Array.from({ length: 8 }, () => UNANSWERED) });
  await fail(client, { n: 1 });
  await fail(client, { n: 2 });
  return client.ledger.records.filter((each) => each.event === "signed").map((each) => each.payment.nonce);
}

test("of several payments the one for the body is redeemed", async () => {
  const ledger = new Ledger();
  const nonces = await leaveTwoOwed(open({ ledger }));
  const paths: string[] = [];

  await open({ ledger, fetch: redeemingFetch(nonces, paths) }).redeem(TRANSACTION, { n: 2 });

  const delivered = ledger.records.filter((each) => each.event === "delivered").map((each) => each.payment.nonce);
  assert.deepEqual(delivered, [nonces[1]]);
  assert.deepEqual(paths, [`GET /payments/${TRANSACTION}`, `POST /payments/${nonces[1]}`]);
});

test("of several unknown payments none is redeemed", async () => {
  const nonces = await leaveTwoOwed(open());
  const client = open({ fetch: redeemingFetch(nonces, []) });

  const redeeming = client.redeem(TRANSACTION, { n: 2 });

  await assert.rejects(redeeming, (error) => error instanceof InvalidInput && /by its nonce/.test(error.message));
});
