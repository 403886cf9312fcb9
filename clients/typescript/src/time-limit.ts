/** Limits of one call in time: its timeout, and the caller's signal. */

import type { ErrorFacts, Money } from "./errors.js";
import { Aborted, LONGEST_WAIT } from "./transport.js";

/** A step that the call's timeout ended. */
export class Expired extends Error {}

/** Timeout and signal of one call. */
export class TimeLimit {
  readonly #end: number;

  /** @param timeout - Milliseconds from now; undefined is without end. */
  constructor(
    timeout: number | undefined,
    readonly signal: AbortSignal | undefined,
  ) {
    if (timeout !== undefined && !(timeout > 0)) {
      throw new RangeError(`a timeout is a number of milliseconds above 0, not ${timeout}`);
    }
    this.#end = performance.now() + (timeout ?? Infinity);
  }

  /** Milliseconds until the call must end. */
  get remaining(): number {
    return this.#end - performance.now();
  }

  /** True if the call must end now. */
  get isOver(): boolean {
    return this.remaining <= 0;
  }

  /** Return a timeout that ends with the call at the latest; at least one millisecond. */
  shorten(timeout: number): number {
    return Math.max(Math.min(timeout, this.remaining), 1);
  }

  /** Wait, at most until the call must end. Throws Aborted. */
  async sleep(milliseconds: number): Promise<void> {
    const { signal } = this;
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", wake);
        resolve();
      };
      const timer = setTimeout(wake, this.shorten(milliseconds));
      signal?.addEventListener("abort", wake);
      if (signal?.aborted) {
        wake();
      }
    });
    if (signal?.aborted) {
      throw new Aborted();
    }
  }

  /** Wait for a result that cannot be stopped, which goes on without us. Throws Aborted or Expired. */
  async race<T>(result: Promise<T>): Promise<T> {
    const { signal } = this;
    const end = new AbortController();
    const ended = new Promise<never>((_, reject) => {
      const wait = this.remaining === Infinity ? null : setTimeout(reject, this.shorten(LONGEST_WAIT), new Expired());
      const stop = (): void => {
        reject(new Aborted());
      };
      signal?.addEventListener("abort", stop, { signal: end.signal });
      end.signal.addEventListener("abort", () => {
        clearTimeout(wait ?? undefined);
      });
      if (signal?.aborted) {
        stop();
      }
    });
    try {
      return await Promise.race([ended, result]);
    } finally {
      end.abort();
    }
  }

  /** Return the facts of an error after the signal ended the call. */
  cancelledFacts(money: Money): ErrorFacts {
    return { money, cause: this.signal?.reason };
  }
}
