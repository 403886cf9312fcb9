"""The website as a folder of static files, for any host."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from centgate.faces.site.deployment import Deployment
from centgate.faces.site.file import HTML, File
from centgate.faces.site.files import all_files
from centgate.faces.site.policy import safety
from centgate.faces.verification import VerificationFile

_KNOWN = (".css", ".html", ".ico", ".js", ".png", ".svg", ".xml")
"""Suffixes that hosts know the media type of."""


class Unwritable(OSError):
    """A file of the website cannot be written; the message says which and why."""


def build(deployment: Deployment, out: Path, own: Sequence[VerificationFile] = ()) -> list[Path]:
    """Write every file of the website below `out`, and give their paths; what lies there else stays.

    Unwritable where a file cannot be written, or would lie outside `out`.
    """
    files = all_files(deployment, own).values()
    contents = {file.lies: file.content for file in files}
    contents["_headers"] = "".join(_headers(deployment, files)).encode()
    contents[".nojekyll"] = b""  # GitHub's host leaves out what starts with a dot or an underscore otherwise
    places = {_place(out, lies): content for lies, content in contents.items()}
    try:
        for place, content in places.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
    except OSError as error:
        raise Unwritable(f"cannot write {error.filename or out}: {error.strerror}") from error
    return list(places)


def _place(out: Path, lies: str) -> Path:
    """Where a file goes; paths come from the API's catalogue, and links may lie in the folder."""
    place = out / lies
    if not place.resolve().is_relative_to(out.resolve()):
        raise Unwritable(f"{lies} would lie outside {out}, so nothing was written")
    return place


def _headers(deployment: Deployment, files: Collection[File]) -> Iterator[str]:
    """`_headers`, in the form of Netlify and Cloudflare Pages: safety, and the types hosts do not know."""
    yield "/*\n"
    yield from (f"  {name}: {value}\n" for name, value in safety(deployment).items())
    yield "  Access-Control-Allow-Origin: *\n"
    for file in files:
        if file.media_type != HTML and not file.lies.endswith(_KNOWN):
            yield f"/{file.lies}\n  Content-Type: {file.media_type}\n"
