"""Rank the chunks that answer a query: by words, names, headings and pages, with limits for each page."""

from __future__ import annotations

import math
import re
import sqlite3
from collections import Counter, defaultdict, deque
from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import islice

from msgspec import Struct

from centgate.libdocs.index.dedupe import are_alike
from centgate.libdocs.index.index_file import SITE_FOLDER
from centgate.libdocs.index.name_fit import QuestionFit, measure_name_fits
from centgate.libdocs.index.query import NAME_BOOST, DocsQuery, QueryTerm
from centgate.libdocs.index.rows import ChunkRow, find_definitions, read_chunks
from centgate.libdocs.index.tokenizer import WORD, normalize_name
from centgate.libdocs.index.usage import declares_bare_type, declares_error
from centgate.libdocs.parse.documents import is_test

MAX_CANDIDATES = 200
"""Maximum number of chunks that are scored in detail."""
MAX_NAME_FITS = 30
"""Number of first chunks whose code is compared with the question name by name."""
MAX_RESULTS = 50
"""Maximum number of chunks in an answer."""
MAX_RARITY = 3.5
"""Maximum rarity of a word in the share of a query: the rarest words may only be other words for it."""
MIN_SHARE_FACTOR = 0.35
"""Factor for a chunk with none of the words; with all of them it is 1."""
HEADING_BOOST = 1.6
"""Bonus for a chunk whose heading has exactly the words of the query."""
EXACT_NAME_FACTOR = 1.8
"""Factor for the bonus of a plain word that is exactly the name of something."""
OTHER_CASE_FACTOR = 0.7
"""Factor for the bonus of a name that is written with other capitals."""
MEMBER_NAME_FACTOR = 0.3
"""Factor for the bonus of a member's name that is a plain word: the member is seldom meant."""
IDENTIFIER_FACTOR = 1.5
"""Factor for code that uses an identifier exactly as written."""
CODE_FACTOR = 1.08
"""Factor for other code."""
TYPE_FACTOR = 0.5
"""Factor for types and exceptions in questions about a task, which are answered by what has such types."""
ERROR_WORDS = frozenset(("catch", "error", "errors", "except", "exception", "exceptions", "raised", "thrown"))
"""Words of questions that exceptions answer."""
PAGE_SHARE = 0.6
"""Share of the scores of the same page that is added to the score of a chunk of prose."""
REPEAT_DAMPING = 0.87
"""Factor for each chunk of the same page that is already in the answer."""
SAME_PAGE_RUN = 3
"""Number of consecutive chunks of one page after which `RUN_DAMPING` applies to a further one."""
RUN_DAMPING = 0.15
MIN_SCORE_SHARE = 0.05
"""Share of the best score below which a chunk only fills the budget."""
FEW_RESULTS = 5
"""Number of chunks in an answer up to which a third of that share is enough."""
USAGE_PLACES = 3
"""Number of first chunks one of which shows a call in its context, if any of the next ones does."""
USAGE_DEPTH = 15
"""Number of chunks among which a call is searched."""
VARIANT_SIMILARITY = 0.6
"""Share of common words from which methods of the same name are variants of one another."""
HTTP_METHODS = frozenset(("delete", "get", "head", "patch", "post", "put"))
REQUEST_WORD = "request"
"""Word of a question in which such a word is a method of HTTP: `post a letter` names none."""
_METHOD_CALL = re.compile(
    rf"\.(?:{'|'.join(sorted(HTTP_METHODS))})\(|['\"](?:{'|'.join(sorted(HTTP_METHODS))})['\"]"
)
_PROSE_FILE = re.compile(r"(?:^|/)readme$|\.(?:mdx?|markdown|rst|txt)$", re.IGNORECASE)
_BM25 = "bm25(words, 6.0, 4.0, 5.0, 1.0)"
_SCORES = f"select rowid, -{_BM25} from words where words match ? order by {_BM25} limit {MAX_CANDIDATES}"
_SCORES_OF = f"select rowid, -{_BM25} from words where words match ? and rowid in ({{}})"


class ScoreWeights(Struct, frozen=True):
    """Exponents and factors that combine what is known of a chunk to its score."""

    bm25: float
    """Exponent of the BM25 score."""
    share: float
    """Exponent of the factor for the share of the words that the chunk has."""
    columns: Mapping[str, float]
    """Logarithm of the factor for a column of the index that has all of the words."""
    heading: float
    """Exponent of the factor for the words of its heading."""
    chunk: float
    """Exponent of the weight of the chunk."""
    names: float
    """Exponent of the boost for the definition of a name."""
    usage: float
    """Factor for code that shows a call."""
    name_words: float
    """Logarithm of the factor for code with a name that has exactly the words of the question."""
    name_documentation: float
    """Logarithm of the factor for code with a call whose documentation has exactly these."""


TASK_WEIGHTS = ScoreWeights(
    bm25=0.18,
    share=1.5,
    columns={"body": 1.7, "trail": 1.0, "title": 0.35},
    heading=1.8,
    chunk=1.2,
    names=0.43,
    usage=3.4,
    name_words=1.25,
    name_documentation=1.9,
)
"""Weights for questions about a task, fitted by a regression on those of `bench/libdocs_questions.py`: which
words a chunk has, and where, says more than how often it has them."""
NAME_WEIGHTS = ScoreWeights(
    bm25=0.75,
    share=1.0,
    columns={},
    heading=1.0,
    chunk=1.0,
    names=1.0,
    usage=1.0,
    name_words=0.0,
    name_documentation=0.0,
)
"""Weights for questions with identifiers, whose definitions come first; no fitted question has one."""


class ScoredChunk(Struct):
    """A chunk with its score."""

    row: ChunkRow
    score: float


def rank_chunks(database: sqlite3.Connection, query: DocsQuery) -> Iterator[ChunkRow]:
    """Return the chunks that answer a query, best first."""
    chunks_by_term = _chunks_by_term(database, query.terms)
    if not chunks_by_term:
        return iter(())
    boosts = _definition_boosts(database, query)
    scores = _bm25_scores(database, chunks_by_term, boosts)
    weights = NAME_WEIGHTS if query.identifiers else TASK_WEIGHTS
    term_shares = _measure_term_shares(database, chunks_by_term)
    coverage = _measure_coverage(database, chunks_by_term, term_shares, weights)
    found = [
        ScoredChunk(
            row,
            scores[row.id] ** weights.bm25
            * coverage.get(row.id, MIN_SHARE_FACTOR**weights.share)
            * boosts.get(row.id, 1.0) ** weights.names
            * _chunk_factor(row, query, weights),
        )
        for row in read_chunks(database, scores)
    ]
    if not query.identifiers:
        _add_name_fits(database, found, QuestionFit(term_shares), weights)
    ranked = _drop_similar(_diversify(_add_page_scores(found)), boosts)
    return ranked if query.identifiers else _lift_usage(_defer_variants(ranked), query)


def _chunks_by_term(
    database: sqlite3.Connection, terms: Iterable[QueryTerm]
) -> dict[QueryTerm, frozenset[int]]:
    """Return the chunk IDs of each term. The parts of an identifier count if only these occur."""
    chunks_by_term: dict[QueryTerm, frozenset[int]] = {}
    for term in terms:
        chunks_by_term[term] = _chunks_with_term(database, term)
        if not chunks_by_term[term]:
            chunks_by_term |= {
                part: _chunks_with_term(database, part) for part in map(_plain_term, term.parts)
            }
    return {term: chunks for term, chunks in chunks_by_term.items() if chunks}


def _plain_term(word: str) -> QueryTerm:
    return QueryTerm((word,))


def _chunks_with_term(
    database: sqlite3.Connection, term: QueryTerm, column: str | None = None
) -> frozenset[int]:
    """Return the chunks that have a term, anywhere or in one column of the index."""
    expression = _match_expression([term])
    if column:
        expression = f"{column} : ({expression})"
    found = database.execute("select rowid from words where words match ?", (expression,))
    return frozenset(number for (number,) in found)


def _match_expression(terms: Iterable[QueryTerm]) -> str:
    """Return an FTS5 expression for any of the words.

    Each word is quoted and has only letters, digits and `_`, so it is never syntax.
    """
    return " OR ".join(f'"{form}"' for term in terms for form in term.forms)


def _definition_boosts(database: sqlite3.Connection, query: DocsQuery) -> dict[int, float]:
    """Return the boosts of the chunks that define names in the query."""
    boosts: dict[int, float] = {}
    for written, boost in query.names.items():
        for matches in find_definitions(
            database, normalize_name(written), normalize_name(written).removesuffix("s")
        ):
            bonus = boost - 1
            if matches.name != written and " " not in written:
                bonus *= OTHER_CASE_FACTOR
            elif boost < NAME_BOOST and not matches.is_inner:
                bonus *= EXACT_NAME_FACTOR
            if matches.is_inner and boost < NAME_BOOST:
                bonus *= MEMBER_NAME_FACTOR
            boosts[matches.chunk_id] = max(boosts.get(matches.chunk_id, 1.0), 1 + bonus)
    return boosts


def _bm25_scores(
    database: sqlite3.Connection, chunks_by_term: Iterable[QueryTerm], defining_chunks: Iterable[int]
) -> dict[int, float]:
    """Return the BM25 scores of the best chunks and of the chunks that define a name."""
    match_expression = _match_expression(chunks_by_term)
    scores: dict[int, float] = dict(database.execute(_SCORES, (match_expression,)))
    absent = ",".join(str(chunk) for chunk in defining_chunks if chunk not in scores)
    if absent:
        scores |= dict(database.execute(_SCORES_OF.format(absent), (match_expression,)))
    minimum = min(scores.values())
    return scores | {chunk: minimum for chunk in defining_chunks if chunk not in scores}


def _measure_term_shares(
    database: sqlite3.Connection, chunks_by_term: Mapping[QueryTerm, frozenset[int]]
) -> dict[QueryTerm, float]:
    """Return the share of each term in the question; rare terms count more."""
    total = database.execute("select max(id) from piece").fetchone()[0]
    rarity = {
        term: min(MAX_RARITY, math.log(1 + total / len(chunks))) for term, chunks in chunks_by_term.items()
    }
    whole = sum(rarity.values())
    return {term: each / whole for term, each in rarity.items()}


def _measure_coverage(
    database: sqlite3.Connection,
    chunks_by_term: Mapping[QueryTerm, frozenset[int]],
    term_shares: Mapping[QueryTerm, float],
    weights: ScoreWeights,
) -> Mapping[int, float]:
    """Return a factor for each chunk with any of the terms, by the share of them that it has anywhere and in
    each column.
    """
    shares, exponents = defaultdict[int, float](float), defaultdict[int, float](float)
    for term, chunks in chunks_by_term.items():
        part = term_shares[term]
        for number in chunks:
            shares[number] += part
        for column, weight in weights.columns.items():
            for number in _chunks_with_term(database, term, column):
                exponents[number] += weight * part
    return {
        number: (MIN_SHARE_FACTOR + (1 - MIN_SHARE_FACTOR) * share) ** weights.share
        * math.exp(exponents[number])
        for number, share in shares.items()
    }


def _chunk_factor(row: ChunkRow, query: DocsQuery, weights: ScoreWeights) -> float:
    own, _, both = row.heading_stems.partition("|")
    fit = (_word_overlap(query.stems, own) + _word_overlap(query.stems, both)) / 2
    heading_factor = (1 + HEADING_BOOST * fit) ** weights.heading
    return heading_factor * row.weight**weights.chunk * _code_factor(row, query, weights)


def _word_overlap(words: frozenset[str], heading: str) -> float:
    """Return the share of the words of a query and a heading that are in both."""
    other = set(heading.split())
    return len(words & other) / (len(words | other) or 1)


def _code_factor(row: ChunkRow, query: DocsQuery, weights: ScoreWeights) -> float:
    if row.code is None:
        return 1.0
    if query.identifiers:
        return IDENTIFIER_FACTOR if any(name in row.code for name in query.identifiers) else CODE_FACTOR
    is_asked = declares_error(row.code) and query.words & ERROR_WORDS
    if not (row.shows_call or is_asked) and declares_bare_type(row.title, row.code):
        return CODE_FACTOR * TYPE_FACTOR
    return CODE_FACTOR * (weights.usage if _shows_usage(row, query) and not is_test(row.page) else 1.0)


def _shows_usage(row: ChunkRow, query: DocsQuery) -> bool:
    """True if a chunk shows a call, which is not that of another method of HTTP than a question names."""
    if not row.shows_call or REQUEST_WORD not in query.words:
        return bool(row.shows_call)
    asked = query.words & HTTP_METHODS
    code = (row.code or "").lower()
    is_other = _METHOD_CALL.search(code) and not any(each in code for each in asked)
    return not (asked and is_other)


def _add_name_fits(
    database: sqlite3.Connection, found: list[ScoredChunk], fit: QuestionFit, weights: ScoreWeights
) -> None:
    """Raise the scores of the best chunks by the names in their code: `merge_cells` answers "merge cells"."""
    found.sort(key=lambda each: -each.score)
    # a test calls the library too, but to check its edge cases
    first = [each for each in found[:MAX_NAME_FITS] if not is_test(each.row.page)]
    fits = measure_name_fits(database, [each.row for each in first], [each.row for each in found], fit)
    for candidate in first:
        names = fits[candidate.row.id]
        candidate.score *= math.exp(
            weights.name_words * names.words + weights.name_documentation * names.documentation
        )


def _add_page_scores(found: list[ScoredChunk]) -> list[ScoredChunk]:
    """Raise each score by other matches of its page: a page about the query beats one that mentions it.

    A file of code is no such page: it has everything of its library, or what one class has.
    """
    found.sort(key=lambda each: -each.score)
    pages: dict[str, list[float]] = defaultdict(list)
    for candidate in found:
        pages[candidate.row.page].append(candidate.score)
    for candidate in found:
        if _is_prose(candidate.row.page):
            candidate.score += PAGE_SHARE * sum(pages[candidate.row.page][1:4]) / 3
    return sorted(found, key=lambda each: -each.score)


def _is_prose(page: str) -> bool:
    return page.startswith(SITE_FOLDER) or _PROSE_FILE.search(page) is not None


def _diversify(found: list[ScoredChunk]) -> Iterator[ChunkRow]:
    """Yield the best chunks; each counts less the more chunks of its page and heading were yielded."""
    last: deque[str] = deque(maxlen=SAME_PAGE_RUN)
    pages: Counter[str] = Counter()
    titles: Counter[str] = Counter()
    remaining = found[: MAX_RESULTS * 2]
    minimum = remaining[0].score * MIN_SCORE_SHARE if remaining else 0.0

    def score_in_context(candidate: ScoredChunk) -> float:
        page, title = pages[candidate.row.page], titles[candidate.row.title]
        run_factor = RUN_DAMPING if last.count(candidate.row.page) == SAME_PAGE_RUN else 1.0
        return candidate.score * run_factor * REPEAT_DAMPING ** (page + 1.5 * title)

    for number in range(min(MAX_RESULTS, len(remaining))):
        best = max(remaining, key=score_in_context)
        if best.score < (minimum if number >= FEW_RESULTS else minimum / 3):
            return
        remaining.remove(best)
        yield best.row
        last.append(best.row.page)
        pages[best.row.page] += 1
        titles[best.row.title] += 1


def _drop_similar(ranked: Iterator[ChunkRow], named: Container[int]) -> Iterator[ChunkRow]:
    """Yield the first of several similar chunks: `post`, `put`, `patch`; and those that the query names.

    Of a thing that is declared in JavaScript and in TypeScript, the first declaration is enough.
    """
    previous: list[frozenset[str]] = []
    languages: dict[str, str] = {}
    for row in ranked:
        is_declaration = " " not in row.title and not _PROSE_FILE.search(row.page)
        # the later parts of a long description have no language
        if is_declaration and row.language and languages.setdefault(row.title, row.language) != row.language:
            continue
        words = frozenset(WORD.findall(f"{row.code or ''} {row.text or ''}"))
        if row.id not in named and any(are_alike(words, each) for each in previous):
            continue
        previous.append(words)
        yield row


def _defer_variants(ranked: Iterator[ChunkRow]) -> Iterator[ChunkRow]:
    """Yield the chunks with one of several similar methods of the same name among the first three.

    The others follow: they document other classes, such as that of a client beside the functions of a module.
    """
    first: list[ChunkRow] = []
    deferred: list[ChunkRow] = []
    for row in islice(ranked, USAGE_DEPTH):
        (deferred if any(_is_variant(row, each) for each in first) else first).append(row)
        if len(first) == USAGE_PLACES:
            break
    yield from first
    yield from deferred
    yield from ranked


def _is_variant(row: ChunkRow, other: ChunkRow) -> bool:
    """True if two chunks declare members of the same name in similar words."""
    members = [each.title.rpartition(".") for each in (row, other)]
    if (
        members[0][2] != members[1][2]
        or " " in row.title + other.title
        or not any(each[0] for each in members)
    ):
        return False
    words = [frozenset(WORD.findall(f"{each.code or ''} {each.text or ''}")) for each in (row, other)]
    return are_alike(*words, share=VARIANT_SIMILARITY)


def _lift_usage(ranked: Iterator[ChunkRow], query: DocsQuery) -> Iterator[ChunkRow]:
    """Yield the chunks with the first one that shows a call among the first three.

    Only for questions without identifiers: who writes a name may want its signature.
    """
    first = list(islice(ranked, USAGE_DEPTH))
    place = next((number for number, row in enumerate(first) if _shows_usage(row, query)), 0)
    if place >= USAGE_PLACES:
        first.insert(USAGE_PLACES - 1, first.pop(place))
    yield from first
    yield from ranked
