/** Parse API responses: the data envelope, the error envelope, and the payment receipt. */

import type { Money, PaymentNote, PaymentState, Retry } from "./errors.js";
import { isObject, isShortText, isTextArray, parseHeader, printable, type JsonObject } from "./json.js";
import type { Payment, Receipt } from "./payment.js";
import type { HttpResponse } from "./transport.js";

/** The answer of a service. */
export interface Answer<D = Readonly<Record<string, unknown>>> {
  /** As the API sent it; the type is that of this client's version. */
  readonly data: D;
  /** Request ID in the server's logs. */
  readonly requestId: string;
  /** True if the answer came from the server's cache. */
  readonly cached: boolean;
  /** Status of each provider call. */
  readonly providers: readonly Readonly<Record<string, unknown>>[];
  /** Problems that reduce the quality of the answer. */
  readonly warnings: readonly string[];
  /** Receipt of the payment; null if nothing was paid, or if the API sent none. */
  readonly receipt: Receipt | null;
  /** `moved` if there is a receipt; `unknown` if a payment was sent and no receipt came back. */
  readonly money: Money;
  /** Hash of the transaction; null without a receipt. */
  readonly transaction: string | null;
  /** Observations of this client, such as a missing receipt. */
  readonly notes: readonly string[];
  /** The whole body as JSON text: a signed receipt covers its hash. */
  readonly body: string;
}

/** An error response; `code` is null if the body is not a Centgate error. */
export interface ErrorResponse {
  readonly code: string | null;
  readonly message: string;
  readonly provider: string | null;
  readonly details: JsonObject;
  readonly note: PaymentNote | null;
  readonly requestId: string | null;
  /** x402's reason why the payment was refused. */
  readonly reason: string | null;
}

/** The body is not readable JSON: truncated, or changed in transit. */
export class NotJson extends Error {}

/** The body is JSON but not a Centgate envelope. */
export class UnexpectedShape extends Error {}

const STATES: readonly unknown[] = ["unused", "in_flight", "settled", "delivered", "refused"] satisfies PaymentState[];
const RETRIES: readonly unknown[] = ["same_payment", "new_payment", "none"] satisfies Retry[];

/** Parse a 200 response. Throws NotJson or UnexpectedShape. */
export function parseAnswer(response: HttpResponse, payment: Payment | null): Answer {
  const envelope = parseObject(response);
  const { data, requestId, cache, providers, warnings } = envelope;
  if (!isObject(data) || !isShortText(requestId) || !isTextArray(warnings)) {
    throw new UnexpectedShape("`data`, `requestId` or `warnings` is missing, or of another type");
  }
  if (!isObject(cache) || typeof cache["hit"] !== "boolean" || !isObjectArray(providers)) {
    throw new UnexpectedShape("`cache` or `providers` is missing, or of another type");
  }
  const [receipt, problem] = parseReceipt(response, payment);
  return {
    data,
    requestId,
    cached: cache["hit"],
    providers,
    warnings,
    receipt,
    money: receipt !== null ? "moved" : payment !== null ? "unknown" : "not_moved",
    transaction: receipt?.transaction ?? null,
    notes: problem === null ? [] : [problem],
    body: decodeText(response),
  };
}

/** Parse the receipt in PAYMENT-RESPONSE. Returns the receipt, or null and why there is none. */
export function parseReceipt(
  response: HttpResponse,
  payment: Payment | null,
): readonly [Receipt, null] | readonly [null, string] {
  const header = response.headers.get("payment-response");
  if (payment === null) {
    return [null, "the API answered without requiring a payment"];
  }
  if (header === null) {
    return [null, "the API sent no receipt (PAYMENT-RESPONSE)"];
  }
  const settlement = readSettlement(header);
  if (settlement === null) {
    return [null, "the API's receipt (PAYMENT-RESPONSE) cannot be read"];
  }
  const { success, transaction, network, payer } = settlement;
  if (!success || transaction === "") {
    return [null, "the API's receipt (PAYMENT-RESPONSE) says that the payment was not settled"];
  }
  if (network !== payment.network || (payer ?? payment.payer).toLowerCase() !== payment.payer.toLowerCase()) {
    return [null, "the API's receipt (PAYMENT-RESPONSE) belongs to another payment"];
  }
  const replayed = response.headers.get("idempotent-replayed") === "true";
  return [{ transaction, payer: payment.payer, network, usd: payment.usd, replayed, signer: null, header }, null];
}

interface Settlement {
  readonly success: boolean;
  readonly transaction: string;
  readonly network: string;
  readonly payer: string | null;
}

function readSettlement(header: string): Settlement | null {
  let content: unknown;
  try {
    content = parseHeader(header);
  } catch {
    return null;
  }
  if (!isObject(content)) {
    return null;
  }
  const { success, transaction = "", network = "", payer = null } = content;
  return typeof success === "boolean" && isShortText(transaction) && isShortText(network) && isTextOrNull(payer)
    ? { success, transaction, network, payer }
    : null;
}

/** Parse an error response; an unreadable body gives one without a code. */
export function parseError(response: HttpResponse): ErrorResponse {
  const envelope = tryParseObject(response);
  const error = envelope?.["error"];
  const requestId = envelope?.["requestId"] ?? null;
  if (!isObject(error) || !(requestId === null || isShortText(requestId))) {
    return unreadableError(response);
  }
  const { code, message, provider = null, details = {} } = error;
  if (!isShortText(code) || typeof message !== "string" || !isObject(details)) {
    return unreadableError(response);
  }
  if (!(provider === null || isShortText(provider))) {
    return unreadableError(response);
  }
  const reason = typeof details["reason"] === "string" ? details["reason"] : null;
  const text = printable(message.slice(0, 500));
  return { code, message: text, provider, details, note: parseNote(details["payment"]), requestId, reason };
}

function unreadableError(response: HttpResponse): ErrorResponse {
  const message = `HTTP ${response.status}`;
  return { code: null, message, provider: null, details: {}, note: null, requestId: null, reason: null };
}

function parseNote(note: unknown): PaymentNote | null {
  if (!isObject(note)) {
    return null;
  }
  const { state, charged, retry, transaction = null } = note;
  const isValid = STATES.includes(state) && typeof charged === "boolean" && RETRIES.includes(retry);
  return isValid && (transaction === null || isShortText(transaction))
    ? { state: state as PaymentState, charged, retry: retry as Retry, transaction }
    : null;
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || typeof value === "string";
}

function isObjectArray(value: unknown): value is JsonObject[] {
  return Array.isArray(value) && value.every(isObject);
}

function parseObject(response: HttpResponse): JsonObject {
  let content: unknown;
  try {
    content = parseBody(response);
  } catch {
    throw new NotJson("it is not JSON");
  }
  if (!isObject(content)) {
    throw new UnexpectedShape("it is not a JSON object");
  }
  return content;
}

function tryParseObject(response: HttpResponse): JsonObject | null {
  try {
    return parseObject(response);
  } catch {
    return null;
  }
}

/** Parse the JSON of a body. Throws TypeError for invalid UTF-8, SyntaxError for invalid JSON. */
export function parseBody(response: HttpResponse): unknown {
  return JSON.parse(decodeText(response));
}

function decodeText(response: HttpResponse): string {
  return new TextDecoder("utf-8", { fatal: true }).decode(response.body);
}
