import asyncio

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from purchase import ARGUMENTS, COMMAND, ENVIRONMENT, QUESTION, TOOL, URL, report


async def buy() -> None:
    server = StdioTransport(command=COMMAND, args=ARGUMENTS, env=ENVIRONMENT)
    async with Client(URL) as free, Client(server) as paying:
        answer = await paying.call_tool(TOOL, QUESTION)
        report(await free.list_tools(), await paying.list_tools(), answer.structured_content)


asyncio.run(buy())
