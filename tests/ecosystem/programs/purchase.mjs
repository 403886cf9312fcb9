/** The purchase that every program makes: a verdict about a host that is on the phishing list. */

import assert from "node:assert/strict";

export const TOOL = "phishing-check";
export const QUESTION = { url: "wallet-ethereum.net" };

/** Arguments of the programs that use MCP: the API's MCP address, and the server over stdio that pays. */
export function mcpArguments() {
  const [url, command, api, key] = process.argv.slice(2);
  return { url, server: { command, args: ["mcp", "--api", api], env: { CENTGATE_WALLET_KEY: key } } };
}

/** Print what was listed and bought; fails if that is not every tool and the verdict. */
export function report(listed, bought, answer) {
  assert.equal(listed.length, bought.length);
  assert.ok(listed.length > 1);
  assert.match(typeof answer === "string" ? answer : JSON.stringify(answer), /blocked/);
  console.log(`${listed.length} tools, 1 answer`);
}
