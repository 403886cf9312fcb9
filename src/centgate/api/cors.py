"""Access by web pages of other origins (CORS, https://fetch.spec.whatwg.org/#http-cors-protocol)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from centgate.errors import CentgateError, InvalidRequest, Issue
from centgate.sanitize import quote_line
from centgate.settings import Settings

METHODS = ("GET", "HEAD", "POST")
MAX_ORIGIN_LENGTH = 200
"""Characters of an origin in an error message."""
EXPOSED_HEADERS = (
    "Payment-Required",
    "Payment-Response",
    "X-Request-Id",
    "Idempotent-Replayed",
    "Retry-After",
)
"""Headers that pages of other origins may read."""
MPP_HEADERS = ("WWW-Authenticate", "Payment-Receipt")
"""Those that they may read besides, if MPP is accepted."""


class BrowserAccess(CORSMiddleware):
    """Middleware that lets pages of the allowed origins call the API, without credentials.

    A refused preflight request is answered by an error in the usual format, of `render_error`.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        render_error: Callable[[Request, CentgateError], Awaitable[Response]],
    ) -> None:
        super().__init__(
            app,
            allow_origins=settings.allowed_origins,
            allow_methods=METHODS,
            allow_headers=["*"],
            expose_headers=(*EXPOSED_HEADERS, *(MPP_HEADERS if settings.mpp_enabled else ())),
        )
        self._render_error = render_error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        try:
            await super().__call__(scope, receive, send)
        except _PreflightRefused as refused:
            response = await self._render_error(Request(scope), refused.error)
            response.headers.update(refused.headers)
            await response(scope, receive, send)

    def preflight_response(self, request_headers: Headers) -> Response:
        """Return the response to a preflight request. Raises _PreflightRefused."""
        response = super().preflight_response(request_headers)
        if response.status_code == 200:
            return response
        headers = {
            name: value
            for name, value in response.headers.items()
            if name == "vary" or name.startswith("access-control-allow-")
        }
        origin, method = request_headers["origin"], request_headers["access-control-request-method"]
        problem = (
            f"pages of other origins may use {', '.join(METHODS)} only"
            if self.is_allowed_origin(origin) and method not in METHODS
            else f"pages of {quote_line(origin, MAX_ORIGIN_LENGTH)} may not call this deployment"
        )
        raise _PreflightRefused(InvalidRequest([Issue("", problem)]), headers)


class _PreflightRefused(Exception):
    def __init__(self, error: CentgateError, headers: Mapping[str, str]) -> None:
        super().__init__(str(error))
        self.error, self.headers = error, headers
