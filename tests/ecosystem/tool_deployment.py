"""A development deployment with its website, and the inputs of the tools in `ecosystem_tools.py`."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from centgate.devchain.accounts import BUYER_ACCOUNTS

ROOT = Path(__file__).parents[2]
TYPESCRIPT_CLIENT = ROOT / "clients" / "typescript"
READY = "ready "
RECEIPT_KEY = "5e" * 32
BUILD_TIMEOUT = 300
OPERATOR = "operator@shop.example"


@dataclass(frozen=True, slots=True)
class Deployment:
    """Addresses and files of a deployment that the commands of tools name in braces."""

    api: str
    site: str
    openapi: Path
    """OpenAPI document of the API."""
    wheel: Path
    npm_package: Path
    """The packed TypeScript client."""
    centgate: Path
    """The command `centgate`."""
    wallet_key: str
    """Private key of a payer with test money."""

    @property
    def placeholders(self) -> dict[str, str]:
        """Values of the words in braces in commands."""
        return {name: str(getattr(self, name)) for name in self.__dataclass_fields__} | {"root": str(ROOT)}


@contextmanager
def open_deployment(folder: Path, environment: Mapping[str, str]) -> Generator[Deployment]:
    """Start an API on a development chain and its website; build the two packages into `folder`."""
    centgate = Path(sys.executable).parent / "centgate"
    site_port = _find_free_port()
    settings = {
        "CENTGATE_LOG_LEVEL": "error",
        "CENTGATE_OPERATOR": OPERATOR,
        "CENTGATE_PORT": "0",
        "CENTGATE_RECEIPT_KEY": RECEIPT_KEY,
        # unreachable, but both searches are described as available
        "CENTGATE_SEARXNG_URL": f"http://127.0.0.1:{_find_free_port()}",
        "CENTGATE_SITE_URL": f"http://127.0.0.1:{site_port}",
    }
    with ExitStack() as started:
        api = started.enter_context(_serve([centgate, "dev"], settings))
        website = [centgate, "site", "--api", api, "--port", str(site_port)]
        site = started.enter_context(_serve(website, settings))
        yield Deployment(
            api=api,
            site=site,
            openapi=_save_document(api, folder),
            wheel=_build_wheel(folder, environment),
            npm_package=_pack_typescript_client(folder / "typescript", environment),
            centgate=centgate,
            wallet_key=BUYER_ACCOUNTS[0].private_key,
        )


@contextmanager
def _serve(command: list[str | Path], settings: Mapping[str, str]) -> Generator[str]:
    """Run a `centgate` command, and yield the URL it reports; stop it at the end. Raises RuntimeError."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CENTGATE_")}
    with (
        subprocess.Popen(
            command, env={**environment, **settings}, stdout=subprocess.PIPE, text=True
        ) as server,
        ExitStack() as at_end,
    ):
        at_end.callback(server.terminate)
        for line in server.stdout or ():
            if line.startswith(READY):
                yield line.removeprefix(READY).strip()
                return
        raise RuntimeError(f"{command[1]} did not start")


def _find_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def _save_document(api: str, folder: Path) -> Path:
    """Save the OpenAPI document over many lines, so that findings can name one."""
    file = folder / "openapi.json"
    with urllib.request.urlopen(f"{api}/openapi.json") as response:
        file.write_text(json.dumps(json.load(response), indent=2))
    return file


def _build_wheel(folder: Path, environment: Mapping[str, str]) -> Path:
    _build(["uv", "build", "--quiet", "--wheel", "--out-dir", str(folder), str(ROOT)], ROOT, environment)
    (wheel,) = folder.glob("*.whl")
    return wheel


def _pack_typescript_client(folder: Path, environment: Mapping[str, str]) -> Path:
    shutil.copytree(TYPESCRIPT_CLIENT, folder, ignore=shutil.ignore_patterns("node_modules", "dist", "build"))
    _build(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], folder, environment)
    _build(["npm", "pack"], folder, environment)
    (package,) = folder.glob("*.tgz")
    return package


def _build(command: list[str], folder: Path, environment: Mapping[str, str]) -> None:
    """Run a command of a build. Raises RuntimeError with its output."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
