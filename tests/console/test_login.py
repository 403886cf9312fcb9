"""Login to the console: sessions, the one-time link, the password and the limit of attempts."""

from __future__ import annotations

import httpx
import pytest
from console_session import (
    PAGES,
    PASSWORD,
    PASSWORD_HASH,
    Operator,
    ServedConsole,
    find_token,
    serve_console,
)

from centgate.console.console import LOGINS_PER_MINUTE
from centgate.console.passwords import hash_password, is_password_correct
from centgate.console.sessions import (
    COOKIE,
    IDLE_SECONDS,
    LINK_SECONDS,
    MAX_SECONDS,
    MAX_SESSIONS,
    OneTimeLink,
    SessionStore,
)
from centgate.settings import Settings


class FakeClock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_no_page_without_session(console: ServedConsole) -> None:
    visitor = console.open_browser()
    paths = [*PAGES, "/payments/0x1:0x2"]

    answers = {path: visitor.get(path) for path in paths}
    sent = {path: visitor.send(path, "x") for path in ("/reconcile", "/doctor", "/refresh", "/logout")}

    assert {each.status_code for each in (*answers.values(), *sent.values())} == {303}
    assert {each.headers["location"] for each in (*answers.values(), *sent.values())} == {"/login"}


def test_link_works_once(console: ServedConsole) -> None:
    first, second = console.open_browser(), console.open_browser()
    link = console.link

    assert first.get(link).status_code == 200  # opening it does not use it
    assert first.log_in_by_link(link).headers["location"] == "/"
    assert first.get("/").status_code == 200
    assert second.log_in_by_link(link).status_code == 403
    assert second.get("/").status_code == 303


def test_link_expires() -> None:
    clock = FakeClock()
    link = OneTimeLink(clock)
    clock.now += LINK_SECONDS

    assert not link.use(link.token)


def ask_for_link(visitor: Operator) -> httpx.Response:
    """Press the button for a new link."""
    token = find_token(visitor.get("/login").text)
    return visitor.http.post("/login", data={"token": token, "new_link": "yes"})


def find_message(answer: httpx.Response) -> str:
    """Return the message of the login page."""
    return answer.text.partition('role="alert">')[2].partition("</p>")[0]


def test_visitor_cannot_void_link(console: ServedConsole) -> None:
    link, lines, visitor = console.link, len(console.lines), console.open_browser()

    answer = ask_for_link(visitor)

    assert len(console.lines) == lines
    assert "a new one was printed there if" in find_message(answer)
    assert visitor.log_in_by_link(link).status_code == 303


def test_new_link_follows_used_one(console: ServedConsole) -> None:
    old, visitor = console.link, console.open_browser()
    before = find_message(ask_for_link(visitor))
    console.open_browser().log_in_by_link(old)

    after = find_message(ask_for_link(visitor))

    assert console.link != old
    assert after == before  # a visitor is not told whether the operator logged in
    assert visitor.log_in_by_link(old).status_code == 403
    assert visitor.log_in_by_link(console.link).status_code == 303


def test_new_link_follows_expired_one(console_settings: Settings) -> None:
    clock = FakeClock()
    with serve_console(console_settings, clock) as served:
        old, visitor = served.link, served.open_browser()
        clock.now += LINK_SECONDS

        ask_for_link(visitor)

        assert served.link != old
        assert visitor.log_in_by_link(served.link).status_code == 303


@pytest.mark.extended
def test_cookie_is_httponly_and_samesite(console_settings: Settings) -> None:
    settings = console_settings.model_copy(update={"console_url": "https://console.example"})
    for each, is_secure in ((console_settings, False), (settings, True)):
        with serve_console(each) as served:
            visitor = served.open_browser(headers={"Host": "console.example"} if is_secure else None)
            html = visitor.get(f"/login?{served.link.partition('?')[2]}")
            cookies = {"Cookie": html.headers["set-cookie"].partition(";")[0]}
            form = {"token": find_token(html.text), "link": served.link.partition("token=")[2]}
            answer = visitor.http.post("/login", data=form, headers=cookies)

        cookie = next(line for line in answer.headers.get_list("set-cookie") if line.startswith(f"{COOKIE}="))
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
        assert ("; Secure" in cookie) == is_secure


def test_logout_ends_session(console: ServedConsole) -> None:
    operator = console.log_in()
    cookie = operator.http.cookies[COOKIE]

    operator.send("/logout")
    thief = console.open_browser(cookies={COOKIE: cookie})

    assert thief.get("/").status_code == 303


def test_password_opens_session(console_settings: Settings) -> None:
    settings = console_settings.model_copy(update={"console_password_hash": PASSWORD_HASH})
    with serve_console(settings) as served:
        wrong, right = served.open_browser(), served.open_browser()

        assert wrong.log_in_by_password(PASSWORD + "!").status_code == 403
        assert wrong.get("/").status_code == 303
        assert right.log_in_by_password(PASSWORD).status_code == 303
        assert right.get("/").status_code == 200


def test_attempts_are_limited(console_settings: Settings) -> None:
    clock = FakeClock()
    settings = console_settings.model_copy(update={"console_password_hash": PASSWORD_HASH})
    with serve_console(settings, clock) as served:
        visitor = served.open_browser()
        wrong = [visitor.log_in_by_password("wrong").status_code for _ in range(LOGINS_PER_MINUTE)]
        refused = visitor.log_in_by_password(PASSWORD)
        clock.now += int(refused.headers["Retry-After"])
        later = visitor.log_in_by_password(PASSWORD)

    assert wrong == [403] * LOGINS_PER_MINUTE
    assert refused.status_code == 429
    assert later.status_code == 303


def test_login_form_needs_its_own_visitor(console: ServedConsole) -> None:
    one, other = console.open_browser(), console.open_browser()
    token, link = find_token(one.get("/login").text), console.link.partition("token=")[2]
    other.get("/login")

    answer = other.http.post("/login", data={"token": token, "link": link})

    assert answer.status_code == 403
    assert other.log_in_by_link(console.link).status_code == 303  # the link was not used


def test_other_host_names_are_refused(console: ServedConsole) -> None:
    visitor = console.open_browser(headers={"Host": "rebound.example"})

    assert visitor.get("/login").status_code == 400


def test_console_stays_on_loopback_without_url(console_settings: Settings) -> None:
    settings = console_settings.model_copy(update={"console_host": "0.0.0.0"})

    with pytest.raises(OSError, match="CENTGATE_CONSOLE_URL"), serve_console(settings):
        pass


def test_ipv6_loopback_is_accepted_host(console_settings: Settings) -> None:
    settings = console_settings.model_copy(update={"console_host": "::1"})
    with serve_console(settings) as served:
        served.url = served.console.base_url

        assert served.url.startswith("http://[::1]:")
        assert served.log_in().get("/").status_code == 200


def test_sessions_expire() -> None:
    clock = FakeClock()
    sessions = SessionStore(clock)
    idle, busy = sessions.start(), sessions.start()
    for _ in range(3):
        clock.now += IDLE_SECONDS - 1
        sessions.find(busy, is_refresh=False)
        sessions.find(idle, is_refresh=True)

    assert sessions.find(idle, is_refresh=False) is None
    assert sessions.find(busy, is_refresh=False) is not None
    for _ in range(MAX_SECONDS // (IDLE_SECONDS - 1)):
        clock.now += IDLE_SECONDS - 1
        sessions.find(busy, is_refresh=False)
    assert sessions.find(busy, is_refresh=False) is None


def test_number_of_sessions_is_limited() -> None:
    clock = FakeClock()
    sessions = SessionStore(clock)
    first, *_, last = [sessions.start() for _ in range(MAX_SESSIONS + 1)]

    assert sessions.find(first, is_refresh=False) is None
    assert sessions.find(last, is_refresh=False) is not None


def test_password_hash_is_salted_and_checked() -> None:
    one, other = hash_password(PASSWORD), hash_password(PASSWORD)

    assert one != other
    assert is_password_correct(PASSWORD, one)
    assert not is_password_correct(PASSWORD + " ", one)
    with pytest.raises(ValueError, match="12 to 1024 characters"):
        hash_password("short")


def test_setting_accepts_only_hash() -> None:
    assert Settings(console_password_hash=PASSWORD_HASH).console_password_hash == PASSWORD_HASH
    with pytest.raises(ValueError, match="centgate console hash"):
        Settings.model_validate({"console_password_hash": "my password"})
