/** Client of one API, which pays within its caps. */

import { parseOrigin } from "./api-url.js";
import { Services, type ServiceTypes, type Slug } from "./generated/methods.js";
import type { ServiceSummary } from "./free-requests.js";
import { Ledger } from "./ledger.js";
import { formatUsd } from "./money.js";
import { DEFAULT_PATIENCE, parseCaps, type CallOptions, type ClientOptions, type FreeOptions } from "./options.js";
import { Purchases } from "./purchase.js";
import type { Answer } from "./responses.js";
import { buildPolicy, parsePayees, type Quote } from "./terms.js";
import { TimeLimit } from "./time-limit.js";
import { Transport } from "./transport.js";
import type { AnsweredPayment, WalletPaymentPage } from "./wallet-payments.js";

/**
 * Client of one Centgate API: a method for each service, which pays within the caps.
 *
 * For each request one payment is signed, whatever the API answers: after a lost answer the same payment is
 * sent again. Concurrent calls may share one client.
 *
 * @example
 * ```ts
 * import { Centgate } from "centgate";
 * import { privateKeyToAccount } from "viem/accounts";
 *
 * const client = new Centgate("https://api.example", {
 *   wallet: privateKeyToAccount(process.env.WALLET_KEY as `0x${string}`),
 *   networks: ["eip155:8453"],
 * });
 * const answer = await client.phishingCheck({ url: "https://wallet-ethereum.net/unlock" });
 * console.log(answer.data.status, answer.transaction);
 * ```
 */
export class Centgate extends Services {
  /** The API's origin, `scheme://host[:port]`. */
  readonly api: string;
  /** Record of every signed payment and its outcome. */
  readonly ledger: Ledger;
  readonly #purchases: Purchases;

  /**
   * Create a client; this sends nothing.
   *
   * Throws AddressRefused for an API URL that is not allowed, RangeError for an invalid option.
   */
  constructor(api: string, options: ClientOptions = {}) {
    super();
    this.api = parseOrigin(api, new Set(options.plainHttp));
    this.ledger = options.ledger ?? new Ledger();
    this.#purchases = new Purchases({
      api: this.api,
      wallet: options.wallet,
      caps: parseCaps(options.caps),
      payees: parsePayees(options.payee),
      policy: buildPolicy(options.networks, options.assets, options.hosts, options.preferredNetwork),
      ledger: this.ledger,
      patience: { ...DEFAULT_PATIENCE, ...options.patience },
      transport: new Transport(this.api, options.fetch ?? fetch),
      watch: options.watch ?? (() => undefined),
    });
  }

  /** US dollars that were signed for, as the ledger counts them towards the total cap. */
  get spent(): string {
    return formatUsd(this.ledger.totalSigned(null));
  }

  /**
   * Buy one answer of a service. Throws {@link BuyerError}; its `money` is what is known about the payment.
   *
   * If an earlier call for the same request left a payment open, that payment is sent again and nothing is
   * signed.
   */
  override call<S extends Slug>(
    slug: S,
    body: ServiceTypes[S]["request"],
    options?: CallOptions,
  ): Promise<Answer<ServiceTypes[S]["data"]>>;
  /** Buy one answer of a service that this version of the client does not know. */
  override call<S extends string>(slug: S extends Slug ? never : S, body: object, options?: CallOptions): Promise<Answer>;
  override async call(slug: string, body: object, options: CallOptions = {}): Promise<Answer<never>> {
    // the types of `data` are those of this version; the API's answer is not checked against them
    return (await this.#purchases.call(slug, body, options)) as Answer<never>;
  }

  /** Return the price, the payee and the terms of a call. Signs nothing. */
  async terms(slug: string, body: object, options: CallOptions = {}): Promise<Quote> {
    return this.#purchases.terms(slug, body, options);
  }

  /**
   * Return a page of the wallet's payments as the API knows them, newest first.
   *
   * The wallet signs in with a message for this API only; nothing is paid. `next` of a payment is what to do about it.
   */
  async payments(
    options: FreeOptions & { readonly limit?: number; readonly cursor?: string | null } = {},
  ): Promise<WalletPaymentPage> {
    const signedIn = await this.#purchases.signIn();
    const timeLimit = new TimeLimit(options.timeout, options.signal);
    return signedIn.fetchPayments(options.limit ?? 20, options.cursor ?? null, timeLimit);
  }

  /** Return the wallet's payments in a transaction, or the one with this nonce, with their stored answers. */
  async payment(transaction: string, options: FreeOptions = {}): Promise<readonly AnsweredPayment[]> {
    const signedIn = await this.#purchases.signIn();
    return signedIn.fetchPayment(transaction, new TimeLimit(options.timeout, options.signal));
  }

  /**
   * Return the answer that a payment in a transaction bought, without the payment itself.
   *
   * `body` is the request as it was paid for. Nothing is charged.
   */
  async redeem(transaction: string, body: object, options: FreeOptions = {}): Promise<Answer> {
    return this.#purchases.redeem(transaction, body, options);
  }

  /** Return every service of the API, in catalogue order. */
  async services(options: FreeOptions = {}): Promise<readonly ServiceSummary[]> {
    return this.#purchases.free.fetchServices(new TimeLimit(options.timeout, options.signal));
  }

  /** Return one service, with the schemas of its input and output. */
  async service(slug: string, options: FreeOptions = {}): Promise<ServiceSummary> {
    return this.#purchases.free.fetchService(slug, new TimeLimit(options.timeout, options.signal));
  }
}
