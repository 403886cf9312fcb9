// Runs the programs that are named on standard input, one after another, and prints a line of JSON for each.

import { createInterface } from "node:readline";
import { format } from "node:util";

for await (const program of createInterface({ input: process.stdin })) {
  const printed = [];
  console.log = (...values) => printed.push(...format(...values).split("\n"));
  let error = "";
  try {
    await import(program);
  } catch (thrown) {
    error = thrown.stack ?? String(thrown);
  }
  process.stdout.write(`${JSON.stringify({ printed, error })}\n`);
}
