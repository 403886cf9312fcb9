"""Write the website as a folder of static files, for any host."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from centgate.api.wellknown_files import WellKnownFile
from centgate.website.api_snapshot import ApiSnapshot
from centgate.website.file import HTML, SiteFile
from centgate.website.files import build_site
from centgate.website.page_changes import read_versions
from centgate.website.security_headers import security_headers

_KNOWN_SUFFIXES = (".css", ".html", ".ico", ".js", ".png", ".svg", ".woff2", ".xml")
"""Suffixes whose media type hosts know."""


class UnwritableFile(OSError):
    """A file of the website cannot be written; the message names it and the reason."""


def write_site(
    deployment: ApiSnapshot, out: Path, operator_files: Sequence[WellKnownFile] = ()
) -> list[Path]:
    """Write all files of the website below `out` and return their paths. Other files there stay unchanged.

    The sitemap keeps the time of the last change of pages that say the same as in an earlier build there.

    Raises UnwritableFile if a file cannot be written, or would be outside `out`.
    """
    files = build_site(deployment, operator_files, read_versions(out, deployment.site)).files.values()
    contents = {file.static_path: file.content for file in files}
    contents["_headers"] = "".join(_header_lines(deployment, files)).encode()
    contents[".nojekyll"] = (
        b""  # GitHub Pages would otherwise skip names that start with a dot or an underscore
    )
    targets = {_resolve_target(out, path): content for path, content in contents.items()}
    try:
        for target, content in targets.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    except OSError as error:
        raise UnwritableFile(f"cannot write {error.filename or out}: {error.strerror}") from error
    return list(targets)


def _resolve_target(out: Path, path: str) -> Path:
    """Return the path to write a file to. Raises UnwritableFile if it leaves `out`, also through a link."""
    target = out / path
    if not target.resolve().is_relative_to(out.resolve()):
        raise UnwritableFile(f"{path} would be outside {out}, so nothing was written")
    return target


def _header_lines(deployment: ApiSnapshot, files: Collection[SiteFile]) -> Iterator[str]:
    """Yield lines of `_headers` (Netlify, Cloudflare Pages): security headers, uncommon media types."""
    yield "/*\n"
    yield from (f"  {name}: {value}\n" for name, value in security_headers(deployment).items())
    yield "  Access-Control-Allow-Origin: *\n"
    for file in files:
        if file.media_type != HTML and not file.static_path.endswith(_KNOWN_SUFFIXES):
            yield f"/{file.static_path}\n  Content-Type: {file.media_type}\n"
