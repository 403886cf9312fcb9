/** Unpaid requests: the catalogue, and the payment terms of a call. An error here means that no payment was signed. */

import {
  BuyerError,
  Cancelled,
  Drift,
  InvalidInput,
  NotFound,
  ServiceFailed,
  Unavailable,
  Unreachable,
  UnsupportedOptions,
  type InputIssue,
} from "./errors.js";
import { isObject, printable, quote, type JsonObject } from "./json.js";
import type { Patience } from "./options.js";
import { TRANSIENT_STATUSES, factsOf, parseRetryAfter } from "./outcome.js";
import type { PurchaseOrder } from "./payment.js";
import {
  NotJson,
  UnexpectedShape,
  parseAnswer,
  parseBody,
  parseError,
  type Answer,
  type ErrorResponse,
} from "./responses.js";
import { parseOffer, type PaymentOffer } from "./terms.js";
import type { TimeLimit } from "./time-limit.js";
import { Aborted, TransportError, type HttpRequest, type HttpResponse, type Transport } from "./transport.js";

const PATH = /^\/(?!\/)[A-Za-z0-9/_.~-]+$/;
const SLUG = /^[A-Za-z0-9_.~-]{1,100}$/;
/** Milliseconds for a request of the catalogue. */
const CATALOG_TIMEOUT = 30_000;

/** A service as the catalogue lists it; further fields are as the API sends them. */
export interface ServiceSummary {
  readonly slug: string;
  readonly path: string;
  readonly [field: string]: unknown;
}

/** What a purchase needs to know of a service. */
export interface ServiceRoute {
  readonly path: string;
  /** False if the catalogue says that no provider that could answer is configured. */
  readonly isAvailable: boolean;
}

/** Unpaid requests to one API. */
export class FreeRequests {
  constructor(
    readonly api: string,
    readonly patience: Patience,
    readonly transport: Transport,
  ) {}

  /** Return every service of the API, in catalogue order. */
  async fetchServices(limit: TimeLimit): Promise<readonly ServiceSummary[]> {
    const content = await this.#getJson("/services", "the API has no catalogue", limit);
    const services = isObject(content) ? content["services"] : null;
    if (!Array.isArray(services) || !services.every(isServiceSummary)) {
      throw new Drift(`${this.api} has no Centgate catalogue`);
    }
    return services;
  }

  /** Return one service, with the schemas of its input and output. */
  async fetchService(slug: string, limit: TimeLimit): Promise<ServiceSummary> {
    if (!SLUG.test(slug)) {
      throw new NotFound(`${this.api} has no service ${quote(slug, 60)}: \`services()\` lists its services`);
    }
    const missing = `${this.api} has no service "${slug}": \`services()\` lists its services`;
    const entry = await this.#getJson(`/services/${slug}`, missing, limit);
    const path = isObject(entry) ? entry["path"] : null;
    if (!isObject(entry) || typeof path !== "string" || !PATH.test(path)) {
      throw new Drift(`${this.api} gives ${quote(path, 80)} as the path of ${slug}, which is not a path`);
    }
    return { ...entry, slug, path };
  }

  /** Return where a service is called. */
  async fetchRoute(slug: string, limit: TimeLimit): Promise<ServiceRoute> {
    const entry = await this.fetchService(slug, limit);
    return { path: entry.path, isAvailable: isAvailable(entry) };
  }

  /**
   * Send a request without a payment. Returns its terms, or the answer if no payment is required.
   *
   * Throws InvalidInput for terms with `details.issues`: an API gives directories the terms for an empty object
   * too, but would refuse it with a payment.
   */
  async fetchTerms(order: PurchaseOrder, limit: TimeLimit): Promise<PaymentOffer | Answer> {
    const response = await this.#send(order.path, this.patience.answer, limit, order.body);
    if (response.status === 200) {
      return this.#parseFreeAnswer(response);
    }
    const failure = parseError(response);
    if (response.status !== 402 || failure.code === "payment_not_configured") {
      throw buildError(this.api, response, failure);
    }
    const issues = parseIssues(failure);
    if (issues.length > 0) {
      throw new InvalidInput(describeIssues(issues), issues, { ...factsOf(failure), note: null });
    }
    return parseOffer(response.headers.get("payment-required"));
  }

  async #getJson(path: string, missing: string, limit: TimeLimit): Promise<unknown> {
    const response = await this.#send(path, CATALOG_TIMEOUT, limit);
    if (response.status === 404) {
      throw new NotFound(missing);
    }
    if (response.status !== 200) {
      throw buildError(this.api, response, parseError(response));
    }
    try {
      return parseBody(response);
    } catch {
      throw new Drift(`${this.api}${path} did not return JSON. Is this a Centgate API URL?`);
    }
  }

  async #send(path: string, timeout: number, limit: TimeLimit, body?: string): Promise<HttpResponse> {
    try {
      return await this.#sendWithRetry(() => ({
        path,
        body,
        timeout: limit.shorten(timeout),
        signal: limit.signal,
      }), limit);
    } catch (error) {
      if (error instanceof Aborted) {
        throw new Cancelled("the call was cancelled. Nothing was signed", null, limit.cancelledFacts("not_moved"));
      }
      if (!(error instanceof TransportError)) {
        throw error;
      }
      if (error.reason === "too_large") {
        throw new Drift(`${this.api} ${error.message}. Is this a Centgate API URL? Nothing was signed`);
      }
      throw new Unreachable(`${this.api} ${error.message}. Nothing was signed; check the API URL`);
    }
  }

  /** Send an unpaid request; once more after a lost connection, or an error that may pass. */
  async #sendWithRetry(build: () => HttpRequest, limit: TimeLimit): Promise<HttpResponse> {
    const { pause, longestPause } = this.patience;
    let delay = pause;
    try {
      const response = await this.transport.send(build());
      const retryAfter = parseRetryAfter(response);
      if (!TRANSIENT_STATUSES.has(response.status) || retryAfter > longestPause) {
        return response;
      }
      delay = Math.max(delay, retryAfter);
    } catch (error) {
      if (!(error instanceof TransportError) || error.reason !== "cut") {
        throw error;
      }
    }
    await limit.sleep(delay);
    return this.transport.send(build());
  }

  #parseFreeAnswer(response: HttpResponse): Answer {
    try {
      return parseAnswer(response, null);
    } catch (error) {
      if (error instanceof NotJson || error instanceof UnexpectedShape) {
        throw new Drift(`${this.api} did not return a Centgate answer: ${error.message}. Nothing was signed`);
      }
      throw error;
    }
  }
}

function isServiceSummary(entry: unknown): entry is ServiceSummary {
  return isObject(entry) && typeof entry["slug"] === "string" && typeof entry["path"] === "string";
}

/** True if a provider that can answer alone is configured; a missing state counts as configured. */
function isAvailable(entry: JsonObject): boolean {
  const providers = readObjects(entry["providers"]);
  const leads = providers.filter((each) => each["role"] === "primary" || each["role"] === "fallback");
  const missing = new Set(
    readObjects(entry["sources"]).filter((each) => each["configured"] === false).map((each) => each["name"]),
  );
  const candidates = leads.length > 0 ? leads : providers;
  return candidates.length === 0 || candidates.some((each) => !missing.has(each["name"]));
}

function readObjects(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** Map the error response of an unpaid request to an error. */
export function buildError(api: string, response: HttpResponse, failure: ErrorResponse): BuyerError {
  // without a payment the API's word on one means nothing
  const facts = { ...factsOf(failure), note: null };
  if (response.status >= 300 && response.status < 400) {
    const location = quote(response.headers.get("location") ?? "elsewhere", 200);
    return new Drift(`${api} redirects to ${location}: call that address directly. Nothing was signed`, facts);
  }
  const { message } = failure;
  switch (failure.code) {
    case "validation_error":
      return new InvalidInput(message, orWholeBody(parseIssues(failure), message), facts);
    case "unsupported_options":
      return new UnsupportedOptions(message, readList(failure, "options").map(String), facts);
    case "not_found":
      return new NotFound(message, facts);
    case "payment_not_configured":
    case "provider_unconfigured":
      return new Unavailable(`${api} does not sell it: ${message}`, facts);
    case null:
      return new Drift(`${api} returned ${response.status} without a Centgate error. Nothing was signed`, facts);
    default:
      return new ServiceFailed(
        `${message} (${failure.code}). Nothing was signed; call again later`,
        failure.provider,
        facts,
      );
  }
}

function parseIssues(failure: ErrorResponse): InputIssue[] {
  return readList(failure, "issues")
    .filter(isObject)
    .map((each) => ({ path: String(each["path"] ?? ""), message: String(each["message"] ?? "") }));
}

function orWholeBody(issues: InputIssue[], message: string): InputIssue[] {
  return issues.length > 0 ? issues : [{ path: "", message }];
}

/** Return the issues as one message, in the form of the API's `validation_error`. */
function describeIssues(issues: readonly InputIssue[]): string {
  const listed = issues.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`));
  return `${printable(listed.join("; ").slice(0, 500))}. Nothing was signed`;
}

function readList(failure: ErrorResponse, name: string): unknown[] {
  const value = failure.details[name];
  return Array.isArray(value) ? value : [];
}
