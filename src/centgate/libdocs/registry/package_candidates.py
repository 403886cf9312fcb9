"""Packages that a name may mean: a link, an ID, a repository, an alias, or words about the ecosystem."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from centgate.libdocs.registry.aliases import REPOSITORIES, find_aliased_packages
from centgate.libdocs.registry.known_libraries import (
    CRATES,
    ECOSYSTEM_WORDS,
    OTHER_ECOSYSTEMS,
    find_standard_library,
)
from centgate.libdocs.registry.package_names import (
    PackageCandidate,
    RegistryName,
    candidate_from_id,
    normalize_library_name,
    normalize_package_name,
)

SEARCHED_REGISTRIES: tuple[RegistryName, ...] = ("pypi", "npm")
"""Registries in which every name is tried; known names of Rust and Go are tried in theirs alone."""
MAX_CANDIDATES = 8
"""Maximum number of packages tried for one name."""

_CRATE_LINK = re.compile(r"(?:https?://)?(?:crates\.io/crates/|docs\.rs/(?:crate/)?|/crates/)([^/?#]+).*")
_PACKAGE_LINKS: Mapping[RegistryName, re.Pattern[str]] = {
    "pypi": re.compile(r"(?:https?://)?(?:www\.)?pypi\.org/(?:project|simple)/([^/?#]+).*|/pypi/(.+)"),
    "npm": re.compile(r"(?:https?://)?(?:www\.)?npmjs\.com/package/((?:@[^/?#]+/)?[^/?#]+).*|/npm/(.+)"),
}
"""Links to a package's page, and IDs."""
_GITHUB_PREFIX = re.compile(r"^(?:(?:git\+)?https?://)?(?:www\.)?github\.com/(?=[^/]+/[^/]+)")
_GITHUB_LINK = re.compile(
    r"(?:(?:git\+)?https?://)?(?:www\.)?github\.com/(?P<name>[^/?#\s]+/[^/?#\s]+?)(?:\.git)?(?:[/?#]\S*)?",
    re.IGNORECASE,
)
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
_REPOSITORY = re.compile(r"/?([a-z0-9][a-z0-9-]*)/([a-z0-9._-]+?)(?:\.git)?/?")
_AFFIXES = re.compile(
    r"^(?:the|python|py|node|js|npm)[ ._-]+"
    r"|(?:[ ._-]+(?:js|py|python|node|library|lib|package|framework|docs|documentation)|(?<=\w\w)js)$"
)


def find_other_ecosystem(query: str) -> str | None:
    """Return the ecosystem that a name belongs to if its registry is not read: "Ruby"; else None.

    A link, a well-known name, also with a version after it, or a word beside the name says so.
    """
    name = re.sub(r"^https?://", "", _strip_github(_normalize_spaces(query)))
    for prefix, ecosystem in _ECOSYSTEM_PREFIXES.items():
        if name.startswith(prefix):
            return ecosystem
    for each in (name, _strip_version(name)):
        if find_aliased_packages(each):
            return None
        key = normalize_library_name(each)
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
    is_known = bool(find_aliased_packages(text))
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
        or bool(find_aliased_packages(text))
        or _SEARCHED_WORD.search(text) is not None
    )


def find_named_repository(query: str) -> str | None:
    """Return the `<owner>/<name>` that a query is, in lower case; None if it is none, or a known one's.

    A module of Node.js in a folder, such as `fs/promises`, is none.
    """
    text = _strip_github(_normalize_spaces(query))
    parts = _REPOSITORY.fullmatch(text)
    is_known = bool(find_aliased_packages(text)) or find_standard_library(query) is not None
    id_patterns = (_CRATE_LINK, _GO_LINK, *_PACKAGE_LINKS.values())
    if parts is None or is_known or any(pattern.fullmatch(text) for pattern in id_patterns):
        return None
    repository = f"{parts[1]}/{parts[2]}"
    return None if repository in REPOSITORIES else repository


def find_linked_module(query: str) -> PackageCandidate | None:
    """Return the module of Go that a repository may hold to which a query is a link on GitHub.

    Its path has the case of the link.
    """
    link = _GITHUB_LINK.fullmatch(query.strip())
    name = normalize_package_name("go", f"github.com/{link['name']}") if link else None
    return PackageCandidate("go", name, 1.0) if name else None


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
        for package in find_aliased_packages(each):
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
    alias_packages = find_aliased_packages(text)
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
            yield from (candidate_from_id(package, 0.9) for package in find_aliased_packages(variant))
    if named != text:
        yield from _candidates_in_registries(named.replace(" ", "-"), 0.85)


def _candidates_in_registries(name: str, likeness: float) -> Iterator[PackageCandidate]:
    for registry in SEARCHED_REGISTRIES:
        package = normalize_package_name(registry, name)
        if package:
            yield PackageCandidate(registry, package, likeness)


_CRATES = {normalize_library_name(name): name for name in CRATES}
_ECOSYSTEMS_BY_NAME = {
    normalize_library_name(name): ecosystem for ecosystem, names in OTHER_ECOSYSTEMS.items() for name in names
}
