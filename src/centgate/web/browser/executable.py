"""Find the Chromium executable and prepare its folder and its user."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import tempfile
from pathlib import Path

EXECUTABLE_NAMES = (
    "chromium-headless-shell",
    "chrome-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "chrome",
)
"""Names of the browser, best first: a headless shell, which has no user interface, renders a page with a
quarter of the processor time and half of the memory.
"""
NOBODY_UID = 65534


class RenderFailed(Exception):
    """No browser is available; the message is the cause, as a clause."""


def find_executable(executable: Path | None) -> Path:
    """Return the configured executable, else one on the PATH. Raises RenderFailed if not found."""
    if importlib.util.find_spec("playwright") is None:
        raise RenderFailed("the package playwright is not installed; it comes with the extra `render`")
    if executable is not None:
        if not (executable.is_file() and os.access(executable, os.X_OK)):
            raise RenderFailed(f"{executable} is not an executable file")
        return executable
    program = next(filter(None, map(shutil.which, EXECUTABLE_NAMES)), None)
    if program is None:
        raise RenderFailed(f"no browser was found on the PATH ({', '.join(EXECUTABLE_NAMES)})")
    return Path(program)


def create_browser_folder(program: Path) -> Path:
    """Create a folder with a script that starts the browser. Raises RenderFailed if that is not safe.

    The browser may write to `browser` only, its host process to `keeper`.
    """
    prefix = _drop_privileges_command()
    folder = Path(tempfile.mkdtemp(prefix="centgate-browser-"))
    folder.chmod(0o711)
    for name in ("browser", "keeper"):
        (folder / name).mkdir(mode=0o700)
    if prefix:
        os.chown(folder / "browser", NOBODY_UID, NOBODY_UID)
    starter = folder / "chromium"
    starter.write_text(_render_start_script(folder, f"{prefix}{shlex.quote(str(program))}"))
    starter.chmod(0o755)
    return folder


def _render_start_script(folder: Path, command: str) -> str:
    """Return a script that writes its process ID, which is that of the browser's group, and sets the profile
    last.

    The browser may be a child of that process, as Debian's headless shell is: signals go to the group.
    """
    home, pid = shlex.quote(str(folder / "browser")), shlex.quote(str(folder / "pid"))
    return f"""#!/bin/sh
echo $$ > {pid}
ulimit -c 0
export HOME={home} TMPDIR={home}
exec nice -n 5 {command} "$@" --user-data-dir={home}/profile
"""


def _drop_privileges_command() -> str:
    """Return the command prefix that drops root privileges; empty without them."""
    if os.getuid() != 0:
        return ""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise RenderFailed(
            "Chromium has no sandbox as root, and setpriv, which starts it as the user nobody, was not found"
        )
    return f"{shlex.quote(setpriv)} --reuid={NOBODY_UID} --regid={NOBODY_UID} --clear-groups -- "
