// Check a receipt: what was pasted is read and checked here, and leaves the page for nowhere.
// What others wrote goes on the page as text, never as HTML.
import { hex, opened } from "./proof.js";

const part = (name) => document.getElementById(`check-${name}`);
const statements = JSON.parse(part("statements").textContent);
const LOOKS = { ok: "up", failed: "down", "not checked": "lost" };
const same = (one, two) => String(one).toLowerCase() === String(two).toLowerCase();

function el(tag, ...content) {
  const node = document.createElement(tag);
  node.append(...content);
  return node;
}

// The JSON of PAYMENT-RESPONSE: its value alone, or in a line among other headers, or the JSON itself.
function saved(given) {
  const line = /^payment-response:\s*(\S+)\s*$/im.exec(given)?.[1] ?? given;
  try {
    const data = () => new TextDecoder().decode(Uint8Array.from(atob(line), (each) => each.charCodeAt(0)));
    return Object(JSON.parse(given.startsWith("{") ? given : data()));
  } catch {
    throw "This is neither the value of PAYMENT-RESPONSE nor its JSON.";
  }
}

// A signed statement of a message; null where there is none.
function signed(message, extension, name) {
  const found = message.extensions?.[extension]?.info?.[name];
  return found == null ? null : opened(statements[name], Object(found));
}

function* checks(settlement, body, signer) {
  const receipt = signed(settlement, "offer-receipt", "receipt");
  if (!receipt) throw "there is none: this server signs no receipts";
  yield ["ok", `the receipt is signed by ${receipt.signer}`, receipt];
  yield around(settlement, receipt);
  yield* attempt(answered, "the statement of the answer", settlement, receipt, body);
  if (!signer) yield ["not checked", "compare the signer with the address that the service publishes"];
  else if (same(signer, receipt.signer)) yield ["ok", "the signer is the one that was expected"];
  else yield ["failed", `the receipt is not signed by ${signer}`];
}

// A check, or why what it is about cannot be read.
function* attempt(check, what, ...about) {
  try {
    yield* check(...about);
  } catch (why) {
    yield ["failed", `${what} cannot be read: ${why}`];
  }
}

function around(settlement, { payload }) {
  const other = ["payer", "network", "transaction"].find((name) => payload[name] && !same(payload[name], settlement[name]));
  if (settlement.success !== true) return ["failed", "the settlement around it says that it failed"];
  return other ? ["failed", `the settlement around it has another ${other}`] : ["ok", "the settlement around it says the same"];
}

function* answered(settlement, receipt, body) {
  const answer = signed(settlement, "centgate-answer", "answer");
  if (!answer) return yield [body ? "failed" : "not checked", "nothing that is signed says what the answer was"];
  if (!same(answer.payload.receipt, receipt.digest)) yield ["failed", "the statement of the answer belongs to another receipt"];
  else if (answer.signer !== receipt.signer) yield ["failed", "the statement of the answer is signed by another"];
  else yield ["ok", "the same key signed what the answer was"];
  if (!body) yield ["not checked", `the body's SHA-256 has to be ${answer.payload.bodySha256}`];
  else if (same(body, answer.payload.bodySha256)) yield ["ok", "the body is the one that was signed for, byte for byte"];
  else yield ["failed", "the body is not the one that was signed for"];
}

// SHA-256 of the body: a file as it is, pasted text as UTF-8.
async function hashed() {
  const [file] = part("file").files;
  const text = part("body").value;
  if (!file && !text) return null;
  if (!crypto.subtle) throw "The browser computes no SHA-256 on pages that did not come by https.";
  const data = file ? await file.arrayBuffer() : new TextEncoder().encode(text);
  return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", data)));
}

async function check() {
  const [header, signer] = ["header", "signer"].map((name) => part(name).value.trim());
  if (signer && !/^0x[0-9a-f]{40}$/i.test(signer)) throw "The signer is an address: 0x and 40 hex digits.";
  show([...attempt(checks, "the receipt", saved(header), await hashed(), signer)]);
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
  part("title").textContent = fails ? "The receipt does not hold" : "Nothing speaks against the receipt";
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
