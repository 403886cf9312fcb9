/** Whatever an API answers, true or not: one payment a request, and no false word on the money. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { BuyerError, Ledger } from "centgate";
import fc from "fast-check";
import { buy, open, plan, received, replies } from "./hostile.js";

const UNCHARGED = /no money moved|nothing (moved|was charged)|not charged/i;
const RUNS = { numRuns: Number(process.env["PROPERTY_RUNS"] ?? 60) };

test("one payment a request, and no false word on the money", async () => {
  const unpaid = fc.array(replies(), { maxLength: 1 });
  const paid = fc.array(replies(), { maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(unpaid, paid, async (unpaid, paid) => {
      await plan({ unpaid, paid });
      const ledger = new Ledger();

      const first = await buy(open({ ledger }));

      const after = await received();
      assert.ok(new Set(after.payments).size <= 1);
      assert.ok(new Set(after.bodies).size <= 1);
      if (first.money === "not_moved" || first.money === "reported_not_moved") {
        assert.deepEqual(after.accepted, []);
      }
      if (first.money === "moved") {
        assert.equal(after.accepted.length, 1);
      }
      if (first instanceof BuyerError) {
        assert.notEqual(first.message, "");
      }

      await plan({ continues: true });
      const last = ledger.records.at(-1)?.event;
      const second = await buy(open({ ledger }));

      assert.ok(!(second instanceof BuyerError), String(second));
      if (last === "signed" || last === "unresolved") {
        const both = await received();
        assert.equal(new Set(both.payments).size, 1);
        assert.equal(both.accepted.length, 1);
      }
    }),
    RUNS,
  );
});

test("a lie about the money is told as the word of the API", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(replies(), { minLength: 1, maxLength: 6 }), async (paid) => {
      await plan({ paid, lies: true });
      const client = open();

      const first = await buy(client);

      assert.equal(new Set((await received()).payments).size, 1);
      assert.notEqual(first.money, "not_moved");
      assert.ok(client.ledger.records.every((record) => record.money !== "not_moved"));
      const claim = first instanceof BuyerError ? UNCHARGED.exec(first.message) : null;
      if (first instanceof BuyerError && claim !== null) {
        assert.ok(first.message.slice(0, claim.index).toLowerCase().includes("the api"), first.message);
      }
      assert.equal(client.spent, "0.01");
    }),
    RUNS,
  );
});
