/** What a client signs and sends: caps, payee, and one payment per request. */

import assert from "node:assert/strict";
import { inspect } from "node:util";
import { test } from "node:test";
import {
  CapExceeded,
  Cancelled,
  Centgate,
  InsufficientBalance,
  InvalidInput,
  Ledger,
  LedgerUnwritable,
  NoData,
  NoWallet,
  PaymentRefused,
  ServiceFailed,
  TermsRefused,
  Unavailable,
  Unresolved,
  WalletFailed,
  type LedgerRecord,
} from "centgate";
import { createWalletClient, custom } from "viem";
import { SLUG, WALLET, fail, offer, open, plan, received, reply } from "./hostile.js";

const OTHER_PAYEE = "0x2222222222222222222222222222222222222222";
/** A wallet that takes its time, so that concurrent calls meet at it. */
const SLOW_WALLET: typeof WALLET = {
  ...WALLET,
  signTypedData: async (message) => {
    await new Promise((resolve) => setTimeout(resolve, 30));
    return WALLET.signTypedData(message);
  },
};

test("an answer has data, a receipt and the transaction", async () => {
  await plan();

  const answer = await open().call(SLUG, {});

  assert.deepEqual(answer.data, { fact: "water is wet" });
  assert.equal(answer.money, "moved");
  assert.equal(answer.receipt?.usd, "0.01");
  assert.equal(answer.transaction, answer.receipt?.transaction);
});

test("a price above the cap per call is not signed", async () => {
  await plan({ unpaid: [offer({ amount: "20001" })] });

  const error = await fail(open());

  assert.ok(error instanceof CapExceeded);
  assert.equal(error.money, "not_moved");
  assert.deepEqual((await received()).payments, []);
});

test("a price above the call's own maximum is not signed", async () => {
  await plan();

  assert.ok((await fail(open(), {}, { maxPrice: "0.009" })) instanceof CapExceeded);
  assert.deepEqual((await received()).payments, []);
});

test("concurrent calls keep the total cap together", async () => {
  await plan();
  const client = open({ caps: { total: 0.03 }, wallet: SLOW_WALLET });

  const ends = await Promise.allSettled([1, 2, 3, 4, 5].map((number) => client.call(SLUG, { number })));

  assert.equal(ends.filter((end) => end.status === "fulfilled").length, 3);
  assert.equal(client.spent, "0.03");
  assert.equal(new Set((await received()).payments).size, 3);
});

test("concurrent calls for one request share one payment", async () => {
  await plan();
  const client = open({ wallet: SLOW_WALLET });

  await Promise.all([client.call(SLUG, { a: 1 }), client.call(SLUG, { a: 1 })]);

  assert.equal(client.ledger.records.filter((record) => record.event === "signed").length, 1);
});

test("another payee than the one that was paid first is refused", async () => {
  await plan({ paid: [] });
  const client = open();
  await client.call(SLUG, {});
  await plan({ unpaid: [offer({ payTo: OTHER_PAYEE })] });

  const error = await fail(client, { another: true });

  assert.ok(error instanceof TermsRefused);
  assert.match(error.message, /now names the payee 0x2222/);
  assert.deepEqual((await received()).payments, []);
});

test("a payee that is not the pinned one is refused", async () => {
  await plan();

  assert.ok((await fail(open({ payee: OTHER_PAYEE }))) instanceof TermsRefused);
});

test("terms that are not signed: network, token, host, window, scheme", async () => {
  const changes = [
    { network: "eip155:8453" },
    { asset: OTHER_PAYEE },
    { resource: { url: "https://another.example/services/some/facts" } },
    { maxTimeoutSeconds: 86_400 },
    { scheme: "upto" },
    { extra: { assetTransferMethod: "permit2" } },
    { extra: { name: "USD Coin" } },
    { payTo: `0x${"0".repeat(40)}` },
    { amount: "-1" },
    { x402Version: 1 },
  ];
  for (const change of changes) {
    await plan({ unpaid: [offer(change)] });

    const error = await fail(open());

    assert.ok(error instanceof TermsRefused, `${JSON.stringify(change)}: ${error.message}`);
    assert.deepEqual((await received()).payments, []);
  }
});

test("a refusal of a network without a known token names the option for tokens", async () => {
  await plan({ unpaid: [offer({ network: "eip155:31337" })] });

  const error = await fail(open());

  assert.ok(error instanceof TermsRefused);
  assert.match(error.message, /option assets.*Nothing was signed/);
});

test("after a lost answer the same payment is sent again", async () => {
  for (const fault of ["no_response", "cut_headers", "cut_body", "reset"]) {
    await plan({ paid: [reply({ fault, takes: true, body: "answer" })] });

    const answer = await open().call(SLUG, {});

    assert.equal(answer.money, "moved");
    const { payments, accepted } = await received();
    assert.deepEqual([payments.length, new Set(payments).size, accepted.length], [2, 1, 1], fault);
  }
});

test("a payment in doubt is open, and the next call sends it again", async () => {
  await plan({ paid: Array.from({ length: 4 }, () => reply({ status: 502, body: "junk", takes: true })) });
  const client = open();

  const error = await fail(client);

  assert.ok(error instanceof Unresolved);
  assert.equal(error.money, "unknown");
  assert.equal((await client.call(SLUG, {})).money, "moved");
  const { payments } = await received();
  assert.deepEqual([payments.length, new Set(payments).size], [5, 1]);
});

test("an API that may have the payment is not believed that it is unused", async () => {
  const lost = reply({ fault: "no_response", takes: true });
  const unused = { status: 402, body: "noted", code: "payment_required", note: 0, retry: "new_payment" };
  await plan({ paid: [lost, reply(unused)], lies: true });
  const client = open();

  const error = await fail(client);

  assert.ok(error instanceof Unresolved);
  assert.deepEqual([error.money, error.state, error.charged], ["unknown", "unused", false]);
  assert.equal((await client.call(SLUG, {})).money, "moved");
  assert.equal(new Set((await received()).payments).size, 1);
});

test("a redirect says nothing about the payment", async () => {
  const refused = { status: 307, body: "noted", code: "payment_required", note: 1, retry: "new_payment" };
  await plan({ paid: [reply({ ...refused, headers: { Location: "/elsewhere" } })] });

  const error = await fail(open());

  assert.ok(error instanceof Unresolved);
  assert.equal(error.money, "unknown");
  assert.equal((await received()).payments.length, 1);
});

test("a payment that was left open is sent again by another client", async () => {
  await plan({ paid: Array.from({ length: 4 }, () => reply({ status: 502, body: "junk", takes: true })) });
  const error = await fail(open());
  assert.ok(error instanceof Unresolved);
  const payment = JSON.parse(JSON.stringify(error.payment)) as NonNullable<typeof error.payment>;

  const answer = await open({ wallet: undefined }).call(SLUG, {}, { payment });

  assert.equal(answer.money, "moved");
  await assert.rejects(open().call(SLUG, { another: true }, { payment }), RangeError);
});

test("a service that moved gets no second payment", async () => {
  await plan({ paid: [reply({ fault: "reset", takes: true })] });
  const ledger = new Ledger();
  const patience = { attempts: 1, pause: 10 };
  await fail(open({ ledger, patience }));
  await plan({ service: { path: "/moved" }, continues: true });

  await open({ ledger, patience }).call(SLUG, {});

  const { payments, accepted } = await received();
  assert.deepEqual([new Set(payments).size, accepted.length], [1, 1]);
});

test("a stored ledger continues an open payment", async () => {
  const lines: string[] = [];
  const write = (record: LedgerRecord): void => void lines.push(JSON.stringify(record));
  await plan({ paid: Array.from({ length: 4 }, () => reply({ status: 504, body: "junk", takes: true })) });
  await fail(open({ ledger: new Ledger({ write }) }));
  const records = lines.map((line) => JSON.parse(line) as LedgerRecord);

  const client = open({ ledger: new Ledger({ records }) });
  await client.call(SLUG, {});

  assert.equal(new Set((await received()).payments).size, 1);
  assert.equal(client.spent, "0.01");
  assert.equal(records[1]?.payment.header, "", "only the first record holds the signature");
});

/** The API's word that it never had a payment, whose window has ended. */
const EXPIRED = reply({
  status: 402,
  body: "noted",
  code: "payment_required",
  reason: "invalid_exact_evm_payload_authorization_valid_before",
  note: 0,
  retry: "new_payment",
});

/** A ledger with one open payment, whose window ended so many seconds ago. */
async function ledgerOfOpenPayment(secondsAgo: number): Promise<Ledger> {
  await plan({ paid: Array.from({ length: 4 }, () => reply({ status: 504, body: "junk" })) });
  const client = open();
  await fail(client);
  const validBefore = Math.floor(Date.now() / 1000) - secondsAgo;
  const records = client.ledger.records.map((record) => ({ ...record, payment: { ...record.payment, validBefore } }));
  return new Ledger({ records });
}

test("a payment that expired unused before the call is replaced once", async () => {
  const ledger = await ledgerOfOpenPayment(60);
  await plan({ paid: [EXPIRED], continues: true });

  const answer = await open({ ledger }).call(SLUG, {});

  assert.equal(answer.money, "moved");
  const { payments, accepted } = await received();
  assert.deepEqual([new Set(payments).size, accepted.length], [2, 1]);
});

test("a payment whose window is open by the local clock is not replaced", async () => {
  const ledger = await ledgerOfOpenPayment(-60);
  await plan({ paid: [EXPIRED], continues: true });

  const error = await fail(open({ ledger }));

  assert.ok(error instanceof PaymentRefused);
  assert.match(error.message, /clock/);
  assert.equal(new Set((await received()).payments).size, 1);
});

test("a service without a source is not paid", async () => {
  const providers = [{ name: "book", role: "primary" }];
  await plan({ service: { providers, sources: [{ name: "book", configured: false }] } });
  const client = open();

  const error = await fail(client);

  assert.ok(error instanceof Unavailable);
  assert.deepEqual((await received()).payments, []);
  await plan({ service: { providers, sources: [{ name: "book", configured: true }] } });
  assert.equal((await client.call(SLUG, {})).money, "moved");
});

test("terms state that a service has no source", async () => {
  const providers = [{ name: "book", role: "primary" }];
  await plan({ service: { providers, sources: [{ name: "book", configured: false }] } });

  const quote = await open().terms(SLUG, {});

  assert.equal(quote.objections.length, 1);
  assert.match(quote.objections[0] ?? "", /no source/);
});

test("a payment that cannot be recorded is not sent", async () => {
  await plan();
  const write = (): never => {
    throw new Error("disk full");
  };

  const error = await fail(open({ ledger: new Ledger({ write }) }));

  assert.ok(error instanceof LedgerUnwritable);
  assert.deepEqual((await received()).payments, []);
});

test("an error carries the payment's state as the API reports it", async () => {
  const settled = reply({ status: 502, body: "noted", code: "provider_error", note: 1, retry: "same_payment" });
  await plan({ paid: Array.from({ length: 4 }, () => ({ ...settled, takes: true })) });

  const error = await fail(open());

  assert.ok(error instanceof ServiceFailed);
  const { code, state, charged, retry, money } = error;
  assert.deepEqual(
    { code, state, charged, retry, money },
    { code: "provider_error", state: "settled", charged: true, retry: "same_payment", money: "moved" },
  );
});

test("a refused payment is not sent again, and its amount stays counted", async () => {
  const refusal = { status: 402, body: "noted", code: "payment_required", note: 1, retry: "new_payment" };
  await plan({ paid: [reply({ ...refusal, reason: "insufficient_funds" })] });
  const client = open();

  const error = await fail(client);

  assert.ok(error instanceof InsufficientBalance && error instanceof PaymentRefused);
  assert.equal(error.money, "reported_not_moved");
  assert.equal(client.spent, "0.01");
  await client.call(SLUG, {});
  assert.equal(new Set((await received()).payments).size, 2);
});

test("no data is a final answer, with its receipt", async () => {
  await plan({ paid: [reply({ status: 404, body: "noted", code: "no_data", note: 2, takes: true, receipt: "true" })] });
  const client = open();

  const error = await fail(client);

  assert.ok(error instanceof NoData);
  assert.deepEqual([error.money, error.transaction], ["moved", error.receipt?.transaction]);
  assert.equal(client.ledger.records.at(-1)?.event, "delivered");
});

test("a signal ends a call, and the payment stays open", async () => {
  await plan({ paid: [reply({ delay: 5, body: "answer", takes: true })] });
  const client = open();
  const controller = new AbortController();
  const call = fail(client, {}, { signal: controller.signal });
  while ((await received()).payments.length === 0) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }

  controller.abort("enough");

  const error = await call;
  assert.ok(error instanceof Cancelled);
  assert.deepEqual([error.money, error.cause], ["unknown", "enough"]);
  assert.equal((await client.call(SLUG, {})).money, "moved");
  assert.equal(new Set((await received()).payments).size, 1);
});

test("a signal before the call signs nothing", async () => {
  await plan();

  const error = await fail(open(), {}, { signal: AbortSignal.abort() });

  assert.ok(error instanceof Cancelled);
  assert.deepEqual([error.money, error.payment], ["not_moved", null]);
  assert.deepEqual((await received()).payments, []);
});

test("a call ends with its timeout, and the payment stays open", async () => {
  await plan({ paid: [reply({ delay: 5, body: "answer", takes: true })] });
  const client = open();

  const error = await fail(client, {}, { timeout: 400 });

  assert.ok(error instanceof Unresolved && !(error instanceof Cancelled));
  assert.match(error.message, /did not respond within 0\.\d+ s/);
  assert.equal(client.ledger.records.at(-1)?.event, "unresolved");
});

test("a wallet that signs after the end of the call pays with the next one", async () => {
  await plan();
  let sign = (): void => undefined;
  const asked = new Promise<void>((resolve) => (sign = resolve));
  const slow = { ...WALLET, signTypedData: (async (message: never) => (await asked, WALLET.signTypedData(message))) };
  const client = open({ wallet: slow as typeof WALLET });

  const error = await fail(client, {}, { timeout: 200 });
  assert.ok(error instanceof WalletFailed, error.message);
  sign();
  await client.call(SLUG, {});

  assert.equal(new Set((await received()).payments).size, 1);
  assert.equal(client.ledger.records.filter((record) => record.event === "signed").length, 1);
});

test("a wallet that refuses is an error of its own", async () => {
  await plan();
  const refusing = { ...WALLET, signTypedData: () => Promise.reject(new Error("user rejected")) };

  const error = await fail(open({ wallet: refusing }));

  assert.ok(error instanceof WalletFailed);
  assert.equal(error.money, "not_moved");
});

test("a key given as the wallet is refused, and never repeated", async () => {
  const key = `0x${"12".repeat(32)}`;
  for (const wallet of [key, () => key, null, 7] as unknown as (typeof WALLET)[]) {
    const error = await Promise.resolve()
      .then(() => open({ wallet }).call(SLUG, {}))
      .then(() => null, (reason: unknown) => reason);
    assert.ok(error instanceof WalletFailed);
    assert.match(error.message, /privateKeyToAccount/);
    assert.ok(!error.message.includes("12".repeat(8)));
  }
});

test("a wallet client signs as an account does", async () => {
  await plan();
  const client = createWalletClient({ account: WALLET, transport: custom({ request: () => Promise.reject(new Error("offline")) }) });

  assert.equal((await open({ wallet: () => client }).call(SLUG, {})).receipt?.payer, WALLET.address);
});

test("a wallet function is called once, before the first signature", async () => {
  await plan();
  let calls = 0;
  const client = open({
    wallet: () => {
      calls += 1;
      return WALLET;
    },
  });
  await client.terms(SLUG, {});
  assert.equal(calls, 0);

  await client.call(SLUG, {});
  await client.call(SLUG, { n: 2 });

  assert.equal(calls, 1);
});

test("a call without a wallet signs nothing", async () => {
  await plan();

  assert.ok((await fail(open({ wallet: undefined }))) instanceof NoWallet);
});

test("terms are shown without a signature", async () => {
  await plan();

  const quote = await open({ caps: { perCall: "0.001" } }).terms(SLUG, {});

  assert.equal(quote.usd, "0.01");
  assert.match(quote.objections.join(), /above the cap of \$0.001/);
});

test("equal requests are equal bytes, and what is no JSON is refused", async () => {
  await plan();
  const client = open();

  await client.call(SLUG, { b: [1, { d: null, c: "é" }], a: undefined, e: 0.5 });

  assert.deepEqual(new Set((await received()).bodies), new Set(['{"b":[1,{"c":"é","d":null}],"e":0.5}']));
  const circle: Record<string, unknown> = {};
  circle["again"] = circle;
  for (const body of [{ a: NaN }, { a: 1n }, { a: new Date() }, { a: "\ud800" }, { a: new Array(1) }, circle, []]) {
    assert.ok((await fail(client, body)) instanceof InvalidInput);
  }
});

test("a log of an error does not show the signature", async () => {
  await plan({ paid: Array.from({ length: 4 }, () => reply({ status: 502, body: "junk" })) });

  const error = await fail(open());

  assert.ok(error instanceof Unresolved && error.payment?.header);
  assert.ok(!inspect(error, { depth: 9 }).includes(error.payment.header));
  assert.ok(!JSON.stringify(error).includes(error.payment.header));
});

test("only loopback and TLS, no path, no password", () => {
  for (const api of ["http://api.example", "ftp://a.example", "https://a.example/v1", "https://u:p@a.example", "x"]) {
    assert.throws(() => new Centgate(api), { name: "AddressRefused" }, api);
  }
  for (const api of ["https://api.example", "http://localhost:8402/", "http://[::1]:1", "http://10.0.0.1"]) {
    assert.ok(new Centgate(api).api);
  }
  assert.throws(() => new Centgate("https://a.example", { networks: ["eip155:5"] }), RangeError);
  assert.throws(() => new Centgate("https://a.example", { caps: { total: -1 } }), RangeError);
  assert.throws(() => new Centgate("https://a.example", { payee: "0x1" }), RangeError);
  const asset = { address: "0x1", name: "A", version: "1", decimals: 6 };
  assert.throws(() => new Centgate("https://a.example", { assets: { "eip155:5": asset } }), RangeError);
});
