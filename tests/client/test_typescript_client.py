"""The TypeScript client: generated from the services, and tested against a hostile API."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from facilitators import build_settings, open_stub_facilitator
from generate_typescript import generate_sources
from hostile import hostile_api
from node_packages import TYPESCRIPT_CLIENT
from reply_plans import serve_plans
from signed_receipts import SIGNER

from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.server import run_in_thread

TIMEOUT = 120
RECEIPT_KEY = "5e" * 32
TYPESCRIPT_BLOCK = re.compile(r"^```ts\n(.*?)^```$", re.MULTILINE | re.DOTALL)
README_NAMES = {
    "tokenAddress": "declare const tokenAddress: string;",
    "wallet": 'declare const wallet: import("centgate").Wallet;',
    "client": 'declare const client: import("centgate").Centgate;',
    "model": 'declare const model: import("ai").LanguageModel;',
}
"""Values that programs of the README leave to their readers."""
WINDOW = 'declare global { interface Window { ethereum: import("viem").EIP1193Provider } }'
README_PROJECT: dict[str, Any] = {
    "extends": "../tsconfig.json",
    "compilerOptions": {
        "rootDir": ".",
        "noEmit": True,
        # stricter than most projects of readers
        "noUnusedLocals": False,
        "noPropertyAccessFromIndexSignature": False,
        "types": ["node"],
    },
    "include": ["."],
}


@pytest.fixture
def plan_url() -> Generator[str]:
    """URL by which the replies of a hostile API are planned."""
    with hostile_api() as api, serve_plans(api) as url:
        yield url


def run_node_tests(package: Path, name: str, plan_url: str) -> str:
    """Run one file of Node tests; return its output, and fail with it."""
    result = subprocess.run(
        ["node", "--test", "--test-reporter=spec", f"build/test/{name}.test.js"],
        cwd=package,
        env={**os.environ, "PLAN_URL": plan_url, "WALLET_KEY": BUYER_ACCOUNTS[0].private_key},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-8000:] + result.stderr[-2000:]
    return result.stdout


@pytest.mark.parametrize("name", ["money", "redeem", "signed", "tools", "types", "whatever-is-answered"])
def test_package_tests_pass(typescript_client: Path, plan_url: str, name: str) -> None:
    assert "fail 0" in run_node_tests(typescript_client, name, plan_url)


def run_purchases(package: Path, folder: Path) -> dict[str, Any]:
    """Run `buy-all` for one service of a real API; return its output."""
    with (
        open_stub_facilitator() as stub,
        run_in_thread(build_settings(folder, stub.url, receipt_key=RECEIPT_KEY)) as url,
    ):
        result = subprocess.run(
            ["node", "build/test/buy-all.js"],
            cwd=package,
            env={
                **os.environ,
                "API_URL": url,
                "SLUG": "phishing-check",
                "WALLET_KEY": BUYER_ACCOUNTS[0].private_key,
            },
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_signer_of_receipt_is_api(typescript_client: Path, tmp_path: Path) -> None:
    printed = run_purchases(typescript_client, tmp_path)

    answer = printed["answers"]["phishing-check"]
    assert (answer["signer"], answer["notes"]) == (SIGNER.address, [])


def test_lost_purchase_is_found_by_sign_in(typescript_client: Path, tmp_path: Path) -> None:
    with open_stub_facilitator() as stub, run_in_thread(build_settings(tmp_path, stub.url)) as url:
        result = subprocess.run(
            ["node", "build/test/recover.js"],
            cwd=typescript_client,
            env={**os.environ, "API_URL": url, "WALLET_KEY": BUYER_ACCOUNTS[0].private_key},
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )

    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {
        "next": ["read_answer"],
        "cursor": None,
        "isSame": True,
        "isRedeemed": True,
        "receipt": True,
        "usd": "0.01",
        "recorded": ["delivered"],
        "isRefused": True,
        "unknown": True,
    }


def test_empty_object_is_not_paid(typescript_client: Path, tmp_path: Path) -> None:
    printed = run_purchases(typescript_client, tmp_path)

    assert printed["refused"] == "InvalidInput: url: is required. Nothing was signed"
    assert printed["spentAfterwards"] == printed["spent"]


def test_readme_programs_compile(typescript_client: Path) -> None:
    folder = typescript_client / "readme"
    folder.mkdir()
    blocks = TYPESCRIPT_BLOCK.findall((typescript_client / "README.md").read_text(encoding="utf-8"))
    for number, block in enumerate(blocks):
        declared = [line for name, line in README_NAMES.items() if f"const {name} =" not in block]
        (folder / f"program{number}.ts").write_text("\n".join((*declared, WINDOW, block)))
    (folder / "tsconfig.json").write_text(json.dumps(README_PROJECT))

    result = subprocess.run(
        ["node_modules/.bin/tsc", "-p", str(folder)],
        cwd=typescript_client,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )

    assert len(blocks) == 5
    assert result.returncode == 0, result.stdout


def test_only_needed_files_are_packed(typescript_client: Path) -> None:
    result = subprocess.run(
        ["npm", "pack", "--dry-run", "--json", "--ignore-scripts"],
        cwd=typescript_client,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=True,
    )

    packed: list[Any] | dict[str, Any] = json.loads(result.stdout)
    (package,) = packed if isinstance(packed, list) else packed.values()  # by npm's version
    paths: set[str] = {file["path"] for file in package["files"]}
    assert {path for path in paths if not path.startswith("dist/")} == {
        "LICENSE",
        "README.md",
        "package.json",
    }
    assert {"dist/index.js", "dist/index.d.ts", "dist/ai.js", "dist/ai.d.ts"} <= paths
    assert all(path.endswith((".js", ".d.ts")) for path in paths if path.startswith("dist/"))


@pytest.mark.parametrize("name", sorted(generate_sources()))
def test_generated_typescript_is_committed(name: str) -> None:
    committed = (TYPESCRIPT_CLIENT / "src" / "generated" / name).read_text(encoding="utf-8")

    assert generate_sources()[name] == committed, "run `make client`"


def test_package_depends_on_x402_and_viem_only() -> None:
    package = json.loads((TYPESCRIPT_CLIENT / "package.json").read_text(encoding="utf-8"))

    assert set(package["dependencies"]) == {"@x402/core", "viem"}
    assert package["peerDependenciesMeta"] == {"ai": {"optional": True}}


def test_package_has_version_of_project() -> None:
    package = json.loads((TYPESCRIPT_CLIENT / "package.json").read_text(encoding="utf-8"))
    project = tomllib.loads((TYPESCRIPT_CLIENT.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))

    assert package["version"] == project["project"]["version"]


def test_typescript_lock_names_no_registry() -> None:
    lock = json.loads((TYPESCRIPT_CLIENT / "package-lock.json").read_text(encoding="utf-8"))

    assert [package for package in lock["packages"].values() if "resolved" in package] == []
