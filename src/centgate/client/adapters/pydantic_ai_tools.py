"""Tools for pydantic-ai: `pip install 'centgate[pydantic-ai]'`."""

# pydantic-ai is an extra, which is not installed where types are checked
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

from functools import partial
from typing import Any

from pydantic_ai import ModelRetry, Tool

from centgate.client.adapters import WRONG_INPUT, describe_input_error, render_answer, render_error
from centgate.client.async_client import AsyncCentgate
from centgate.client.errors import BuyerError


async def build_tools(client: AsyncCentgate) -> list[Tool[Any]]:
    """Build a tool for each service that can be bought at the client's API."""
    functions = [each["function"] for each in await client.tools("openai")]
    return [
        Tool.from_schema(
            partial(_call, client, each["name"]),
            name=each["name"],
            description=each["description"],
            json_schema=each["parameters"],
        )
        for each in functions
    ]


async def _call(client: AsyncCentgate, slug: str, /, **body: Any) -> dict[str, Any]:
    try:
        return render_answer(await client.call(slug, body))
    except WRONG_INPUT as error:
        raise ModelRetry(describe_input_error(error)) from error
    except BuyerError as error:
        return render_error(error)
