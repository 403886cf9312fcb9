"""Names that people use for libraries and the packages they may mean: spellings, nicknames, import names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from centgate.libdocs.registry.known_libraries import CRATES, ECOSYSTEM_WORDS, OTHER_ECOSYSTEMS

RegistryName: TypeAlias = Literal["pypi", "npm", "crates", "go"]
REGISTRIES: tuple[RegistryName, ...] = ("pypi", "npm", "crates", "go")
SEARCHED_REGISTRIES: tuple[RegistryName, ...] = ("pypi", "npm")
"""Registries in which every name is tried; known names of Rust and Go are tried in theirs alone."""
MAX_CANDIDATES = 8
"""Maximum number of packages tried for one name."""

ALIASES: Mapping[str, str] = {
    "/pypi/apache-airflow": "airflow, apache airflow",
    "/pypi/attrs": "attr, python attrs",
    "/pypi/beautifulsoup4": "bs4, beautiful soup, beautifulsoup, beautiful soup 4",
    "/pypi/boto3": "aws sdk for python, aws sdk python, aws python sdk",
    "/pypi/discord-py": "discord.py, discordpy",
    "/pypi/djangorestframework": "drf, django rest framework, rest_framework",
    "/pypi/faiss-cpu": "faiss",
    "/pypi/gitpython": "git python",
    "/pypi/google-genai": "google.genai, gemini python sdk",
    "/pypi/grpcio": "grpc python",
    "/pypi/huggingface-hub": "hugging face hub",
    "/pypi/ipython": "i python",
    "/pypi/jupyter": "jupyter notebook",
    "/pypi/kubernetes": "kubernetes python client",
    "/pypi/lightning": "pytorch lightning",
    "/pypi/mcp": "mcp python sdk, model context protocol python",
    "/pypi/mysqlclient": "mysqldb",
    "/pypi/opencv-python": "cv2, opencv, open cv, opencv2",
    "/pypi/opentelemetry-api": "opentelemetry python",
    "/pypi/pillow": "pil, python imaging library",
    "/pypi/protobuf": "google.protobuf",
    "/pypi/psycopg": "psycopg3, psycopg 3",
    "/pypi/pycryptodome": "crypto.cipher",
    "/pypi/pygithub": "github.py",
    "/pypi/pyjwt": "jwt python, python jwt",
    "/pypi/pymongo": "mongodb python, bson",
    "/pypi/pyqt6": "qt python",
    "/pypi/pyserial": "serial python",
    "/pypi/python-dateutil": "dateutil, date util",
    "/pypi/python-docx": "docx python",
    "/pypi/python-dotenv": "dotenv python, python .env",
    "/pypi/python-telegram-bot": "telegram bot python",
    "/pypi/pytorch-lightning": "pl lightning",
    "/pypi/pyyaml": "yaml python, py yaml, python yaml",
    "/pypi/pyzmq": "zmq, zeromq python",
    "/pypi/scikit-image": "skimage, scikit image",
    "/pypi/scikit-learn": "sklearn, scikit learn, scikit",
    "/pypi/sentence-transformers": "sbert",
    "/pypi/setuptools": "pkg_resources",
    "/pypi/sqlalchemy": "sql alchemy",
    "/pypi/tensorflow": "tensor flow",
    "/pypi/torch": "pytorch, py torch, torch.nn",
    "/pypi/transformers": "huggingface transformers, hugging face transformers",
    "/go/github.com~99designs~gqlgen": "gqlgen",
    "/go/github.com~charmbracelet~bubbletea": "bubbletea, bubble tea",
    "/go/github.com~charmbracelet~lipgloss": "lipgloss, lip gloss",
    "/go/github.com~chromedp~chromedp": "chromedp",
    "/go/github.com~dgraph-io~badger~v4": "badger db, badgerdb",
    "/go/github.com~gin-gonic~gin": "gin, gin gonic, gin-gonic/gin",
    "/go/github.com~go-chi~chi~v5": "chi, go chi, go-chi/chi",
    "/go/github.com~go-resty~resty~v2": "go resty, go-resty/resty",
    "/go/github.com~go-sql-driver~mysql": "go mysql driver, go-sql-driver/mysql",
    "/go/github.com~gocolly~colly~v2": "colly, gocolly/colly",
    "/go/github.com~gofiber~fiber~v2": "gofiber, go fiber, gofiber/fiber",
    "/go/github.com~golang-jwt~jwt~v5": "golang jwt, golang-jwt/jwt",
    "/go/github.com~golang-migrate~migrate~v4": "golang migrate, golang-migrate/migrate",
    "/go/github.com~gorilla~mux": "gorilla mux, gorilla/mux",
    "/go/github.com~gorilla~websocket": "gorilla websocket, gorilla/websocket",
    "/go/github.com~IBM~sarama": "sarama, shopify/sarama",
    "/go/github.com~jackc~pgx~v5": "pgx, jackc/pgx",
    "/go/github.com~jmoiron~sqlx": "go sqlx, jmoiron/sqlx",
    "/go/github.com~julienschmidt~httprouter": "httprouter, julienschmidt/httprouter",
    "/go/github.com~labstack~echo~v4": "echo, labstack echo, labstack/echo",
    "/go/github.com~onsi~ginkgo~v2": "ginkgo, onsi/ginkgo",
    "/go/github.com~onsi~gomega": "gomega, onsi/gomega",
    "/go/github.com~prometheus~client_golang": "prometheus client golang, prometheus/client_golang",
    "/go/github.com~PuerkitoBio~goquery": "goquery",
    "/go/github.com~redis~go-redis~v9": "go redis, redis/go-redis",
    "/go/github.com~rs~zerolog": "zerolog, rs/zerolog",
    "/go/github.com~sirupsen~logrus": "logrus, sirupsen/logrus",
    "/go/github.com~spf13~cobra": "cobra, spf13 cobra, spf13/cobra",
    "/go/github.com~spf13~pflag": "pflag, spf13/pflag",
    "/go/github.com~spf13~viper": "viper, spf13 viper, spf13/viper",
    "/go/github.com~stretchr~testify": "testify, stretchr/testify",
    "/go/github.com~urfave~cli~v2": "urfave cli, urfave/cli",
    "/go/github.com~xuri~excelize~v2": "excelize",
    "/go/go.etcd.io~bbolt": "bbolt, boltdb",
    "/go/go.uber.org~zap": "uber zap, uber-go/zap",
    "/go/google.golang.org~grpc": "grpc go, grpc/grpc-go",
    "/go/gorm.io~gorm": "gorm, go-gorm/gorm",
    "/npm/@angular~core": "angular, angular 2, angular core",
    "/npm/@anthropic-ai~sdk": "anthropic typescript, anthropic node",
    "/npm/@apollo~client": "apollo client",
    "/npm/@apollo~server": "apollo server",
    "/npm/@aws-sdk~client-s3": "aws sdk s3, s3 client js",
    "/npm/@babel~core": "babel",
    "/npm/@hapi~hapi": "hapi, hapi.js",
    "/npm/@modelcontextprotocol~sdk": "mcp typescript sdk, mcp sdk, model context protocol",
    "/npm/@mui~material": "mui, material ui, material-ui",
    "/npm/@nestjs~core": "nest, nest.js, nestjs",
    "/npm/@playwright~test": "playwright test",
    "/npm/@prisma~client": "prisma client",
    "/npm/@reduxjs~toolkit": "redux toolkit, rtk",
    "/npm/@remix-run~react": "remix, remix run",
    "/npm/@supabase~supabase-js": "supabase, supabase.js",
    "/npm/@sveltejs~kit": "sveltekit, svelte kit",
    "/npm/@tanstack~react-query": "react query, tanstack query",
    "/npm/@tanstack~react-router": "tanstack router",
    "/npm/@tanstack~react-table": "tanstack table, react table",
    "/npm/@testing-library~react": "react testing library, rtl, testing library",
    "/npm/ai": "vercel ai sdk, ai sdk",
    "/npm/alpinejs": "alpine, alpine.js",
    "/npm/backbone": "backbone.js",
    "/npm/chart.js": "chartjs, chart js",
    "/npm/commander": "commander.js",
    "/npm/d3": "d3.js",
    "/npm/date-fns": "date fns, datefns",
    "/npm/discord.js": "discord js",
    "/npm/drizzle-orm": "drizzle",
    "/npm/ember-source": "ember, ember.js",
    "/npm/ethers": "ethers.js",
    "/npm/express": "express.js, expressjs",
    "/npm/framer-motion": "framer motion",
    "/npm/handlebars": "handlebars.js",
    "/npm/htmx.org": "htmx",
    "/npm/ioredis": "redis node, io redis",
    "/npm/jquery": "j query",
    "/npm/jsonwebtoken": "jwt node, json web token",
    "/npm/koa": "koa.js",
    "/npm/moment": "moment.js",
    "/npm/next": "next.js, nextjs, next js",
    "/npm/next-auth": "nextauth, auth.js, next auth",
    "/npm/node-fetch": "node fetch",
    "/npm/nuxt": "nuxt.js",
    "/npm/pdfjs-dist": "pdf.js",
    "/npm/pg": "node postgres, postgres node",
    "/npm/pinia": "vue store",
    "/npm/prisma": "prisma orm",
    "/npm/react": "react.js, reactjs, react js",
    "/npm/react-dom": "react dom",
    "/npm/react-hook-form": "react hook form",
    "/npm/react-native": "react native",
    "/npm/react-router": "react router, react-router-dom",
    "/npm/rxjs": "rx.js",
    "/npm/socket.io": "socketio, socket io",
    "/npm/solid-js": "solid, solid.js, solidjs",
    "/npm/sass": "dart sass",
    "/npm/sequelize": "sequelize.js",
    "/npm/svelte": "svelte.js",
    "/npm/tailwindcss": "tailwind, tailwind css",
    "/npm/three": "three.js, threejs",
    "/npm/typeorm": "type orm",
    "/npm/typescript": "type script, tsc",
    "/npm/vite": "vite.js",
    "/npm/vue": "vue.js, vuejs, vue js",
    "/npm/vue-router": "vue router",
    "/npm/web3": "web3.js",
    "/npm/ws": "websocket node",
}
"""Other names of packages. An alias takes precedence over a package that really has that name."""

REPOSITORIES: Mapping[str, str] = {
    "aio-libs/aiohttp": "/pypi/aiohttp",
    "angular/angular": "/npm/@angular~core",
    "encode/starlette": "/pypi/starlette",
    "facebook/react": "/npm/react",
    "reactjs/react.dev": "/npm/react",
    "websites/react_dev": "/npm/react",
    "nestjs/nest": "/npm/@nestjs~core",
    "pytorch/pytorch": "/pypi/torch",
    "remix-run/react-router": "/npm/react-router",
    "samuelcolvin/pydantic": "/pypi/pydantic",
    "sveltejs/kit": "/npm/@sveltejs~kit",
    "tanstack/query": "/npm/@tanstack~react-query",
    "tanstack/router": "/npm/@tanstack~react-router",
    "tanstack/table": "/npm/@tanstack~react-table",
    "tiangolo/fastapi": "/pypi/fastapi",
    "tiangolo/sqlmodel": "/pypi/sqlmodel",
    "tiangolo/typer": "/pypi/typer",
    "vercel/ai": "/npm/ai",
    "vercel/next.js": "/npm/next",
    "vuejs/core": "/npm/vue",
    "vuejs/docs": "/npm/vue",
}
"""Packages of repositories that have another name, have moved, or hold several packages."""

_CRATE_LINK = re.compile(r"(?:https?://)?(?:crates\.io/crates/|docs\.rs/(?:crate/)?|/crates/)([^/?#]+).*")
_PACKAGE_LINKS: Mapping[RegistryName, re.Pattern[str]] = {
    "pypi": re.compile(r"(?:https?://)?(?:www\.)?pypi\.org/(?:project|simple)/([^/?#]+).*|/pypi/(.+)"),
    "npm": re.compile(r"(?:https?://)?(?:www\.)?npmjs\.com/package/((?:@[^/?#]+/)?[^/?#]+).*|/npm/(.+)"),
}
"""Links to a package's page, and IDs."""
_GITHUB_PREFIX = re.compile(r"^(?:(?:git\+)?https?://)?(?:www\.)?github\.com/(?=[^/]+/[^/]+)")
_GITHUB_FOLDER = re.compile(r"([^/?#]+/[^/?#]+)[/?#].*")
"""A page inside a repository, after the host."""
_ECOSYSTEM_PREFIXES: Mapping[str, str] = {
    "rubygems.org/": "Ruby",
    "packagist.org/": "PHP",
    "mvnrepository.com/": "Java",
    "central.sonatype.com/": "Java",
    "www.nuget.org/": ".NET",
    "nuget.org/": ".NET",
    "hex.pm/": "Elixir",
    "pub.dev/": "Dart",
}
_GO_LINK = re.compile(
    r"(?:https?://)?pkg\.go\.dev/(?P<path>[^@?#\s]+)\S*|/go/(?P<id>[^@\s]+)\S*", re.IGNORECASE
)
_GO_PATH = re.compile(
    r"(?:https?://)?(?P<path>(?:golang\.org/x|gopkg\.in|go\.uber\.org|google\.golang\.org|gorm\.io|(?:sigs\.)?k8s\.io)"
    r"/[^@?#\s]+)\S*",
    re.IGNORECASE,
)
"""Module paths of hosts that serve Go alone; a repository on GitHub may be of any language."""
_GO_HOSTS_OF_OWNERS = ("github.com", "gitlab.com", "bitbucket.org", "golang.org")
MAX_GO_PREFIXES = 4
_RUST_AFFIX = re.compile(
    r"^(?:the[ ]+)?(?:(?:rust|cargo|crates?)[ ]+)+"
    r"|^the[ ]+(?=.*[ ](?:rust|crates?)\b)"
    r"|(?:[ ]+(?:for|in))?[ ]+(?:rust|crates?)(?:[ ]+(?:rust|crates?|library|lib))*$"
)
_OTHER_AFFIXES: Mapping[str, re.Pattern[str]] = {
    ecosystem: re.compile(
        rf"^(?:{each})[ ]+\S|\S[ ]+(?:{each})(?:[ ]+(?:library|lib|framework|package|gem))?$"
    )
    for ecosystem, words in ECOSYSTEM_WORDS.items()
    for each in ("|".join(map(re.escape, words)),)
}
_SEARCHED_WORD = re.compile(r"\b(?:python|pypi|pip|django|node|npm|js|javascript|script|typescript|react)\b")
"""Words that say that a package of PyPI or npm is meant: `java python bridge`, `react native swift`."""
_VERSION_AFTER_NAME = re.compile(r"(?<=\S)[ ]+v?\d+(?:\.(?:\d+|x))*$")
_GO_AFFIX = re.compile(r"^(?:golang|go module|go)[ ]+|[ ]+(?:golang|go|go module)$")
_GO_MODULE = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+(?:/[A-Za-z0-9_.-]+)*")
_NPM_NAME = re.compile(r"(@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*")
_CRATE_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_PYPI_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?")
_REPOSITORY = re.compile(r"/?([a-z0-9][a-z0-9-]*)/([a-z0-9._-]+?)(?:\.git)?/?")
_AFFIXES = re.compile(
    r"^(?:the|python|py|node|js|npm)[ ._-]+"
    r"|(?:[ ._-]+(?:js|py|python|node|library|lib|package|framework|docs|documentation)|(?<=\w\w)js)$"
)


@dataclass(frozen=True, slots=True)
class PackageCandidate:
    """A package that a name may mean. Its similarity is 1 for the package's own name and for an alias."""

    registry: RegistryName
    name: str
    """Name used in registry requests; a scoped name contains its slash."""
    similarity: float

    @property
    def id(self) -> str:
        """Package ID, such as `/pypi/<name>`, `/npm/@<scope>~<name>` or `/go/github.com~<owner>~<name>`."""
        return package_id(self.registry, self.name)


def package_id(registry: RegistryName, name: str) -> str:
    """Return the ID of a package. It has two segments, so `~` stands for each slash of its name."""
    return f"/{registry}/{name.replace('/', '~')}"


def normalize_package_name(registry: RegistryName, raw_name: str) -> str | None:
    """Return the normalised name of a package in its registry, or None if it is not valid there.

    PyPI's rule is packaging.python.org's "Name normalization", npm's that of validate-npm-package-name, Go's
    that of go.dev/ref/mod ("Module paths"), of which `~` is not accepted.
    """
    if registry == "go":
        # the case of a module's path matters
        path = raw_name.replace("~", "/").strip("/")
        is_valid = len(path) <= 200 and _GO_MODULE.fullmatch(path) and ".." not in path
        return path if is_valid else None
    lower = raw_name.lower()
    if registry == "crates":
        return lower if len(lower) <= 64 and _CRATE_NAME.fullmatch(lower) else None
    if registry == "npm":
        # `~` separates a scope from its name in package IDs
        name = lower.replace("~", "/", 1) if lower.startswith("@") else lower
        return name if len(name) <= 214 and _NPM_NAME.fullmatch(name) else None
    if len(lower) > 100 or not _PYPI_NAME.fullmatch(lower):
        return None
    return re.sub(r"[-_.]+", "-", lower)


def find_other_ecosystem(query: str) -> str | None:
    """Return the ecosystem that a name belongs to if its registry is not read: "Ruby"; else None.

    A link, a well-known name, also with a version after it, or a word beside the name says so.
    """
    name = re.sub(r"^https?://", "", _strip_github(_normalize_spaces(query)))
    for prefix, ecosystem in _ECOSYSTEM_PREFIXES.items():
        if name.startswith(prefix):
            return ecosystem
    for each in (name, _strip_version(name)):
        key = normalize_library_name(each)
        if key in _PACKAGES_BY_ALIAS:
            return None
        if not name.startswith("/") and key in _ECOSYSTEMS_BY_NAME:
            return _ECOSYSTEMS_BY_NAME[key]
    if names_go(query) or names_rust(query) or _SEARCHED_WORD.search(name):
        return None
    bare = _strip_version(name)
    return next((each for each, affix in _OTHER_AFFIXES.items() if affix.search(bare)), None)


def find_candidates(query: str) -> list[PackageCandidate]:
    """Return the packages that a name may mean, most likely first, without duplicates."""
    text = _normalize_spaces(query)
    by_id: dict[str, PackageCandidate] = {}
    for each in [*_go_candidates(query.strip())] or _parse_candidates(text):
        previous = by_id.get(each.id)
        if previous is None or each.similarity > previous.similarity:
            by_id[each.id] = each
    return sorted(by_id.values(), key=lambda each: -each.similarity)[:MAX_CANDIDATES]


def find_namesake_crate(query: str) -> PackageCandidate | None:
    """Return the crate that is called exactly like a name that says nothing of an ecosystem; else None.

    Its similarity is a little less than that of packages of the other registries, which come first of equals.
    """
    text = _strip_version(_normalize_spaces(query))
    name = normalize_package_name("crates", text.replace(" ", "-"))
    is_known = normalize_library_name(text) in _PACKAGES_BY_ALIAS
    return (
        None
        if name is None or is_known or _SEARCHED_WORD.search(text)
        else PackageCandidate("crates", name, 0.95)
    )


def names_package(query: str) -> bool:
    """True if a name denotes a package by itself: an id, a link, a repository, an alias, a scoped name."""
    text = _strip_version(_normalize_spaces(query))
    return (
        "/" in text
        or text.startswith("@")
        or normalize_library_name(text) in _PACKAGES_BY_ALIAS
        or _SEARCHED_WORD.search(text) is not None
    )


def find_named_repository(query: str) -> str | None:
    """Return the `<owner>/<name>` that a query is, in lower case; None if it is none, or a known one's."""
    text = _strip_github(_normalize_spaces(query))
    parts = _REPOSITORY.fullmatch(text)
    is_known = normalize_library_name(text) in _PACKAGES_BY_ALIAS
    id_patterns = (_CRATE_LINK, _GO_LINK, *_PACKAGE_LINKS.values())
    if parts is None or is_known or any(pattern.fullmatch(text) for pattern in id_patterns):
        return None
    repository = f"{parts[1]}/{parts[2]}"
    return None if repository in REPOSITORIES else repository


def names_rust(query: str) -> bool:
    """True if a name says that a crate is meant: `rust x`, `x crate`, a link to crates.io or docs.rs."""
    text = _strip_version(_normalize_spaces(query))
    return _RUST_AFFIX.search(text) is not None or _CRATE_LINK.fullmatch(text) is not None


def names_go(query: str) -> bool:
    """True if a name says that a library of Go is meant: `golang x`, `x go`, a link to pkg.go.dev."""
    text = _strip_version(_normalize_spaces(query))
    return _GO_AFFIX.search(text) is not None or _GO_LINK.fullmatch(text) is not None


def _go_candidates(text: str) -> Iterator[PackageCandidate]:
    """Yield the modules that a link, a path of Go's own hosts or a well-known name denotes.

    Packages of other registries with such a name are namesakes.
    """
    link = _GO_LINK.fullmatch(text) or _GO_PATH.fullmatch(text)
    if link:
        name = normalize_package_name("go", link["path"] or link.groupdict().get("id") or "")
        for number, prefix in enumerate(_module_prefixes(name) if name else ()):
            yield PackageCandidate("go", prefix, 1.0 - number / 10)
        return
    name = _normalize_spaces(text)
    bare = _strip_version(name)
    for each in dict.fromkeys((name, bare, _GO_AFFIX.sub("", bare))):
        for package in _PACKAGES_BY_ALIAS.get(normalize_library_name(each), ()):
            if package.startswith("/go/"):
                yield candidate_from_id(package, 1.0)


def _module_prefixes(path: str) -> list[str]:
    """Return a path and those above it: a page can show a package in a folder of its module."""
    parts = path.split("/")
    shortest = 3 if parts[0] in _GO_HOSTS_OF_OWNERS else 2
    lengths = range(len(parts), min(shortest, len(parts)) - 1, -1)
    return ["/".join(parts[:length]) for length in lengths][:MAX_GO_PREFIXES]


def find_repository_candidates(owner: str, repository: str) -> list[PackageCandidate]:
    """Return the packages that a repository may hold."""
    repository_package = REPOSITORIES.get(f"{owner}/{repository}".lower())
    if repository_package:
        return [candidate_from_id(repository_package, 1.0)]
    scoped = normalize_package_name("npm", f"@{owner}/{repository}")
    scoped_candidates = [PackageCandidate("npm", scoped, 0.8)] if scoped else []
    all_candidates = [
        *find_candidates(repository),
        *scoped_candidates,
        *_candidates_in_registries(owner.lower(), 0.5),
    ]
    return list({each.id: each for each in reversed(all_candidates)}.values())[::-1][:MAX_CANDIDATES]


def normalize_library_name(name: str) -> str:
    """Return a name without case and separators, for comparison."""
    return re.sub(r"[\s._/-]+", "", name.lower())


def _normalize_spaces(text: str) -> str:
    return " ".join(text.lower().split())


def _strip_github(text: str) -> str:
    """Return the `<owner>/<name>` that a link into GitHub leads to; any other text as it is."""
    path = _GITHUB_PREFIX.sub("", text)
    folder = _GITHUB_FOLDER.fullmatch(path) if path != text else None
    return folder[1] if folder else path


def _strip_version(text: str) -> str:
    """Return a name without the version after it: `rails 7`, `tokio 1.40`."""
    return _VERSION_AFTER_NAME.sub("", text)


def _parse_candidates(text: str) -> Iterator[PackageCandidate]:
    if crates := [*_crate_candidates(text)]:
        yield from crates
        return
    for registry, pattern in _PACKAGE_LINKS.items():
        if link := pattern.fullmatch(text):
            name = normalize_package_name(registry, link[1] or link[2])
            if name:
                yield PackageCandidate(registry, name, 1.0)
            return
    text = _strip_github(text)
    if text.startswith("@"):
        name = normalize_package_name("npm", text)
        if name:
            yield PackageCandidate("npm", name, 1.0)
        return
    if parts := _REPOSITORY.fullmatch(text):
        yield from find_repository_candidates(parts[1], parts[2])
        return
    yield from _candidates_by_name(text)


def _crate_candidates(text: str) -> Iterator[PackageCandidate]:
    """Yield the crates that a link, a well-known name or a name beside a word such as `rust` denotes."""
    if link := _CRATE_LINK.fullmatch(text):
        written = [link[1]]
    else:
        name = _strip_version(text)
        bare = _RUST_AFFIX.sub("", name)
        known = next(
            (_CRATES[key] for key in map(normalize_library_name, (name, bare)) if key in _CRATES), None
        )
        # `cargo watch` is a crate called so
        written = [known] if known else [bare, name] if bare != name else []
    for number, each in enumerate(written):
        crate = normalize_package_name("crates", each.replace(" ", "-"))
        if crate:
            yield PackageCandidate("crates", crate, 1.0 - number / 10)


def _candidates_by_name(text: str) -> Iterator[PackageCandidate]:
    """Yield candidates from the alias table, for the name as written, and without common affixes."""
    alias_packages = _PACKAGES_BY_ALIAS.get(normalize_library_name(text), ())
    for package in alias_packages:
        yield candidate_from_id(package, 1.0)
    dashed = text.replace(" ", "-")
    yield from _candidates_in_registries(dashed, 0.7 if alias_packages else 1.0)
    bare = _AFFIXES.sub("", text)
    for variant, likeness in ((text.replace(" ", ""), 0.9), (bare.replace(" ", "-"), 0.8)):
        if variant != dashed:
            yield from _candidates_in_registries(variant, likeness)
    named = _strip_version(text)
    for variant in (bare, named):
        if variant != text:
            yield from (
                candidate_from_id(package, 0.9)
                for package in _PACKAGES_BY_ALIAS.get(normalize_library_name(variant), ())
            )
    if named != text:
        yield from _candidates_in_registries(named.replace(" ", "-"), 0.85)


def _candidates_in_registries(name: str, likeness: float) -> Iterator[PackageCandidate]:
    for registry in SEARCHED_REGISTRIES:
        package = normalize_package_name(registry, name)
        if package:
            yield PackageCandidate(registry, package, likeness)


def candidate_from_id(package: str, likeness: float) -> PackageCandidate:
    _, registry, name = package.split("/")
    known: RegistryName = "pypi" if registry == "pypi" else "go" if registry == "go" else "npm"
    return PackageCandidate(known, name.replace("~", "/"), likeness)


def _index_aliases() -> Mapping[str, tuple[str, ...]]:
    packages_by_key: dict[str, list[str]] = {}
    for package, names in ALIASES.items():
        for name in names.split(","):
            packages_by_key.setdefault(normalize_library_name(name), []).append(package)
    return {name: tuple(packages) for name, packages in packages_by_key.items()}


_PACKAGES_BY_ALIAS = _index_aliases()
_CRATES = {normalize_library_name(name): name for name in CRATES}
_ECOSYSTEMS_BY_NAME = {
    normalize_library_name(name): ecosystem for ecosystem, names in OTHER_ECOSYSTEMS.items() for name in names
}
