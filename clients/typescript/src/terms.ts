/** Parse the payment terms of a 402 and check them against the policy (x402 version 2, `exact`, EIP-3009). */

import type { Address } from "viem";
import { getAddress } from "viem/utils";
import { parseHost } from "./api-url.js";
import { Drift, TermsRefused } from "./errors.js";
import { TEST_NETWORKS, USDC } from "./generated/tokens.js";
import { isObject, parseHeader, quote, type JsonObject } from "./json.js";
import { formatUsd, fromBaseUnits } from "./money.js";

/** A dollar token with EIP-3009 transfers: its address, EIP-712 domain and decimals. */
export interface Asset {
  readonly address: string;
  readonly name: string;
  readonly version: string;
  readonly decimals: number;
}

/** A network (CAIP-2), such as `eip155:8453`. */
export type Network = `${string}:${string}`;

/** Payment policy: where and with what a client pays. */
export interface Policy {
  readonly networks: ReadonlySet<string>;
  readonly assets: Readonly<Record<string, Asset>>;
  readonly hosts: ReadonlySet<string>;
  /** Network to pay on if an API accepts several; null for the API's order. */
  readonly preferredNetwork: string | null;
}

/** Pinned payees by network, or for {@link ANY_NETWORK}; empty without pins. */
export type PinnedPayees = Readonly<Record<string, Address>>;

/** Key of a pinned payee that is paid on every network. */
export const ANY_NETWORK = "*";

/** x402's PaymentRequired; its parts stay as they came, since they are echoed. */
export interface PaymentOffer {
  readonly resource: JsonObject;
  readonly accepts: readonly JsonObject[];
  readonly extensions: JsonObject;
  readonly raw: JsonObject;
}

/** An entry of `accepts` that can be signed. */
export interface PaymentOption {
  readonly offer: PaymentOffer;
  /** The entry as it came, which the payment echoes. */
  readonly raw: JsonObject;
  readonly network: Network;
  readonly asset: Asset;
  /** The payee, with its EIP-55 checksum. */
  readonly payee: Address;
  /** In the token's base units. */
  readonly amount: string;
  /** The price in units of 10^-18 US dollars. */
  readonly usd: bigint;
  /** Seconds that a signature is valid. */
  readonly window: number;
  readonly isUpfront: boolean;
}

/** Price, payee and terms of a call; nothing was signed. */
export interface Quote {
  /** US dollars, exactly. */
  readonly usd: string;
  readonly network: string;
  /** Address of the token. */
  readonly asset: string;
  /** The token's name, as in its contract. */
  readonly token: string;
  readonly payee: string;
  /** Seconds that a signature is valid. */
  readonly seconds: number;
  /** URL that the terms are for. */
  readonly resource: string;
  /** Reasons why this client would not sign; empty if it would. */
  readonly objections: readonly string[];
  /** x402's PaymentRequired, unchanged. */
  readonly offer: Readonly<Record<string, unknown>>;
}

/** Minimum and maximum validity of a payment, in seconds. */
const VALIDITY_LIMITS = [10, 3600] as const;
/** Maximum characters of PAYMENT-REQUIRED: with more, the payment would be too long for a header. */
const MAX_HEADER = 12 * 1024;
/** Maximum nesting of objects and arrays. */
const MAX_DEPTH = 64;
/** Settlement after the work (`authorization`, or unnamed) or before it (`upfront`). */
const PAYMENT_FLOWS: readonly unknown[] = ["authorization", "upfront", undefined, null];

/** Build a policy. Throws RangeError for a network or a token that this client cannot pay with. */
export function buildPolicy(
  networks: readonly string[] = TEST_NETWORKS,
  assets: Readonly<Record<string, Asset>> = {},
  hosts: readonly string[] = [],
  preferredNetwork: string | null = null,
): Policy {
  if (preferredNetwork !== null) {
    requireNetwork(preferredNetwork);
  }
  Object.entries(assets).forEach(requireAsset);
  const supported = new Set([...Object.keys(USDC), ...TEST_NETWORKS, ...Object.keys(assets)]);
  for (const network of networks) {
    if (!supported.has(network)) {
      const names = Object.keys(USDC).join(", ");
      throw new RangeError(`this client cannot pay on network ${quote(network)}; supported: ${names}`);
    }
  }
  return {
    networks: new Set(networks),
    assets,
    hosts: new Set(hosts.map((host) => host.toLowerCase())),
    preferredNetwork,
  };
}

function requireNetwork(network: string): void {
  if (!/^eip155:[1-9][0-9]{0,18}$/.test(network)) {
    throw new RangeError(`${quote(network)} is not a network of the form eip155:8453`);
  }
}

function requireAsset([network, asset]: [string, Asset]): void {
  if (!/^eip155:[1-9][0-9]{0,15}$/.test(network) || !/^0x[0-9a-fA-F]{40}$/.test(asset.address)) {
    throw new RangeError(`${quote(network)} is not a network of the form eip155:8453, or its token has no address`);
  }
  fromBaseUnits(0n, asset.decimals);
}

/** Parse the terms in PAYMENT-REQUIRED. Throws Drift or TermsRefused. */
export function parseOffer(header: string | null): PaymentOffer {
  if (header === null) {
    throw new Drift("the API sent a 402 without terms (PAYMENT-REQUIRED). Is this a Centgate API URL?");
  }
  if (header.length > MAX_HEADER) {
    throw new TermsRefused(`the terms are longer than ${MAX_HEADER} characters, so no payment can echo them`);
  }
  let raw: unknown;
  try {
    raw = parseHeader(header);
  } catch {
    throw new Drift("the API's terms (PAYMENT-REQUIRED) are not JSON in base64");
  }
  if (!isObject(raw) || isTooDeep(raw)) {
    throw new Drift("the API's terms are not those of x402: no object, or one nested too deep");
  }
  return readOffer(raw);
}

function readOffer(raw: JsonObject): PaymentOffer {
  const { x402Version: version, resource, accepts } = raw;
  if (version !== 2) {
    throw new TermsRefused(`the terms are x402 version ${quote(version)}; this client supports version 2`);
  }
  const entries = Array.isArray(accepts) ? accepts.filter(isObject) : [];
  if (!isObject(resource) || entries.length === 0) {
    throw new Drift("the API's terms are not those of x402 version 2: no `resource`, or no `accepts`");
  }
  const extensions = raw["extensions"] ?? {};
  if (!isObject(extensions)) {
    throw new Drift("the API's terms are not those of x402 version 2: `extensions` is not an object");
  }
  return { resource, accepts: entries, extensions, raw };
}

function isTooDeep(content: unknown): boolean {
  let level = [content];
  for (let depth = 0; depth < MAX_DEPTH; depth += 1) {
    level = level.flatMap((each) => (typeof each === "object" && each !== null ? Object.values(each) : []));
  }
  return level.length > 0;
}

/**
 * Return the entries that can be signed, best first: those of the preferred network, then settlement after the
 * work, then the lowest price, then the order of the API.
 *
 * Throws TermsRefused if there are none.
 */
export function listOptions(offer: PaymentOffer, host: string, policy: Policy): readonly PaymentOption[] {
  const objection = findResourceObjection(offer, host, policy);
  if (objection !== null) {
    throw new TermsRefused(objection);
  }
  const parsed = offer.accepts.map((raw) => parseOption(offer, raw, policy));
  const objections = parsed.filter((each) => typeof each === "string");
  const options = parsed.filter((each) => typeof each !== "string");
  if (options.length === 0) {
    throw new TermsRefused([...new Set(objections)].join("; or "), objections);
  }
  // the sort is stable: entries that are equally good keep the order of the API
  return options.sort((option, other) => compareOptions(option, other, policy.preferredNetwork));
}

function compareOptions(option: PaymentOption, other: PaymentOption, preferred: string | null): number {
  const byNetwork = Number(option.network !== preferred) - Number(other.network !== preferred);
  const byFlow = Number(option.isUpfront) - Number(other.isUpfront);
  const byPrice = option.usd < other.usd ? -1 : Number(option.usd > other.usd);
  return byNetwork || byFlow || byPrice;
}

/** Return the first option without an objection, else the first option with its objection. */
export function chooseOption(
  options: readonly PaymentOption[],
  findObjection: (option: PaymentOption) => string | null,
): readonly [PaymentOption, string | null] {
  const found = options.map((option) => [option, findObjection(option)] as const);
  const chosen = found.find(([, objection]) => objection === null) ?? found[0];
  if (chosen === undefined) {
    throw new Drift("the API's terms have no entry that can be signed");
  }
  return chosen;
}

/**
 * Return why this payee may not be paid, or null if it may.
 *
 * `pinned` are the only payees; a network without one is not paid on. Without pins, `last` has the payees paid
 * last at this API, by network: another on the same network is refused, and one that no network had.
 */
export function findPayeeObjection(
  option: PaymentOption,
  pinned: PinnedPayees,
  last: ReadonlyMap<string, string>,
  api: string,
): string | null {
  return Object.keys(pinned).length > 0 ? findPinObjection(option, pinned) : findChangeObjection(option, last, api);
}

function findPinObjection(option: PaymentOption, pinned: PinnedPayees): string | null {
  const expected = pinned[option.network] ?? pinned[ANY_NETWORK];
  if (expected === undefined) {
    const networks = Object.keys(pinned).join(", ");
    return `no payee is pinned on ${option.network}, only on ${networks}: nothing was signed`;
  }
  return option.payee.toLowerCase() === expected.toLowerCase()
    ? null
    : `the terms name the payee ${option.payee}, but it is pinned to ${expected}: nothing was signed`;
}

function findChangeObjection(
  { payee, network }: PaymentOption,
  last: ReadonlyMap<string, string>,
  api: string,
): string | null {
  const before = last.get(network);
  const known = before === undefined ? [...last.values()] : [before];
  if (known.length === 0 || known.some((each) => each.toLowerCase() === payee.toLowerCase())) {
    return null;
  }
  if (before !== undefined) {
    return (
      `${api} now names the payee ${payee}; before it was ${before}. If its operator confirms the ` +
      `change, make a client with the option payee: "${payee}"`
    );
  }
  return (
    `${api} names the payee ${payee} on ${network}, where nothing was paid yet; on ${[...last.keys()].join(", ")} it ` +
    `was ${[...new Set(known)].join(", ")}. If its operator confirms it, make a client with the option payee: ` +
    JSON.stringify({ [network]: payee })
  );
}

/** Parse pinned payees: one address for all networks, or addresses by network. Throws RangeError. */
export function parsePayees(payee: string | Readonly<Record<string, string>> | undefined): PinnedPayees {
  if (payee === undefined) {
    return {};
  }
  if (typeof payee === "string") {
    return { [ANY_NETWORK]: requirePayee(payee) };
  }
  const pairs = Object.entries(payee);
  if (pairs.length === 0) {
    throw new RangeError("no payee is pinned: name one, or leave the option out");
  }
  for (const [network] of pairs) {
    requireNetwork(network);
  }
  return Object.fromEntries(pairs.map(([network, address]) => [network, requirePayee(address)]));
}

function requirePayee(payee: string): Address {
  const address = parsePayee(payee);
  if (address === null) {
    throw new RangeError(`${JSON.stringify(payee.slice(0, 60))} is not an address to pay`);
  }
  return address;
}

function findResourceObjection(offer: PaymentOffer, host: string, policy: Policy): string | null {
  const url = offer.resource["url"];
  if (typeof url !== "string") {
    return "the terms do not name the paid resource (resource.url)";
  }
  const termsHost = parseHost(url);
  if (termsHost === null) {
    return `the terms are for ${quote(url, 100)}, which is not a URL`;
  }
  return termsHost === host || policy.hosts.has(termsHost)
    ? null
    : `the terms are for the host ${termsHost}, but ${host} was called: call ${termsHost} directly`;
}

/** Parse an entry of `accepts`. Returns the option, or the reason why it cannot be signed. */
function parseOption(offer: PaymentOffer, raw: JsonObject, policy: Policy): PaymentOption | string {
  const { network, asset, amount, payTo, maxTimeoutSeconds: window } = raw;
  const extra = raw["extra"] ?? {};
  const texts = [raw["scheme"], network, asset, amount, payTo];
  if (!texts.every((each) => typeof each === "string") || !isObject(extra)) {
    return "the terms do not match x402: a field is missing, or of another type";
  }
  const token = findToken(String(network), policy);
  if (token === null) {
    return describeNetworkObjection(String(network), policy);
  }
  const objection =
    findSchemeObjection(raw["scheme"], extra) ??
    findTokenObjection(String(asset), String(network), extra, token) ??
    findAmountObjection(String(amount)) ??
    findWindowObjection(window);
  if (objection !== null) {
    return objection;
  }
  const payee = parsePayee(String(payTo));
  if (payee === null) {
    return `the terms name an invalid payee: ${quote(payTo, 60)} is not an address`;
  }
  return {
    offer,
    raw,
    network: String(network) as Network,
    asset: token,
    payee,
    amount: String(amount),
    usd: fromBaseUnits(BigInt(String(amount)), token.decimals),
    window: Number(window),
    isUpfront: extra["paymentFlow"] === "upfront",
  };
}

function findToken(network: string, policy: Policy): Asset | null {
  if (Object.hasOwn(policy.assets, network)) {
    return policy.assets[network] ?? null;
  }
  return policy.networks.has(network) && Object.hasOwn(USDC, network) ? (USDC[network] ?? null) : null;
}

/** Return why a network is not allowed, and how to allow a supported one. */
function describeNetworkObjection(network: string, policy: Policy): string {
  if (!Object.hasOwn(USDC, network)) {
    // without the token's address: it must come from its issuer, not from who wants to be paid
    return (
      `the terms require a payment on ${quote(network)}, a network this client does not support unless you ` +
      "name a token there: make a client with the option assets. Nothing was signed"
    );
  }
  const networks = [...policy.networks].filter((name) => !TEST_NETWORKS.includes(name));
  return (
    `the terms require a payment on ${network}, which is not enabled: make a client with the option ` +
    `networks: ${JSON.stringify([...networks, network].sort())}. Nothing was signed`
  );
}

function findSchemeObjection(scheme: unknown, extra: JsonObject): string | null {
  if (scheme !== "exact") {
    return `the terms require the scheme ${quote(scheme)}; this client signs only \`exact\``;
  }
  const method = extra["assetTransferMethod"];
  if (method !== undefined && method !== "eip3009") {
    return `the terms require a transfer by ${quote(method)}; this client signs only EIP-3009`;
  }
  const flow = extra["paymentFlow"];
  return PAYMENT_FLOWS.includes(flow)
    ? null
    : `the terms name the payment flow ${quote(flow)}, which this client does not support`;
}

function findTokenObjection(address: string, network: string, extra: JsonObject, token: Asset): string | null {
  if (address.toLowerCase() !== token.address.toLowerCase()) {
    return (
      `the terms require the token ${quote(address, 60)} on ${network}, which is not the dollar token of ` +
      `this client on that network (${token.address})`
    );
  }
  const { name, version } = extra;
  return name === token.name && version === token.version
    ? null
    : `the terms call the token ${quote(name)} version ${quote(version, 10)}, but it is "${token.name}" ` +
        `version "${token.version}": a signature under another name is not valid`;
}

function findAmountObjection(amount: string): string | null {
  return /^[1-9][0-9]{0,30}$/.test(amount)
    ? null
    : `the terms require ${quote(amount)}, which is not an amount in base units of a token`;
}

function findWindowObjection(window: unknown): string | null {
  const [minimum, maximum] = VALIDITY_LIMITS;
  return Number.isInteger(window) && minimum <= Number(window) && Number(window) <= maximum
    ? null
    : `the terms require a payment valid for ${quote(window, 20)} seconds, not ${minimum} to ${maximum}`;
}

/** Parse a payee and return it with its EIP-55 checksum; null if it is no address, or the zero address. */
export function parsePayee(address: string): Address | null {
  return /^0x[0-9a-fA-F]{40}$/.test(address) && !/^0x0{40}$/.test(address)
    ? getAddress(address.toLowerCase())
    : null;
}

/** Describe an option as a quote. */
export function buildQuote(option: PaymentOption, objections: readonly string[]): Quote {
  return {
    usd: formatUsd(option.usd),
    network: option.network,
    asset: option.asset.address,
    token: option.asset.name,
    payee: option.payee,
    seconds: option.window,
    resource: String(option.offer.resource["url"]),
    objections,
    offer: option.offer.raw,
  };
}
