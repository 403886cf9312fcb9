// Check a receipt: the input is parsed and checked here, and never leaves the page.
// Untrusted data is put on the page as text, never as HTML.
import { hex, parseSigned } from "./proof.js";

const part = (name) => document.getElementById(`check-${name}`);
const statements = JSON.parse(part("statements").textContent);
const LOOKS = { ok: "up", failed: "down", "not checked": "lost" };
const same = (one, two) => String(one).toLowerCase() === String(two).toLowerCase();

function el(tag, ...content) {
  const node = document.createElement(tag);
  node.append(...content);
  return node;
}

// Parses PAYMENT-RESPONSE: its value alone, a line among other headers, or the decoded JSON.
function parseSettlement(input) {
  const line = /^payment-response:\s*(\S+)\s*$/im.exec(input)?.[1] ?? input;
  try {
    const data = () => new TextDecoder().decode(Uint8Array.from(atob(line), (each) => each.charCodeAt(0)));
    return Object(JSON.parse(input.startsWith("{") ? input : data()));
  } catch {
    throw "The input is neither a PAYMENT-RESPONSE header nor its JSON.";
  }
}

// Returns a signed statement of a message, or null.
function signed(message, extension, name) {
  const found = message.extensions?.[extension]?.info?.[name];
  return found == null ? null : parseSigned(statements[name], Object(found));
}

function* checks(settlement, body, signer) {
  const receipt = signed(settlement, "offer-receipt", "receipt");
  if (!receipt) throw "it is missing: this server does not sign receipts";
  yield ["ok", `the receipt is signed by ${receipt.signer}`, receipt];
  yield checkSettlement(settlement, receipt);
  yield* attempt(checkAnswer, "the statement about the answer", settlement, receipt, body);
  if (!signer) yield ["not checked", "compare the signer with the address that the service publishes"];
  else if (same(signer, receipt.signer)) yield ["ok", "the signer is the expected one"];
  else yield ["failed", `the receipt is not signed by ${signer}`];
}

// Runs a check; yields a failure if its subject is unreadable.
function* attempt(check, what, ...about) {
  try {
    yield* check(...about);
  } catch (why) {
    yield ["failed", `${what} is unreadable: ${why}`];
  }
}

function checkSettlement(settlement, { payload }) {
  const other = ["payer", "network", "transaction"].find((name) => payload[name] && !same(payload[name], settlement[name]));
  if (settlement.success !== true) return ["failed", "the settlement around the receipt reports a failure"];
  return other ? ["failed", `the settlement around the receipt has a different ${other}`] : ["ok", "the settlement around the receipt agrees with it"];
}

function* checkAnswer(settlement, receipt, body) {
  const answer = signed(settlement, "centgate-answer", "answer");
  if (!answer) return yield [body ? "failed" : "not checked", "no signed statement covers the answer"];
  if (!same(answer.payload.receipt, receipt.digest)) yield ["failed", "the statement about the answer belongs to another receipt"];
  else if (answer.signer !== receipt.signer) yield ["failed", "the statement about the answer is signed by a different key"];
  else yield ["ok", "the statement about the answer is signed by the same key"];
  if (!body) yield ["not checked", `the body's SHA-256 must be ${answer.payload.bodySha256}`];
  else if (same(body, answer.payload.bodySha256)) yield ["ok", "the body is the one that was signed, byte for byte"];
  else yield ["failed", "the body is not the one that was signed"];
}

// SHA-256 of the body: a file as it is, pasted text as UTF-8.
async function bodyDigest() {
  const [file] = part("file").files;
  const text = part("body").value;
  if (!file && !text) return null;
  if (!crypto.subtle) throw "Browsers compute SHA-256 only on pages loaded over https.";
  const data = file ? await file.arrayBuffer() : new TextEncoder().encode(text);
  return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", data)));
}

async function check() {
  const [header, signer] = ["header", "signer"].map((name) => part(name).value.trim());
  if (signer && !/^0x[0-9a-f]{40}$/i.test(signer)) throw "The signer must be an address: 0x and 40 hex digits.";
  show([...attempt(checks, "the receipt", parseSettlement(header), await bodyDigest(), signer)]);
}

function show(found) {
  const { signer, payload = {} } = found[0][2] ?? {};
  const issuedAt = signer && new Date(payload.issuedAt * 1000).toUTCString();
  const told = Object.entries({ "signed by": signer, ...payload, issuedAt }).filter(([, value]) => value);
  part("told").replaceChildren(...told.flatMap(([name, value]) => [el("dt", name), el("dd", value)]));
  part("list").replaceChildren(...found.map(([state, says]) => {
    const word = el("strong", state);
    word.className = `state ${LOOKS[state]}`;
    return el("li", word, ` ${says}`);
  }));
  const fails = found.some(([state]) => state === "failed");
  part("title").textContent = fails ? "The receipt is not valid" : "No check failed";
  part("verdict").hidden = false;
  part("title").focus();
}

part("form").addEventListener("submit", (event) => {
  event.preventDefault();
  part("verdict").hidden = true;
  part("problem").textContent = "";
  check().catch((why) => {
    part("problem").textContent = why;
    part("problem").focus();
  });
});
part("form").hidden = false;
