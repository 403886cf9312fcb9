/** The purchase that every program makes: a verdict about a host that is on the phishing list. */

import assert from "node:assert/strict";

export const SERVICES = 14;
export const TOOL = "phishing-check";
export const QUESTION = { url: "wallet-ethereum.net" };

/** Arguments of the programs that use MCP: the API's MCP address, and the server over stdio that pays. */
export function mcpArguments() {
  const [url, command, api, key] = process.argv.slice(2);
  return { url, server: { command, args: ["mcp", "--api", api], env: { CENTGATE_WALLET_KEY: key } } };
}

/** Print what was listed and bought; fails if that is not every tool and the verdict. */
export function report(listed, bought, answer) {
  assert.deepEqual([listed.length, bought.length], [SERVICES, SERVICES]);
  assert.match(typeof answer === "string" ? answer : JSON.stringify(answer), /blocked/);
  console.log(`${listed.length} tools, 1 answer`);
}
