"""Tools for LangChain: `pip install 'centgate[langchain]'`."""

# langchain-core is an extra, which is not installed where types are checked
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

from functools import partial
from typing import Any

from langchain_core.tools import StructuredTool, ToolException

from centgate.client.adapters import WRONG_INPUT, describe_input_error, render_answer, render_error
from centgate.client.async_client import AsyncCentgate
from centgate.client.errors import BuyerError
from centgate.client.sync_client import Centgate


def build_tools(client: Centgate) -> list[StructuredTool]:
    """Build a tool for each service that can be bought at the client's API."""
    return [_build_tool(each["function"], func=partial(_call, client)) for each in client.tools("openai")]


async def build_async_tools(client: AsyncCentgate) -> list[StructuredTool]:
    """Build the same tools for an async client."""
    tools = await client.tools("openai")
    return [_build_tool(each["function"], coroutine=partial(_call_async, client)) for each in tools]


def _build_tool(function: dict[str, Any], **calls: Any) -> StructuredTool:
    name = function["name"]
    return StructuredTool(
        name=name,
        description=function["description"],
        args_schema=function["parameters"],
        handle_tool_error=True,
        **{kind: partial(call, name) for kind, call in calls.items()},
    )


def _call(client: Centgate, slug: str, /, **body: Any) -> dict[str, Any]:
    try:
        return render_answer(client.call(slug, body))
    except WRONG_INPUT as error:
        raise ToolException(describe_input_error(error)) from error
    except BuyerError as error:
        return render_error(error)


async def _call_async(client: AsyncCentgate, slug: str, /, **body: Any) -> dict[str, Any]:
    try:
        return render_answer(await client.call(slug, body))
    except WRONG_INPUT as error:
        raise ToolException(describe_input_error(error)) from error
    except BuyerError as error:
        return render_error(error)
