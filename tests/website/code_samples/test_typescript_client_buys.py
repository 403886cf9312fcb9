"""The TypeScript client buys an answer of every service on the development chain, and one in a browser."""

# jsonschema is typed in part
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from example_deployment import PAYER
from jsonschema import Draft202012Validator
from playwright.sync_api import Browser

from centgate.catalog import all_services
from centgate.devchain.devnet import DevChain
from centgate.website.api_snapshot import ApiSnapshot

CENT = 10_000
TIMEOUT = 120


def run_tool(folder: Path, *command: str, **environment: str) -> str:
    """Run a program in the package's folder and return its output."""
    result = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files without a log."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
        pass


@contextmanager
def serve_folder(folder: Path) -> Generator[str]:
    """Serve a folder on a loopback port: an origin other than the API's, as a buyer's page has."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=folder)) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def test_typescript_client_buys_every_answer(
    typescript_client: Path, deployment: ApiSnapshot, devchain: DevChain
) -> None:
    before = devchain.token_balance(PAYER.address)

    printed = run_tool(
        typescript_client,
        "node",
        "build/test/buy-all.js",
        API_URL=deployment.api,
        WALLET_KEY=PAYER.private_key,
    )

    bought = json.loads(printed)
    services = all_services()
    assert list(bought["answers"]) == [service.slug for service in services]
    for service in services:
        answer = bought["answers"][service.slug]
        assert (answer["money"], answer["notes"]) == ("moved", [])
        Draft202012Validator(service.output_schema).validate(answer["data"])
    assert before - devchain.token_balance(PAYER.address) == CENT * len(services)
    assert bought["spent"] == f"{len(services) / 100:.2f}"


def test_typescript_client_buys_in_browser(
    typescript_client: Path, deployment: ApiSnapshot, devchain: DevChain, chromium: Browser, tmp_path: Path
) -> None:
    program = run_tool(
        typescript_client,
        "node_modules/.bin/esbuild",
        "build/test/browser.js",
        "--bundle",
        "--format=iife",
        "--platform=browser",
    )
    before = devchain.token_balance(PAYER.address)

    (tmp_path / "index.html").write_text("<title>a buyer</title>")
    page = chromium.new_page()
    with serve_folder(tmp_path) as url:
        page.goto(url)
        page.add_script_tag(content=program)
        answer = page.evaluate(
            "([api, key, url]) => buy(api, key, url)",
            [deployment.api, PAYER.private_key, "https://wallet-ethereum.net/unlock"],
        )
    page.close()

    assert (answer["money"], answer["transaction"][:2]) == ("moved", "0x")
    assert before - devchain.token_balance(PAYER.address) == CENT
