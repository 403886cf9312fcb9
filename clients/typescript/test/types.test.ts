/** The types of requests and answers, which `tsc` checks: a line after an expected error must not compile. */

import { test } from "node:test";
import type { Answer, Centgate, TokenRiskData } from "centgate";

export async function usesTheTypes(client: Centgate): Promise<string> {
  const answer: Answer<TokenRiskData> = await client.tokenRisk({ chain: "base", tokenAddress: "0x" });
  const sell: number | null = answer.data.taxes.sell.percent;
  const same = await client.call("token-risk", { chain: "base", tokenAddress: "0x" });
  const level: string = same.data.riskLevel;
  const newer = await client.call("a-newer-service", { anything: 1 });
  const named: string = "any-service";
  await client.call(named, {});
  const unknown: unknown = newer.data["anything"];
  // @ts-expect-error: a wrong name
  await client.tokenRisk({ chain: "base", token: "0x" });
  // @ts-expect-error: a wrong type
  await client.tokenRisk({ chain: "base", tokenAddress: 5 });
  // @ts-expect-error: a wrong word
  await client.tokenRisk({ chain: "bass", tokenAddress: "0x" });
  // @ts-expect-error: a text for a list
  await client.neuralwebContents({ urls: "https://a.org" });
  // @ts-expect-error: a wrong name, by the service's name
  await client.call("token-risk", { chain: "base", token: "0x" });
  // @ts-expect-error: too little
  await client.contractExplain({ chainId: 1 });
  // @ts-expect-error: a field that does not exist
  answer.data.verdict;
  // @ts-expect-error: no service
  await client.tokenPrice({});
  // @ts-expect-error: the answer is read-only
  answer.money = "moved";
  return `${sell} ${level} ${String(unknown)}`;
}

test("the types are as `tsc` expects", () => undefined);
