import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { mcpArguments, QUESTION, report, TOOL } from "./purchase.mjs";

const { url, server } = mcpArguments();
const client = new MultiServerMCPClient({
  free: { transport: "http", url },
  paying: { transport: "stdio", ...server },
});
const paying = await client.getTools("paying");
const answer = await paying.find(({ name }) => name === TOOL).invoke(QUESTION);
report(await client.getTools("free"), paying, answer);
await client.close();
