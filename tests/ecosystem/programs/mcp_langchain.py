import asyncio

from langchain_mcp_adapters.client import MultiServerMCPClient
from purchase import ARGUMENTS, COMMAND, ENVIRONMENT, QUESTION, TOOL, URL, report


async def buy() -> None:
    server = {"transport": "stdio", "command": COMMAND, "args": ARGUMENTS, "env": ENVIRONMENT}
    client = MultiServerMCPClient({"free": {"transport": "http", "url": URL}, "paying": server})
    paying = await client.get_tools(server_name="paying")
    (tool,) = (each for each in paying if each.name == TOOL)
    report(await client.get_tools(server_name="free"), paying, await tool.ainvoke(QUESTION))


asyncio.run(buy())
