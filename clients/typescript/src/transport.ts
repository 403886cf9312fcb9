/** HTTP requests of a client, by `fetch`, with a total timeout each. */

/** Maximum bytes of a response. */
const MAX_RESPONSE_BYTES = 8 * 1024 * 1024;

/** The longest that a timer can wait, in milliseconds. */
export const LONGEST_WAIT = 2 ** 31 - 1;

/** Errors of a connection that was never made, by Node's codes. */
const UNREACHABLE = new Set([
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "CERT_HAS_EXPIRED",
  "ERR_TLS_CERT_ALTNAME_INVALID",
]);

/** The global `fetch`, or a function with its signature, such as one with a proxy. */
export type FetchFunction = (url: string, init: RequestInit) => Promise<Response>;

/** A complete response. */
export interface HttpResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Uint8Array;
}

/** A request without a complete response; the message is the reason, to follow "the API". */
export class TransportError extends Error {
  constructor(
    readonly reason: "unreachable" | "timeout" | "cut" | "too_large",
    message: string,
  ) {
    super(message);
  }
}

/** A request that the caller's signal ended. */
export class Aborted extends Error {}

/** What is sent. */
export interface HttpRequest {
  readonly path: string;
  /** JSON body of a POST request; without one it is a GET request. */
  readonly body?: string | undefined;
  /** The header PAYMENT-SIGNATURE. */
  readonly payment?: string | undefined;
  /** The header SIGN-IN-WITH-X. */
  readonly signIn?: string | undefined;
  /** Milliseconds until the response is complete. */
  readonly timeout: number;
  readonly signal?: AbortSignal | undefined;
}

/** Requests to one API. They follow no redirects, since a payment is bound to the host that was called. */
export class Transport {
  readonly #api: string;
  readonly #fetch: FetchFunction;

  constructor(api: string, fetchFunction: FetchFunction) {
    this.#api = api;
    this.#fetch = fetchFunction;
  }

  /** Send a request and read the response. Throws TransportError, or Aborted. */
  async send(request: HttpRequest): Promise<HttpResponse> {
    const controller = new AbortController();
    const stop = (): void => controller.abort();
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      stop();
    }, Math.min(request.timeout, LONGEST_WAIT));
    request.signal?.addEventListener("abort", stop);
    try {
      if (request.signal?.aborted) {
        throw new Aborted();
      }
      return await this.#exchange(request, controller.signal);
    } catch (error) {
      if (request.signal?.aborted) {
        throw new Aborted();
      }
      if (isLate) {
        throw new TransportError("timeout", `did not respond within ${formatSeconds(request.timeout)} s`);
      }
      throw error instanceof TransportError ? error : classifyError(error);
    } finally {
      clearTimeout(timer);
      request.signal?.removeEventListener("abort", stop);
    }
  }

  async #exchange(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse> {
    const headers = new Headers({ Accept: "application/json" });
    if (request.body !== undefined) {
      headers.set("Content-Type", "application/json");
    }
    if (request.payment !== undefined) {
      headers.set("PAYMENT-SIGNATURE", request.payment);
    }
    if (request.signIn !== undefined) {
      headers.set("SIGN-IN-WITH-X", request.signIn);
    }
    const send = this.#fetch; // called without `this`, as browsers demand
    const response = await send(this.#api + request.path, {
      method: request.body === undefined ? "GET" : "POST",
      headers,
      body: request.body ?? null,
      signal,
      redirect: "manual",
      credentials: "omit",
      cache: "no-store",
      referrerPolicy: "no-referrer",
    });
    const body = await readBody(response);
    // browsers hide a redirect that was not followed
    const status = response.type === "opaqueredirect" ? 302 : response.status;
    return { status, headers: response.headers, body };
  }
}

/** Format milliseconds as seconds, those of a short wait with two digits. */
function formatSeconds(milliseconds: number): string {
  const seconds = milliseconds / 1000;
  return String(seconds < 10 ? Number(seconds.toPrecision(2)) : Math.round(seconds));
}

async function readBody(response: Response): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let size = 0;
  const reader = response.body?.getReader();
  while (reader !== undefined) {
    const { done, value } = await reader.read();
    if (done) {
      break;
    }
    size += value.byteLength;
    if (size > MAX_RESPONSE_BYTES) {
      await reader.cancel().catch(() => undefined);
      throw new TransportError("too_large", `sent a response of more than ${MAX_RESPONSE_BYTES / 2 ** 20} MB`);
    }
    parts.push(value);
  }
  return join(parts, size);
}

function join(parts: readonly Uint8Array[], size: number): Uint8Array {
  const body = new Uint8Array(size);
  let offset = 0;
  for (const part of parts) {
    body.set(part, offset);
    offset += part.byteLength;
  }
  return body;
}

/** Tell a connection that was never made from one that was closed; browsers do not tell them apart. */
function classifyError(error: unknown): TransportError {
  const cause: unknown = error instanceof Error ? (error.cause ?? error) : error;
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  const description = (cause instanceof Error ? cause.message : String(cause)).slice(0, 200) || code;
  return UNREACHABLE.has(code)
    ? new TransportError("unreachable", `cannot be reached (${description})`)
    : new TransportError("cut", `closed the connection (${description})`);
}
