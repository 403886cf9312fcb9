/** Answers to the API's challenge to sign in, by x402's extension `sign-in-with-x`, after checking what is signed. */

import { safeBase64Encode } from "@x402/core/utils";
import { Drift } from "./errors.js";
import { isObject, isTextArray, parseHeader, quote, type JsonObject } from "./json.js";
import { requirePayer, signText, type Wallet } from "./wallet.js";

const EXTENSION = "sign-in-with-x";
/** One line of printable ASCII: nothing can pretend to be another line of the message. */
const LINE = /^[ -~]{1,500}$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;
const NONCE = /^[A-Za-z0-9]{8,128}$/;
const NETWORK = /^eip155:[1-9][0-9]{0,18}$/;

/** A checked challenge. */
interface Challenge {
  readonly domain: string;
  readonly uri: string;
  readonly statement: string;
  readonly nonce: string;
  readonly issuedAt: string;
  readonly expirationTime: string;
  readonly resources: readonly string[];
  readonly chainId: string;
}

/**
 * Return `SIGN-IN-WITH-X` for the challenge in a 402's `PAYMENT-REQUIRED`.
 *
 * Signs only a message for the API that was called, and for the path that was asked: a signature made here is of
 * no use anywhere else. Throws Drift for anything else, WalletFailed.
 */
export async function answerChallenge(
  header: string | null,
  wallet: Wallet,
  api: string,
  path: string,
): Promise<string> {
  const challenge = parseChallenge(header, api);
  const uri = api + path;
  const host = new URL(api).host;
  const resources = challenge.resources;
  if (challenge.domain !== host || challenge.uri !== uri || resources.length > 1 || (resources[0] ?? uri) !== uri) {
    throw new Drift(
      `${api} asks to sign in at ${quote(challenge.domain)} for ${quote(challenge.uri, 100)}, not at ${host} for ` +
        `${uri}. Nothing was signed: call the API at its public URL`,
    );
  }
  const address = requirePayer(wallet);
  const signature = await signText(formatMessage(challenge, address), wallet);
  const { chainId, ...info } = challenge;
  return safeBase64Encode(JSON.stringify({ ...info, version: "1", address, chainId, type: "eip191", signature }));
}

/** Return the text that is signed (EIP-4361). */
function formatMessage(challenge: Challenge, address: string): string {
  const { resources } = challenge;
  return [
    `${challenge.domain} wants you to sign in with your Ethereum account:`,
    address,
    "",
    challenge.statement,
    "",
    `URI: ${challenge.uri}`,
    "Version: 1",
    `Chain ID: ${challenge.chainId.slice("eip155:".length)}`,
    `Nonce: ${challenge.nonce}`,
    `Issued At: ${challenge.issuedAt}`,
    `Expiration Time: ${challenge.expirationTime}`,
    ...(resources.length > 0 ? ["Resources:", ...resources.map((each) => `- ${each}`)] : []),
  ].join("\n");
}

function parseChallenge(header: string | null, api: string): Challenge {
  const extension = readExtension(header);
  const info = extension !== null && isObject(extension["info"]) ? extension["info"] : null;
  const chainId = extension === null ? null : findChain(extension["supportedChains"]);
  if (info === null || chainId === null || info["version"] !== "1") {
    throw unknownChallenge(api);
  }
  const read = (name: string, pattern: RegExp): string => {
    const value = info[name];
    if (typeof value !== "string" || !pattern.test(value)) {
      throw unknownChallenge(api);
    }
    return value;
  };
  const resources = info["resources"] ?? [];
  if (!isTextArray(resources) || !resources.every((each) => LINE.test(each))) {
    throw unknownChallenge(api);
  }
  return {
    domain: read("domain", LINE),
    uri: read("uri", LINE),
    statement: read("statement", LINE),
    nonce: read("nonce", NONCE),
    issuedAt: read("issuedAt", TIME),
    expirationTime: read("expirationTime", TIME),
    resources,
    chainId,
  };
}

function readExtension(header: string | null): JsonObject | null {
  try {
    const offer = parseHeader(header ?? "");
    const extensions = isObject(offer) ? offer["extensions"] : null;
    const extension = isObject(extensions) ? extensions[EXTENSION] : null;
    return isObject(extension) ? extension : null;
  } catch {
    return null;
  }
}

function findChain(chains: unknown): string | null {
  for (const chain of Array.isArray(chains) ? chains.slice(0, 50) : []) {
    if (isObject(chain) && chain["type"] === "eip191" && NETWORK.test(String(chain["chainId"]))) {
      return String(chain["chainId"]);
    }
  }
  return null;
}

function unknownChallenge(api: string): Drift {
  return new Drift(`${api} asks for no sign-in that this client knows. Nothing was signed`);
}
