/** Client of a Centgate API: buys answers under spending caps, and never pays twice for a request. */

export { Centgate } from "./client.js";
export * from "./errors.js";
export type { ServiceSummary } from "./free-requests.js";
export type { ServiceTypes, Slug } from "./generated/methods.js";
export type * from "./generated/models.js";
export type * from "./generated/requests.js";
export { TEST_NETWORKS, USDC } from "./generated/tokens.js";
export { Ledger, type LedgerEvent, type LedgerOptions, type LedgerRecord } from "./ledger.js";
export type { UsdAmount } from "./money.js";
export type { CallOptions, ClientOptions, FreeOptions, Patience } from "./options.js";
export type { Payment, Receipt } from "./payment.js";
export type { Answer } from "./responses.js";
export type { Asset, Quote } from "./terms.js";
export type { FetchFunction } from "./transport.js";
export type { Wallet } from "./wallet.js";
export type { AnsweredPayment, NextStep, StoredResponse, WalletPayment, WalletPaymentPage } from "./wallet-payments.js";
