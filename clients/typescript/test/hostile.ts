/** The hostile API of the Python client's tests, whose replies are planned over HTTP. */

import assert from "node:assert/strict";
import fc from "fast-check";
import { Centgate, type Answer, BuyerError, type ClientOptions } from "centgate";
import { privateKeyToAccount } from "viem/accounts";

/** A reply in plain words; the API makes it true or false to what it accepted. */
export interface ReplyPlan {
  status: number;
  /** True if the payment in the request is accepted. */
  takes: boolean;
  fault: string;
  body: string;
  /** Bytes in hex. */
  junk: string;
  code: string;
  reason: unknown;
  /** Which of three states of the payment is reported. */
  note: number;
  retry: string;
  receipt: string;
  terms: string;
  headers: Record<string, string>;
  /** Changes of the terms. */
  offer?: Record<string, unknown>;
  /** Seconds before the reply. */
  delay?: number;
}

interface Vocabulary {
  readonly slug: string;
  readonly status: readonly number[];
  readonly reason: readonly unknown[];
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly fault: readonly string[];
  readonly body: readonly string[];
  readonly code: readonly string[];
  readonly retry: readonly string[];
  readonly receipt: readonly string[];
  readonly terms: readonly string[];
}

/** What the API received since the last plan. */
export interface ReceivedRequests {
  readonly payments: readonly string[];
  readonly bodies: readonly string[];
  /** Nonces of the accepted payments. */
  readonly accepted: readonly string[];
}

const BASE: ReplyPlan = {
  status: 200,
  takes: false,
  fault: "none",
  body: "error",
  junk: "",
  code: "internal_error",
  reason: null,
  note: 0,
  retry: "none",
  receipt: "none",
  terms: "none",
  headers: {},
};

/** Timeouts of the Python client's tests, in milliseconds. */
export const SHORT_TIMEOUTS = { deadline: 20_000, attempts: 4, answer: 10_000, pause: 10, longestPause: 50 };
export const WALLET = privateKeyToAccount(requireVariable("WALLET_KEY"));
const PLANS = requireVariable("PLAN_URL");
const { api: API, vocabulary: VOCABULARY } = (await describe()) as { api: string; vocabulary: Vocabulary };
/** The one service of the API. */
export const SLUG = VOCABULARY.slug;

function requireVariable(name: string): `0x${string}` {
  const value = process.env[name];
  assert.ok(value, `${name} is not set: pytest runs these tests`);
  return value as `0x${string}`;
}

async function describe(): Promise<unknown> {
  return (await fetch(PLANS)).json();
}

/** Build a reply from what differs from an error 200 without any header. */
export function reply(changes: Partial<ReplyPlan>): ReplyPlan {
  return { ...BASE, ...changes };
}

/** A 402 whose terms differ from the usual ones. */
export function offer(changes: Record<string, unknown>): ReplyPlan {
  return reply({ status: 402, code: "payment_required", terms: "good", offer: changes });
}

/** Set the next replies; after them the API answers as it should. */
export async function plan(
  plans: {
    unpaid?: ReplyPlan[];
    paid?: ReplyPlan[];
    /** Changes of the catalogue's entry. */
    service?: Record<string, unknown>;
    lies?: boolean;
    continues?: boolean;
  } = {},
): Promise<void> {
  const body = JSON.stringify({ unpaid: [], paid: [], ...plans });
  assert.equal((await fetch(PLANS, { method: "POST", body })).status, 200);
}

/** Return what the API received since the last plan that did not continue another. */
export async function received(): Promise<ReceivedRequests> {
  return ((await describe()) as { received: ReceivedRequests }).received;
}

/** Open a client of the hostile API. */
export function open(options: ClientOptions = {}): Centgate {
  return new Centgate(API, { wallet: WALLET, patience: SHORT_TIMEOUTS, ...options });
}

/** Buy an answer; return the error instead of throwing it. */
export async function buy(client: Centgate, body: object = {}): Promise<Answer | BuyerError> {
  try {
    return await client.call(SLUG, body);
  } catch (error) {
    assert.ok(error instanceof BuyerError, String(error));
    return error;
  }
}

/** Buy an answer that fails, and return the error. */
export async function fail(client: Centgate, ...rest: [body?: object, options?: object]): Promise<BuyerError> {
  const [body = {}, options = {}] = rest;
  const error: unknown = await client.call(SLUG, body, options).then(
    () => null,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof BuyerError, String(error));
  return error;
}

/** Draw replies. */
export function replies(): fc.Arbitrary<ReplyPlan> {
  const { status, fault, body, code, reason, retry, receipt, terms, headers } = VOCABULARY;
  const words = Object.entries(headers).map(([name, values]) => [name, fc.constantFrom(...values)] as const);
  return fc.record({
    status: fc.constantFrom(...status),
    takes: fc.boolean(),
    fault: fc.constantFrom(...fault),
    body: fc.constantFrom(...body),
    junk: fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes).toString("hex")),
    code: fc.constantFrom(...code),
    reason: fc.constantFrom(...reason),
    note: fc.integer({ min: 0, max: 2 }),
    retry: fc.constantFrom(...retry),
    receipt: fc.constantFrom(...receipt),
    terms: fc.constantFrom(...terms),
    headers: fc.record(Object.fromEntries(words), { requiredKeys: [] }) as fc.Arbitrary<Record<string, string>>,
  });
}
