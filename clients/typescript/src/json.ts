/** JSON of strangers: parsed, never trusted; and our own, written so that equal values are equal text. */

import { safeBase64Decode } from "@x402/core/utils";
import { InvalidInput } from "./errors.js";

/** A JSON object of unknown content. */
export type JsonObject = { readonly [name: string]: unknown };

const MAX_QUOTED = 200;

/** True for a JSON object: neither null nor an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** True for a string of at most 200 characters, which may be copied into messages. */
export function isShortText(value: unknown): value is string {
  return typeof value === "string" && value.length <= MAX_QUOTED;
}

/** True for an array of strings. */
export function isTextArray(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}

/** Quote a stranger's text in a message: cut, printable, in quotation marks. */
export function quote(value: unknown, limit = 40): string {
  return JSON.stringify(printable(String(value)).slice(0, limit));
}

/** Replace control characters, and those that change the direction of text, by spaces. */
export function printable(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, " ");
}

/** Parse the JSON in a base64 header. Throws SyntaxError, or DOMException for text that is not base64. */
export function parseHeader(header: string): unknown {
  return JSON.parse(safeBase64Decode(header));
}

/**
 * Serialize a request body canonically, so that equal requests are equal bytes.
 *
 * Members that are undefined are left out. Throws InvalidInput for what JSON cannot hold.
 */
export function canonicalJson(body: unknown): string {
  if (!isObject(body)) {
    throw invalid("the body must be a JSON object");
  }
  try {
    return serialize(body, "");
  } catch (error) {
    if (error instanceof RangeError) {
      throw invalid("the body cannot be written as JSON: it is nested too deep, or contains itself");
    }
    throw error;
  }
}

function serialize(value: unknown, path: string): string {
  if (value === null || typeof value === "boolean") {
    return String(value);
  }
  if (typeof value === "string" && isWellFormed(value)) {
    return JSON.stringify(value);
  }
  if (typeof value === "number" && Number.isFinite(value)) {
    return JSON.stringify(value);
  }
  if (Array.isArray(value)) {
    // not `map`, which skips holes
    return `[${Array.from(value, (each, index) => serialize(each, `${path}.${index}`)).join(",")}]`;
  }
  if (isObject(value) && isPlain(value)) {
    const names = Object.keys(value).filter((name) => value[name] !== undefined);
    return `{${names.sort().map((name) => member(name, value[name], path)).join(",")}}`;
  }
  throw invalid(`the body cannot be written as JSON: ${describe(value)}`, path.slice(1));
}

function member(name: string, value: unknown, path: string): string {
  if (!isWellFormed(name)) {
    throw invalid("the body cannot be written as JSON: a name is not valid Unicode", path.slice(1));
  }
  return `${JSON.stringify(name)}:${serialize(value, `${path}.${name}`)}`;
}

/** True if a string has no half of a surrogate pair, which UTF-8 cannot hold. */
function isWellFormed(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function describe(value: unknown): string {
  if (typeof value === "string") {
    return "a text is not valid Unicode";
  }
  return typeof value === "number" ? `${value} is not a number of JSON` : `${typeof value} is not JSON`;
}

function invalid(message: string, path = ""): InvalidInput {
  return new InvalidInput(message, [{ path, message }]);
}
