/** The services as tools of the AI SDK, called by its own loop. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { generateText, stepCountIs } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { tools } from "centgate/ai";
import type { Centgate } from "centgate";
import { SLUG, open, plan, received, reply } from "./hostile.js";

const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};
const REQUEST = { chain: "base", tokenAddress: `0x${"1".repeat(40)}` };

/** A model that calls `token_risk`, then says what it got. */
function callingModel(): MockLanguageModelV3 {
  const call = { type: "tool-call", toolCallId: "1", toolName: "token_risk", input: JSON.stringify(REQUEST) } as const;
  return new MockLanguageModelV3({
    doGenerate: [
      { content: [call], finishReason: { unified: "tool-calls", raw: undefined }, usage: USAGE, warnings: [] },
      {
        content: [{ type: "text", text: "done" }],
        finishReason: { unified: "stop", raw: undefined },
        usage: USAGE,
        warnings: [],
      },
    ],
  });
}

/** A client whose `token-risk` is the one service of the hostile API. */
function openForTools(): Centgate {
  return open({ fetch: (url, init) => fetch(url.replace("/services/token-risk", `/services/${SLUG}`), init) });
}

test("a model buys an answer", async () => {
  await plan();
  const model = callingModel();

  const { text, steps } = await generateText({
    model,
    prompt: "is it safe?",
    tools: tools(openForTools(), { services: ["token-risk"] }),
    stopWhen: stepCountIs(2),
  });

  assert.equal(text, "done");
  const result = steps[0]?.toolResults[0]?.output as { data: unknown; transaction: string };
  assert.deepEqual(result.data, { fact: "water is wet" });
  assert.match(result.transaction, /^0x/);
  const { bodies, accepted } = await received();
  assert.deepEqual([JSON.parse(bodies.at(-1) ?? ""), accepted.length], [REQUEST, 1]);
});

test("an error tells the model the next step", async () => {
  await plan({ unpaid: [reply({ status: 400, code: "validation_error" })] });

  const { steps } = await generateText({
    model: callingModel(),
    prompt: "is it safe?",
    tools: tools(openForTools()),
    stopWhen: stepCountIs(2),
  });

  const part = steps[0]?.content.find((each) => each.type === "tool-error");
  assert.equal((part?.error as Error).name, "InvalidInput");
});

test("every service is a tool that vendors of models accept", () => {
  const all = tools(openForTools());

  assert.notEqual(Object.keys(all).length, 0);
  for (const [name, each] of Object.entries(all)) {
    const schema = (each.inputSchema as unknown as { jsonSchema: Record<string, unknown> }).jsonSchema;
    assert.match(name, /^[a-z_]{1,64}$/);
    assert.deepEqual(Object.keys(schema), ["type", "properties", "required", "additionalProperties"]);
    assert.ok(each.description?.includes("Costs $0.01 unless the API sets another price."));
  }
});
