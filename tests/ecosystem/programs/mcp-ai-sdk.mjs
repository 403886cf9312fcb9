import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as StdioTransport } from "@ai-sdk/mcp/mcp-stdio";
import { mcpArguments, QUESTION, report, TOOL } from "./purchase.mjs";

const { url, server } = mcpArguments();
const free = await createMCPClient({ transport: { type: "http", url } });
// its probe for a newer protocol waits one second, less than a busy machine needs to start a program
const paying = await createMCPClient({ transport: new StdioTransport(server), protocolVersionDiscovery: false });
const tools = await paying.tools();
const answer = await tools[TOOL].execute(QUESTION, { toolCallId: "1", messages: [] });
report(Object.keys(await free.tools()), Object.keys(tools), answer);
await Promise.all([free.close(), paying.close()]);
