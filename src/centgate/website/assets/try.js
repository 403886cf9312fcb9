// Try it: gets the price, lets the visitor's wallet sign, sends the payment, shows the answer.
// Untrusted data (from the API, its sources, wallets) is put on the page as text, never as HTML.

import { drawAnswer, el } from "./answer.js";

const part = (name) => document.getElementById(`try-${name}`);
const promise = JSON.parse(part("promise").textContent);
const plan = JSON.parse(part("plan").textContent);
const form = part("form");
const controls = [...form.querySelectorAll("[data-type]")];
const UNREAD = { message: "The API did not return a readable response" };

const fill = (name, ...content) => part(name).replaceChildren(...content);
const show = (name, shown = true) => (part(name).hidden = !shown);
const say = (text) => fill("said", text);

const list = (name, texts) => fill(name, ...texts.map((text) => el("li", text)));

function reveal(name) {
  show(name);
  part(`${name}-title`).focus();
}

const encoded = (value) => btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(value))));

function decoded(header) {
  try {
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(header), (each) => each.charCodeAt(0))));
  } catch {
    return null;
  }
}

// Ignores clicks while an action is running, so that nothing is signed twice.
let working = false;

async function run(button, work) {
  if (working) return;
  working = true;
  button.ariaDisabled = "true";
  try {
    await work();
  } finally {
    working = false;
    button.ariaDisabled = null;
  }
}

const on = (button, work) => button.addEventListener("click", () => run(button, work));

// Converts a control to its JSON value; undefined if empty. The API validates the value.
function valueOf({ dataset: { type, default: standard }, value, checked, validity }) {
  if (type === "boolean") return String(checked) === standard ? undefined : checked;
  if (validity.badInput) return "not a number";
  if (!value.trim()) return undefined;
  if (type === "array") return value.split("\n").map((line) => line.trim()).filter(Boolean);
  return type === "string" ? value : Number(value);
}

const written = () => JSON.stringify(Object.fromEntries(controls.map((each) => [each.name, valueOf(each)])));

async function post({ body, payment }) {
  const headers = { "Content-Type": "application/json", ...(payment && { "PAYMENT-SIGNATURE": payment }) };
  let header = () => null;
  try {
    const response = await fetch(promise.url, { method: "POST", headers, body, redirect: "error" });
    header = (name) => response.headers.get(name);
    return { ...(await response.json()), header };
  } catch {
    return { header };
  }
}

async function ask() {
  clear();
  if (waiting) return reveal("waiting");
  const body = written();
  say("Loading the price.");
  const { error, header } = await post({ body });
  const terms = decoded(header("PAYMENT-REQUIRED"));
  if (body !== written()) return say("The request has changed. See the price again.");
  if (terms) offer(body, terms);
  else refuse(error ?? UNREAD);
}

function clear() {
  fill("problem");
  fill("issues");
  show("offer", false);
  show("answer", false);
  for (const control of controls) {
    control.ariaInvalid = null;
    fill(`field-${control.name}-issue`);
  }
}

function complain(message, lines = []) {
  say("");
  fill("problem", message);
  list("issues", lines);
  part("problem").focus();
}

function refuse({ message, details = {} }) {
  const issues = details.issues ?? details.options?.map((path) => ({ path, message }));
  if (!issues) return complain(`${message}. Nothing was signed.`);
  const lines = issues.map((issue) => (issue.path ? `${issue.path}: ${issue.message}` : issue.message));
  complain("The API refused this request. Nothing was signed.", lines);
  issues.map(mark).find(Boolean)?.focus();
}

// Shows an issue at its field, if it has one.
function mark({ path, message }) {
  const [name, line] = path.split(".");
  const field = controls.find((each) => each.name === name);
  if (!field) return null;
  field.ariaInvalid = "true";
  part(`field-${name}-issue`).append(line ? `Line ${+line + 1}: ` : "", message, ". ");
  return field;
}

// The terms: each must equal the one promised by the page

function offer(body, terms) {
  const { accepts = [], resource, x402Version } = terms;
  const wanted = accepts.find((each) => each.network === promise.network) ?? accepts[0];
  const told = { ...wanted?.extra, ...wanted, x402Version, url: resource?.url };
  const plain = (value) => String(value).toLowerCase();
  const wrong = Object.entries(promise.terms).filter(([name, [, value]]) => plain(told[name]) !== plain(value));
  fill("raw", JSON.stringify(terms, null, 2));
  list("wrong", wrong.map(([name, [words, value]]) => `The ${words} is ${told[name]}, not ${value}.`));
  show("refused", wrong.length);
  show("accepted", !wrong.length);
  reveal("offer");
  if (wrong.length) return say("");
  say(`The price is ${promise.sum}. Nothing is signed yet.`);
  const wallets = [...announced.values()];
  if (!wallets.length && window.ethereum) wallets.push({ info: { name: "wallet" }, provider: window.ethereum });
  show("no-wallet", !wallets.length);
  step("", ...wallets.map(({ info, provider }) => [`Pay with ${info.name}`, buying(body, wanted, provider)]));
}

// Shows the next step, as a sentence and buttons.
function step(text, ...actions) {
  const buttons = actions.map(([label, work]) => {
    const button = el("button", label);
    on(button, async () => {
      await work().catch(declined);
      if (waiting) await send();
    });
    return button;
  });
  fill("next", el("p", text), ...buttons);
  if (text) buttons[0].focus();
}

// The wallet: those that announce themselves (EIP-6963), else window.ethereum (EIP-1193)

const announced = new Map();
addEventListener("eip6963:announceProvider", ({ detail }) => announced.set(detail.info.uuid, detail));
dispatchEvent(new Event("eip6963:requestProvider"));

function declined({ code, message }) {
  const why = code === 4001 ? "You declined in your wallet." : `Error from the wallet: ${message}.`;
  say(`${why} Nothing was signed or paid, and you can try again.`);
}

// The steps to the signature; each starts with a click.
function buying(body, wanted, wallet) {
  const { sum, chainId, networkName, addChain } = promise;
  const rpc = (method, ...params) => wallet.request({ method, params });

  async function connect() {
    say("Waiting for your wallet.");
    const [account] = await rpc("eth_requestAccounts");
    if (!account) throw new Error("it has no account to pay from");
    if (!(await onChain())) return;
    say("Nothing is signed yet.");
    const text = `You pay ${sum} from ${account} to ${wanted.payTo} on ${networkName}.`;
    step(text, [`Sign and pay ${sum}`, () => sign(account)]);
  }

  async function onChain() {
    const chain = Number(await rpc("eth_chainId"));
    if (chain === chainId) return true;
    say("Your wallet is on another network.");
    const text = `Your wallet is on chain ${chain}. The payment must be on ${networkName}, chain ${chainId}.`;
    step(text, [`Switch the wallet to ${networkName}`, change]);
    return false;
  }

  async function change() {
    try {
      await rpc("wallet_switchEthereumChain", { chainId: `0x${chainId.toString(16)}` });
    } catch (error) {
      if (error.code !== 4902 || !addChain) throw error; // 4902: the wallet does not know the chain
      await rpc("wallet_addEthereumChain", addChain);
    }
    await connect();
  }

  async function sign(account) {
    if (!(await onChain())) return;
    const random = Array.from(crypto.getRandomValues(new Uint8Array(32)));
    const authorization = {
      from: account,
      to: wanted.payTo,
      value: wanted.amount,
      validAfter: "0",
      validBefore: String(Math.floor(Date.now() / 1000) + wanted.maxTimeoutSeconds),
      nonce: `0x${random.map((byte) => byte.toString(16).padStart(2, "0")).join("")}`,
    };
    say("Waiting for your signature.");
    const data = JSON.stringify({ ...promise.typedData, message: authorization });
    const payload = { signature: await rpc("eth_signTypedData_v4", account, data), authorization };
    const payment = { x402Version: 2, resource: { url: promise.url }, accepted: wanted, payload };
    keep({ body, payment: encoded(payment) });
  }

  return connect;
}

// The payment: stored from the signature until its outcome is known, so that a reload does not lose it

let store = {};
try {
  store = sessionStorage;
} catch {} // if storage is disabled, the payment lasts as long as the page
let waiting = JSON.parse(store[promise.url] ?? null);

function keep(order) {
  waiting = order;
  try {
    store[promise.url] = JSON.stringify(order);
  } catch {} // if storage is full, the payment lasts as long as the page
}

async function send() {
  clear();
  say("Sending the payment and waiting for the answer.");
  const reply = await post(waiting);
  const { code, message, details = {} } = reply.error ?? UNREAD;
  const { state, retry = "same_payment" } = details.payment ?? {};
  const became = promise.states[state] ? `The API reports: ${promise.states[state]}` : "";
  const again = retry === "new_payment" ? "See the price again to sign a new payment." : "";
  if (reply.data || code === "no_data") answer(reply, message);
  else if (retry === "same_payment") return pause(`${message}. ${became}`, reply.header("Retry-After"));
  else complain(`${message}. ${became} ${again}`, details.reason ? [`Reason: ${details.reason}`] : []);
  keep(null);
  show("waiting", false);
}

function hold() {
  fill("waiting-body", waiting.body);
  show("waiting");
}

// Keeps the payment for another attempt, not before Retry-After.
function pause(text, after) {
  const seconds = Math.min(Number(after) || 0, 3600);
  hold();
  part("waiting-title").focus();
  say(`${text} Your payment is still valid: send it again${seconds ? ` in ${seconds} seconds` : ""}.`);
  part("again").disabled = !!seconds;
  setTimeout(() => (part("again").disabled = false), seconds * 1000);
}

function answer({ header, ...content }, message) {
  const { data, warnings = [message], providers = [], requestId } = content;
  const receipt = decoded(header("PAYMENT-RESPONSE")) ?? {};
  fill("drawn", ...drawAnswer(plan, { data, warnings, providers }));
  fill("whole", JSON.stringify(content, null, 2));
  fill("transaction", transaction(receipt.transaction));
  fill("payer", receipt.payer);
  fill("receipt", header("PAYMENT-RESPONSE"));
  fill("request", requestId);
  say(data ? "Paid and answered." : "Paid. The answer is that the sources have no data.");
  part("example").open = false;
  reveal("answer");
}

function transaction(hash) {
  if (!promise.explorer) return hash;
  const link = el("a", hash);
  link.href = promise.explorer + encodeURIComponent(hash);
  return link;
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  run(part("ask"), ask);
});
form.addEventListener("input", () => show("offer", false)); // the offer is for the previous request
on(part("again"), send);
on(part("forget"), () => {
  keep(null);
  show("waiting", false);
  say("The payment was discarded.");
});
show("form");
if (waiting) hold();
