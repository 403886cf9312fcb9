import asyncio

from mcp import Client, StdioServerParameters
from purchase import ARGUMENTS, COMMAND, ENVIRONMENT, QUESTION, TOOL, URL, report


async def buy() -> None:
    server = StdioServerParameters(command=COMMAND, args=ARGUMENTS, env=ENVIRONMENT)
    async with Client(URL) as free, Client(server) as paying:
        answer = await paying.call_tool(TOOL, QUESTION)
        report((await free.list_tools()).tools, (await paying.list_tools()).tools, answer.structured_content)


asyncio.run(buy())
