"""Which pieces answer a question: by words, by names, by headings, by page; and no page for too long."""

from __future__ import annotations

import math
import sqlite3
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from centgate.libdocs.rows import Row, definitions, rows
from centgate.libdocs.topics import NAMED, Term, Topic
from centgate.libdocs.words import key

CANDIDATES = 200
"""Pieces that are looked at closer."""
CHOSEN = 50
"""Pieces that may go into an answer."""
FLATTER = 0.75
"""Exponent of what BM25 says, which makes too much of a word that is in few pieces."""
RAREST = 3.5
"""What the rarest words count in the share of a topic: they may only be other words for it."""
HEADED = 0.9
"""How much more a piece counts whose heading has the words of the topic and no others."""
SPELLED = 1.8
"""How much more it is for a plain word that is exactly the name of something."""
OTHERWISE = 0.7
"""How much of a name's worth is left when it is written in other capitals."""
MEMBER = 0.3
"""How much of it is left for a member's name that is a plain word: seldom is the member meant."""
USED = 1.5
"""For code that uses an identifier as it was written; other code is worth a little more than none."""
CODE = 1.08
PAGE = 0.35
"""How much the rest of a page adds to its pieces."""
AGAIN = 0.87
"""What is left of a piece for each of its page that is in the answer already."""
RUN = 3
"""Pieces of one page after another, from which on a further one of it is worth less."""
IN_A_ROW = 0.4
WORTH = 0.2
"""Share of the best piece's score below which a piece is only there to fill the budget."""
FEW = 5
"""Pieces of an answer up to which a third of that is enough."""
_BM25 = "bm25(words, 6.0, 4.0, 5.0, 1.0)"
_SCORES = f"select rowid, -{_BM25} from words where words match ? order by {_BM25} limit {CANDIDATES}"
_SCORES_OF = f"select rowid, -{_BM25} from words where words match ? and rowid in ({{}})"


@dataclass(slots=True)
class Candidate:
    """A piece on its way into an answer."""

    row: Row
    score: float


def ranked(database: sqlite3.Connection, topic: Topic) -> Iterator[Row]:
    """The pieces that answer a topic, best first."""
    holding = _holding_all(database, topic.terms)
    if not holding:
        return iter(())
    raised = _raised(database, topic)
    scores = _scores(database, holding, raised)
    shares = _shares(database, holding)
    found = [
        Candidate(row, _score(row, topic, scores[row.id], shares.get(row.id, 0.0)) * raised.get(row.id, 1.0))
        for row in rows(database, scores)
    ]
    return _varied(_with_pages(found))


def _holding_all(database: sqlite3.Connection, terms: Iterable[Term]) -> dict[Term, frozenset[int]]:
    """The pieces that have each term; identifiers count by their parts where only those are known."""
    holding: dict[Term, frozenset[int]] = {}
    for term in terms:
        holding[term] = _holding(database, term)
        if not holding[term]:
            holding |= {part: _holding(database, part) for part in map(_term, term.parts)}
    return {term: pieces for term, pieces in holding.items() if pieces}


def _term(word: str) -> Term:
    return Term((word,))


def _holding(database: sqlite3.Connection, term: Term) -> frozenset[int]:
    found = database.execute("select rowid from words where words match ?", (_query([term]),))
    return frozenset(number for (number,) in found)


def _query(terms: Iterable[Term]) -> str:
    """Any of the words. Each one is quoted and holds only letters, digits and `_`, so it is never syntax."""
    return " OR ".join(f'"{form}"' for term in terms for form in term.forms)


def _raised(database: sqlite3.Connection, topic: Topic) -> dict[int, float]:
    """The pieces that define what the topic names, with how much that raises them."""
    raised: dict[int, float] = {}
    for written, worth in topic.names.items():
        for found in definitions(database, key(written), key(written).removesuffix("s")):
            more = worth - 1
            if found.name != written:
                more *= OTHERWISE
            elif worth < NAMED and not found.is_inner:
                more *= SPELLED
            if found.is_inner and worth < NAMED:
                more *= MEMBER
            raised[found.piece] = max(raised.get(found.piece, 1.0), 1 + more)
    return raised


def _scores(
    database: sqlite3.Connection, holding: Iterable[Term], defining: Iterable[int]
) -> dict[int, float]:
    """What BM25 says of the best pieces and of those that define a name."""
    query = _query(holding)
    scores: dict[int, float] = dict(database.execute(_SCORES, (query,)))
    absent = ",".join(str(piece) for piece in defining if piece not in scores)
    if absent:
        scores |= dict(database.execute(_SCORES_OF.format(absent), (query,)))
    least = min(scores.values())
    return scores | {piece: least for piece in defining if piece not in scores}


def _shares(database: sqlite3.Connection, holding: dict[Term, frozenset[int]]) -> dict[int, float]:
    """The share of the terms that each piece has; rare terms count more."""
    total = database.execute("select max(id) from piece").fetchone()[0]
    rarity = {term: min(RAREST, math.log(1 + total / len(pieces))) for term, pieces in holding.items()}
    whole = sum(rarity.values())
    shares: dict[int, float] = defaultdict(float)
    for term, pieces in holding.items():
        part = rarity[term] / whole
        for number in pieces:
            shares[number] += part
    return shares


def _score(row: Row, topic: Topic, score: float, share: float) -> float:
    own, _, both = row.heads.partition("|")
    fit = (_alike(topic.stems, own) + _alike(topic.stems, both)) / 2
    return score**FLATTER * (0.35 + 0.65 * share) * (1 + HEADED * fit) * row.weight * _use(row, topic)


def _alike(words: frozenset[str], heading: str) -> float:
    """Share of the words of a topic and a heading that are in both."""
    other = set(heading.split())
    return len(words & other) / (len(words | other) or 1)


def _use(row: Row, topic: Topic) -> float:
    if row.code is None:
        return 1.0
    return USED if any(name in row.code for name in topic.identifiers) else CODE


def _with_pages(found: list[Candidate]) -> list[Candidate]:
    """Raised by what else of their page matches: a page about the topic rather than one that mentions it."""
    found.sort(key=lambda each: -each.score)
    pages: dict[str, list[float]] = defaultdict(list)
    for candidate in found:
        pages[candidate.row.page].append(candidate.score)
    for candidate in found:
        candidate.score += PAGE * sum(pages[candidate.row.page][1:4]) / 3
    return sorted(found, key=lambda each: -each.score)


def _varied(found: list[Candidate]) -> Iterator[Row]:
    """The best, each one worth less the more of its page and its heading are there already."""
    last: deque[str] = deque(maxlen=RUN)
    pages: Counter[str] = Counter()
    titles: Counter[str] = Counter()
    waiting = found[: CHOSEN * 2]
    least = waiting[0].score * WORTH if waiting else 0.0

    def worth(candidate: Candidate) -> float:
        page, title = pages[candidate.row.page], titles[candidate.row.shown]
        row = IN_A_ROW if last.count(candidate.row.page) == RUN else 1.0
        return candidate.score * row * AGAIN ** (page + 1.5 * title)

    for number in range(min(CHOSEN, len(waiting))):
        best = max(waiting, key=worth)
        if best.score < (least if number >= FEW else least / 3):
            return
        waiting.remove(best)
        yield best.row
        last.append(best.row.page)
        pages[best.row.page] += 1
        titles[best.row.shown] += 1
