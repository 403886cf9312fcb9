/** Signed receipts: who signed, and what is noted of one that proves nothing. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { FetchFunction } from "centgate";
import { hashTypedData, sha256 } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { open, plan, SLUG } from "./hostile.js";

const SIGNER = privateKeyToAccount(`0x${"5e".repeat(32)}`);
const OTHER = privateKeyToAccount(`0x${"07".repeat(32)}`);
const RECEIPT_FIELDS = [
  { name: "version", type: "uint256" },
  { name: "network", type: "string" },
  { name: "resourceUrl", type: "string" },
  { name: "payer", type: "string" },
  { name: "issuedAt", type: "uint256" },
  { name: "transaction", type: "string" },
] as const;
const ANSWER_FIELDS = [
  { name: "receipt", type: "bytes32" },
  { name: "bodySha256", type: "bytes32" },
] as const;

/** What is wrong with a signed receipt. */
interface Flaws {
  payload?: Record<string, unknown>;
  body?: string;
  answerSigner?: typeof SIGNER;
  signature?: string;
  unsigned?: Record<string, unknown>;
}

/** A `fetch` that adds signatures to the receipts of the hostile API, as a Centgate server makes them. */
function signingFetch(flaws: Flaws): FetchFunction {
  return async (url, init) => {
    const response = await fetch(url, init);
    const header = response.headers.get("payment-response");
    if (header === null) {
      return response;
    }
    const body = await response.text();
    const settlement = JSON.parse(atob(header)) as Record<string, string>;
    const payload = {
      version: 1,
      network: settlement["network"],
      resourceUrl: url,
      payer: settlement["payer"],
      issuedAt: 1_790_000_000,
      transaction: settlement["transaction"],
      ...flaws.payload,
    };
    const receipt = {
      domain: { name: "x402 receipt", version: "1", chainId: 1 },
      types: { Receipt: RECEIPT_FIELDS },
      primaryType: "Receipt",
      message: payload,
    } as never;
    const statement = { receipt: hashTypedData(receipt), bodySha256: sha256(new TextEncoder().encode(flaws.body ?? body)) };
    const signature = flaws.signature ?? (await SIGNER.signTypedData(receipt));
    const answerSignature = await (flaws.answerSigner ?? SIGNER).signTypedData({
      domain: { name: "Centgate answer", version: "1", chainId: 1 },
      types: { Answer: ANSWER_FIELDS },
      primaryType: "Answer",
      message: statement,
    });
    const extensions = {
      "offer-receipt": { info: { receipt: { format: "eip712", payload, signature } } },
      "centgate-answer": { info: { answer: { format: "eip712", payload: statement, signature: answerSignature } } },
    };
    const signed = btoa(JSON.stringify({ ...settlement, extensions, ...flaws.unsigned }));
    return new Response(body, { headers: { "PAYMENT-RESPONSE": signed } });
  };
}

test("a field outside the signed type makes a receipt worthless", async () => {
  await plan();

  const answer = await open({ fetch: signingFetch({ payload: { extra: "gift" } }) }).call(SLUG, {});

  assert.match(answer.notes.join(), /not part of the signed type/);
});

test("an answer says who signed its receipt", async () => {
  await plan();

  const { receipt, notes } = await open({ fetch: signingFetch({}) }).call(SLUG, {});

  assert.deepEqual([receipt?.signer, notes], [SIGNER.address, []]);
});

test("a signed receipt that does not match proves nothing, and the answer is kept", async () => {
  const cases: [Flaws, RegExp][] = [
    [{ body: "{}" }, /the body is not the one/],
    [{ payload: { resourceUrl: "https://a.example/other" } }, /another service/],
    [{ payload: { transaction: `0x${"9".repeat(64)}` } }, /different transaction/],
    [{ payload: { version: 2 } }, /only version 1/],
    [{ answerSigner: OTHER }, /different key/],
    [{ signature: "0x12" }, /is invalid/],
    [{ unsigned: { extensions: { "offer-receipt": 1 } } }, /no statement of the type Receipt/],
  ];
  for (const [flaws, problem] of cases) {
    await plan();
    const fetch = signingFetch(flaws);
    const answer = await open({ fetch }).call(SLUG, {});

    assert.equal(answer.receipt?.signer, null);
    assert.match(answer.notes.join(), problem);
    assert.equal(answer.money, "moved");
  }
});
