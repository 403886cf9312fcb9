"""State of the crawl: the operator's sites, their pages, and when each is read again. One SQLite file."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from centgate.web.fetch.validators import Validators
from centgate.web.index.duplicates import are_near, split_bands
from centgate.web.index.page import page_key
from centgate.web.index.vectors import vector_id
from centgate.web.sitemap.urls import PageUrl, parse_page_url

FILE = "crawl.db"
DAY = 86_400.0
FIRST_INTERVAL = 7 * DAY
"""Time after which a page is read again; it doubles while the page does not change."""
MAX_INTERVAL = 56 * DAY
MAX_FAILURES = 3
"""Consecutive failures after which a page is no longer found."""
DEFAULT_MAX_PAGES = 1000

PageStatus = Literal["waiting", "indexed", "duplicate", "gone", "refused", "failed"]
"""`refused`: by robots.txt or by the page itself; `gone`: no page of the site is at the address any more."""

_TABLES = """
create table if not exists site (
    url text primary key, max_pages integer not null, added real not null, crawled real, message text
) without rowid;
create table if not exists page (
    key text primary key, url text not null, site text not null, status text not null default 'waiting',
    message text, due real not null, next_due real, fetched real, interval real not null,
    failures integer not null default 0, modified text, hash text, fingerprint text
) without rowid;
create index if not exists page_due on page (site, due);
create index if not exists page_hash on page (hash) where hash is not null;
create index if not exists page_indexed on page (site) where status = 'indexed';
create table if not exists band (value integer, key text, primary key (value, key)) without rowid;
create index if not exists band_key on band (key);
create table if not exists validator (
    key text primary key, url text not null, etag text, modified text
) without rowid;
"""


COVERED_SITES = (
    "select url from site where exists "
    "(select 1 from page where page.site = site.url and status = 'indexed') order by url"
)
"""Statement for the sites with a page that can be found; it is run for each answer."""


class IndexedSite(Struct, frozen=True):
    """Site of the operator's choosing: all pages of a host below a path."""

    url: str
    max_pages: int = DEFAULT_MAX_PAGES

    def contains(self, url: str) -> bool:
        """True if a page belongs to the site."""
        page, site = parse_page_url(url), parse_page_url(self.url)
        if page is None or site is None or page.host != site.host or not page.is_page:
            return False
        return page.path.startswith(_folder_of(site)) or page.path.rstrip("/") == site.path.rstrip("/")


class SiteStatus(Struct, frozen=True):
    """State of a site and its pages."""

    url: str
    max_pages: int
    crawled: float | None
    """Time of the end of its last crawl, in seconds since 1970."""
    message: str | None
    """What went wrong, as a sentence: the site could not be mapped, or its crawl ended early."""
    counts: dict[str, int]
    """Number of pages by status."""
    oldest: float | None
    """Time of the oldest reading among the pages that can be found."""


class DuePage(Struct, frozen=True):
    """Page that is to be read."""

    key: str
    url: str
    status: PageStatus
    hash: str | None
    failures: int
    interval: float
    validators: Validators | None = None
    """Validators of the version that can be found; None if the site sends none."""


class CrawlState:
    """State in a folder, which it creates. Raises OSError or sqlite3.Error."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(folder / FILE, isolation_level=None, timeout=10)
        self._database.execute("pragma journal_mode = wal")
        self._database.executescript(_TABLES)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Write all changes or none."""
        self._database.execute("begin immediate")
        try:
            yield
        except BaseException:
            self._database.execute("rollback")
            raise
        self._database.execute("commit")

    def add_site(self, url: str, max_pages: int) -> bool:
        """Add a site, or change its number of pages; return True if it is new."""
        before = self._first("select max_pages from site where url = ?", url)
        if isinstance(before, int) and before < max_pages:
            self._forget_validators("site = ?", url)  # its pages are read again for what they link to
        self._database.execute(
            "insert into site (url, max_pages, added) values (?, ?, ?) "
            "on conflict (url) do update set max_pages = excluded.max_pages",
            (url, max_pages, time.time()),
        )
        return before is None

    def remove_site(self, url: str) -> bool:
        """Remove a site and its pages; return False if there is none."""
        with self.transaction():
            self._database.execute(
                "delete from band where key in (select key from page where site = ?)", (url,)
            )
            self._forget_validators("site = ?", url)
            self._database.execute("delete from page where site = ?", (url,))
            return self._database.execute("delete from site where url = ?", (url,)).rowcount > 0

    def list_sites(self) -> list[IndexedSite]:
        """Return the sites in the order of their addresses."""
        rows = self._database.execute("select url, max_pages from site order by url")
        return [IndexedSite(url, max_pages) for url, max_pages in rows]

    def list_statuses(self) -> list[SiteStatus]:
        """Return the status of each site, in the order of their addresses."""
        return [self._read_status(*row) for row in self._database.execute("select * from site order by url")]

    def finish_site(self, url: str, message: str | None) -> None:
        """Record the end of a site's crawl."""
        self._database.execute(
            "update site set crawled = ?, message = ? where url = ?", (time.time(), message, url)
        )

    def add_pages(self, site: IndexedSite, pages: Iterable[tuple[str, str | None]]) -> int:
        """Add pages of a site by address and time of change, up to its maximum; return how many are new.

        A page that has changed since it was read becomes due.
        """
        count = self._count_pages(site.url)
        added = 0
        for url, modified in pages:
            key = page_key(url) if site.contains(url) else None
            if key is None:
                continue
            if count + added < site.max_pages:
                added += self._insert_page(key, url, site.url, modified)
            self._database.execute(
                "update page set due = 0, modified = ? "
                "where key = ? and fetched is not null and coalesce(modified, '') < ?",
                (modified, key, modified),
            )
        return added

    def forget_gone(self, site: str, named: Iterable[str]) -> list[str]:
        """Forget the gone pages that a site does not name any more; return their addresses.

        Pages that have not changed are not read again, and may name them: then only those gone for long.
        """
        keys = {page_key(url) for url in named}
        rows = self._database.execute(
            "select key, url from page where site = ? and status = 'gone' and (interval >= ? or not exists "
            "(select 1 from validator join page as other using (key) where other.site = page.site))",
            (site, MAX_INTERVAL),
        )
        lost = [(key, url) for key, url in rows if key not in keys]
        self._database.executemany("delete from page where key = ?", [(key,) for key, _ in lost])
        return [url for _, url in lost]

    def list_due(self, site: str, limit: int, now: float) -> list[DuePage]:
        """Return the pages of a site that are to be read, those never read first.

        A page that was read stays due until `settle`, in case the index is not committed, but is left out.
        """
        rows = self._database.execute(
            "select key, page.url, status, hash, failures, interval, validator.url, etag, validator.modified "
            "from page left join validator using (key) "
            "where site = ? and due <= ? and next_due is null order by fetched is not null, due limit ?",
            (site, now, limit),
        )
        return [
            DuePage(*row, validators=Validators(address, etag, modified) if address else None)
            for *row, address, etag, modified in rows
        ]

    def settle(self) -> None:
        """Set when the pages that were read are read again, after the index was committed."""
        self._database.execute("update page set due = next_due, next_due = null where next_due is not null")

    def forget_unsettled(self) -> None:
        """Have pages read again whose last reading was not committed, since the crawl was killed."""
        self._forget_validators("next_due is not null")
        self._database.execute("update page set next_due = null where next_due is not null")

    def list_indexed(self, site: str) -> list[DuePage]:
        """Return the pages of a site that can be found."""
        rows = self._database.execute(
            "select key, url, status, hash, failures, interval from page where site = ? "
            "and status = 'indexed' and next_due is null",
            (site,),
        )
        return [DuePage(*row) for row in rows]

    def list_vector_ids(self) -> set[int]:
        """Return the ids of the vectors that stand for the pages that can be found."""
        rows = self._database.execute(
            "select key, hash from page where status = 'indexed' and hash is not null"
        )
        return {vector_id(key, content_hash) for key, content_hash in rows}

    def make_all_due(self) -> None:
        """Have all pages read again, since the index was lost."""
        with self.transaction():
            self._database.execute("delete from validator")
            self._database.execute(
                "update page set due = 0, next_due = null, status = 'waiting', hash = null, fetched = null"
            )
            self._database.execute("delete from band")

    def make_due(self, site: str) -> None:
        """Have all pages of a site read again, whether they have changed or not."""
        self._forget_validators("site = ?", site)
        self._database.execute("update page set due = 0 where site = ?", (site,))

    def find_duplicate(self, key: str, content_hash: str, fingerprint: int | None) -> str | None:
        """Return the address of another page with the same or nearly the same text; None without one.

        It is one of the same host: a copy elsewhere must not take the place of the page that it is of.
        """
        same = self._first(
            "select url from page where hash = ? and key <> ? and status = 'indexed' "
            "and substr(key, 1, ?) = ?",
            *(content_hash, key, *_host_prefix(key)),
        )
        if same is not None or fingerprint is None:
            return None if same is None else str(same)
        return self._find_near(key, fingerprint)

    def record_reading(
        self,
        page: DuePage,
        status: PageStatus,
        message: str | None = None,
        *,
        content_hash: str | None = None,
        fingerprint: int | None = None,
        validators: Validators | None = None,
    ) -> None:
        """Record that a page was read, and set when it is read again."""
        now = time.time()
        is_unchanged = content_hash == page.hash and page.status == status
        interval = min(MAX_INTERVAL, page.interval * 2) if is_unchanged else FIRST_INTERVAL
        self._database.execute(
            "update page set status = ?, message = ?, next_due = ?, fetched = ?, interval = ?, failures = 0, "
            "hash = ?, fingerprint = ? where key = ?",
            (
                *(status, message, now + interval, now, interval),
                *(content_hash, None if fingerprint is None else f"{fingerprint:016x}", page.key),
            ),
        )
        self._database.execute("delete from band where key = ?", (page.key,))
        self._store_validators(page.key, validators)
        if status == "indexed" and fingerprint is not None:
            bands = [(value, page.key) for value in split_bands(fingerprint)]
            self._database.executemany("insert or ignore into band values (?, ?)", bands)

    def record_unchanged(self, page: DuePage) -> None:
        """Record that a page that can be found is as it was, and set when it is read again."""
        now, interval = time.time(), min(MAX_INTERVAL, page.interval * 2)
        self._database.execute(
            "update page set message = null, next_due = ?, fetched = ?, interval = ?, failures = 0 "
            "where key = ?",
            (now + interval, now, interval, page.key),
        )

    def record_failure(self, page: DuePage, message: str) -> bool:
        """Record that a page could not be read; return True if it is not to be found any more."""
        failures = page.failures + 1
        is_lost = failures >= MAX_FAILURES
        due = time.time() + min(MAX_INTERVAL, DAY * 2**failures)
        self._database.execute(
            "update page set failures = ?, message = ?, next_due = ?, status = ? where key = ?",
            (
                failures,
                message,
                due,
                "failed" if is_lost or page.status != "indexed" else "indexed",
                page.key,
            ),
        )
        if is_lost:
            self._database.execute("delete from band where key = ?", (page.key,))
            self._store_validators(page.key, None)
        return is_lost

    def _store_validators(self, key: str, validators: Validators | None) -> None:
        self._database.execute("delete from validator where key = ?", (key,))
        if validators:
            values = (key, validators.url, validators.etag, validators.last_modified)
            self._database.execute("insert into validator values (?, ?, ?, ?)", values)

    def _forget_validators(self, condition: str, *values: str) -> None:
        """Have the pages for which a condition holds read in full, also if they have not changed."""
        self._database.execute(
            f"delete from validator where key in (select key from page where {condition})",
            values,
        )

    def _count_pages(self, site: str) -> int:
        """Return the number of a site's pages, without those that were of no use already at its last crawl.

        Pages that turn out to be of none during a crawl keep their places: a trap would name ever more.
        """
        return self._database.execute(
            "select count(*) from page join site on site.url = page.site where page.site = ? "
            "and (status in ('waiting', 'indexed', 'failed') or fetched > coalesce(crawled, 0))",
            (site,),
        ).fetchone()[0]

    def _insert_page(self, key: str, url: str, site: str, modified: str | None) -> int:
        return self._database.execute(
            "insert or ignore into page (key, url, site, due, interval, modified) values (?, ?, ?, 0, ?, ?)",
            (key, url, site, FIRST_INTERVAL, modified),
        ).rowcount

    def _find_near(self, key: str, fingerprint: int) -> str | None:
        rows = self._database.execute(
            "select distinct page.url, page.fingerprint from band join page using (key) "
            "where band.value in (?, ?, ?, ?) and page.key <> ? and page.status = 'indexed' "
            "and substr(page.key, 1, ?) = ?",
            (*split_bands(fingerprint), key, *_host_prefix(key)),
        )
        return next((url for url, other in rows if are_near(int(other, 16), fingerprint)), None)

    def _read_status(
        self, url: str, max_pages: int, _added: float, crawled: float | None, message: str | None
    ) -> SiteStatus:
        rows = self._database.execute(
            "select status, count(*), min(fetched) from page where site = ? group by status", (url,)
        ).fetchall()
        counts = {status: count for status, count, _ in rows}
        oldest = next((fetched for status, _, fetched in rows if status == "indexed"), None)
        return SiteStatus(url, max_pages, crawled, message, counts, oldest)

    def _first(self, statement: str, *values: object) -> object:
        with closing(self._database.execute(statement, values)) as cursor:
            row = cursor.fetchone()
        return row[0] if row else None


def normalize_site(text: str) -> str | None:
    """Return the address of a site in its normal form; None for anything but an http or https address."""
    if len(text.split()) != 1:  # a parser of addresses would encode a note beside one
        return None
    parsed = parse_page_url(text if "://" in text else f"https://{text}")
    return parsed.url if parsed else None


def _host_prefix(key: str) -> tuple[int, str]:
    """Return the beginning of the keys of a page's host, after its length."""
    host = key.partition("|")[0] + "|"
    return len(host), host


def _folder_of(site: PageUrl) -> str:
    """Return the folder that a site's pages are in: all of it for a sitemap, that of a file in HTML."""
    path, name = site.path.rpartition("/")[::2]
    if not name or name.endswith((".html", ".htm")):
        return f"{path}/"
    return "/" if name.endswith((".xml", ".txt", ".gz")) else f"{path}/{name}/"


def list_covered_sites(folder: Path) -> list[str]:
    """Return the sites with a page that can be found, by their addresses; empty if the file is unreadable."""
    return [url for (url,) in _read_rows(folder, COVERED_SITES)]


def find_reading_times(folder: Path, urls: Sequence[str]) -> dict[str, float]:
    """Return when pages were read last, in seconds since 1970, by address; empty if the file is unreadable.

    A page that had not changed keeps the time of its text in the index; readings that are not committed do
    not count.
    """
    keys = {url: key for url in urls if (key := page_key(url))}
    marks = ", ".join("?" * len(keys))
    statement = (
        f"select key, fetched from page where key in ({marks}) and status = 'indexed' "
        "and next_due is null and fetched is not null"
    )
    times = dict(_read_rows(folder, statement, *keys.values()))
    return {url: times[key] for url, key in keys.items() if key in times}


def _read_rows(folder: Path, statement: str, *values: str) -> list[Any]:
    file = (folder / FILE).absolute()
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=1)) as database:
            return database.execute(statement, values).fetchall()
    except sqlite3.Error:
        return []
