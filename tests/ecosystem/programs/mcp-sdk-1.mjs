import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { mcpArguments, QUESTION, report, TOOL } from "./purchase.mjs";

const { url, server } = mcpArguments();
const open = async (transport) => {
  const client = new Client({ name: "check", version: "1.0.0" });
  await client.connect(transport);
  return client;
};
const free = await open(new StreamableHTTPClientTransport(new URL(url)));
const paying = await open(new StdioClientTransport(server));
const answer = await paying.callTool({ name: TOOL, arguments: QUESTION });
report((await free.listTools()).tools, (await paying.listTools()).tools, answer.structuredContent);
await Promise.all([free.close(), paying.close()]);
