"""Which Chromium is started, in which folder, and as whom."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import tempfile
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
NOBODY = 65534


class RenderFailed(Exception):
    """There is no browser to render with; the message says why, as a clause."""


def find_program(chromium: Path | None) -> Path:
    """The browser's program: the one that is named, or what is found; RenderFailed when it cannot be used."""
    if importlib.util.find_spec("playwright") is None:
        raise RenderFailed("the package playwright is not installed; it comes with the extra `render`")
    if chromium is not None:
        if not os.access(chromium, os.X_OK):
            raise RenderFailed(f"{chromium} is not a program")
        return chromium
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise RenderFailed(f"no browser was found on the PATH ({', '.join(NAMES)})")
    return Path(found)


def make_folder(program: Path) -> Path:
    """A folder with a program that starts the browser in it; RenderFailed where that is not safe.

    The browser may write to `browser` only, its keeper writes to `keeper`.
    """
    unprivileged = _unprivileged()
    folder = Path(tempfile.mkdtemp(prefix="centgate-browser-"))
    folder.chmod(0o711)
    for name in ("browser", "keeper"):
        (folder / name).mkdir(mode=0o700)
    if unprivileged:
        os.chown(folder / "browser", NOBODY, NOBODY)
    starter = folder / "chromium"
    starter.write_text(_starter(folder, f"{unprivileged}{shlex.quote(str(program))}"))
    starter.chmod(0o755)
    return folder


def _starter(folder: Path, command: str) -> str:
    """Leaves its process id, which becomes the browser's, and has the last word on where the profile is."""
    own, pid = shlex.quote(str(folder / "browser")), shlex.quote(str(folder / "pid"))
    return f"""#!/bin/sh
echo $$ > {pid}
ulimit -c 0
export HOME={own} TMPDIR={own}
exec nice -n 5 {command} "$@" --user-data-dir={own}/profile
"""


def _unprivileged() -> str:
    if os.getuid() != 0:
        return ""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise RenderFailed(
            "as root a browser has no sandbox, and setpriv, to start it as nobody, was not found"
        )
    return f"{shlex.quote(setpriv)} --reuid={NOBODY} --regid={NOBODY} --clear-groups -- "
