/** Options of a client and of a call. */

import type { Ledger } from "./ledger.js";
import { parseUsd, type UsdAmount } from "./money.js";
import type { Payment } from "./payment.js";
import type { Asset } from "./terms.js";
import type { FetchFunction } from "./transport.js";
import type { Wallet } from "./wallet.js";

/** Options of one call. */
export interface CallOptions {
  /** Ends the call with {@link Cancelled}. A payment that was sent stays open: the same call sends it again. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds for the whole call; without it `patience` applies. */
  readonly timeout?: number | undefined;
  /** Most that this call may cost in US dollars, below the client's cap per call. */
  readonly maxPrice?: UsdAmount | undefined;
  /** An open payment for the same request, of another process: it is sent again, and nothing is signed. */
  readonly payment?: Payment | undefined;
}

/** Options of a call that costs nothing. */
export type FreeOptions = Pick<CallOptions, "signal" | "timeout">;

/** Options of a client. */
export interface ClientOptions {
  /** What signs: a viem account or wallet client, or a function that is asked for it before the first signature. */
  readonly wallet?: Wallet | (() => Wallet | Promise<Wallet>) | undefined;
  /** Spending caps in US dollars; by default 0.02 per call and 1.00 in total. */
  readonly caps?: { readonly perCall?: UsdAmount; readonly total?: UsdAmount } | undefined;
  /**
   * The only address that is paid, or the only ones by network (`{ "eip155:8453": "0x…" }`); without it, the one
   * that the API named first.
   */
  readonly payee?: string | Readonly<Record<string, string>> | undefined;
  /** Networks to pay on (CAIP-2), such as `eip155:8453` for Base; by default test networks only. */
  readonly networks?: readonly string[] | undefined;
  /**
   * Network to pay on if an API accepts several and it may be paid on; else the cheapest, and of equal ones the
   * API's first. An option that is settled after the work comes before one that is paid upfront.
   */
  readonly preferredNetwork?: string | undefined;
  /** Dollar tokens by network, instead of Circle's USDC. */
  readonly assets?: Readonly<Record<string, Asset>> | undefined;
  /** Hosts that the terms may name although another host was called. */
  readonly hosts?: readonly string[] | undefined;
  /** Public hosts that may be called without TLS. */
  readonly plainHttp?: readonly string[] | undefined;
  /** Record of payments, to continue one of an earlier process; by default a new one in memory. */
  readonly ledger?: Ledger | undefined;
  /** Timeouts in milliseconds, and the retry limit for one payment. */
  readonly patience?: Partial<Patience> | undefined;
  /** Used instead of the global `fetch`, such as one with a proxy. */
  readonly fetch?: FetchFunction | undefined;
  /** Receives progress messages. */
  readonly watch?: ((message: string) => void) | undefined;
}

/** Timeouts in milliseconds, and the retry limit for one payment. */
export interface Patience {
  /** For the whole paid call, from the first time the payment is sent. */
  readonly deadline: number;
  /** How often one payment is sent at most. */
  readonly attempts: number;
  /** For one HTTP response. */
  readonly answer: number;
  /** Delay before the second attempt; doubled before each further one. */
  readonly pause: number;
  readonly longestPause: number;
}

/** Default timeouts and retry limit. */
export const DEFAULT_PATIENCE: Patience = {
  deadline: 90_000,
  attempts: 8,
  answer: 60_000,
  pause: 500,
  longestPause: 10_000,
};

/** Spending caps in units of 10^-18 US dollars. */
export interface Caps {
  readonly perCall: bigint;
  readonly total: bigint;
}

/** Parse spending caps. Throws RangeError. */
export function parseCaps(caps: ClientOptions["caps"]): Caps {
  return { perCall: parseUsd(caps?.perCall ?? "0.02"), total: parseUsd(caps?.total ?? "1.00") };
}
