"""A console served in a thread, and an operator's browser without scripts."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import uvicorn
from pydantic import SecretStr

from centgate.console.app import create_console_app
from centgate.console.console import Console
from centgate.console.passwords import hash_password
from centgate.console.server import create_console, open_console_listener
from centgate.findings import CheckResult, Finding
from centgate.settings import Settings

PASSWORD = "correct horse battery"
PASSWORD_HASH = SecretStr(hash_password(PASSWORD))
PAGES = (
    *("/", "/payments", "/totals", "/providers", "/directories"),
    *("/webhooks", "/doctor", "/settings", "/actions"),
)
FINDINGS = (
    CheckResult("pay-to", Finding("failed", "<b>no</b> checksum", "write it with its checksum"), 0.1),
    CheckResult("token", Finding("ok", "USDC"), 0.1),
)


@dataclass
class ServedConsole:
    """A served console: its state, its URL, and the lines that it printed."""

    console: Console
    url: str
    lines: list[str] = field(default_factory=list[str])
    browsers: ExitStack = field(default_factory=ExitStack)

    @property
    def link(self) -> str:
        """The last printed one-time link."""
        return self.lines[-1].removeprefix("console ")

    def open_browser(self, **options: Any) -> Operator:
        """Return a browser that is not logged in."""
        browser = httpx.Client(base_url=self.url, timeout=30, **options)
        return Operator(self.browsers.enter_context(browser), self)

    def log_in(self) -> Operator:
        """Return a browser that is logged in by a new link."""
        self.console.print_link()
        operator = self.open_browser()
        assert operator.log_in_by_link(self.link).status_code == 303
        return operator


@dataclass
class Operator:
    """A browser of an operator."""

    http: httpx.Client
    served: ServedConsole

    def get(self, path: str) -> httpx.Response:
        """Open a page."""
        return self.http.get(path)

    def send(self, address: str, token: str | None = None, /, **fields: str) -> httpx.Response:
        """Send a form with the token of the open page, or with another one."""
        token = self.form_token() if token is None else token
        return self.http.post(address, data={"token": token, **fields})

    def form_token(self, path: str = "/payments") -> str:
        """Return the form token of a page."""
        return find_token(self.get(path).text)

    def log_in_by_link(self, link: str) -> httpx.Response:
        """Open the one-time link and press its button."""
        html = self.get(link)
        return self.http.post(
            "/login", data={"token": find_token(html.text), "link": link.partition("token=")[2]}
        )

    def log_in_by_password(self, password: str) -> httpx.Response:
        """Enter a password."""
        token = find_token(self.get("/login").text)
        return self.http.post("/login", data={"token": token, "password": password})


def find_token(html: str) -> str:
    """Return the first form token of a page."""
    found = re.search(r'name="token" value="([^"]+)"', html)
    assert found, html
    return found[1]


@contextmanager
def serve_console(
    settings: Settings, clock: Callable[[], float] = time.monotonic
) -> Generator[ServedConsole]:
    """Serve a console in a thread; its checks are FINDINGS."""

    async def run_checks() -> Sequence[CheckResult]:
        return FINDINGS

    settings = settings.model_copy(update={"console_port": 0})
    with open_console_listener(settings) as listener:
        console = create_console(settings, listener, run_checks)
        served = ServedConsole(console, f"http://127.0.0.1:{listener.getsockname()[1]}")
        console.print_line, console.clock = served.lines.append, clock
        console.__post_init__()  # with the test's clock
        console.print_link()
        server = uvicorn.Server(uvicorn.Config(create_console_app(console), log_config=None, ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.005)
        try:
            yield served
        finally:
            served.browsers.close()
            server.should_exit = True
            thread.join()
