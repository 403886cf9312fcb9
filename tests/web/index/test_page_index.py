"""Page index: matches, their order and excerpts, damaged files and hostile queries."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from centgate.web.index.index_writer import IndexBusy, IndexUnwritable, PageIndexWriter
from centgate.web.index.page import IndexedPage, plain_text
from centgate.web.index.page_index import FORMAT, IndexUnreadable, PageIndex
from centgate.web.index.passages import find_passage

FILLER = "The rest of the page speaks about gardens, rivers and the weather of the northern coast. "
TODAY = 20_780
"""A date in November 2026."""


def build_page(path: str, text: str = FILLER, **more: str | None) -> IndexedPage:
    """Return a page of a site."""
    base = IndexedPage(
        url=f"https://docs.example/{path}",
        site="https://docs.example/",
        title=None,
        text=text,
        headings="",
        language="en",
        fetched="2026-11-01T00:00:00Z",
    )
    return replace(base, **more)


def write_index(folder: Path, *pages: IndexedPage) -> PageIndex:
    """Write pages into an index, and open it."""
    writer = PageIndexWriter(folder)
    for each in pages:
        writer.put(each)
    writer.close()
    return PageIndex(folder)


def list_paths(index: PageIndex, query: str, limit: int = 10) -> list[str]:
    """Return the last part of the addresses of the pages found."""
    return [match.page.url.rpartition("/")[2] for match in index.search(query, limit, today=TODAY)]


@pytest.mark.parametrize(
    ("query", "language", "text"),
    [
        ("authorize transfers", "en", "An authorization lets others transfer tokens."),
        ("EIP-3009", "en", "This is described in EIP3009."),
        ("erc20", "en", "It implements ERC-20."),
        ("useEffect", "en", "How to use an effect."),
        ("snake_case names", "en", "A name in snake_case."),
        ("Übergänge", "de", "Der Ubergang zur neuen Fassung."),
        ("cafe", "fr", "Les cafés de Paris."),
        ("東京の天気", "ja", "東京の天気は晴れです。"),
        ("नमस्ते", "hi", "नमस्ते दुनिया"),
        ("кошельков", "ru", "Кошельки хранят ключи."),
        ("검색엔진", "ko", "검색엔진은 문서를 색인한다."),
        ("검색", "ko", "이 검색엔진을 설명한다."),
        ("물", "ko", "깨끗한 물이 흐른다."),
        ("지갑을", "ko", "전자지갑의 열쇠를 보관한다."),
        ("설치하기", "ko", "서버를 설치하는 방법이다."),
        ("사용자들에게는", "ko", "사용자가 서명한다."),
        ("docker", "ko", "Docker를 설치한다."),
        ("Docker를", "ko", "Docker에 올린다."),
        ("大學의", "ko", "서울의 大學을 소개한다."),
    ],
)
def test_other_word_forms_are_found(query: str, language: str, text: str, tmp_path: Path) -> None:
    wanted = build_page("wanted", text, language=language)
    index = write_index(tmp_path, wanted, build_page("other"), build_page("third", "Nothing of it."))

    assert list_paths(index, query) == ["wanted"]


def test_korean_word_is_not_found_by_its_syllables_alone(tmp_path: Path) -> None:
    index = write_index(
        tmp_path, build_page("a", "높은 건물과 검토한 색인 그리고 회색 하늘이 있다.", language="ko")
    )

    assert list_paths(index, "물") == []
    assert list_paths(index, "검색") == []


def test_korean_word_precedes_one_without_its_last_syllable(tmp_path: Path) -> None:
    city = build_page("city", "고양 시청은 고양 역에서 가깝다. 고양 고양.", language="ko")
    index = write_index(tmp_path, city, build_page("cat", "작은 고양이를 위한 집이 있다.", language="ko"))

    assert list_paths(index, "고양이") == ["cat", "city"]


def test_title_precedes_heading_url_and_text(tmp_path: Path) -> None:
    text = FILLER * 3
    index = write_index(
        tmp_path,
        build_page("text", f"{text} A relayer."),
        build_page("heading", f"{text} A relayer.", headings="A relayer"),
        build_page("title", f"{text} A relayer.", title="Relayer"),
        build_page("relayer", text),
        *(build_page(f"other{n}", f"{FILLER} {n}") for n in range(20)),
    )

    assert list_paths(index, "relayer") == ["title", "heading", "relayer", "text"]


def test_newer_of_equal_pages_is_first_except_future_dates(tmp_path: Path) -> None:
    text = f"{FILLER} A relayer."
    index = write_index(
        tmp_path,
        build_page("undated", text),
        build_page("old", text, published="2019-01"),
        build_page("future", text, published="2999-01-01"),
        build_page("new", text, published="2026-11-01T08:00:00Z"),
    )

    assert list_paths(index, "relayer")[0] == "new"
    assert set(list_paths(index, "relayer")[2:]) == {"undated", "future"}


def test_change_makes_page_newer(tmp_path: Path) -> None:
    text = f"{FILLER} A relayer."
    index = write_index(
        tmp_path,
        build_page("new", text, published="2025-11-01"),
        build_page("changed", text, published="2019-01", modified="2026-11-01"),
    )

    assert list_paths(index, "relayer") == ["changed", "new"]


def test_page_must_match_most_words(tmp_path: Path) -> None:
    index = write_index(
        tmp_path, build_page("wallets", "How wallets store keys and sign messages."), build_page("other")
    )

    assert list_paths(index, "wallets store keys offline") == ["wallets"]
    assert list_paths(index, "how do wallets store keys") == ["wallets"]
    assert list_paths(index, "wallets of pizza restaurants") == []
    assert list_paths(index, "pizza restaurants") == []


@pytest.mark.extended
@pytest.mark.parametrize(
    ("query", "language", "text"),
    [
        ("Vertrag", "de", "Hier stehen die Verträge."),
        ("élément", "fr", "Voici les Éléments du tableau."),
        ("счет", "ru", "Твой счёт пуст."),
        ("秘密鍵", "ja", "ウォレットは秘密鍵を保存します。"),
        ("私钥", "zh", "钱包保存私钥并签署交易。"),
        ("개인키를", "ko", "지갑은 개인키로 거래에 서명한다."),
        ("물", "ko", "마시는 물이 있는 곳이다."),
    ],
)
def test_passage_is_shown_in_any_script(tmp_path: Path, query: str, language: str, text: str) -> None:
    index = write_index(tmp_path, build_page("a", f"{FILLER * 9}{text}", language=language))

    (match,) = index.search(query, 1, today=TODAY)

    assert match.passage
    assert text in match.passage


def test_rarer_of_two_words_with_same_beginning_is_shown(tmp_path: Path) -> None:
    told = "The card is the secret."
    text = f"Care is taken. {FILLER * 10}\n{told}\n{FILLER * 10}"
    index = write_index(
        tmp_path, build_page("card", text), *(build_page(f"c{n}", f"Take care. {n}") for n in range(9))
    )

    (match, *_) = index.search("card care", 10)

    assert match.passage
    assert told in match.passage


@pytest.mark.parametrize("terms", [("run", "runs"), ("craw", "crawl"), ("card", "care")])
def test_no_word_hides_another_in_passage(terms: tuple[str, str]) -> None:
    for term in terms:
        passage = find_passage(f"{FILLER * 5}\nThe {term} is here.", dict.fromkeys(terms, 1.0))
        assert passage
        assert term in passage


@pytest.mark.parametrize(
    ("query", "word"),
    [
        (
            "\u0645\u0643\u062a\u0628\u0629",
            "\u0627\u0644\u0645\u0643\u062a\u0628\u0627\u062a",
        ),  # library: the libraries
        ("\u0639\u0642\u0648\u062f", "\u0627\u0644\u0639\u0642\u0648\u062f"),  # contracts: the contracts
        (
            "\u0645\u062f\u064a\u0646\u0629",
            "\u0648\u0628\u0627\u0644\u0645\u062f\u064a\u0646\u0629",
        ),  # city: and by the city
        (
            "\u0645\u062f\u064a\u0646\u0629",
            "\u0644\u0644\u0645\u062f\u064a\u0646\u0629",
        ),  # city: for the city
        ("\u0623\u0645\u0646", "\u0627\u0644\u0623\u0645\u0646"),  # safety: the safety
    ],
)
def test_excerpt_shows_arabic_word_with_its_article(tmp_path: Path, query: str, word: str) -> None:
    told = f"{word} \u0647\u0646\u0627."
    index = write_index(
        tmp_path, build_page("arabic", f"{FILLER * 10}\n{told}\n{FILLER * 10}", language="ar")
    )

    (match,) = index.search(query, 10)

    assert match.passage
    assert match.passage.startswith(told)


def test_excerpt_is_one_with_rare_words(tmp_path: Path) -> None:
    told = "A nonce keeps a signed transfer from being replayed."
    text = f"Tokens are everywhere. {FILLER * 10}\n{told}\n{FILLER * 10}"
    index = write_index(
        tmp_path, build_page("nonce", text), *(build_page(f"t{n}", f"Tokens, tokens. {n}") for n in range(9))
    )

    (match,) = index.search("tokens nonce replayed", 10)

    assert match.passage
    assert match.passage.startswith(told)
    assert len(match.passage) <= 302


def test_host_does_not_take_all_places(tmp_path: Path) -> None:
    spam = [build_page(f"spam{n}", "relayer " * 50, title="relayer " * 30) for n in range(30)]
    other = replace(build_page("honest", f"{FILLER} A relayer."), url="https://other.example/honest")
    index = write_index(tmp_path, *spam, other)

    found = index.search("relayer", 5)

    assert [match.page.url.split("/")[2] for match in found[:4]] == [*["docs.example"] * 3, "other.example"]
    assert len(found) == 5


def test_page_is_replaced_and_removed_by_url(tmp_path: Path) -> None:
    index = write_index(tmp_path, build_page("a", "An old relayer."), build_page("b", "Another relayer."))
    writer = PageIndexWriter(tmp_path)
    writer.put(build_page("a/?utm_source=x", "A new forwarder."))
    writer.delete("http://www.docs.example/b")
    writer.close()

    assert list_paths(index, "relayer") == []
    assert [match.page.text for match in index.search("forwarder", 5)] == ["A new forwarder."]


def test_readers_see_only_committed_pages(tmp_path: Path) -> None:
    first = write_index(tmp_path, build_page("a", "A relayer."))
    second = PageIndex(tmp_path)
    writer = PageIndexWriter(tmp_path)
    for number in range(300):
        writer.put(build_page(f"p{number}", f"A relayer {number}."))
        if number % 50 == 0:
            counts = {len(first.search("relayer", 1000)), len(second.search("relayer", 1000))}
            assert counts == {1 if number == 0 else number - 49 + 1}
            writer.commit()
    with pytest.raises(IndexBusy):
        PageIndexWriter(tmp_path)
    writer.close()
    for lock in (tmp_path / FORMAT).glob(".tantivy-writer*"):
        lock.unlink()
    (tmp_path / FORMAT / ".tantivy-writer.lock").mkdir()
    with pytest.raises(IndexUnwritable):
        PageIndexWriter(tmp_path)

    assert len(first.search("relayer", 1000)) == len(second.search("relayer", 1000)) == 301


@pytest.mark.parametrize(
    "query",
    [
        " ".join(f"word{n}" for n in range(90)),
        "relayer* ~2 AND (",
        "words:relayer OR /.*/",
        "[a TO z] *:*",
        '"' * 500,
        "\\" * 500,
        "\x00\ud800\uffff",
        "*",
        "\u0301" * 500,
        "the of and",
        "a_" * 250,
        "Ab" * 250,
        "\u6771" * 500,
        "\u017ftore \u212aeys",
    ],
)
def test_any_query_is_no_syntax_and_no_error(query: str, tmp_path: Path) -> None:
    index = write_index(tmp_path, build_page("a", "A relayer stores keys."), build_page("b"))

    assert len(index.search(query, 10)) <= 1


def flip_bits(body: bytearray, chance: random.Random) -> bytes:
    for _ in range(max(20, len(body) // 200)):
        body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
    return bytes(body)


DAMAGES: dict[str, Callable[[bytearray, random.Random], bytes]] = {
    "cut": lambda body, chance: bytes(body[: chance.randrange(len(body))]),
    "flipped": flip_bits,
    "zeroed": lambda body, _chance: bytes(len(body)),
    "empty": lambda _body, _chance: b"",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_index_gives_error_without_crash(damage: str, tmp_path: Path) -> None:
    whole, chance = tmp_path / "whole", random.Random(5)
    pages = [build_page(f"p{n}", f"A relayer {n} and {chance.random()} {FILLER}") for n in range(50)]
    write_index(whole, *pages)
    unreadable = 0
    for file in [
        each.relative_to(whole) for each in whole.rglob("*") if each.is_file() and each.stat().st_size
    ]:
        copy = tmp_path / "copy"
        shutil.copytree(whole, copy)
        (copy / file).write_bytes(DAMAGES[damage](bytearray((copy / file).read_bytes()), chance))
        try:
            PageIndex(copy).search("relayer gardens", 10)
        except IndexUnreadable:
            unreadable += 1
        shutil.rmtree(copy)

    assert unreadable >= 3


def test_last_good_version_replaces_damaged_one(tmp_path: Path) -> None:
    index = write_index(tmp_path, build_page("a", "A relayer."))
    assert list_paths(index, "relayer") == ["a"]

    meta = index.folder / "meta.json"
    meta.write_bytes(meta.read_bytes()[:40])

    assert list_paths(index, "relayer") == ["a"]
    with pytest.raises(IndexUnreadable):
        PageIndex(tmp_path).search("relayer", 5)


def test_missing_index_is_none(tmp_path: Path) -> None:
    index = PageIndex(tmp_path / "missing")

    assert not index.exists
    with pytest.raises(IndexUnreadable):
        index.search("relayer", 5)


def test_words_of_every_language_are_found(tmp_path: Path) -> None:
    texts = {
        "en": "The horses are here.",
        "de": "Die Pferde sind hier.",
        "ru": "Лошади стоят здесь.",
        "ar": "الخيول هنا",
        "es": "Los caballos viven aqui.",
        "fr": "Les chevaux sont ici.",
    }
    pages = [build_page(name, text, language=name) for name, text in texts.items()]
    index = write_index(
        tmp_path, *pages, *(build_page(f"{name}{n}") for n in range(3) for name in ("x", "y"))
    )

    assert [list_paths(index, query) for query in ("chevaux", "caballos", "Pferden")] == [
        ["fr"],
        ["es"],
        ["de"],
    ]


def test_underscores_of_names_are_kept() -> None:
    assert plain_text("The `__init__` method and __main__ of *each* _private name") == (
        "The __init__ method and __main__ of each _private name"
    )
