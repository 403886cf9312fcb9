/** The wallet of a buyer: what signs, and for which address. */

import type { Address, Hex, LocalAccount, WalletClient } from "viem";
import { WalletFailed } from "./errors.js";

/** What signs: a viem account with its key, or a viem wallet client with an account (a browser's wallet). */
export type Wallet = LocalAccount | WalletClient;

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

/** Return the address that a wallet signs for; null for a wallet client without an account. */
export function findPayer(wallet: Wallet): Address | null {
  return isWalletClient(wallet) ? (wallet.account?.address ?? null) : wallet.address;
}

/** Return the address that a wallet signs for. Throws WalletFailed for a wallet client without an account. */
export function requirePayer(wallet: Wallet): Address {
  const payer = findPayer(wallet);
  if (payer === null) {
    throw new WalletFailed("the wallet client has no account: create it with one. Nothing was signed");
  }
  return payer;
}

/** Let the wallet sign a text (EIP-191). Throws WalletFailed. */
export async function signText(text: string, wallet: Wallet): Promise<Hex> {
  try {
    if (!isWalletClient(wallet)) {
      return await wallet.signMessage({ message: text });
    }
    return await wallet.signMessage({ account: wallet.account ?? requirePayer(wallet), message: text });
  } catch (cause) {
    throw buildSigningError(cause);
  }
}

/** Return the error for a wallet that did not sign; `cause` is the wallet's own. */
export function buildSigningError(cause: unknown): WalletFailed {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new WalletFailed(`the wallet did not sign: ${reason.slice(0, 300)}. Nothing was sent`, { cause });
}

/** True for a wallet client, false for an account with its key. */
export function isWalletClient(wallet: Wallet): wallet is WalletClient {
  return "account" in wallet;
}
