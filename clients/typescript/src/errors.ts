/**
 * Errors of the client. Each says in `money` what is known about the payment.
 *
 * ```text
 * BuyerError
 * ├── AddressRefused         the API URL is invalid, or a public host without TLS
 * ├── InvalidInput           the body is not what the service takes; `issues` lists every problem
 * ├── UnsupportedOptions     an option that the price does not cover; `options` names each
 * ├── NotFound               the API has no such service
 * ├── NoWallet               there is no account to sign with
 * ├── WalletFailed           the wallet did not sign
 * ├── LedgerUnwritable       a payment could not be recorded, so it was not sent
 * ├── CapExceeded            the price is above a cap of this client
 * ├── TermsRefused           the API requires terms that this client does not sign
 * ├── Unavailable            this deployment does not serve it, or accepts no payments
 * ├── PaymentRefused         the API refused the payment; `reason` is x402's
 * │   └── InsufficientBalance    the wallet's balance is too low
 * ├── NoData                 the providers have no data: a valid answer, and charged
 * ├── ServiceFailed          the service failed; a payment it accepted stays valid for a later call
 * ├── Unresolved             the payment's outcome is unknown; `payment` can be sent again
 * │   └── Cancelled              the caller's signal ended the call
 * ├── Unreachable            the API does not respond, and nothing was signed
 * └── Drift                  the response does not match this client's protocol version
 * ```
 */

import type { Payment, Receipt } from "./payment.js";

/**
 * What is known about the money of a call.
 *
 * `not_moved`: known by this client, because nothing was sent. `reported_not_moved`: a payment was
 * sent, and the API reports that no money moved; an API can lie. `moved`: the API reports that the
 * payment was settled. `unknown`: it may have moved, or may still move.
 */
export type Money = "not_moved" | "reported_not_moved" | "moved" | "unknown";

/** What to send after an error: the same payment again, a new payment, or nothing. */
export type Retry = "same_payment" | "new_payment" | "none";

/** State of a payment, as an API reports it. */
export type PaymentState = "unused" | "in_flight" | "settled" | "delivered" | "refused";

/** `details.payment` of an error response: the payment's state, as the API reports it. */
export interface PaymentNote {
  readonly state: PaymentState;
  readonly charged: boolean;
  readonly retry: Retry;
  /** Hash of the settling transaction; null if the API names none. */
  readonly transaction: string | null;
}

/** A problem in a request body; `path` is dotted (`urls.0`), empty for the whole body. */
export interface InputIssue {
  readonly path: string;
  readonly message: string;
}

/** What an error knows beyond its message. */
export interface ErrorFacts {
  readonly money?: Money | undefined;
  readonly code?: string | null | undefined;
  readonly requestId?: string | null | undefined;
  readonly note?: PaymentNote | null | undefined;
  readonly transaction?: string | null | undefined;
  readonly cause?: unknown;
}

/** Base class: a call that returned no data. The message includes the next step. */
export class BuyerError extends Error {
  override readonly name: string = "BuyerError";
  /** What is known about the payment. */
  readonly money: Money;
  /** The API's error code; null if it sent none. */
  readonly code: string | null;
  /** Request ID in the server's logs; null if the API sent none. */
  readonly requestId: string | null;
  /** The payment's state, as the API reports it; null if it reports none. */
  readonly state: PaymentState | null;
  /** True if the API reports that the payment was charged; null if it reports nothing. */
  readonly charged: boolean | null;
  /** What to send next, as the API reports it; null if it reports nothing. */
  readonly retry: Retry | null;
  /** Hash of the transaction that the API names; null if it names none. */
  readonly transaction: string | null;

  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.money = facts.money ?? "not_moved";
    this.code = facts.code ?? null;
    this.requestId = facts.requestId ?? null;
    this.state = facts.note?.state ?? null;
    this.charged = facts.note?.charged ?? null;
    this.retry = facts.note?.retry ?? null;
    this.transaction = facts.transaction ?? facts.note?.transaction ?? null;
  }
}

/** The API URL is not allowed; nothing was sent. */
export class AddressRefused extends BuyerError {
  override readonly name: string = "AddressRefused";
}

/** Invalid request body; `issues` holds every problem found. */
export class InvalidInput extends BuyerError {
  override readonly name: string = "InvalidInput";

  constructor(message: string, readonly issues: readonly InputIssue[], facts: ErrorFacts = {}) {
    super(message, facts);
  }
}

/** Unsupported options; `options` names each of them. */
export class UnsupportedOptions extends BuyerError {
  override readonly name: string = "UnsupportedOptions";

  constructor(message: string, readonly options: readonly string[], facts: ErrorFacts = {}) {
    super(message, facts);
  }
}

/** No such service at this API. */
export class NotFound extends BuyerError {
  override readonly name: string = "NotFound";
}

/** The call requires a payment, and the client has no `wallet`. */
export class NoWallet extends BuyerError {
  override readonly name: string = "NoWallet";
}

/** The wallet did not sign; `cause` is its error. Nothing was sent. */
export class WalletFailed extends BuyerError {
  override readonly name: string = "WalletFailed";
}

/** The ledger cannot be written. An unrecorded payment could be made twice, so it was not sent. */
export class LedgerUnwritable extends BuyerError {
  override readonly name: string = "LedgerUnwritable";
}

/** The price exceeds the client's cap per call or its total cap. */
export class CapExceeded extends BuyerError {
  override readonly name: string = "CapExceeded";
}

/** The client does not sign the API's terms; `objections` lists the reasons. */
export class TermsRefused extends BuyerError {
  override readonly name: string = "TermsRefused";
  /** Why each of the offered terms is not signed. */
  readonly objections: readonly string[];

  constructor(message: string, objections: readonly string[] = [], facts: ErrorFacts = {}) {
    super(message, facts);
    this.objections = objections.length > 0 ? objections : [message];
  }
}

/** This deployment does not serve the request; another deployment may. */
export class Unavailable extends BuyerError {
  override readonly name: string = "Unavailable";
}

/** The payment was refused or is already used: see `money`. */
export class PaymentRefused extends BuyerError {
  override readonly name: string = "PaymentRefused";

  /** @param reason - x402's reason; null if the API gives none. */
  constructor(message: string, readonly reason: string | null, facts: ErrorFacts) {
    super(message, facts);
  }
}

/** The wallet's balance is below the price, as the API reports. */
export class InsufficientBalance extends PaymentRefused {
  override readonly name: string = "InsufficientBalance";
}

/** The providers answered and have no data. This is a final answer, and it was charged. */
export class NoData extends BuyerError {
  override readonly name: string = "NoData";

  constructor(message: string, readonly receipt: Receipt | null, facts: ErrorFacts) {
    super(message, { transaction: receipt?.transaction, ...facts });
  }
}

/** The service failed; `provider` is the one that did, if the API names it. */
export class ServiceFailed extends BuyerError {
  override readonly name: string = "ServiceFailed";

  constructor(message: string, readonly provider: string | null, facts: ErrorFacts) {
    super(message, facts);
  }
}

/**
 * A payment was sent and no answer was received.
 *
 * Repeating the call sends `payment` again, never a second one. Another process can send it too:
 * `payment` is plain JSON, to be given to `call` as the option `payment`.
 */
export class Unresolved extends BuyerError {
  override readonly name: string = "Unresolved";

  /** The payment; null only if the call was cancelled before one was sent. */
  declare readonly payment: Payment | null;

  constructor(message: string, payment: Payment | null, facts: ErrorFacts) {
    super(message, { ...facts, money: facts.money ?? "unknown" });
    // not enumerable, so that a log of the error does not show the signature
    Object.defineProperty(this, "payment", { value: payment, enumerable: false });
  }
}

/** The caller's signal ended the call; `cause` is the signal's reason. */
export class Cancelled extends Unresolved {
  override readonly name: string = "Cancelled";
}

/** The API does not respond, and nothing was signed. */
export class Unreachable extends BuyerError {
  override readonly name: string = "Unreachable";
}

/** The server's response does not match this client's protocol version. */
export class Drift extends BuyerError {
  override readonly name: string = "Drift";
}
