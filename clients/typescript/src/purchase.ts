/**
 * Purchase logic: request the terms, check them and the caps, sign once, send until there is an answer.
 *
 * A second payment is signed within one call only if the first was not accepted and never can be: the API
 * reports that it was unused because its window had ended, and by the local clock the window ended before this
 * call started. The token rejects an authorization after its window, so at most one payment sent by a call can
 * move, whatever the API reports. Every other outcome is thrown.
 */

import { parseHost } from "./api-url.js";
import {
  BuyerError,
  Cancelled,
  CapExceeded,
  Drift,
  InvalidInput,
  LedgerUnwritable,
  NoWallet,
  PaymentRefused,
  TermsRefused,
  Unavailable,
  Unreachable,
  WalletFailed,
} from "./errors.js";
import { FreeRequests, buildError, type ServiceRoute } from "./free-requests.js";
import { canonicalJson } from "./json.js";
import { Ledger, buildRecord, describeEnd } from "./ledger.js";
import { formatUsd, parseUsd } from "./money.js";
import type { CallOptions, Caps, ClientOptions, FreeOptions, Patience } from "./options.js";
import { EXPIRED_REASON, classifyFailure, classifyOutcome, type PaymentOutcome } from "./outcome.js";
import { signPayment } from "./payment-signature.js";
import { buildOrder, isPaymentFor, type Payment, type PurchaseOrder } from "./payment.js";
import { parseError, type Answer } from "./responses.js";
import { addSigner } from "./signed-receipt.js";
import {
  buildQuote,
  chooseOption,
  findPayeeObjection,
  listOptions,
  type PaymentOffer,
  type PaymentOption,
  type PinnedPayees,
  type Policy,
  type Quote,
} from "./terms.js";
import { Expired, TimeLimit } from "./time-limit.js";
import { Aborted, Transport, TransportError } from "./transport.js";
import {
  SignedInRequests,
  paymentPath,
  rebuildPayment,
  requireRedeemable,
  type AnsweredPayment,
} from "./wallet-payments.js";
import { checkWallet, findPayer, type Wallet } from "./wallet.js";

/** What purchases of one client have in common. */
export interface PurchaseSettings {
  readonly api: string;
  readonly wallet: ClientOptions["wallet"];
  readonly caps: Caps;
  readonly payees: PinnedPayees;
  readonly policy: Policy;
  readonly ledger: Ledger;
  readonly patience: Patience;
  readonly transport: Transport;
  readonly watch: (message: string) => void;
}

/** A payment to send; `isDoubtful` if the API may have received it already. */
interface PaymentToSend {
  readonly payment: Payment;
  readonly isDoubtful: boolean;
}

/** One call: what is bought, and its limits. */
interface PurchaseCall {
  readonly order: PurchaseOrder;
  readonly limit: TimeLimit;
  readonly maxPrice: bigint | null;
  readonly isAvailable: boolean;
}

/** Purchases of one client. */
export class Purchases {
  readonly #settings: PurchaseSettings;
  readonly #routes = new Map<string, ServiceRoute>();
  /** The wallet; undefined while its function has returned none. */
  #wallet: Wallet | undefined;
  readonly free: FreeRequests;

  constructor(settings: PurchaseSettings) {
    this.#settings = settings;
    const { wallet } = settings;
    this.#wallet = typeof wallet === "function" || wallet === undefined ? undefined : checkWallet(wallet);
    this.free = new FreeRequests(settings.api, settings.patience, settings.transport);
  }

  /** Buy the answer to a request. */
  async call(slug: string, body: object, options: CallOptions): Promise<Answer> {
    const startedAt = Date.now() / 1000;
    const call = await this.#prepare(slug, body, options);
    if (options.payment !== undefined && !isPaymentFor(options.payment, call.order)) {
      throw new RangeError("this payment was signed for another request");
    }
    const open = options.payment ?? this.#findOpenPayment(call.order);
    let toSend: PaymentToSend | Answer =
      open === null ? await this.#signOrAnswer(call) : { payment: open, isDoubtful: true };
    if (!isToSend(toSend)) {
      return toSend;
    }
    try {
      return await this.#sendUntilAnswered(call, toSend);
    } catch (error) {
      if (!isExpiredUnused(error, toSend.payment, startedAt)) {
        throw error;
      }
    }
    this.#settings.watch("the payment expired before the API accepted it; signing another");
    toSend = await this.#signOrAnswer(call);
    return isToSend(toSend) ? this.#sendUntilAnswered(call, toSend) : toSend;
  }

  /** Return the answer that a payment in a transaction bought, and record it in the ledger. */
  async redeem(transaction: string, body: object, options: FreeOptions): Promise<Answer> {
    const limit = new TimeLimit(options.timeout, options.signal);
    const signedIn = await this.signIn();
    const content = canonicalJson(body);
    const [first, ...others] = requireRedeemable(await signedIn.fetchPayment(transaction, limit));
    const payment =
      others.length === 0
        ? (this.#findSigned(first.nonce) ??
          rebuildPayment(first, await this.#buildShownOrder(first, content, limit), signedIn.wallet))
        : await this.#findSignedAmong([first, ...others], content, limit);
    // the nonce names one payment; in a transaction with several the API would choose by the body
    const response = await signedIn.send(paymentPath(payment.nonce), limit, { body: content });
    if (response.status === 400) {
      throw buildError(this.#settings.api, response, parseError(response));
    }
    const outcome = classifyOutcome(response, payment, true);
    if (outcome.result instanceof BuyerError) {
      return this.#finish(outcome, payment);
    }
    const result = await addSigner(outcome.result, response.body, payment.path);
    return this.#finish({ ...outcome, result }, payment);
  }

  /** Find the payment that was signed for a request. Throws InvalidInput if the ledger has none. */
  async #findSignedAmong(
    candidates: readonly AnsweredPayment[],
    content: string,
    limit: TimeLimit,
  ): Promise<Payment> {
    for (const shown of candidates) {
      const payment = this.#findSigned(shown.nonce);
      if (payment !== null && isPaymentFor(payment, await this.#buildShownOrder(shown, content, limit))) {
        return payment;
      }
    }
    throw new InvalidInput(
      `${candidates.length} payments can be redeemed there, and the ledger has none of them for this request: ` +
        "name one by its nonce in place of the transaction",
      [],
    );
  }

  /** Return the order of a payment that the API shows, with its service's path of today. */
  async #buildShownOrder(shown: AnsweredPayment, content: string, limit: TimeLimit): Promise<PurchaseOrder> {
    const { path } = await this.free.fetchRoute(shown.service, limit);
    return buildOrder({ api: this.#settings.api, path, service: shown.service, body: content });
  }

  /** Find a payment in the ledger; null if it has none. Throws Drift if it was made to another API. */
  #findSigned(nonce: string): Payment | null {
    const { api, ledger } = this.#settings;
    const payment = ledger.findSigned(nonce);
    if (payment !== null && payment.api !== api) {
      throw new Drift(
        `${api} shows a payment that was made to ${payment.api}. Nothing was recorded; if both are one API, ` +
          "redeem it with another ledger",
      );
    }
    return payment;
  }

  /** Return the requests that the wallet signs in for. Throws NoWallet. */
  async signIn(): Promise<SignedInRequests> {
    const { api, patience, transport } = this.#settings;
    return new SignedInRequests(api, patience, transport, await this.#openWallet());
  }

  /** Return the price and terms of a call, with any objections. Signs nothing. */
  async terms(slug: string, body: object, options: CallOptions): Promise<Quote> {
    const { api, policy } = this.#settings;
    const call = await this.#prepare(slug, body, options);
    const offer = await this.free.fetchTerms(call.order, call.limit);
    if (!isOffer(offer)) {
      throw new Drift(`${api} answers ${slug} without requiring a payment`);
    }
    const [option, payeeObjection] = this.#chooseOption(listOptions(offer, parseHost(api) ?? "", policy));
    const objections = [
      payeeObjection,
      this.#findCapObjection(option, this.#findKnownPayer(), call.maxPrice),
      this.#findSourceObjection(call),
    ];
    return buildQuote(option, objections.filter((each) => each !== null));
  }

  async #prepare(slug: string, body: object, options: CallOptions): Promise<PurchaseCall> {
    const limit = new TimeLimit(options.timeout, options.signal);
    const maxPrice = options.maxPrice === undefined ? null : parseUsd(options.maxPrice);
    const content = canonicalJson(body);
    const route = this.#routes.get(slug) ?? (await this.free.fetchRoute(slug, limit));
    if (route.isAvailable) {
      this.#routes.set(slug, route);
    }
    const order = buildOrder({ api: this.#settings.api, path: route.path, service: slug, body: content });
    return { order, limit, maxPrice, isAvailable: route.isAvailable };
  }

  /** Find the payment that an earlier call for this request left open. */
  #findOpenPayment(order: PurchaseOrder): Payment | null {
    const { ledger, watch } = this.#settings;
    const payment = ledger.findPending(order, this.#findKnownPayer());
    if (payment !== null) {
      watch("an earlier payment for the same request is open; sending it again");
    }
    return payment;
  }

  /** Sign a payment under the API's terms; or return the answer if no payment is required. */
  async #signOrAnswer(call: PurchaseCall): Promise<PaymentToSend | Answer> {
    const { api, policy } = this.#settings;
    const offer = await this.free.fetchTerms(call.order, call.limit);
    if (!isOffer(offer)) {
      return offer;
    }
    const options = listOptions(offer, parseHost(api) ?? "", policy);
    const sourceObjection = this.#findSourceObjection(call);
    if (sourceObjection !== null) {
      throw new Unavailable(sourceObjection);
    }
    try {
      // a wallet that asks its owner cannot be stopped: what it signs later is recorded, and not sent
      return await call.limit.race(this.#signInTurn(options, call));
    } catch (error) {
      if (error instanceof Aborted) {
        const message = "the call was cancelled before a payment was sent";
        throw new Cancelled(message, null, call.limit.cancelledFacts("not_moved"));
      }
      if (error instanceof Expired) {
        throw new WalletFailed("the wallet did not sign within the call's timeout. Nothing was sent");
      }
      throw error;
    }
  }

  /**
   * Check the caps, sign, and record the payment before it is sent.
   *
   * Calls take turns from the check to the record, so that they cannot exceed the cap together. If another
   * call has signed for the same request meanwhile, its payment is used.
   */
  async #signInTurn(options: readonly PaymentOption[], call: PurchaseCall): Promise<PaymentToSend> {
    const { ledger, watch } = this.#settings;
    return ledger.exclusively(async () => {
      const wallet = await this.#openWallet();
      const payer = findPayer(wallet);
      const pending = ledger.findPending(call.order, payer);
      if (pending !== null) {
        return { payment: pending, isDoubtful: true };
      }
      const option = this.#requireAllowed(options, payer, call);
      const payment = await signPayment(option, call.order, wallet);
      await ledger.append(buildRecord("signed", payment));
      watch(`signed $${payment.usd} to ${payment.payee} on ${payment.network}`);
      return { payment, isDoubtful: false };
    });
  }

  /** Return the wallet; its function is called only until it returns one. Throws NoWallet. */
  async #openWallet(): Promise<Wallet> {
    const { wallet } = this.#settings;
    if (this.#wallet === undefined && typeof wallet === "function") {
      const opened: Wallet | undefined = await wallet();
      this.#wallet = opened === undefined ? undefined : checkWallet(opened);
    }
    if (this.#wallet === undefined) {
      throw new NoWallet(
        "the call requires a payment and there is no wallet: give the client a viem account as `wallet`. " +
          "Nothing was signed",
      );
    }
    return this.#wallet;
  }

  /** Return the address of the wallet; null while its function has returned none. */
  #findKnownPayer(): string | null {
    return this.#wallet === undefined ? null : findPayer(this.#wallet);
  }

  /** Return the option to sign. Throws if nothing may be signed. */
  #requireAllowed(options: readonly PaymentOption[], payer: string | null, call: PurchaseCall): PaymentOption {
    if (call.limit.signal?.aborted) {
      throw new Aborted();
    }
    if (call.limit.isOver) {
      throw new Unreachable("the call's timeout ended before a payment was signed. Nothing was signed");
    }
    const [option, payeeObjection] = this.#chooseOption(options);
    if (payeeObjection !== null) {
      throw new TermsRefused(payeeObjection);
    }
    const capObjection = this.#findCapObjection(option, payer, call.maxPrice);
    if (capObjection !== null) {
      throw new CapExceeded(capObjection);
    }
    return option;
  }

  /** Return the best option whose payee may be paid, else the best one with the objection. */
  #chooseOption(options: readonly PaymentOption[]): readonly [PaymentOption, string | null] {
    const { api, payees, ledger } = this.#settings;
    return chooseOption(options, (each) => findPayeeObjection(each, payees, ledger.lastPayees(api), api));
  }

  /** Return that the service cannot answer; null if the catalogue does not say so. */
  #findSourceObjection(call: PurchaseCall): string | null {
    return call.isAvailable
      ? null
      : `${this.#settings.api} has no source for it, as its catalogue says. Nothing was signed`;
  }

  /** Return why the caps forbid a price; null if they allow it. */
  #findCapObjection(option: PaymentOption, payer: string | null, maxPrice: bigint | null): string | null {
    const { caps, ledger } = this.#settings;
    const price = `$${formatUsd(option.usd)}`;
    if (maxPrice !== null && option.usd > maxPrice) {
      return `the price is ${price}, above the call's maxPrice of $${formatUsd(maxPrice)}. Nothing was signed`;
    }
    if (option.usd > caps.perCall) {
      return (
        `the price is ${price}, above the cap of $${formatUsd(caps.perCall)} per call: raise caps.perCall to ` +
        "pay it. Nothing was signed"
      );
    }
    const signed = ledger.totalSigned(payer);
    return signed + option.usd > caps.total
      ? `total cap reached: $${formatUsd(signed)} of $${formatUsd(caps.total)} is already committed, and this ` +
          `call costs ${price}: raise caps.total to continue. Nothing was signed`
      : null;
  }

  /** Send a payment until it is answered or refused, or the deadline or retry limit is reached. */
  async #sendUntilAnswered(call: PurchaseCall, ready: PaymentToSend): Promise<Answer> {
    const { patience, watch } = this.#settings;
    const { payment } = ready;
    const end = performance.now() + Math.min(patience.deadline, call.limit.remaining);
    let isDoubtful = ready.isDoubtful;
    for (let attempt = 1; ; attempt += 1) {
      const outcome = await this.#sendOnce(call, { payment, isDoubtful }, end);
      const backoff = Math.min(patience.pause * 2 ** Math.min(attempt - 1, 30), patience.longestPause);
      const pause = Math.max(outcome.retryDelay, backoff);
      const isPastDeadline = performance.now() + pause > end;
      if (!outcome.shouldRetry || attempt >= patience.attempts || isPastDeadline) {
        return this.#finish(outcome, payment);
      }
      isDoubtful ||= outcome.maybeAccepted;
      const why = outcome.result instanceof BuyerError ? outcome.result.message : "no answer";
      watch(`${why}; sending the same payment again in ${(pause / 1000).toFixed(1)} s`);
      await this.#orCancelled(call, payment, call.limit.sleep(pause));
    }
  }

  async #sendOnce(call: PurchaseCall, toSend: PaymentToSend, end: number): Promise<PaymentOutcome> {
    const { payment, isDoubtful } = toSend;
    const { order, limit } = call;
    const timeout = Math.min(Math.max(end - performance.now(), 1), this.#settings.patience.answer);
    const { path, header } = payment;
    const request = { path, body: order.body, payment: header, timeout, signal: limit.signal };
    try {
      const response = await this.#orCancelled(call, payment, this.#settings.transport.send(request));
      const outcome = classifyOutcome(response, payment, isDoubtful);
      const { result } = outcome;
      return result instanceof BuyerError
        ? outcome
        : { ...outcome, result: await addSigner(result, response.body, path) };
    } catch (error) {
      if (error instanceof TransportError) {
        return classifyFailure(error, payment);
      }
      throw error;
    }
  }

  /** Wait for a step of a paid request. Records the payment as open and throws Cancelled if the signal ends it. */
  async #orCancelled<T>(call: PurchaseCall, payment: Payment, step: Promise<T>): Promise<T> {
    try {
      return await step;
    } catch (error) {
      if (!(error instanceof Aborted)) {
        throw error;
      }
      const message =
        `the call was cancelled, and it is unknown whether the payment of $${payment.usd} moved. Make the same ` +
        "call again within a day: it sends the same payment, never a second one";
      const cancelled = new Cancelled(message, payment, call.limit.cancelledFacts("unknown"));
      await this.#record("unresolved", payment, cancelled);
      throw cancelled;
    }
  }

  /** Record the outcome of a payment, then return the answer or throw the error. */
  async #finish(outcome: PaymentOutcome, payment: Payment): Promise<Answer> {
    const { result } = outcome;
    const problem = await this.#record(outcome.ledgerEvent, payment, result);
    if (result instanceof BuyerError) {
      throw result;
    }
    return problem === null ? result : { ...result, notes: [...result.notes, problem] };
  }

  /** Append an outcome to the ledger. Returns a message on failure, since no payment is lost by it. */
  async #record(
    event: PaymentOutcome["ledgerEvent"],
    payment: Payment,
    result: Answer | BuyerError,
  ): Promise<string | null> {
    const { ledger, watch } = this.#settings;
    try {
      // without a turn: a wallet that waits for its owner must not keep answers back
      await ledger.append(buildRecord(event, payment, describeEnd(result)));
      return null;
    } catch (error) {
      if (!(error instanceof LedgerUnwritable)) {
        throw error;
      }
      const problem = `${error.message}. Until then the same call sends this payment again`;
      watch(problem);
      return problem;
    }
  }
}

function isOffer(offer: PaymentOffer | Answer): offer is PaymentOffer {
  return "accepts" in offer;
}

function isToSend(value: PaymentToSend | Answer): value is PaymentToSend {
  return "payment" in value;
}

/** True if the payment was not accepted and had expired when the call started, in seconds since 1970. */
function isExpiredUnused(error: unknown, payment: Payment, startedAt: number): boolean {
  return (
    error instanceof PaymentRefused &&
    error.money === "reported_not_moved" &&
    error.reason === EXPIRED_REASON &&
    startedAt > payment.validBefore
  );
}

