/** Classify the response to a paid request: the answer, the payment's state, and whether to retry. */

import {
  BuyerError,
  Drift,
  InsufficientBalance,
  NoData,
  PaymentRefused,
  ServiceFailed,
  Unavailable,
  Unresolved,
  type ErrorFacts,
  type Money,
  type PaymentNote,
} from "./errors.js";
import type { LedgerEvent } from "./ledger.js";
import type { Payment } from "./payment.js";
import {
  NotJson,
  UnexpectedShape,
  parseAnswer,
  parseError,
  parseReceipt,
  type Answer,
  type ErrorResponse,
} from "./responses.js";
import type { HttpResponse, TransportError } from "./transport.js";

/** x402's reason for a payment whose validity window has ended. */
export const EXPIRED_REASON = "invalid_exact_evm_payload_authorization_valid_before";
/** x402's reason for a payer that the API refuses by policy. */
const PAYER_REFUSED_REASON = "invalid_exact_evm_payload_authorization_from_address_kyt";
/** Reasons for which an API looks the payment up before it reports that it is unused. */
const CHECKED_REASONS = new Set([EXPIRED_REASON, PAYER_REFUSED_REASON]);
const LOW_BALANCE_REASONS = new Set(["insufficient_funds", "invalid_exact_evm_insufficient_balance"]);
/** HTTP statuses after which the same request may succeed. */
export const TRANSIENT_STATUSES: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504]);

/** A classified response. */
export interface PaymentOutcome {
  readonly result: Answer | BuyerError;
  /** Only after `unresolved` the payment is sent again. */
  readonly ledgerEvent: Exclude<LedgerEvent, "signed">;
  /** True if the same payment should be sent again now. */
  readonly shouldRetry: boolean;
  /** Milliseconds to wait before that, from Retry-After. */
  readonly retryDelay: number;
  /** True if the API may have accepted the payment. */
  readonly maybeAccepted: boolean;
}

/** An error response with the payment's state. */
type NotedError = ErrorResponse & { readonly note: PaymentNote };

/**
 * Classify the response to a payment.
 *
 * `isDoubtful` means that the payment was sent before and may have been accepted then. Without
 * `details.payment` the payment's state is unknown: nothing is assumed that the API does not report.
 */
export function classifyOutcome(response: HttpResponse, payment: Payment, isDoubtful: boolean): PaymentOutcome {
  const { status } = response;
  if (status === 200) {
    return classifyAnswer(response, payment);
  }
  if (status >= 300 && status < 400) {
    return leaveOpen(payment, "the API redirected, and payments do not follow redirects", response);
  }
  const failure = parseError(response);
  if (status === 404 && failure.code === "no_data" && failure.note?.charged !== false) {
    return classifyNoData(response, failure, payment);
  }
  if (hasNote(failure)) {
    return classifyError(response, failure, payment, isDoubtful);
  }
  const problem =
    `the API returned ${status}` +
    (failure.code === null ? " without the payment's state" : ` ${failure.code}: ${failure.message}`);
  return TRANSIENT_STATUSES.has(status)
    ? retry(payment, problem, response, failure)
    : leaveOpen(payment, problem, response, failure);
}

/** Classify a payment that was sent without receiving a complete response. */
export function classifyFailure(error: TransportError, payment: Payment): PaymentOutcome {
  const open = leaveOpen(payment, `the API ${error.message}`);
  return { ...open, shouldRetry: error.reason !== "too_large" };
}

function hasNote(failure: ErrorResponse): failure is NotedError {
  return failure.note !== null;
}

function classifyAnswer(response: HttpResponse, payment: Payment): PaymentOutcome {
  try {
    return conclude("delivered", parseAnswer(response, payment));
  } catch (error) {
    if (error instanceof NotJson) {
      return retry(payment, `the API's answer cannot be read: ${error.message}`, response);
    }
    if (!(error instanceof UnexpectedShape)) {
      throw error;
    }
    const message =
      `the API's answer does not match this client's protocol version: ${error.message}. The payment stays ` +
      "open: the same call sends it again";
    return conclude("unresolved", new Drift(message, receiptFacts(response, payment)));
  }
}

function classifyNoData(response: HttpResponse, failure: ErrorResponse, payment: Payment): PaymentOutcome {
  const [receipt] = parseReceipt(response, payment);
  const isCharged = receipt !== null || failure.note?.charged === true;
  const state = isCharged ? "it was charged" : `it is unknown whether the $${payment.usd} moved`;
  const message =
    `the API has no data: ${failure.message}. This is a final answer, and ${state}: do not repeat the call`;
  const money: Money = isCharged ? "moved" : "unknown";
  return conclude("delivered", new NoData(message, receipt, { ...factsOf(failure), money }));
}

/** Classify an error that reports the payment's state. */
function classifyError(
  response: HttpResponse,
  failure: NotedError,
  payment: Payment,
  isDoubtful: boolean,
): PaymentOutcome {
  const { note } = failure;
  const isUnused = !note.charged && (note.state === "refused" || isCertainlyUnused(failure, isDoubtful));
  if (note.retry === "same_payment") {
    return classifyRetryable(response, failure, payment, isUnused);
  }
  if (note.charged) {
    const message =
      `the API reports that the payment is already used: ${failure.message}. It buys nothing more; ` +
      "the next call signs another payment";
    const facts: ErrorFacts = { ...factsOf(failure), money: "moved" };
    return conclude("unanswered", new PaymentRefused(message, failure.reason, facts));
  }
  if (!isUnused) {
    const problem = `the API refused a payment that it may have accepted: ${failure.message}`;
    return leaveOpen(payment, problem, response, failure);
  }
  if (failure.code === "provider_unconfigured") {
    const message =
      `the API does not serve it, and reports that nothing was charged: ${failure.message}. Another ` +
      "deployment may serve it";
    // not final: if the provider is configured in time, the same payment buys the answer
    const error = new Unavailable(message, { ...factsOf(failure), money: "reported_not_moved" });
    return { ...conclude("unresolved", error), maybeAccepted: false };
  }
  return { ...conclude("refused", buildRefusal(failure, payment)), maybeAccepted: false };
}

/**
 * True if the reported state `unused` is reliable.
 *
 * For a payment that does not match its terms, an API reports `unused` without checking whether it accepted
 * the payment earlier, under other terms. For an expired payment, for a payer that it refuses, and for a
 * service that it cannot serve, it checks first.
 */
function isCertainlyUnused(failure: NotedError, isDoubtful: boolean): boolean {
  const isChecked = CHECKED_REASONS.has(failure.reason ?? "") || failure.code === "provider_unconfigured";
  return failure.note.state === "unused" && (!isDoubtful || isChecked);
}

/** Classify an error after which the payment stays valid: settled but undelivered, or undecided. */
function classifyRetryable(
  response: HttpResponse,
  failure: NotedError,
  payment: Payment,
  isUnused: boolean,
): PaymentOutcome {
  const { charged } = failure.note;
  if (!charged && !isUnused) {
    return retry(payment, `the API reports: ${failure.message} (${failure.code})`, response, failure);
  }
  const nextStep = charged
    ? "It is already paid: repeat the same call within a day; it sends the same payment for free"
    : "The API reports that no money moved; the same call sends the same payment again";
  const message = `the API reports: ${failure.message} (${failure.code}). ${nextStep}`;
  const money: Money = charged ? "moved" : "reported_not_moved";
  const error = new ServiceFailed(message, failure.provider, { ...factsOf(failure), money });
  return {
    ...conclude("unresolved", error),
    shouldRetry: true,
    retryDelay: parseRetryAfter(response),
    maybeAccepted: charged || !isUnused,
  };
}

function buildRefusal(failure: NotedError, payment: Payment): PaymentRefused {
  const facts: ErrorFacts = { ...factsOf(failure), money: "reported_not_moved" };
  if (LOW_BALANCE_REASONS.has(failure.reason ?? "")) {
    const message =
      `the API reports that the wallet ${payment.payer} holds less than $${payment.usd} in USDC on ` +
      `${payment.network}, and that no money moved: send USDC to it and call again`;
    return new InsufficientBalance(message, failure.reason, facts);
  }
  const advice = failure.reason === EXPIRED_REASON ? ". Check this machine's clock, and call again" : "";
  const message = `the API refused the payment, and reports that no money moved: ${failure.message}${advice}`;
  return new PaymentRefused(message, failure.reason, facts);
}

function conclude(ledgerEvent: PaymentOutcome["ledgerEvent"], result: Answer | BuyerError): PaymentOutcome {
  return { result, ledgerEvent, shouldRetry: false, retryDelay: 0, maybeAccepted: true };
}

function retry(payment: Payment, why: string, response: HttpResponse, failure?: ErrorResponse): PaymentOutcome {
  const open = leaveOpen(payment, why, response, failure);
  return { ...open, shouldRetry: true, retryDelay: parseRetryAfter(response) };
}

function leaveOpen(
  payment: Payment,
  why: string,
  response?: HttpResponse,
  failure?: ErrorResponse,
): PaymentOutcome {
  const receipt = response === undefined ? {} : receiptFacts(response, payment);
  const state =
    receipt.money === "moved"
      ? "the payment moved but its answer was not received"
      : `it is unknown whether the payment of $${payment.usd} moved`;
  const message =
    `${state}: ${why}. Make the same call again within a day: it sends the same payment, never a second one`;
  const facts = { ...(failure === undefined ? {} : factsOf(failure)), ...receipt };
  return conclude("unresolved", new Unresolved(message, payment, facts));
}

/** Return what the receipt alone says about the payment. */
function receiptFacts(response: HttpResponse, payment: Payment): ErrorFacts {
  const [receipt] = parseReceipt(response, payment);
  return receipt === null ? { money: "unknown" } : { money: "moved", transaction: receipt.transaction };
}

/** Return what an error response says, except about the money. */
export function factsOf(failure: ErrorResponse): ErrorFacts {
  return { code: failure.code, requestId: failure.requestId, note: failure.note };
}

/** Parse Retry-After, in milliseconds; 0 if it is missing or not a number of seconds. */
export function parseRetryAfter(response: HttpResponse): number {
  const value = response.headers.get("retry-after") ?? "";
  return /^[0-9]{1,6}$/.test(value) ? Number(value) * 1000 : 0;
}
