// The parts of Keccak-256, secp256k1 and EIP-712 that are needed to verify a signed receipt.

const bytes = (text) => new TextEncoder().encode(text);
const number = (data) => data.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
const word = (value, size = 32) =>
  Uint8Array.from({ length: size }, (_, at) => Number((value >> BigInt(8 * (size - 1 - at))) & 255n));
const unhex = (text) => (text.match(/../g) ?? []).map((pair) => parseInt(pair, 16));
export const hex = (data) => `0x${Array.from(data, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;

// The permutation of FIPS 202 on 25 lanes; Ethereum pads with 1 where SHA-3 pads with 6.

const LANE = (1n << 64n) - 1n;
const rotate = (lane, by) => ((lane << by) | (lane >> (64n - by))) & LANE;

function permute(state) {
  for (let round = 0, feedback = 1; round < 24; round++) {
    const columns = [0, 1, 2, 3, 4].map((x) => state.reduce((sum, lane, at) => (at % 5 === x ? sum ^ lane : sum), 0n));
    state.forEach((_, at) => (state[at] ^= columns[(at + 4) % 5] ^ rotate(columns[(at + 1) % 5], 1n)));
    const moved = [state[0]];
    for (let x = 1, y = 0, step = 1, by = 0; step < 25; step++) {
      by += step;
      const lane = state[x + 5 * y];
      [x, y] = [y, (2 * x + 3 * y) % 5];
      moved[x + 5 * y] = rotate(lane, BigInt(by % 64));
    }
    const right = (at, by) => moved[at - (at % 5) + ((at + by) % 5)];
    moved.forEach((lane, at) => (state[at] = lane ^ (~right(at, 1) & LANE & right(at, 2))));
    for (let bit = 0; bit < 7; bit++) {
      if (feedback & 1) state[0] ^= 1n << BigInt(2 ** bit - 1);
      feedback = (feedback << 1) ^ (feedback >> 7 && 0x171);
    }
  }
}

export function keccak(...parts) {
  const block = parts.flatMap((part) => [...part]);
  block.push(1, ...Array(135 - (block.length % 136)).fill(0));
  block[block.length - 1] |= 128;
  const state = Array(25).fill(0n);
  for (let at = 0; at < block.length; at += 8) {
    state[(at % 136) / 8] ^= number(block.slice(at, at + 8).reverse());
    if (at % 136 === 128) permute(state);
  }
  return state.slice(0, 4).flatMap((lane) => [...word(lane, 8)].reverse());
}

// The curve y² = x³ + 7; a point is [x, y], and null is the point at infinity.

const P = 2n ** 256n - 2n ** 32n - 977n;
const N = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const G = [
  0x79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798n,
  0x483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8n,
];
const mod = (value, by) => ((value % by) + by) % by;

function inverse(value, by) {
  let [left, right, factor, other] = [mod(value, by), by, 1n, 0n];
  while (left > 1n) {
    const times = right / left;
    [left, right, factor, other] = [right - times * left, left, other - times * factor, factor];
  }
  return mod(factor, by);
}

function sum(one, two) {
  if (!one || !two) return one ?? two;
  const same = one[0] === two[0];
  if (same && one[1] !== two[1]) return null;
  const [rise, run] = same ? [3n * one[0] * one[0], 2n * one[1]] : [two[1] - one[1], two[0] - one[0]];
  const slope = rise * inverse(run, P);
  const x = mod(slope * slope - one[0] - two[0], P);
  return [x, mod(slope * (one[0] - x) - one[1], P)];
}

function power(base, exponent) {
  let result = 1n;
  for (; exponent; exponent >>= 1n, base = (base * base) % P) if (exponent & 1n) result = (result * base) % P;
  return result;
}

// Recovers the address that signed 32 bytes; null for an invalid signature.
export function recover(digest, signature) {
  const [r, s, v] = [number(signature.slice(0, 32)), number(signature.slice(32, 64)), signature[64]];
  if (signature.length !== 65 || ![0, 1, 27, 28].includes(v) || !r || r >= N || !s || s > N / 2n) return null;
  const square = (r * r * r + 7n) % P;
  const root = power(square, (P + 1n) / 4n);
  if ((root * root) % P !== square) return null;
  const point = [r, Number(root & 1n) === v % 27 ? root : P - root];
  const byR = inverse(r, N);
  const [ofG, ofPoint] = [mod(-number(digest) * byR, N), mod(s * byR, N)];
  const addends = [null, G, point, sum(G, point)];
  let key = null;
  for (let bit = 255n; bit >= 0n; bit--) {
    key = sum(sum(key, key), addends[Number(((ofG >> bit) & 1n) + 2n * ((ofPoint >> bit) & 1n))]);
  }
  return key && hex(keccak(...key.map((each) => word(each))).slice(12));
}

const text = (value) => keccak(bytes(value));

// The 32 bytes that are signed. A field outside the signed type is an error: it would look signed.
export function digest({ name, domain, fields, absent }, payload) {
  const values = { ...absent, ...payload };
  const kinds = Object.fromEntries(fields);
  const invalid = Object.keys({ ...values, ...kinds }).find((field) => !fits(kinds[field], values[field]));
  if (invalid) throw `its field '${invalid.slice(0, 40)}' is missing, invalid or not part of the signed type`;
  if ((values.version ?? 1) !== 1) throw "only version 1 is supported";
  const type = `${name}(${fields.map(([field, kind]) => `${kind} ${field}`)})`;
  const words = fields.map(([field, kind]) => ENCODED[kind](values[field]));
  const separator = keccak(
    text("EIP712Domain(string name,string version,uint256 chainId)"), text(domain), text("1"), word(1n),
  );
  return keccak([0x19, 1], separator, keccak(text(type), ...words));
}

const ENCODED = { uint256: (value) => word(BigInt(value)), string: text, bytes32: (value) => unhex(value.slice(2)) };

function fits(kind, value) {
  if (kind === "uint256") return Number.isSafeInteger(value) && value >= 0;
  if (kind === "bytes32") return /^0x[0-9a-f]{64}$/i.test(value);
  return kind === "string" && typeof value === "string" && value.isWellFormed();
}

// Parses a signed statement and recovers its signer; throws the reason as a sentence.
export function parseSigned(statement, { format, payload, signature }) {
  if (format === "jws") throw "it is signed as JWS, but only EIP-712 is supported";
  if (format !== "eip712") throw "it does not have x402's fields format, payload and signature";
  const signed = digest(statement, payload);
  const plain = /^(?:0x)?([0-9a-f]{130})$/i.exec(signature);
  const signer = plain && recover(signed, unhex(plain[1]));
  if (!signer) throw "its signature is invalid";
  return { signer, payload, digest: hex(signed) };
}
