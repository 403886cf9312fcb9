"""Tools for agent frameworks, each in an environment with the wheel and that framework."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from buyers_shell import private_key_of
from hostile import DATA, HostileApi, PlannedResponse, error_response, service_entry
from test_wheel import install, user_environment, wheel

__all__ = ["wheel"]  # its fixture

pytestmark = pytest.mark.extended

SCHEMA = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("topic", "slug", "client")},
    "required": ["topic"],
}
LANGCHAIN = """
import asyncio, json, os
from decimal import Decimal
from centgate.client import AsyncCentgate, Caps, Centgate, Wallet
from centgate.client.adapters.langchain_tools import build_async_tools, build_tools

url, wallet = os.environ["URL"], Wallet.from_key(os.environ["KEY"])
told, names = [], {"slug": "s", "client": "c"}  # also names of parameters
with Centgate(url, wallet, caps=Caps(total=Decimal("0.01"))) as client:
    (tool,) = build_tools(client)
    told += [tool.name, tool.description, tool.args, tool.invoke({"topic": "a", **names})]
    told += [tool.invoke({"topic": "b"})]

async def main():
    async with AsyncCentgate(url, wallet) as client:
        (tool,) = await build_async_tools(client)
        told.append(await tool.ainvoke({"topic": "c", **names}))
        told.append(await tool.ainvoke({"topic": "wrong"}))

asyncio.run(main())
print(json.dumps(told))
"""
PYDANTIC_AI = """
import asyncio, json, os
from decimal import Decimal
from pydantic_ai import Agent, models
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from centgate.client import AsyncCentgate, Caps, Wallet
from centgate.client.adapters.pydantic_ai_tools import build_tools

models.ALLOW_MODEL_REQUESTS = False
TOPICS = iter(["wrong", "a", "b"])
told = []

def model(messages, info):
    tool = info.function_tools[0]
    last = messages[-1].parts[-1]
    if last.part_kind != "user-prompt":
        told.append([last.part_kind, last.content])
    if (topic := next(TOPICS, None)) is None:
        return ModelResponse(parts=[TextPart("done")])
    return ModelResponse(parts=[ToolCallPart(tool.name, {"topic": topic, "slug": "s", "client": "c"})])

async def main():
    wallet = Wallet.from_key(os.environ["KEY"])
    async with AsyncCentgate(os.environ["URL"], wallet, caps=Caps(total=Decimal("0.01"))) as client:
        agent = Agent(FunctionModel(model), tools=await build_tools(client))
        told.append((await agent.run("tell me")).output)

asyncio.run(main())
print(json.dumps(told))
"""
WRONG = error_response(400, "validation_error", issues=[{"path": "topic", "message": "not a topic"}])


@pytest.fixture
def api(hostile: HostileApi) -> HostileApi:
    """An API with one service, whose input has one field."""
    entry = service_entry(inputSchema=SCHEMA)
    hostile.service_response = PlannedResponse(200, entry)
    hostile.catalogue = PlannedResponse(200, {"services": [entry]})
    return hostile


def run_program(program: str, wheel: Path, environment: Path, extra: str, url: str) -> Any:
    """Run a program where the wheel is installed with an extra; return the JSON that it prints."""
    scripts = install(wheel, environment, extra)
    done = subprocess.run(
        [scripts / "python", "-c", program],
        env={**user_environment(), "URL": url, "KEY": private_key_of(), "HOME": str(environment)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_langchain_buys_by_tools(api: HostileApi, wheel: Path, tmp_path: Path) -> None:
    api.refused_bodies[b'{"topic":"wrong"}'] = WRONG

    name, description, arguments, first, second, third, wrong = run_program(
        LANGCHAIN, wheel, tmp_path / "venv", "langchain", api.url
    )

    assert (name, description) == ("some-facts", "Facts. Costs $0.01 a call.")
    assert arguments == SCHEMA["properties"]
    assert first["data"] == third["data"] == DATA
    assert second["error"]["money"] == "not_moved"
    assert "topic: not a topic" in wrong


def test_pydantic_ai_buys_by_tools(api: HostileApi, wheel: Path, tmp_path: Path) -> None:
    api.refused_bodies[b'{"client":"c","slug":"s","topic":"wrong"}'] = WRONG

    wrong, first, second, output = run_program(PYDANTIC_AI, wheel, tmp_path / "venv", "pydantic-ai", api.url)

    assert wrong[0] in ("retry-prompt", "tool-return")  # of versions 1 and 2
    assert "topic: not a topic" in wrong[1]
    assert (first[0], first[1]["data"]) == ("tool-return", DATA)
    assert second[1]["error"]["money"] == "not_moved"
    assert output == "done"
