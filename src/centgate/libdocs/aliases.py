"""Names that people use for libraries, and the packages they may mean: spellings, nicknames, import names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

RegistryName: TypeAlias = Literal["pypi", "npm"]
REGISTRIES: tuple[RegistryName, ...] = ("pypi", "npm")
MOST_CANDIDATES = 8
"""Packages that one name is tried as."""

NAMES: Mapping[str, str] = {
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
"""What packages are called beside their names. Where another package bears such a name, this one is meant."""

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
"""Packages of repositories that have another name, have moved, or hold several."""

_NPM_NAME = re.compile(r"(@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*")
_PYPI_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?")
_REPOSITORY = re.compile(r"/?([a-z0-9][a-z0-9-]*)/([a-z0-9._-]+?)(?:\.git)?/?")
_AFFIXES = re.compile(
    r"^(?:the|python|py|node|js|npm)[ ._-]+"
    r"|(?:[ ._-]+(?:js|py|python|node|library|lib|package|framework|docs|documentation)|(?<=\w\w)js)$"
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A package that a name may mean; `likeness` is 1 for its own name or a known one."""

    registry: RegistryName
    name: str
    """As the registry is asked for it; a scoped one with its slash."""
    likeness: float

    @property
    def id(self) -> str:
        """`/pypi/<name>`, `/npm/<name>`, `/npm/@<scope>~<name>`."""
        return package_id(self.registry, self.name)


def package_id(registry: RegistryName, name: str) -> str:
    """The id of a package: two segments, so a scope is parted from its name by `~`."""
    return f"/{registry}/{name.replace('/', '~')}"


def package_name(registry: RegistryName, written: str) -> str | None:
    """A name as its registry knows it, normalised; None for what can be no name there.

    PyPI's rule is packaging.python.org's "Name normalization", npm's that of validate-npm-package-name.
    """
    lower = written.lower()
    if registry == "npm":
        # `~` parts a scope from its name in our ids
        name = lower.replace("~", "/", 1) if lower.startswith("@") else lower
        return name if len(name) <= 214 and _NPM_NAME.fullmatch(name) else None
    if len(lower) > 100 or not _PYPI_NAME.fullmatch(lower):
        return None
    return re.sub(r"[-_.]+", "-", lower)


def candidates(asked: str) -> list[Candidate]:
    """The packages that a name may mean, likeliest first, each once."""
    text = " ".join(asked.lower().split())
    found: dict[str, Candidate] = {}
    for each in _guesses(text):
        best = found.get(each.id)
        if best is None or each.likeness > best.likeness:
            found[each.id] = each
    return sorted(found.values(), key=lambda each: -each.likeness)[:MOST_CANDIDATES]


def of_repository(owner: str, repository: str) -> list[Candidate]:
    """The packages that a repository may hold."""
    known = REPOSITORIES.get(f"{owner}/{repository}".lower())
    if known:
        return [_by_id(known, 1.0)]
    scoped = package_name("npm", f"@{owner}/{repository}")
    inside = [Candidate("npm", scoped, 0.8)] if scoped else []
    named = [*candidates(repository), *inside, *_both(owner.lower(), 0.5)]
    return list({each.id: each for each in reversed(named)}.values())[::-1][:MOST_CANDIDATES]


def key(name: str) -> str:
    """What is left of a name when case and separators are ignored."""
    return re.sub(r"[\s._/-]+", "", name.lower())


def _guesses(text: str) -> Iterator[Candidate]:
    if text.startswith(("/pypi/", "/npm/")):
        registry: RegistryName = "pypi" if text.startswith("/pypi/") else "npm"
        name = package_name(registry, text.split("/", 2)[2])
        if name:
            yield Candidate(registry, name, 1.0)
        return
    if text.startswith("@"):
        name = package_name("npm", text)
        if name:
            yield Candidate("npm", name, 1.0)
        return
    if parts := _REPOSITORY.fullmatch(text):
        yield from of_repository(parts[1], parts[2])
        return
    yield from _named(text)


def _named(text: str) -> Iterator[Candidate]:
    """By the table, as it is written, and without what people add to names."""
    known = _BY_KEY.get(key(text), ())
    for package in known:
        yield _by_id(package, 1.0)
    dashed = text.replace(" ", "-")
    yield from _both(dashed, 0.7 if known else 1.0)
    bare = _AFFIXES.sub("", text)
    for variant, likeness in ((text.replace(" ", ""), 0.9), (bare.replace(" ", "-"), 0.8)):
        if variant != dashed:
            yield from _both(variant, likeness)
    if bare != text:
        yield from (_by_id(package, 0.9) for package in _BY_KEY.get(key(bare), ()))


def _both(name: str, likeness: float) -> Iterator[Candidate]:
    for registry in REGISTRIES:
        written = package_name(registry, name)
        if written:
            yield Candidate(registry, written, likeness)


def _by_id(package: str, likeness: float) -> Candidate:
    _, registry, name = package.split("/")
    return Candidate("pypi" if registry == "pypi" else "npm", name.replace("~", "/", 1), likeness)


def _by_key() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for package, names in NAMES.items():
        for name in names.split(","):
            found.setdefault(key(name), []).append(package)
    return {name: tuple(packages) for name, packages in found.items()}


_BY_KEY = _by_key()
