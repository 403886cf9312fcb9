import asyncio

from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from purchase import ARGUMENTS, COMMAND, ENVIRONMENT, QUESTION, TOOL, URL, report


async def buy() -> None:
    server = MCPServerStdio(
        {"command": COMMAND, "args": ARGUMENTS, "env": ENVIRONMENT}, client_session_timeout_seconds=30
    )
    async with MCPServerStreamableHttp({"url": URL}) as free, server as paying:
        answer = await paying.call_tool(TOOL, QUESTION)
        report(await free.list_tools(), await paying.list_tools(), answer)


asyncio.run(buy())
