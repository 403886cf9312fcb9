import asyncio

from fastmcp.client.transports import StdioTransport
from purchase import ARGUMENTS, COMMAND, ENVIRONMENT, QUESTION, TOOL, URL, report
from pydantic_ai.mcp import MCPToolset


async def buy() -> None:
    server = StdioTransport(command=COMMAND, args=ARGUMENTS, env=ENVIRONMENT)
    async with MCPToolset(URL) as free, MCPToolset(server, init_timeout=60) as paying:
        answer = await paying.direct_call_tool(TOOL, QUESTION)
        report(await free.list_tools(), await paying.list_tools(), answer)


asyncio.run(buy())
