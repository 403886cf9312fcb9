/**
 * Record of signed payments and their outcomes.
 *
 * A signed payment that has no final event is pending: the next call for the same request
 * sends it again. Every signed payment counts towards the total cap: an API's word does not take it back.
 */

import { BuyerError, LedgerUnwritable, type Money } from "./errors.js";
import { parseUsd } from "./money.js";
import { isPaymentFor, type Payment, type PurchaseOrder } from "./payment.js";

/** Seconds after its window in which a payment can still buy its answer: the API's retention time. */
const REDEEMABLE_SECONDS = 24 * 3600;

/**
 * Events of a payment; after `delivered`, `refused` and `unanswered` it is not sent again. `unanswered`: the API says
 * that it was charged, and that it buys nothing any more.
 */
export type LedgerEvent = "signed" | "delivered" | "refused" | "unanswered" | "unresolved";

/** A record about one payment: plain JSON. */
export interface LedgerRecord {
  /** ISO 8601. */
  readonly time: string;
  readonly event: LedgerEvent;
  /** The payment; its `header` is empty unless the event is `signed`. */
  readonly payment: Payment;
  readonly money: Money;
  readonly transaction: string | null;
  readonly requestId: string | null;
  /** Error message; null if there was no error. */
  readonly why: string | null;
  /** PAYMENT-RESPONSE, unchanged; null without a receipt. */
  readonly receipt: string | null;
}

/** Options of a ledger. */
export interface LedgerOptions {
  /** Records of an earlier process. */
  readonly records?: Iterable<LedgerRecord> | undefined;
  /**
   * Stores a record, such as a line of a file. It is awaited before a payment is sent; if it throws, the
   * payment is not sent. It may be called again before an earlier record is stored. Records hold signatures:
   * store them where nobody else reads them.
   */
  readonly write?: ((record: LedgerRecord) => void | Promise<void>) | undefined;
}

/** Ledger in memory, which can be stored elsewhere; clients of one process may share it. */
export class Ledger {
  readonly #records: LedgerRecord[] = [];
  readonly #pending = new Map<string, Payment>();
  readonly #payees = new Map<string, Map<string, string>>();
  readonly #signed = new Map<string, { payer: string; usd: bigint }>();
  readonly #write: NonNullable<LedgerOptions["write"]>;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: LedgerOptions = {}) {
    this.#write = options.write ?? (() => undefined);
    for (const record of options.records ?? []) {
      this.#add(record);
    }
  }

  /** Every record, oldest first. */
  get records(): readonly LedgerRecord[] {
    return [...this.#records];
  }

  /** Run an action while no other action of this ledger runs. */
  async exclusively<T>(action: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(action);
    this.#turn = result.catch(() => undefined);
    return result;
  }

  /** Find the signed payment of a request that can still buy its answer, optionally by payer. */
  findPending(order: PurchaseOrder, payer: string | null): Payment | null {
    const now = Date.now() / 1000;
    for (const payment of this.#pending.values()) {
      const isAlive = now < payment.validBefore + REDEEMABLE_SECONDS;
      if (isAlive && isPaymentFor(payment, order) && (payer === null || isSameAddress(payer, payment.payer))) {
        return payment;
      }
    }
    return null;
  }

  /** Find a payment as it was signed, by its nonce. */
  findSigned(nonce: string): Payment | null {
    const isSigned = ({ event, payment }: LedgerRecord): boolean => event === "signed" && payment.nonce === nonce;
    return this.#records.find(isSigned)?.payment ?? null;
  }

  /** Return the addresses last paid at an API, by network (CAIP-2). */
  lastPayees(api: string): ReadonlyMap<string, string> {
    return this.#payees.get(api) ?? new Map<string, string>();
  }

  /** Return what a payer signed for, in units of 10^-18 US dollars; for null the sum of all payers. */
  totalSigned(payer: string | null): bigint {
    let total = 0n;
    for (const each of this.#signed.values()) {
      total += payer === null || isSameAddress(payer, each.payer) ? each.usd : 0n;
    }
    return total;
  }

  /** Store a record, then apply it. Throws LedgerUnwritable. */
  async append(record: LedgerRecord): Promise<void> {
    try {
      await this.#write(record);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new LedgerUnwritable(
        `the ledger cannot be written (${reason.slice(0, 300)}), and an unrecorded payment could be made twice`,
        { cause },
      );
    }
    this.#add(record);
  }

  #add(record: LedgerRecord): void {
    this.#records.push(record);
    const { event, payment } = record;
    if (event === "signed") {
      this.#pending.set(payment.nonce, payment);
      this.#payees.set(payment.api, new Map(this.lastPayees(payment.api)).set(payment.network, payment.payee));
      this.#signed.set(payment.nonce, { payer: payment.payer, usd: parseUsd(payment.usd) });
    } else if (event !== "unresolved") {
      this.#pending.delete(payment.nonce);
    }
  }
}

function isSameAddress(address: string, other: string): boolean {
  return address.toLowerCase() === other.toLowerCase();
}

/** Build the record of an event. */
export function buildRecord(
  event: LedgerEvent,
  payment: Payment,
  facts: Partial<Pick<LedgerRecord, "money" | "transaction" | "requestId" | "why" | "receipt">> = {},
): LedgerRecord {
  return {
    time: new Date().toISOString(),
    event,
    payment: event === "signed" ? payment : { ...payment, header: "" },
    money: facts.money ?? "unknown",
    transaction: facts.transaction ?? null,
    requestId: facts.requestId ?? null,
    why: facts.why ?? null,
    receipt: facts.receipt ?? null,
  };
}

/** Return what a call's end means for the ledger: money, transaction, request and message. */
export function describeEnd(
  end: BuyerError | { money: Money; requestId: string; receipt: { transaction: string; header: string } | null },
): Partial<LedgerRecord> {
  if (end instanceof BuyerError) {
    const { money, transaction, requestId, message } = end;
    return { money, transaction, requestId, why: message };
  }
  const { transaction = null, header = null } = end.receipt ?? {};
  return { money: end.money, requestId: end.requestId, transaction, receipt: header };
}
