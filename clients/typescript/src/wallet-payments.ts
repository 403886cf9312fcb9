/** The payments of a wallet as the API knows them, and requests that the wallet signs in for. They are free. */

import { Cancelled, Drift, InvalidInput, NotFound, ServiceFailed, Unreachable, type PaymentState, type Retry } from "./errors.js";
import { buildError } from "./free-requests.js";
import { USDC } from "./generated/tokens.js";
import { isObject, quote } from "./json.js";
import { formatUsd, fromBaseUnits } from "./money.js";
import type { Patience } from "./options.js";
import { factsOf } from "./outcome.js";
import type { Payment, PurchaseOrder } from "./payment.js";
import { parseBody, parseError } from "./responses.js";
import { answerChallenge } from "./sign-in.js";
import type { TimeLimit } from "./time-limit.js";
import { Aborted, TransportError, type HttpResponse, type Transport } from "./transport.js";
import { findPayer, type Wallet } from "./wallet.js";

/** Sign-ins for one request: an answer may be lost, and its sign-in is used up then. */
const ATTEMPTS = 2;
const REFERENCE = /^(?:0x[0-9a-fA-F]{64}|(?!0x)[A-Za-z0-9_.~-]{1,200})$/;
const USDC_DECIMALS = 6;
const AMOUNT = /^[0-9]{1,78}$/;

/**
 * What the wallet's owner can do about a payment.
 *
 * `read_answer`: `client.payment` has the answer; `redeem`: the answer is owed, `client.redeem` gets it; `wait`: the
 * outcome is not known yet; `pay_again`: no money moved; `await_refund`: the operator owes the money back;
 * `none`: nothing is owed or stored any more, or no money moved and no new payment of this wallet is accepted.
 */
export type NextStep = "read_answer" | "redeem" | "wait" | "pay_again" | "await_refund" | "none";

/** One payment of the wallet, as the API shows it; times are ISO 8601. */
export interface WalletPayment {
  /** The transaction that settled it; while its outcome is unknown, one that may have. */
  readonly transaction: string | null;
  readonly network: string;
  readonly asset: string;
  /** It can be used in place of the transaction. */
  readonly nonce: string;
  /** In the token's base units. */
  readonly amount: string;
  readonly payTo: string;
  readonly service: string;
  readonly state: PaymentState;
  readonly charged: boolean;
  readonly retry: Retry;
  readonly next: NextStep;
  readonly createdAt: string;
  readonly redeemableUntil: string | null;
  readonly hasAnswer: boolean;
}

/** A delivered answer, as it was sent. */
export interface StoredResponse {
  readonly status: number;
  readonly requestId: string;
  /** Its header `PAYMENT-RESPONSE`. */
  readonly paymentResponse: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** One payment of the wallet, with its stored answer. */
export interface AnsweredPayment extends WalletPayment {
  readonly answer: StoredResponse | null;
}

/** Payments of the wallet, newest first. */
export interface WalletPaymentPage {
  readonly payments: readonly WalletPayment[];
  /** For the next page; null on the last one. */
  readonly cursor: string | null;
}

/** Requests to one API by one wallet. No error thrown here means that money moved. */
export class SignedInRequests {
  constructor(
    readonly api: string,
    readonly patience: Patience,
    readonly transport: Transport,
    readonly wallet: Wallet,
  ) {}

  /** Return a page of the wallet's payments. */
  async fetchPayments(count: number, cursor: string | null, limit: TimeLimit): Promise<WalletPaymentPage> {
    const query = new URLSearchParams({ limit: String(count), ...(cursor === null ? {} : { cursor }) });
    const content = this.#parse(await this.send("/payments", limit, { query: query.toString() }));
    const next = content["cursor"] ?? null;
    const payments = content["payments"];
    if (!Array.isArray(payments) || !payments.every(isWalletPayment) || !(next === null || typeof next === "string")) {
      throw this.#unknownFormat();
    }
    return { payments, cursor: next };
  }

  /** Return the wallet's payments in a transaction, or the one with this nonce, with their answers. */
  async fetchPayment(reference: string, limit: TimeLimit): Promise<readonly AnsweredPayment[]> {
    const content = this.#parse(await this.send(paymentPath(reference), limit));
    const payments = content["payments"];
    if (!Array.isArray(payments) || !payments.every(isAnsweredPayment)) {
      throw this.#unknownFormat();
    }
    return payments;
  }

  /** Sign in for a path and send a request: GET without a body, else POST. Returns any response but a 402. */
  async send(
    path: string,
    limit: TimeLimit,
    { body, query = "" }: { readonly body?: string; readonly query?: string } = {},
  ): Promise<HttpResponse> {
    const target = query === "" ? path : `${path}?${query}`;
    let response = await this.#sendOnce(target, body, undefined, limit);
    for (let attempt = 0; attempt < ATTEMPTS && response.status === 402; attempt += 1) {
      const signIn = await answerChallenge(response.headers.get("payment-required"), this.wallet, this.api, path);
      response = await this.#sendOnce(target, body, signIn, limit);
    }
    if (response.status === 402) {
      const failure = parseError(response);
      throw new ServiceFailed(`${this.api} does not accept the sign-in: ${failure.message}`, null, {
        ...factsOf(failure),
        note: null,
      });
    }
    return response;
  }

  async #sendOnce(
    path: string,
    body: string | undefined,
    signIn: string | undefined,
    limit: TimeLimit,
  ): Promise<HttpResponse> {
    try {
      const timeout = limit.shorten(this.patience.answer);
      return await this.transport.send({ path, body, signIn, timeout, signal: limit.signal });
    } catch (error) {
      if (error instanceof Aborted) {
        throw new Cancelled("the call was cancelled. No money moved", null, limit.cancelledFacts("not_moved"));
      }
      if (error instanceof TransportError) {
        throw new Unreachable(`${this.api} ${error.message}. No money moved; ask again`);
      }
      throw error;
    }
  }

  #parse(response: HttpResponse): { readonly [name: string]: unknown } {
    if (response.status !== 200) {
      const failure = parseError(response);
      throw failure.code === "not_found"
        ? new NotFound(failure.message, { ...factsOf(failure), note: null })
        : buildError(this.api, response, failure);
    }
    let content: unknown = null;
    try {
      content = parseBody(response);
    } catch {
      throw this.#unknownFormat();
    }
    if (!isObject(content)) {
      throw this.#unknownFormat();
    }
    return content;
  }

  #unknownFormat(): Drift {
    return new Drift(`${this.api} returned payments in an unknown format`);
  }
}

/** Return the path of a transaction or nonce. Throws NotFound for what can be neither. */
export function paymentPath(reference: string): string {
  if (!REFERENCE.test(reference)) {
    throw new NotFound(
      `${quote(reference, 60)} is neither a transaction nor a nonce, which are 0x and 64 hex digits: ` +
        "`payments()` lists both",
    );
  }
  return `/payments/${reference}`;
}

/** Payments of one transaction: at least one. */
type RedeemablePayments = readonly [AnsweredPayment, ...AnsweredPayment[]];

/** Return the payments whose answer is owed, then those whose answer is stored. Throws InvalidInput if none is. */
export function requireRedeemable(payments: readonly AnsweredPayment[]): RedeemablePayments {
  const owed = payments.filter((each) => each.next === "redeem");
  const stored = payments.filter((each) => each.next === "read_answer");
  const [first, ...others] = [...owed, ...stored];
  if (first === undefined) {
    const steps = [...new Set(payments.map((each) => each.next))].join(", ");
    throw new InvalidInput(`nothing can be redeemed there; what can be done about it: ${steps}`, []);
  }
  return [first, ...others];
}

/** Return a payment as the ledger records it, from what the API shows of it; it cannot be sent. */
export function rebuildPayment(shown: WalletPayment, order: PurchaseOrder, wallet: Wallet): Payment {
  return {
    api: order.api,
    path: order.path,
    service: order.service,
    digest: order.digest,
    network: shown.network,
    asset: shown.asset,
    payer: findPayer(wallet) ?? "",
    payee: shown.payTo,
    usd: formatUsd(fromBaseUnits(BigInt(shown.amount), findDecimals(shown))),
    nonce: shown.nonce,
    validBefore: Math.floor(Date.now() / 1000),
    header: "",
  };
}

/** Return the decimals of the token that a payment was made in; those of USDC for another one. */
function findDecimals({ network, asset }: WalletPayment): number {
  const token = Object.hasOwn(USDC, network) ? USDC[network] : undefined;
  return token?.address.toLowerCase() === asset.toLowerCase() ? token.decimals : USDC_DECIMALS;
}

function isWalletPayment(value: unknown): value is WalletPayment {
  if (!isObject(value)) {
    return false;
  }
  const texts = ["network", "asset", "nonce", "payTo", "service", "state", "retry", "next", "createdAt"];
  return (
    texts.every((name) => typeof value[name] === "string") &&
    typeof value["amount"] === "string" &&
    AMOUNT.test(value["amount"]) &&
    (value["transaction"] === null || typeof value["transaction"] === "string")
  );
}

function isAnsweredPayment(value: unknown): value is AnsweredPayment {
  if (!isObject(value)) {
    return false;
  }
  const answer = value["answer"];
  if (!isWalletPayment(value)) {
    return false;
  }
  return answer === null || (isObject(answer) && isObject(answer["body"]) && typeof answer["status"] === "number");
}
