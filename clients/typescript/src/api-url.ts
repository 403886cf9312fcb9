/** Validate the URL of an API: its syntax, and TLS for public hosts. */

import { AddressRefused } from "./errors.js";
import { quote } from "./json.js";

/** Suffixes of host names that are not public (RFC 6761, 6762, 8375, and ICANN's `internal`). */
const PRIVATE_SUFFIXES = [".localhost", ".local", ".internal", ".home.arpa"];

/** Return `scheme://host[:port]` of an API URL. Throws AddressRefused. */
export function parseOrigin(api: string, plainHttp: ReadonlySet<string>): string {
  let url: URL;
  try {
    url = new URL(api.trim());
  } catch {
    throw new AddressRefused(`${quote(api, 100)} is not a valid API URL, such as https://api.example`);
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    throw new AddressRefused(`${quote(api, 100)} is not a valid API URL, such as https://api.example`);
  }
  if (url.pathname !== "/" || url.search || url.hash || url.username || url.password) {
    throw new AddressRefused(`the API URL must be ${url.origin}, without a path, a query or a password`);
  }
  if (url.protocol === "http:" && !plainHttp.has(url.hostname) && !isPrivate(url.hostname)) {
    throw new AddressRefused(
      `${url.origin} is a public host without TLS, where anyone on the network path can change the ` +
        "payee: use https",
    );
  }
  return url.origin;
}

/** Return the host of a URL in lower case, without a final dot; null if it is not a URL. */
export function parseHost(url: string): string | null {
  try {
    return new URL(url).hostname.toLowerCase().replace(/\.$/, "") || null;
  } catch {
    return null;
  }
}

/** True if the host belongs to this machine or its local network; `URL` has normalized its numbers. */
function isPrivate(hostname: string): boolean {
  const host = hostname.replace(/\.$/, "");
  if (host.startsWith("[")) {
    return /^\[(::1\]|f[cd][0-9a-f]{2}:|fe[89ab][0-9a-f]:)/.test(host);
  }
  const octets = /^([0-9]+)\.([0-9]+)\.[0-9]+\.[0-9]+$/.exec(host);
  if (octets === null) {
    return !host.includes(".") || PRIVATE_SUFFIXES.some((suffix) => host.endsWith(suffix));
  }
  return isPrivateNetwork(Number(octets[1]), Number(octets[2]));
}

/** True for loopback, private and link-local IPv4 networks (RFC 1918, 3927), by their first two octets. */
function isPrivateNetwork(first: number, second: number): boolean {
  return (
    first === 127 ||
    first === 10 ||
    (first === 172 && second >= 16 && second < 32) ||
    (first === 192 && second === 168) ||
    (first === 169 && second === 254)
  );
}
