/** A payment for one request, the request that it is bound to, and its receipt. */

import { sha256, stringToBytes } from "viem/utils";

/** A request that a payment is bound to: the API's origin, the path, and the canonical body. */
export interface PurchaseOrder {
  readonly api: string;
  readonly path: string;
  /** Slug of the service, whose path the API may change. */
  readonly service: string;
  readonly body: string;
  /** SHA-256 of the body, in hex. */
  readonly digest: string;
}

/** A signed payment, as it is sent and recorded: plain JSON. Keep it secret: it buys one answer. */
export interface Payment {
  readonly api: string;
  readonly path: string;
  /** Slug of the service; records of older clients have none. */
  readonly service?: string;
  /** SHA-256 of the request's body, in hex. */
  readonly digest: string;
  readonly network: string;
  /** Address of the token. */
  readonly asset: string;
  readonly payer: string;
  readonly payee: string;
  /** US dollars, exactly. */
  readonly usd: string;
  readonly nonce: string;
  /** End of its authorization, in seconds since 1970. */
  readonly validBefore: number;
  /** `PAYMENT-SIGNATURE`, identical each time it is sent. */
  readonly header: string;
}

/** Receipt of a payment, as the API sent it. */
export interface Receipt {
  /** Hash of the transaction. */
  readonly transaction: string;
  readonly payer: string;
  readonly network: string;
  /** US dollars, exactly. */
  readonly usd: string;
  /** True if the API sent a stored answer again, without charging. */
  readonly replayed: boolean;
  /** Address that signed the receipt and this answer; null unless every signed field matches. */
  readonly signer: string | null;
  /** PAYMENT-RESPONSE, unchanged: store it with the answer's `body` for `centgate receipt verify`. */
  readonly header: string;
}

/** Build the order for a request. */
export function buildOrder(order: Omit<PurchaseOrder, "digest">): PurchaseOrder {
  return { ...order, digest: sha256(stringToBytes(order.body)).slice(2) };
}

/** True if a payment was signed for this request, at whatever path the service was then. */
export function isPaymentFor(payment: Payment, order: PurchaseOrder): boolean {
  const isSameService = payment.path === order.path || payment.service === order.service;
  return isSameService && payment.api === order.api && payment.digest === order.digest;
}
