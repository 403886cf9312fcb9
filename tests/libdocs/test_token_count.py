"""Token count compared with a real vocabulary, and selection of snippets within a budget."""

# the Russian passage has letters that look like Latin ones
# ruff: noqa: RUF001

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from centgate.libdocs import token_count
from centgate.libdocs.libraries import DocSnippet

PASSAGES = {
    "prose": (
        81,
        "A client is opened once and used for every request: it keeps connections alive between cal"
        "ls, so that the second request to a host does not pay for a handshake again. Close it when"
        " the program ends, or use it as a context manager. Timeouts apply to each phase of a reque"
        "st on its own; set them on the client, and override them for the calls that need longer th"
        "an the others.",
    ),
    "python": (
        102,
        "class Window:\n"
        '    """Counts events of the last minute."""\n'
        "\n"
        "    def __init__(self, seconds: float = 60.0) -> None:\n"
        "        self._seconds = seconds\n"
        "        self._events: deque[float] = deque()\n"
        "\n"
        "    def add(self, now: float) -> int:\n"
        "        self._events.append(now)\n"
        "        while self._events and self._events[0] <= now - self._seconds:\n"
        "            self._events.popleft()\n"
        "        return len(self._events)\n",
    ),
    "typescript": (
        115,
        "export interface Options<T> {\n"
        "  readonly retries?: number;\n"
        "  onError?: (error: Error, attempt: number) => void;\n"
        "}\n"
        "\n"
        "export async function retry<T>(work: () => Promise<T>, { retries = 3, onError }: Options<T"
        "> = {}): Promise<T> {\n"
        "  for (let attempt = 1; ; attempt++) {\n"
        "    try {\n"
        "      return await work();\n"
        "    } catch (error) {\n"
        "      if (attempt > retries) throw error;\n"
        "      onError?.(error as Error, attempt);\n"
        "    }\n"
        "  }\n"
        "}\n",
    ),
    "html": (
        96,
        '<table class="prices">\n'
        '  <thead><tr><th scope="col">Plan</th><th scope="col">Calls a month</th></tr></thead>\n'
        "  <tbody>\n"
        '    <tr><td>Small</td><td data-sort="5000">5,000</td></tr>\n'
        '    <tr><td>Large</td><td data-sort="250000">250,000</td></tr>\n'
        "  </tbody>\n"
        "</table>\n",
    ),
    "json": (
        102,
        '{"results": [{"id": "/encode/httpx", "title": "HTTPX", "totalSnippets": 412, "trustScore":'
        ' 9.2, "versions": ["0.28.1", "0.27.2"]}, {"id": "/pydantic/pydantic", "title": "Pydantic",'
        ' "totalSnippets": 1033, "trustScore": 9.6, "versions": []}], "searchFilterApplied": false}',
    ),
    "shell": (
        70,
        'curl -sS -X POST "$BASE_URL/v1/items?limit=20" \\\n'
        '  -H "Authorization: Bearer ${TOKEN}" \\\n'
        "  -H 'Content-Type: application/json' \\\n"
        '  --data \'{"name": "first", "tags": ["a", "b"]}\' | jq -r \'.items[].id\'\n',
    ),
    "german": (
        50,
        "Ein Client wird einmal geöffnet und für alle Anfra"
        "gen verwendet: Er hält Verbindungen offen, damit d"
        "ie zweite Anfrage an denselben Rechner keinen neue"
        "n Handschlag braucht. Schließen Sie ihn am Ende de"
        "s Programms oder verwenden Sie ihn als Kontextmana"
        "ger.",
    ),
    "russian": (
        49,
        "Клиент открывается один раз и используется для все"
        "х запросов: он сохраняет соединения между вызовами"
        ", поэтому второй запрос к тому же узлу не требует "
        "нового рукопожатия. Закройте его в конце программы"
        ".",
    ),
    "chinese": (
        51,
        "客户端只需打开一次,即可用于所有请求:它在调用之间保持连接,因此对同一主机的第二个请求不必再次握手。"
        "程序结束时请关闭客户端,或者将其用作上下文管理器。",
    ),
    "japanese": (
        66,
        "クライアントは一度だけ開き、すべてのリクエストに使います。接続は呼び出しの間も保たれるため、同じホス"
        "トへの二回目のリクエストでは再びハンドシェイクを行う必要がありません。",
    ),
}
"""Passages, each with its tokens in the vocabulary o200k_base."""


def build_snippet(tokens: int, title: str = "") -> DocSnippet:
    return DocSnippet(title or str(tokens), None, None, None, "text", tokens)


@pytest.mark.parametrize("kind", PASSAGES)
def test_count_of_passage_is_close_to_vocabulary(kind: str) -> None:
    true, text = PASSAGES[kind]

    counted = token_count.count_tokens(text)

    assert 0.85 * true <= counted <= 1.45 * true


@pytest.mark.parametrize("kind", ["prose", "python", "typescript", "html", "json", "shell"])
def test_count_of_english_and_code_is_rather_high(kind: str) -> None:
    true, text = PASSAGES[kind]

    counted = token_count.count_tokens(text)

    assert true <= counted <= 1.25 * true


def test_empty_text_has_no_tokens() -> None:
    assert token_count.count_tokens("") == 0


@pytest.mark.parametrize("text", ["a", " ", "\n", ".", "7", "\u6f22", "\U0001f389", "\ud800", "\0", "\u0301"])
def test_any_character_has_at_least_one_token(text: str) -> None:
    assert token_count.count_tokens(text) >= 1


@given(st.text(max_size=200))
def test_count_is_bounded_by_bytes(text: str) -> None:
    counted = token_count.count_tokens(text)

    assert bool(text) <= counted <= 4 * len(text.encode()) + 2


@given(st.text(max_size=100), st.text(max_size=100))
def test_longer_text_has_hardly_fewer_tokens(start: str, end: str) -> None:
    whole = token_count.count_tokens(start + "\n\n" + end)

    assert whole >= 0.7 * token_count.count_tokens(start) - 2


@pytest.mark.parametrize(
    "text",
    [
        "x" * 100_000,
        "A" * 100_000,
        " " * 100_000,
        "-" * 100_000,
        "\n" * 100_000,
        "+-" * 50_000,
        "\u6f22" * 30_000,
    ],
)
def test_long_run_is_counted_in_time(text: str) -> None:
    began = time.monotonic()

    counted = token_count.count_tokens(text)

    assert counted > 1
    assert time.monotonic() - began < 5


def test_snippet_count_includes_title_text_and_code() -> None:
    parts = [
        token_count.count_tokens(each) for each in ("Open a client", "Use it twice.", "client = Client()")
    ]

    whole = token_count.snippet_tokens("client = Client()", "Use it twice.", "Open a client")

    assert sum(parts) - 2 <= whole <= sum(parts) + 3
    assert token_count.snippet_tokens(None, "Use it twice.") == parts[1]
    assert token_count.snippet_tokens(None, None) == 0


@pytest.mark.parametrize(
    ("sizes", "budget", "kept"),
    [
        ([], 500, []),
        ([100, 200, 300], 600, [100, 200, 300]),
        ([100, 200, 300], 599, [100, 200]),
        ([100, 700, 300], 500, [100, 300]),
        ([700, 800], 500, []),
        ([500, 1], 500, [500]),
        ([0, 500, 0], 500, [0, 500, 0]),
    ],
)
def test_whole_snippets_are_kept_in_order(sizes: list[int], budget: int, kept: list[int]) -> None:
    fitting = token_count.select_fitting([build_snippet(size) for size in sizes], budget)

    assert [each.tokens for each in fitting] == kept


@given(st.lists(st.integers(0, 3000), max_size=20), st.integers(500, 5000))
def test_selection_fits_budget_and_loses_no_small_snippet(sizes: list[int], budget: int) -> None:
    listed = [build_snippet(size, str(place)) for place, size in enumerate(sizes)]

    fitting = token_count.select_fitting(listed, budget)

    spent = sum(each.tokens for each in fitting)
    assert spent <= budget
    assert fitting == [each for each in listed if each in fitting]
    assert all(each.tokens > budget - spent for each in listed if each not in fitting)


def test_tokenizer_has_name() -> None:
    assert token_count.RULE_NAME == "centgate-tokens-1"
