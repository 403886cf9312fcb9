/** Signature of a payment for one request (EIP-3009). */

import { safeBase64Encode } from "@x402/core/utils";
import type { Address, Hex } from "viem";
import { getAddress } from "viem/utils";
import { isObject, type JsonObject } from "./json.js";
import { formatUsd } from "./money.js";
import type { Payment, PurchaseOrder } from "./payment.js";
import type { PaymentOption } from "./terms.js";
import { buildSigningError, isWalletClient, requirePayer, type Wallet } from "./wallet.js";

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
    throw buildSigningError(cause);
  }
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
