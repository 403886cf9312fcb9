/**
 * Verify a signed receipt (x402's extension `offer-receipt`) and Centgate's statement about the answer.
 *
 * A signature proves something about a service only if its signer's address is known to belong to the service.
 */

import type { Hex } from "viem";
import { hashTypedData, recoverAddress, sha256 } from "viem/utils";
import { isObject, parseHeader, type JsonObject } from "./json.js";
import type { Answer } from "./responses.js";

type FieldType = "uint256" | "string" | "bytes32";

/** A type of signed statement: its signing domain, and its fields in order with what omitted ones count as. */
interface StatementType {
  readonly name: string;
  readonly domain: string;
  readonly fields: Readonly<Record<string, FieldType>>;
  readonly absent: JsonObject;
}

/** A signed statement with the address recovered from its signature. */
interface SignedStatement {
  readonly signer: string;
  readonly payload: JsonObject;
  readonly digest: Hex;
}

/** Sections 3.2 and 5.3 of x402's extension. */
const RECEIPT: StatementType = {
  name: "Receipt",
  domain: "x402 receipt",
  fields: {
    version: "uint256",
    network: "string",
    resourceUrl: "string",
    payer: "string",
    issuedAt: "uint256",
    transaction: "string",
  },
  absent: { transaction: "" },
};
/** States that the answer of a receipt had these bytes; `receipt` is the digest of the receipt. */
const ANSWER: StatementType = {
  name: "Answer",
  domain: "Centgate answer",
  fields: { receipt: "bytes32", bodySha256: "bytes32" },
  absent: {},
};
const RECEIPT_EXTENSION = "offer-receipt";
const ANSWER_EXTENSION = "centgate-answer";
const VERSION = 1;

/** Return an answer with the signer of its receipt, or with a note why the signed receipt proves nothing. */
export async function addSigner(answer: Answer, body: Uint8Array, path: string): Promise<Answer> {
  const { receipt } = answer;
  const settlement = receipt === null ? null : parseHeader(receipt.header);
  if (receipt === null || !isObject(settlement) || !hasSignedReceipt(settlement)) {
    return answer;
  }
  try {
    return { ...answer, receipt: { ...receipt, signer: await verify(settlement, body, path) } };
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    return { ...answer, notes: [...answer.notes, `the API's signed receipt proves nothing: ${problem}`] };
  }
}

function hasSignedReceipt(settlement: JsonObject): boolean {
  return isObject(settlement["extensions"]) && RECEIPT_EXTENSION in settlement["extensions"];
}

/** Return the signer if everything signed agrees with what was received. Throws Error with the problem. */
async function verify(settlement: JsonObject, body: Uint8Array, path: string): Promise<string> {
  const receipt = await readStatement(RECEIPT, findInfo(settlement, RECEIPT_EXTENSION, "receipt"));
  for (const name of ["payer", "network", "transaction"]) {
    const [signed, unsigned] = [String(receipt.payload[name] ?? ""), String(settlement[name])];
    if (signed !== "" && signed.toLowerCase() !== unsigned.toLowerCase()) {
      throw new Error(`the settlement around the receipt has a different ${name}`);
    }
  }
  const answer = await readStatement(ANSWER, findInfo(settlement, ANSWER_EXTENSION, "answer"));
  if (String(answer.payload["receipt"]).toLowerCase() !== receipt.digest) {
    throw new Error("the statement about the answer belongs to another receipt");
  }
  if (answer.signer !== receipt.signer) {
    throw new Error("the statement about the answer is signed by a different key");
  }
  if (String(answer.payload["bodySha256"]).toLowerCase() !== sha256(body)) {
    throw new Error("the body is not the one that was signed");
  }
  // the API may be paid under its public URL and called by another: only the path is common to both
  if (!String(receipt.payload["resourceUrl"]).endsWith(path)) {
    throw new Error("the receipt is for another service");
  }
  return receipt.signer;
}

/** Return `extensions.<extension>.info.<name>` of a settlement; undefined if it is missing. */
function findInfo(settlement: JsonObject, extension: string, name: string): unknown {
  let node: unknown = settlement;
  for (const step of ["extensions", extension, "info", name]) {
    node = isObject(node) ? node[step] : undefined;
  }
  return node;
}

/** Parse a signed statement and recover its signer. Throws Error with the reason. */
async function readStatement(type: StatementType, signed: unknown): Promise<SignedStatement> {
  const { format, payload, signature } = isObject(signed) ? signed : {};
  if (format !== "eip712" || !isObject(payload) || typeof signature !== "string") {
    throw new Error(`there is no statement of the type ${type.name} signed by EIP-712`);
  }
  const values = { ...type.absent, ...payload };
  const problem = findFieldProblem(type, values);
  if (problem !== null) {
    throw new Error(`the statement of the type ${type.name} is unreadable: ${problem}`);
  }
  const fields = Object.entries(type.fields).map(([name, kind]) => ({ name, type: kind }));
  const digest = hashTypedData({
    // always chain 1, whatever the payment's network: statements are never sent to a chain (section 3.2)
    domain: { name: type.domain, version: "1", chainId: 1 },
    types: { [type.name]: fields },
    primaryType: type.name,
    message: values,
  });
  try {
    return { signer: await recoverAddress({ hash: digest, signature: signature as Hex }), payload, digest };
  } catch {
    throw new Error(`the signature of the type ${type.name} is invalid`);
  }
}

/** Return what is wrong with a payload; a field outside the signed type is wrong too: it would look signed. */
function findFieldProblem(type: StatementType, values: JsonObject): string | null {
  const names = Object.keys(type.fields);
  if (Object.keys(values).some((name) => !names.includes(name))) {
    return "it has a field that is not part of the signed type";
  }
  const wrong = names.find((name) => !isOfType(type.fields[name], values[name]));
  if (wrong !== undefined) {
    return `its field ${wrong} is missing, or of another type`;
  }
  return "version" in values && values["version"] !== VERSION ? `only version ${VERSION} is supported` : null;
}

function isOfType(type: FieldType | undefined, value: unknown): boolean {
  if (type === "uint256") {
    return Number.isSafeInteger(value) && Number(value) >= 0;
  }
  return typeof value === "string" && (type === "string" || /^0x[0-9a-fA-F]{64}$/.test(value));
}
