/** Payment for one request: the signed authorization and the request it is bound to. */

import { safeBase64Encode } from "@x402/core/utils";
import type { Address, Hex, LocalAccount, WalletClient } from "viem";
import { getAddress, sha256, stringToBytes } from "viem/utils";
import { WalletFailed } from "./errors.js";
import { isObject, type JsonObject } from "./json.js";
import { formatUsd } from "./money.js";
import type { PaymentOption } from "./terms.js";

/** x402's extension for an idempotency key that the buyer chooses. */
const IDENTIFIER = "payment-identifier";

/** The message that EIP-3009 signs. */
const TRANSFER_WITH_AUTHORIZATION = [
  { name: "from", type: "address" },
  { name: "to", type: "address" },
  { name: "value", type: "uint256" },
  { name: "validAfter", type: "uint256" },
  { name: "validBefore", type: "uint256" },
  { name: "nonce", type: "bytes32" },
] as const;

/** What signs: a viem account with its key, or a viem wallet client with an account (a browser's wallet). */
export type Wallet = LocalAccount | WalletClient;

/** A request that a payment is bound to: the API's origin, the path, and the canonical body. */
export interface PurchaseOrder {
  readonly api: string;
  readonly path: string;
  /** Slug of the service, whose path the API may change. */
  readonly service: string;
  readonly body: string;
  /** SHA-256 of the body, in hex. */
  readonly digest: string;
}

/** A signed payment, as it is sent and recorded: plain JSON. Keep it secret: it buys one answer. */
export interface Payment {
  readonly api: string;
  readonly path: string;
  /** Slug of the service; records of older clients have none. */
  readonly service?: string;
  /** SHA-256 of the request's body, in hex. */
  readonly digest: string;
  readonly network: string;
  /** Address of the token. */
  readonly asset: string;
  readonly payer: string;
  readonly payee: string;
  /** US dollars, exactly. */
  readonly usd: string;
  readonly nonce: string;
  /** End of its authorization, in seconds since 1970. */
  readonly validBefore: number;
  /** `PAYMENT-SIGNATURE`, identical each time it is sent. */
  readonly header: string;
}

/** Build the order for a request. */
export function buildOrder(order: Omit<PurchaseOrder, "digest">): PurchaseOrder {
  return { ...order, digest: sha256(stringToBytes(order.body)).slice(2) };
}

/** True if a payment was signed for this request, at whatever path the service was then. */
export function isPaymentFor(payment: Payment, order: PurchaseOrder): boolean {
  const isSameService = payment.path === order.path || payment.service === order.service;
  return isSameService && payment.api === order.api && payment.digest === order.digest;
}

/** Return the address that a wallet signs for; null for a wallet client without an account. */
export function findPayer(wallet: Wallet): Address | null {
  return isWalletClient(wallet) ? (wallet.account?.address ?? null) : wallet.address;
}

/** Sign a payment under the chosen terms for one request. Throws WalletFailed. */
export async function signPayment(option: PaymentOption, order: PurchaseOrder, wallet: Wallet): Promise<Payment> {
  const authorization = buildAuthorization(option, requirePayer(wallet));
  const signature = await requestSignature(option, authorization, wallet);
  const content = {
    x402Version: 2,
    resource: option.offer.resource,
    accepted: option.raw,
    payload: { signature, authorization },
    extensions: echoExtensions(option.offer.extensions),
  };
  return {
    api: order.api,
    path: order.path,
    service: order.service,
    digest: order.digest,
    network: option.network,
    asset: option.asset.address,
    payer: authorization.from,
    payee: option.payee,
    usd: formatUsd(option.usd),
    nonce: authorization.nonce,
    validBefore: Number(authorization.validBefore),
    header: safeBase64Encode(JSON.stringify(content)),
  };
}

/** EIP-3009's message, in x402's form. */
interface Authorization {
  readonly from: Address;
  readonly to: Address;
  readonly value: string;
  readonly validAfter: string;
  readonly validBefore: string;
  readonly nonce: Hex;
}

/** Build the message from the values that were checked, not from those that came. */
function buildAuthorization(option: PaymentOption, payer: Address): Authorization {
  return {
    from: payer,
    to: option.payee,
    value: option.amount,
    validAfter: "0",
    validBefore: String(Math.floor(Date.now() / 1000) + option.window),
    nonce: `0x${generateHex(32)}`,
  };
}

/** Let the wallet sign the message under the token's EIP-712 domain. Throws WalletFailed. */
async function requestSignature(option: PaymentOption, authorization: Authorization, wallet: Wallet): Promise<Hex> {
  const { asset, network } = option;
  const typedData = {
    domain: {
      name: asset.name,
      version: asset.version,
      chainId: Number(network.slice("eip155:".length)),
      verifyingContract: getAddress(asset.address.toLowerCase()),
    },
    types: { TransferWithAuthorization: TRANSFER_WITH_AUTHORIZATION },
    primaryType: "TransferWithAuthorization",
    message: {
      ...authorization,
      value: BigInt(authorization.value),
      validAfter: BigInt(authorization.validAfter),
      validBefore: BigInt(authorization.validBefore),
    },
  } as const;
  try {
    if (!isWalletClient(wallet)) {
      return await wallet.signTypedData(typedData);
    }
    return await wallet.signTypedData({ account: wallet.account ?? authorization.from, ...typedData });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new WalletFailed(`the wallet did not sign: ${reason.slice(0, 300)}. Nothing was sent`, { cause });
  }
}

/** Let the wallet sign a text (EIP-191). Throws WalletFailed. */
export async function signText(text: string, wallet: Wallet): Promise<Hex> {
  try {
    if (!isWalletClient(wallet)) {
      return await wallet.signMessage({ message: text });
    }
    return await wallet.signMessage({ account: wallet.account ?? requirePayer(wallet), message: text });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new WalletFailed(`the wallet did not sign: ${reason.slice(0, 300)}. Nothing was sent`, { cause });
  }
}

/** Return the address that a wallet signs for. Throws WalletFailed for a wallet client without an account. */
export function requirePayer(wallet: Wallet): Address {
  const payer = findPayer(wallet);
  if (payer === null) {
    throw new WalletFailed("the wallet client has no account: create it with one. Nothing was signed");
  }
  return payer;
}

function isWalletClient(wallet: Wallet): wallet is WalletClient {
  return "account" in wallet;
}

/** Return what was given as the wallet. Throws WalletFailed, which never quotes it, if it cannot be one. */
export function checkWallet(wallet: Wallet): Wallet {
  const given: unknown = wallet;
  if (typeof given !== "object" || given === null || !("account" in given || "address" in given)) {
    throw new WalletFailed(
      "the wallet is not a viem account or wallet client: make one of a key with `privateKeyToAccount(key)`. " +
        "Nothing was signed",
    );
  }
  return wallet;
}

/** Copy the extensions, with an idempotency key if one is asked for. */
function echoExtensions(extensions: JsonObject): JsonObject {
  const block = extensions[IDENTIFIER];
  if (!isObject(block)) {
    return extensions;
  }
  const info = isObject(block["info"]) ? block["info"] : {};
  return { ...extensions, [IDENTIFIER]: { ...block, info: { ...info, id: `pay_${generateHex(16)}` } } };
}

/** Return random bytes in hex. */
function generateHex(size: number): string {
  const bytes = crypto.getRandomValues(new Uint8Array(size));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
